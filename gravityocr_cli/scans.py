"""What a layout detector saw where a page has no painted text -> boxes that cut no line and leave no ink out.

The detector is right about what things are and roughly where; the ink is right about where exactly. Stretches of ink on
a line play the part that painted lines play elsewhere: each joins the box that holds most of it, the box grows to hold
it whole, and what no box holds makes text of its own.
"""

import functools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from gravityocr_cli.document import Kind, Page
from gravityocr_cli.inkcut import cut_by_ink, ink_outside, pictures_outside, pieces_of_lines
from gravityocr_cli.inklines import lines_in
from gravityocr_cli.regions import Found, overlap_of
from gravityocr_cli.ruled import rules_in
from gravityocr_cli.straighten import straightened
from gravityocr_models import layout
from gravityocr_models.signs import Box, hull_of

_LABELS = 0.15  # of a picture's ink: with less outside lines of text it is no picture
_SOLID = 0.7  # of a box: letters and rules never cover so much of their paper
_PRINT = (0.02, 0.4)  # of a dark box: what letters left white on it cover
_SPECK = 30.0  # square points: less is dirt on the glass; a digit of ten points has 35
_LEAST_INK = 12  # pixels beside rules that may be a letter
_MOST = 0.5  # of a page's ink
_LINES, _LINE = 5, 8.0  # a column of text has so many lines at least, so many times as long as their pitch
_SHEET = (595.0, 842.0)  # points
_WHOLE = (Kind.TABLE, Kind.PICTURE, Kind.FORMULA)
"""Kinds whose box counts as it is: much of what they show is no line of text."""


@functools.cache
def _detector(weights: Path) -> layout.Detector:
    """One for each process, loaded when the first scan comes."""
    return layout.Detector(weights)


def read_scan(page: Page, weights: Path) -> tuple[Page, tuple[Found, ...], tuple[str, ...]]:
    """A page without painted text, held upright; what stands where on it; and warnings. weights: the detector's."""
    page = straightened(page)
    return page, *_seen_on(page, weights)


def read_rest(page: Page, found: Sequence[Found], weights: Path) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """What stands where on a page with painted text, and warnings. found: what that text tells.

    A scan with a stamp on it has painted text too: where most of the ink belongs to none, the detector is asked.
    """
    known = [each.box for each in found] + [line.box for line in page.lines]
    if ink_outside(page.ink, page.dpi, Box(0, 0, page.width, page.height), known) < _MOST:
        return tuple(found), ()
    seen, warnings = _seen_on(page, weights)
    new = (each for each in seen if not any(overlap_of(each.box, box) > 0 for box in known))
    return (*found, *new), warnings


def _seen_on(page: Page, weights: Path) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """Without a detector the ink alone decides."""
    try:
        seen = seen_by(_detector(weights), page)
    except (OSError, ValueError, RuntimeError) as error:
        return tuple(found_on_scan(page, ())), (f"layout detection failed: {error}",)
    return tuple(found_on_scan(page, seen)), ()


def seen_by(detector: layout.Detector, page: Page, least: float = layout.LEAST_SCORE) -> tuple[layout.Found, ...]:
    """What the detector sees, in pixels of the page, surest first.

    It knows whole pages: a table that is all there is looks to it as if it went on beyond the edges. Such a one is
    shown to it on a sheet of paper.
    """
    seen = detector.find(page.pixels, least)
    height, width, _ = page.pixels.shape
    short, long = (round(edge * page.dpi / 72) for edge in _SHEET)
    if height * width > short * long / 2 or max(height, width) > long or not _is_table(seen, height * width):
        return seen
    high, wide = (short, long) if width > short else (long, short)
    sheet = np.empty((high, wide, 3), np.uint8)
    sheet[:] = np.median(page.pixels, axis=(0, 1))
    top, left = (high - height) // 4, (wide - width) // 2
    sheet[top : top + height, left : left + width] = page.pixels
    moved = (_moved(each, -left, -top, width, height) for each in detector.find(sheet, least))
    again = tuple(each for each in moved if each.box[0] < each.box[2] and each.box[1] < each.box[3])
    return again if _is_table(again, height * width) else seen


def _is_table(seen: Sequence[layout.Found], area: int) -> bool:
    """Whether tables are most of the area, and no less than half of what is seen."""
    boxes = [each.box for each in seen if each.label == "table"]
    return sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in boxes) > area / 2 and 2 * len(boxes) >= len(seen)


def _moved(each: layout.Found, right: int, down: int, width: int, height: int) -> layout.Found:
    """The find elsewhere, clipped to an image of that size."""
    x0, y0, x1, y1 = each.box
    xs, ys = (min(max(x + right, 0.0), width) for x in (x0, x1)), (min(max(y + down, 0.0), height) for y in (y0, y1))
    (x0, x1), (y0, y1) = xs, ys
    return replace(each, box=(x0, y0, x1, y1))


