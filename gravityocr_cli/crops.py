"""(page, region) -> crops: cut, split into strips of a few lines, scaled where a crop would be too large to read.

A crop with many lines asks more of a small model than one with few, so text is read in strips cut at the white between
lines; the answers are joined with line breaks again. A region without ink gives no crop: a model asked to read nothing
invents something.
"""

import io
import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from gravityocr_cli.document import Kind, Line, Page, Region
from gravityocr_cli.ink import ink_of
from gravityocr_cli.inkcut import runs
from gravityocr_cli.inklines import lines_in
from gravityocr_cli.textlayer import CONTRAST, contrast_of, draft_of, font_of, rows_of
from gravityocr_models.mathlayout import MOST_SIGNS, latex_of
from gravityocr_models.records import Crop, Task
from gravityocr_models.signs import UNSOUND, Box, hull_of

LARGE_PX, USUAL_PX = 44, 30  # height of a line's crop from which it is scaled, and to which; body text has about 28
BESIDE_PT = 4.0  # points over and under a formula in which its accents and rules may be, which no line holds
CUT_PT = 36.0  # points that a picture's box may have cut off
SOUND = 0.8  # share of a table's letters that must be in sound lines for its layer to count
MARGIN_PX = 4  # white around a region, so that no stroke touches the crop's edge
RULE_PX = 48  # unbroken ink along it that is no letter's
Ink = NDArray[np.bool_]
_TASKS = {Kind.TABLE: Task.TABLE, Kind.FORMULA: Task.FORMULA}


@dataclass(frozen=True)
class Limits:
    """What the engine reads well: a token covers token_px x token_px pixels; the most tokens and lines of a crop."""

    token_px: int
    max_tokens: int
    max_lines: int

    def tokens(self, height: int, width: int) -> int:
        return math.ceil(height / self.token_px) * math.ceil(width / self.token_px)


def crops_of(page: Page, region: Region, limits: Limits, trust_layer: bool) -> tuple[Crop, ...]:
    """The crops of one region, top to bottom; none where there is nothing to read.

    trust_layer: whether a text layer that the model agrees with is to be kept. Then a table with a sound layer is read
    as rows of text, whose places give its grid; else it is one crop that is asked for as a table.
    """
    pixels, top = _cut_out(page, _without_others(page, region))
    if _is_blank(pixels):
        return ()
    ink = ink_of(pixels)
    as_rows = is_read_as_rows(region, trust_layer)
    task = Task.TEXT if as_rows else _TASKS.get(region.kind, Task.TEXT)
    if task is not Task.TEXT:
        return (Crop(_fitted(pixels, limits), task, _formula_in(page, region) or None, (page.number, region.order)),)
    scale = page.dpi / 72
    pixels, ink = _without_rules(pixels, ink)
    strips = _strips_by_rows(region.lines, ink, scale, top, limits) if region.lines else _strips_by_ink(ink, limits)
    crops = []
    for strip in (part for each in strips for part in _readable(each, ink, limits)):
        rows = slice(strip.start, strip.end)
        if not _is_blank(pixels[rows]):
            shown = _fitted(_trimmed(pixels[rows], ink[rows]), limits)
            if limits.max_lines == 1:
                shown = _line_sized(shown)
            crops.append(_crop(shown, strip.lines, (page.number, region.order)))
    return tuple(crops)


def _without_others(page: Page, region: Region) -> Box:
    """The region's box without the rows over and under its own lines in which lines of other regions stand."""
    if not region.lines or region.kind in _TASKS:
        return region.box
    box, own = region.box, hull_of(line.box for line in region.lines)
    others = [line.box for line in page.lines if line not in region.lines and box.holds(line.box)]
    y0 = max(box.y0, own.y0) if any(other.y < own.y0 for other in others) else box.y0
    y1 = min(box.y1, own.y1) if any(other.y > own.y1 for other in others) else box.y1
    return replace(box, y0=min(y0, y1), y1=y1)


