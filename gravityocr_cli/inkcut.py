"""Page pixels -> blocks, by white gaps alone: for pages without painted text on which a layout detector sees nothing.

First what is no text by its size goes: dark edges of a scan, rules and frames, pictures. Then a recursive cut of the
remaining ink at 72 dpi, where a pixel is a point: down a gutter where a clear one exists, else along the white gaps
that are wider than the gaps between lines.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from gravityocr_cli.document import Kind
from gravityocr_cli.ink import Mask, ink_of
from gravityocr_models.signs import Box

_GUTTER = 6  # points of white that part two columns
_COLUMN = 80  # points: a narrower piece is a cell or a list mark, not a column
_TALL = 45  # points: connected ink that is wider and higher than this is no text
_FIGURE = 30  # points: a smaller piece of ink outside every region is decoration
_WORD_GAP = 5  # points of white within a line, less than between columns
_NEAR = 5  # points between parts of one drawing
_HEADING = 1.3  # times the height of the page's usual line
_PAD = 1.0  # points around a block: the mask at 72 dpi loses thin ends of letters

Bounds = tuple[int, int, int, int]


def cut_by_ink(pixels: NDArray[np.uint8], dpi: float) -> list[tuple[Box, Kind]]:
    """Blocks of a page, in points, in no order: TEXT, HEADING where a few lines are clearly larger, or PICTURE."""
    mask, scale = _at_72_dpi(ink_of(pixels), dpi)
    pictures = _take_out_large(mask)
    blocks: list[Bounds] = []
    _cut(mask, 0, 0, blocks)
    lines = [_line_heights(mask[y0:y1, x0:x1]) for x0, y0, x1, y1 in blocks]
    usual = float(np.median([height for heights in lines for height in heights] or [0]))
    kinds = [
        Kind.HEADING
        if 0 < len(heights) <= 3 and _HEADING * usual < min(heights) and max(heights) < _TALL
        else Kind.TEXT
        for heights in lines
    ]
    return [
        (Box(max(0, x0 - _PAD) * scale, max(0, y0 - _PAD) * scale, (x1 + _PAD) * scale, (y1 + _PAD) * scale), kind)
        for (x0, y0, x1, y1), kind in [*zip(blocks, kinds, strict=True), *((each, Kind.PICTURE) for each in pictures)]
    ]


def pieces_of_lines(ink: Mask, dpi: float) -> list[Box]:
    """Stretches of ink that stand on one line, in points: letters and words nearer to one another than columns are."""
    mask, scale = _at_72_dpi(ink, dpi)
    _take_out_large(mask)
    joined = ndimage.maximum_filter1d(mask.view(np.uint8), _WORD_GAP, axis=1)
    labels, _ = ndimage.label(joined)
    labels[~mask] = 0
    return [
        Box(columns.start * scale, rows.start * scale, columns.stop * scale, rows.stop * scale)
        for rows, columns in ndimage.find_objects(labels)
    ]


def text_mask(ink: Mask, dpi: float) -> tuple[Mask, float]:
    """The ink that may be text, about a pixel a point, and the exact points of one of its pixels."""
    mask, scale = _at_72_dpi(ink, dpi)
    _take_out_large(mask)
    return mask, scale


def ink_outside(ink: Mask, dpi: float, box: Box, parts: Sequence[Box]) -> float:
    """The share of a box's ink that no part covers, 0..1; 0 where it has none."""
    mask, scale = _at_72_dpi(ink, dpi)
    place = _within(box, scale)
    total = int(np.count_nonzero(mask[place]))
    for part in parts:
        mask[_within(part, scale)] = False
    return int(np.count_nonzero(mask[place])) / max(total, 1)


def pictures_outside(ink: Mask, dpi: float, taken: list[Box]) -> list[Box]:
    """Large ink that no box of `taken` covers, in points: figures that a layout model passed over."""
    mask, scale = _at_72_dpi(ink, dpi)
    free = mask.copy()
    covered = np.zeros_like(mask)
    for box in taken:
        free[_within(box, scale)] = False
        covered[_within(box, scale)] = True
    labels, _ = ndimage.label(ndimage.maximum_filter(free.view(np.uint8), 2 * _NEAR + 1, mode="constant"))
    labels[~free] = 0  # dilation only ties the parts of a drawing together
    pictures = []
    for found in ndimage.find_objects(labels):
        if found is None:
            continue
        rows, columns = found
        large = rows.stop - rows.start > _FIGURE and columns.stop - columns.start > _FIGURE
        if large and covered[rows, columns].mean() < 0.4:  # else a frame around text
            x0, y0, x1, y1 = (edge * scale for edge in (columns.start, rows.start, columns.stop, rows.stop))
            pictures.append(Box(x0, y0, x1, y1))
    return pictures