def found_on_scan(page: Page, seen: Sequence[layout.Found]) -> list[Found]:
    """Labelled boxes in points, in no order. seen: in pixels of the page, surest first."""
    ink = page.ink
    pieces = pieces_of_lines(ink, page.dpi)
    boxes = [
        _without_picture_of_text(_in_points(_solid_as_picture(each, ink), page.dpi), pieces, ink, page.dpi)
        for each in seen
    ]
    boxes = _without_frames([_beside_columns(each, pieces, ink, page.dpi) for each in boxes])
    owners = _owners(pieces, [each.box for each in boxes])
    grown = []
    for index, each in enumerate(boxes):
        own = [piece for piece, owner in zip(pieces, owners, strict=True) if owner == index]
        if each.kind in _WHOLE:
            grown.append(Found(hull_of([each.box, *own]), each.kind))
        elif own:
            grown.append(Found(hull_of(own), each.kind))
        elif _ink_in(each.box, ink, page.dpi) > _SOLID:  # light letters on a dark band: no stretch of ink is theirs
            grown.append(each)
    grown = [_as_note_under_notes(each, grown, page) for each in grown]
    taken = [each.box for each in grown]
    if not taken:
        return [Found(box, kind) for box, kind in cut_by_ink(page.pixels, page.dpi)]
    left = [piece for piece, owner in zip(pieces, owners, strict=True) if owner is None and piece.height >= 3]
    texts = [Found(box, Kind.TEXT) for box in _grouped(left, taken) if _is_more_than_rules(box, page, ink)]
    held = taken + [each.box for each in texts]
    pictures = pictures_outside(ink, page.dpi, held)
    grounds = [box for box in pictures if any(_lies_in(other, box) for other in held)]  # what text is printed on
    return grown + texts + [Found(box, Kind.PICTURE) for box in pictures if box not in grounds]


def _is_legible(group: Box) -> bool:
    """Whether it may say something: a page number does, a speck or a rule doesn't."""
    return group.width * group.height >= _SPECK and group.height <= 4 * group.width


def _is_more_than_rules(box: Box, page: Page, ink: NDArray[np.bool_]) -> bool:
    """Whether a box shows anything beside rules: an empty form doesn't."""
    left = ink.copy()
    for rule in rules_in(page.pixels, page.dpi, box):
        rows, columns = _pixels(rule, page.dpi)
        left[max(0, rows.start - 1) : rows.stop + 1, max(0, columns.start - 1) : columns.stop + 1] = False
    return int(left[_pixels(box, page.dpi)].sum()) >= _LEAST_INK


def _grouped(pieces: Sequence[Box], taken: Sequence[Box]) -> list[Box]:
    """Hulls of pieces that stand beside or closely under one another; none reaches over a box that is taken."""
    groups: list[list[Box]] = []
    for piece in sorted(pieces, key=lambda box: (box.y0, box.x0)):
        near = [group for group in groups if any(_goes_on(other, piece) for other in group)]
        joined = [piece, *(other for group in near for other in group)]
        if any(_lies_in(box, hull_of(joined)) for box in taken):
            groups.append([piece])
        else:
            groups = [group for group in groups if group not in near] + [joined]
    return [hull for group in groups if _is_legible(hull := hull_of(group))]


def _goes_on(a: Box, b: Box) -> bool:
    """Whether two pieces are words of one line, or lines of one paragraph."""
    beside, under = max(a.x0 - b.x1, b.x0 - a.x1), max(a.y0 - b.y1, b.y0 - a.y1)
    least = min(a.height, b.height)
    return (under < -0.5 * least and beside < 2 * least) or (beside < 0 and under < least)


def _in_points(seen: layout.Found, dpi: float) -> Found:
    x0, y0, x1, y1 = (edge * 72 / dpi for edge in seen.box)
    return Found(Box(x0, y0, x1, y1), Kind(seen.label))


def _solid_as_picture(each: layout.Found, ink: NDArray[np.bool_]) -> layout.Found:
    """What is nearly all ink shows nothing to read, whatever it is called; but light letters may stand on it."""
    x0, y0, x1, y1 = (max(0, round(edge)) for edge in each.box)
    inside = ink[y0:y1, x0:x1]
    if not inside.size or inside.mean() <= _SOLID or (Kind(each.label) not in _WHOLE and _has_letters(inside)):
        return each
    return replace(each, label="picture")


def _has_letters(dark: NDArray[np.bool_]) -> bool:
    """Whether a dark place has holes in it, as light letters are: neither specks of a photograph nor its frame."""
    holes = ndimage.binary_fill_holes(dark) & ~dark
    return bool(_PRINT[0] < holes.mean() < _PRINT[1])


def _ink_in(box: Box, ink: NDArray[np.bool_], dpi: float) -> float:
    """The share of a box, in points, that is ink."""
    inside = ink[_pixels(box, dpi)]
    return float(inside.mean()) if inside.size else 0.0