def _formula_in(page: Page, region: Region) -> str:
    """LaTeX of a displayed formula as it is painted; "" where that doesn't tell."""
    if region.kind is not Kind.FORMULA:
        return ""
    own = region.lines
    box = replace(region.box, y0=region.box.y0 - BESIDE_PT, y1=region.box.y1 + BESIDE_PT)
    signs = [sign for sign in page.signs if box.holds(sign.box)]
    if len(signs) > MOST_SIGNS:  # no formula, and comparing them all with the lines would take long
        return ""
    others = [line.box for line in page.lines if line not in own and box.overlaps(line.box)]
    signs = [
        sign
        for sign in signs
        if any(line.box.holds(sign.box) for line in own) or not any(other.holds(sign.box) for other in others)
    ]
    return latex_of(signs, [bar for bar in page.bars if box.holds(bar)])


def is_read_as_rows(region: Region, trust_layer: bool) -> bool:
    """Whether the region is a table with a layer that may be kept: one that is sound but for a few cells."""
    sound = sum(len(line.text) for line in region.lines if UNSOUND not in line.text)
    mostly = sound >= SOUND * max(1, sum(len(line.text) for line in region.lines))
    return region.kind is Kind.TABLE and trust_layer and mostly


def pieces_painted(page: Page, lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines that show something; those that are unsound without their text, to be read."""
    shown = [line for line in lines if not _is_blank(_cut_out(page, line.box)[0])]
    said = [line for line in shown if line.text.strip(UNSOUND + " ")]  # the others are accents of theirs
    return tuple(replace(line, text="", spans=()) if UNSOUND in line.text else line for line in said or shown)


def crops_of_pieces(page: Page, region: Region, pieces: Sequence[Line], limits: Limits) -> tuple[Crop, ...]:
    """A crop for each piece of a table's text; a piece that is painted says what it should show."""
    place = page.number, region.order
    crops = []
    for piece in pieces:
        shown, _ = _cut_out(page, piece.box)
        pixels = _line_sized(_fitted(_without_rules(shown, ink_of(shown))[0], limits))
        crops.append(_crop(pixels, [piece], place) if piece.text else Crop(pixels, Task.TEXT))
    return tuple(crops)


def _crop(pixels: NDArray[np.uint8], lines: Sequence[Line], region: tuple[int, int]) -> Crop:
    """A crop of text that shows these lines of the text layer."""
    font = font_of(lines)
    return Crop(pixels, Task.TEXT, draft_of(lines), region, (region[0], font) if font else None)


def png_of(page: Page, region: Region) -> bytes | None:
    """The region as a PNG file that states its dpi; None where it shows nothing."""
    pixels, _ = _cut_out(page, whole_picture(page, region.box))
    if _is_blank(pixels):
        return None
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", dpi=(page.dpi, page.dpi))
    return file.getvalue()


def whole_picture(page: Page, box: Box) -> Box:
    """The box, grown to hold the ink that crosses its edges: a frame, the last points of a curve.

    A side stays where it is if it would take in a line of text from outside.
    """
    out = Box(
        max(0.0, box.x0 - CUT_PT), max(0.0, box.y0 - CUT_PT),
        min(page.width, box.x1 + CUT_PT), min(page.height, box.y1 + CUT_PT),
    )  # fmt: skip
    scale = page.dpi / 72
    left, top = int(out.x0 * scale), int(out.y0 * scale)
    ink = page.ink[top : math.ceil(out.y1 * scale), left : math.ceil(out.x1 * scale)]
    labels, _ = ndimage.label(ink, np.ones((3, 3)))
    x0, y0, x1, y1 = (
        round((edge - start) * scale) for edge, start in zip(astuple(box), (out.x0, out.y0) * 2, strict=True)
    )
    rows, columns = np.nonzero(np.isin(labels, np.unique(labels[y0:y1, x0:x1])[1:]))
    if not len(rows):
        return box
    ends = columns.min() + left, rows.min() + top, columns.max() + 1 + left, rows.max() + 1 + top
    others = [line.box for line in page.lines if not box.holds(line.box)]
    for side, farther, end in zip(("x0", "y0", "x1", "y1"), (min, min, max, max), ends, strict=True):
        grown = replace(box, **{side: farther(getattr(box, side), float(end) / scale)})
        if not any(grown.overlaps(other) and not box.overlaps(other) for other in others):
            box = grown
    return box


def _is_blank(pixels: NDArray[np.uint8]) -> bool:
    """Whether nothing stands out, by the measure that a line of text must pass to be called visible."""
    return contrast_of(pixels) < CONTRAST


def _cut_out(page: Page, box: Box) -> tuple[NDArray[np.uint8], int]:
    """The region's pixels with their margin, and the row of the page that they begin with."""
    height, width, _ = page.pixels.shape
    scale = page.dpi / 72
    x0, x1 = max(0, int(box.x0 * scale) - MARGIN_PX), min(width, math.ceil(box.x1 * scale) + MARGIN_PX)
    y0, y1 = max(0, int(box.y0 * scale) - MARGIN_PX), min(height, math.ceil(box.y1 * scale) + MARGIN_PX)
    return np.ascontiguousarray(page.pixels[y0:y1, x0:x1]), y0


def _without_rules(pixels: NDArray[np.uint8], ink: Ink) -> tuple[NDArray[np.uint8], Ink]:
    """Pixels and ink with paper where rules run along the margin: over a footnote, around a cell. To a reader of lines
    they are those of roots and overlines."""
    depths = [_ruled_depth(np.rot90(ink, side)) for side in range(4)]
    if not any(depths):
        return pixels, ink
    pixels, ink, paper = pixels.copy(), ink.copy(), np.median(pixels[~ink], axis=0)
    for side, depth in enumerate(depths):
        np.rot90(pixels, side)[:depth], np.rot90(ink, side)[:depth] = paper, False
    return pixels, ink


def _ruled_depth(ink: Ink) -> int:
    """How many rows at the top end with the grey edge of a rule in the margin; 0 without one."""
    least = min(RULE_PX, 0.9 * ink.shape[1])
    full = [at for at, row in enumerate(ink[:MARGIN_PX]) if np.count_nonzero(row) >= least]
    return max((at + 2 for at in full if any(b - a >= least for a, b in runs(ink[at]))), default=0)


@dataclass(frozen=True)
class _Strip:
    """Rows of pixels [start, end) of a region, and the text layer's lines in it."""

    start: int
    end: int
    lines: tuple[Line, ...] = ()


def _strips_by_rows(lines: Sequence[Line], ink: Ink, scale: float, top: int, limits: Limits) -> list[_Strip]:
    """Strips of a few of the text layer's rows each; sound rows and unsound ones apart, so that few need reading."""
    groups = _groups(rows_of(lines))
    sound = [draft_of(group) is not None for group in groups]
    edges = [i for i in range(1, len(groups)) if sound[i] != sound[i - 1]]
    profile = ink.sum(axis=1)
    middles = [
        round(sum(line.box.y0 + line.box.y1 for line in group) / 2 / len(group) * scale) - top for group in groups
    ]
    pitch = max(len(ink) / len(groups), 1.0)
    most = max(1, min(limits.max_lines, int(_cap_px(ink, limits) / pitch)))
    starts = [0]
    for a, b in zip([0, *edges], [*edges, len(groups)], strict=True):
        parts = math.ceil((b - a) / most)
        starts += [a + (b - a) * part // parts for part in range(1, parts)] + [b]
    inner = [_whitest(profile, middles[i - 1], middles[i]) for i in starts[1:-1]]
    cuts = [0, *accumulate(inner, max), len(ink)]
    return [
        _Strip(start, end, tuple(line for group in groups[i:j] for line in group))
        for start, end, i, j in zip(cuts, cuts[1:], starts, starts[1:], strict=False)
    ]


def _readable(strip: _Strip, ink: Ink, limits: Limits) -> list[_Strip]:
    """The strip; its lines as the ink shows them where it must be read, and is more than a reader of lines takes."""
    if limits.max_lines > 1 or strip.end - strip.start <= LARGE_PX or draft_of(strip.lines) is not None:
        return [strip]
    return [_Strip(strip.start + start, strip.start + end) for start, end in lines_in(ink[strip.start : strip.end])]


def _groups(rows: list[list[Line]]) -> list[list[Line]]:
    """Painted rows, those that reach into each other (fractions, limits) taken together."""
    groups: list[list[Line]] = []
    for row in rows:
        y0, y1 = min(line.box.y0 for line in row), max(line.box.y1 for line in row)
        bottom = max((line.box.y1 for line in groups[-1]), default=y0) if groups else y0
        if groups and bottom - y0 > 0.5 * (y1 - y0):
            groups[-1] += row
        else:
            groups.append(list(row))
    return groups


def _strips_by_ink(ink: Ink, limits: Limits) -> list[_Strip]:
    """Strips of a few lines each, of like number, as the ink shows its lines."""
    bands = lines_in(ink)
    pitch = len(ink) / len(bands)
    parts = math.ceil(len(bands) / max(1, min(limits.max_lines, int(_cap_px(ink, limits) / pitch))))
    groups = [bands[len(bands) * part // parts : len(bands) * (part + 1) // parts] for part in range(parts)]
    return [_Strip(group[0][0], group[-1][1]) for group in groups]


def _whitest(profile: NDArray[np.int64], start: int, end: int) -> int:
    """The row of pixels to cut before: the middle of the last high white gap in [start, end), else of the least ink."""
    start = min(max(start, 0), len(profile) - 1)
    stretch = profile[start : max(end, start + 1)]
    gaps = runs(stretch == stretch.min())
    highest = max(b - a for a, b in gaps)
    a, b = next((a, b) for a, b in reversed(gaps) if b - a >= 0.7 * highest)
    return int(start + (a + b) // 2)


def _trimmed(pixels: NDArray[np.uint8], ink: Ink) -> NDArray[np.uint8]:
    """The inked part with its margin: a paragraph's short last line doesn't pay for the paragraph's width."""
    if not ink.any():
        return pixels
    y0, y1 = np.flatnonzero(ink.any(axis=1))[[0, -1]]
    x0, x1 = np.flatnonzero(ink.any(axis=0))[[0, -1]]
    return pixels[max(0, y0 - MARGIN_PX) : y1 + 1 + MARGIN_PX, max(0, x0 - MARGIN_PX) : x1 + 1 + MARGIN_PX]


def _cap_px(ink: Ink, limits: Limits) -> int:
    """How high a strip of the region's width may be."""
    width = int(ink.shape[1])
    return max(1, limits.max_tokens // math.ceil(width / limits.token_px)) * limits.token_px


def _line_sized(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A line's pixels, made smaller where it is set larger than any that a reader of lines has learned from."""
    if len(pixels) <= LARGE_PX:
        return pixels
    scale = USUAL_PX / len(pixels)
    size = max(1, round(pixels.shape[1] * scale)), USUAL_PX
    return np.asarray(Image.fromarray(pixels).resize(size, Image.Resampling.LANCZOS))


def _fitted(pixels: NDArray[np.uint8], limits: Limits) -> NDArray[np.uint8]:
    """The pixels, made smaller where they would cost more tokens than the cap."""
    height, width, _ = pixels.shape
    while limits.tokens(height, width) > limits.max_tokens and max(height, width) > limits.token_px:
        shrink = min(0.97, math.sqrt(limits.max_tokens / limits.tokens(height, width)))
        height, width = max(1, int(height * shrink)), max(1, int(width * shrink))
    if (height, width) == pixels.shape[:2]:
        return pixels
    return np.asarray(Image.fromarray(pixels).resize((width, height), Image.Resampling.LANCZOS))
