"""Parts of an upright page whose text runs up or down it, as a wide table does that was turned to fit.

Such a part is read as a page of its own, held upright, and takes its place among the page's regions afterwards.
Axis labels, stamps in the margin and the labels of a drawing are no such parts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gravityocr_cli.document import Kind, Line
from gravityocr_cli.regions import Found, overlap_of
from gravityocr_cli.textlayer import rows_of
from gravityocr_models.signs import Box, hull_of

_FURNITURE = (Kind.HEADER, Kind.FOOTER)
_LINES = 4  # fewer are labels
_FRAME = 8.0  # points around the lines, for the rules of a table
_SIDE = 60.0  # points that a part measures at least in both directions
_BETWEEN_ROWS, _BETWEEN_CELLS = 40.0, 150.0  # points of white within one part, across its lines and along them


@dataclass(frozen=True)
class Aside:
    """A place on a page and by how many degrees, clockwise, it must be turned to be read: 90 or 270."""

    box: Box
    turn: int


def asides_of(raw: dict[str, Any], lines: Sequence[Line], found: Sequence[Found]) -> tuple[Aside, ...]:
    """The sideways parts of a page. raw: PyMuPDF's "dict" or "rawdict". lines, found: of the page as it stands."""
    parts = []
    for turn in (90, 270):
        for box, rows in _grouped(list(_sideways(raw, turn))):
            upright = [line for line in lines if overlap_of(line.box, box) > 0 and not _is_among(line.box, rows)]
            drawing = any(each.kind is Kind.PICTURE and _is_part_of(box, each.box) for each in found)
            if len(rows) >= _LINES and min(box.width, box.height) >= _SIDE and not upright and not drawing:
                parts.append(Aside(_framed(box, raw["width"], raw["height"]), turn))
    return tuple(parts)


def without(parts: Sequence[Aside], lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines that stand in none of the parts."""
    return tuple(line for line in lines if not any(_lies_in(line.box, part.box) for part in parts))


def with_places(parts: Sequence[Aside], found: Sequence[Found]) -> tuple[Found, ...]:
    """What was found outside the parts, and for each part a table that keeps its place in reading order."""
    outside = [each for each in found if not any(overlap_of(each.box, part.box) > 0 for part in parts)]
    return (*outside, *(Found(part.box, Kind.TABLE) for part in parts))


def as_table(lines: Sequence[Line], found: Sequence[Found]) -> tuple[Found, ...]:
    """What was found on an upright part: one table where most of its rows have cells and nobody saw any."""
    rows = rows_of(lines)
    if any(each.kind is Kind.TABLE for each in found) or 2 * sum(len(row) > 1 for row in rows) <= len(rows):
        return tuple(Found(each.box, Kind.TEXT) if each.kind in _FURNITURE else each for each in found)
    return (Found(hull_of([line.box for line in lines]), Kind.TABLE),)


def turned(box: Box, turn: int, width: float, height: float) -> Box:
    """Where a box of a page of this size stands once the page is turned clockwise by 90 or 270 degrees."""
    if turn == 90:
        return Box(height - box.y1, box.x0, height - box.y0, box.x1)
    return Box(box.y0, width - box.x1, box.y1, width - box.x0)


def _sideways(raw: dict[str, Any], turn: int) -> Iterator[Box]:
    """Boxes of the lines that read upright after this turn."""
    for block in raw["blocks"]:
        for line in block.get("lines", ()):
            across, down = line["dir"]
            angle = round(math.degrees(math.atan2(down, across)))
            if not line["wmode"] and -angle % 360 == turn:
                yield Box(*line["bbox"])


def _framed(box: Box, width: float, height: float) -> Box:
    x0, y0 = max(box.x0 - _FRAME, 0.0), max(box.y0 - _FRAME, 0.0)
    return Box(x0, y0, min(box.x1 + _FRAME, width), min(box.y1 + _FRAME, height))


def _grouped(boxes: list[Box]) -> list[tuple[Box, list[Box]]]:
    """The boxes in groups of near ones, each with its hull."""
    groups: list[list[Box]] = []
    for box in boxes:
        near = [group for group in groups if any(_are_near(box, other) for other in group)]
        groups = [group for group in groups if group not in near]
        groups.append([box, *(other for group in near for other in group)])
    return [(hull_of(group), group) for group in groups]


def _are_near(a: Box, b: Box) -> bool:
    across, along = max(a.x0 - b.x1, b.x0 - a.x1), max(a.y0 - b.y1, b.y0 - a.y1)
    return across < _BETWEEN_ROWS and along < _BETWEEN_CELLS


def _is_among(box: Box, rows: Sequence[Box]) -> bool:
    return any(_lies_in(box, row) for row in rows)


def _lies_in(inner: Box, outer: Box) -> bool:
    return overlap_of(inner, outer) > 0.5 * inner.width * inner.height


def _is_part_of(box: Box, picture: Box) -> bool:
    """Whether the box is a lesser part of a drawing: labels on its axis."""
    return overlap_of(box, picture) > 0.5 * box.width * box.height and (
        picture.width * picture.height > 1.6 * box.width * box.height
    )