def _without_picture_of_text(each: Found, pieces: Sequence[Box], ink: NDArray[np.bool_], dpi: float) -> Found:
    """The box, as TEXT where it is called a picture and nearly all of its ink stands on lines of text."""
    if each.kind is not Kind.PICTURE:
        return each
    lines = [piece for piece in pieces if _lies_in(piece, each.box) and _is_line(piece)]
    return each if ink_outside(ink, dpi, each.box, lines) > _LABELS else replace(each, kind=Kind.TEXT)


def _beside_columns(each: Found, pieces: Sequence[Box], ink: NDArray[np.bool_], dpi: float) -> Found:
    """The box; a picture without the columns of text beside, over or under what it shows."""
    if each.kind is not Kind.PICTURE:
        return each
    inside = [piece for piece in pieces if _lies_in(piece, each.box) and piece.height > 4]
    for column in _grouped(inside, ()):
        if overlap_of(column, each.box) > 0 and _is_column(column, ink, dpi):
            each = replace(each, box=_beside(each.box, _clip(column, each.box), ink, dpi))
    return each


def _is_column(box: Box, ink: NDArray[np.bool_], dpi: float) -> bool:
    """Whether the ink stands on several lines of like pitch, each long."""
    bands = lines_in(ink[_pixels(box, dpi)])
    pitches = np.diff([72 / dpi * (first + last) / 2 for first, last in bands])
    if len(bands) < _LINES or box.width < _LINE * (usual := np.median(pitches)):
        return False
    return bool(usual > 6 and (np.abs(pitches - usual) < 0.2 * usual).mean() > 0.7)


def _beside(box: Box, column: Box, ink: NDArray[np.bool_], dpi: float) -> Box:
    """Of what lies on the four sides of a column the part with the most ink; all, where that leaves too much out."""
    sides = (
        replace(box, x1=column.x0),
        replace(box, x0=column.x1),
        replace(box, y1=column.y0),
        replace(box, y0=column.y1),
    )
    total, own, *parts = (int(ink[_pixels(each, dpi)].sum()) for each in (box, column, *sides))
    most = max(range(4), key=lambda at: parts[at])
    return sides[most] if parts[most] > 0.8 * (total - own) > 0 else box


def _pixels(box: Box, dpi: float) -> tuple[slice, slice]:
    x0, y0, x1, y1 = (max(0, round(edge * dpi / 72)) for edge in (box.x0, box.y0, box.x1, box.y1))
    return slice(y0, y1), slice(x0, x1)


def _as_note_under_notes(each: Found, found: Sequence[Found], page: Page) -> Found:
    """Text under a footnote in the same column is one too, whatever the detector thought of its first words."""
    box = each.box
    under = any(
        other.kind is Kind.FOOTNOTE
        and 0.5 * page.height < other.box.y1 <= box.y0 + 2
        and min(other.box.x1, box.x1) - max(other.box.x0, box.x0) > 0.5 * box.width
        for other in found
    )
    return replace(each, kind=Kind.FOOTNOTE) if under and each.kind in (Kind.TEXT, Kind.LIST) else each


def _is_line(piece: Box) -> bool:
    return 4 < piece.height < 20 and piece.width > 4 * piece.height


def _without_frames(boxes: list[Found]) -> list[Found]:
    """Without those that are less sure than two or more others that fill most of them: a paragraph is no frame."""
    kept = []
    for at, each in enumerate(boxes):
        inner = [_clip(other.box, each.box) for other in boxes[:at] if _lies_in(other.box, each.box)]
        filled = sum(box.width * box.height for box in inner) > 0.6 * each.box.width * each.box.height
        if len(inner) < 2 or not filled or each.kind in _WHOLE:
            kept.append(each)
    return kept


def _lies_in(inner: Box, outer: Box) -> bool:
    return overlap_of(inner, outer) > 0.8 * inner.width * inner.height


def _clip(box: Box, frame: Box) -> Box:
    return Box(max(box.x0, frame.x0), max(box.y0, frame.y0), min(box.x1, frame.x1), min(box.y1, frame.y1))


def _owners(pieces: Sequence[Box], boxes: Sequence[Box]) -> list[int | None]:
    """For each piece the box that holds most of it, the smaller one where two hold it; None where no box holds half."""
    if not pieces or not boxes:
        return [None] * len(pieces)
    a, b = _corners(pieces), _corners(boxes)
    size = np.clip(np.minimum(a[:, None, 2:], b[None, :, 2:]) - np.maximum(a[:, None, :2], b[None, :, :2]), 0, None)
    shares = size.prod(axis=2) / np.maximum((a[:, 2:] - a[:, :2]).prod(axis=1), 1e-6)[:, None]
    areas = (b[:, 2:] - b[:, :2]).prod(axis=1)
    best = np.argmax(np.round(shares, 1) - 1e-3 * areas / areas.max(), axis=1)
    return [int(i) if shares[row, i] >= 0.5 else None for row, i in enumerate(best)]


def _corners(boxes: Sequence[Box]) -> NDArray[np.float64]:
    return np.array([(box.x0, box.y0, box.x1, box.y1) for box in boxes])