def runs(flags: NDArray[np.bool_] | np.bool_) -> list[tuple[int, int]]:
    """Half-open stretches of true in a 1-d array."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], flags.astype(np.int8), [0]))))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _at_72_dpi(ink: Mask, dpi: float) -> tuple[Mask, float]:
    """The mask with about a pixel a point, single specks dropped, and the exact points of one of its pixels."""
    step = max(1, min(round(dpi / 72), *ink.shape))  # a page may be lower than a point
    height, width = (ink.shape[0] // step) * step, (ink.shape[1] // step) * step
    dots = ink[:height, :width].view(np.uint8)  # sums over strides: much faster than a mean over blocks
    rows = np.add.reduce([dots[top::step] for top in range(step)], dtype=np.uint16)
    count = np.add.reduce([rows[:, left::step] for left in range(step)], dtype=np.uint16)
    return np.asarray(count > 0.2 * step * step), step * 72 / dpi


def _within(box: Box, scale: float) -> tuple[slice, slice]:
    """The pixels of a mask that a box covers, with one more on each side. scale: points of a pixel."""
    return (
        slice(max(0, int(box.y0 / scale) - 1), int(box.y1 / scale) + 2),
        slice(max(0, int(box.x0 / scale) - 1), int(box.x1 / scale) + 2),
    )


def _cut(mask: Mask, x: int, y: int, boxes: list[Bounds]) -> None:
    """Appends the blocks (x0, y0, x1, y1) of a mask whose top left corner lies at (x, y)."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if len(rows) == 0:
        return
    top, left = int(rows[0]), int(columns[0])
    mask = mask[top : rows[-1] + 1, left : columns[-1] + 1]
    x, y = x + left, y + top
    height, width = mask.shape
    if height < 3 or width < 3:
        return  # a speck or a rule
    if (gutter := _gutter(mask)) is not None:
        _cut(mask[:, :gutter], x, y, boxes)
        _cut(mask[:, gutter:], x + gutter, y, boxes)
        return
    edges = [0, *_block_gaps(mask), height]
    if len(edges) == 2:
        boxes.append((x, y, x + width, y + height))
        return
    for start, end in pairwise(edges):
        _cut(mask[start:end], x, y + start, boxes)


def _gutter(mask: Mask) -> int | None:
    """The middle of the widest white column between two pieces wide enough to be columns, each a few lines high."""
    height, width = mask.shape
    if height < 60:
        return None
    white = runs(mask.sum(axis=0) <= 0.004 * height)
    wide = [(a, b) for a, b in white if b - a >= _GUTTER and a >= _COLUMN and width - b >= _COLUMN]
    if not wide:
        return None
    a, b = max(wide, key=lambda run: run[1] - run[0])
    return (a + b) // 2


def _block_gaps(mask: Mask) -> list[int]:
    """The middles of the white rows that are clearly higher than those between lines."""
    height, width = mask.shape
    white = [(a, b) for a, b in runs(mask.sum(axis=1) <= 0.002 * width) if a > 0 and b < height]
    gaps = sorted(b - a for a, b in white)
    if not gaps:
        return []
    usual = gaps[len(gaps) // 2] if len(gaps) > 2 else gaps[0]
    least = max(4.0, 1.6 * usual) if len(gaps) > 2 else 8.0
    return [(a + b) // 2 for a, b in white if b - a >= least]


def _take_out_large(mask: Mask) -> list[Bounds]:
    """Erases connected ink that is no text and returns the bounds of what looks like pictures.

    A rule, a frame or a dark edge of the scan is erased for good; large ink with much of its box filled, or with little
    else in its box (a line drawing), is a picture.
    """
    labels, _ = ndimage.label(mask, structure=np.ones((3, 3), np.int8))
    height, width = mask.shape
    pictures: list[Bounds] = []
    for label, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        high, wide = rows.stop - rows.start, columns.stop - columns.start
        if not ((high > _TALL and wide > _TALL) or (min(high, wide) <= 3 and max(high, wide) > _TALL)):
            continue
        own = labels[rows, columns] == label
        others = int(np.count_nonzero(mask[rows, columns])) - int(np.count_nonzero(own))
        mask[rows, columns] &= ~own
        at_edge = rows.start == 0 or columns.start == 0 or rows.stop == height or columns.stop == width
        spans = high > 0.6 * height or wide > 0.6 * width
        filled = own.mean() > 0.15 or others < 0.5 * own.sum()
        if min(high, wide) > _TALL and filled and not (at_edge and spans):
            pictures.append((columns.start, rows.start, columns.stop, rows.stop))
    return pictures


def _line_heights(mask: Mask) -> list[int]:
    """The heights of a block's bands of ink, those of dots and accents left out."""
    bands = [b - a for a, b in runs(mask.any(axis=1))]
    return [band for band in bands if 2 * band > max(bands)]


def rules_across(ink: Mask, dpi: float, body: Box) -> list[float]:
    """Heights, in points from the top, of thin lines that cross the whole width of the body."""
    scale = dpi / 72
    x0, x1 = int(body.x0 * scale), int(body.x1 * scale)
    y0, y1 = int(body.y0 * scale), int(body.y1 * scale)
    ink = ink[y0:y1, x0:x1]
    if not ink.size:
        return []
    bands = runs(np.count_nonzero(ink, axis=1) > 0.95 * ink.shape[1])
    return [(y0 + (a + b) / 2) / scale for a, b in bands if b - a <= max(2, 3 * scale)]
