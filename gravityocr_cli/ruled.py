"""Ruled tables: the lines painted between cells, and the cells that they enclose.

Rules say what no alignment of text can: which cells span, and which empty places are cells. They are believed only
where they part all the cells; a table that is ruled here and there is left to `grid.py`.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce
from itertools import accumulate, pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from gravityocr_cli.cells import ink_on_grounds, rules_of
from gravityocr_cli.document import Line
from gravityocr_cli.grid import FIGURE, markup_of, together
from gravityocr_cli.tables import Cell, Rows
from gravityocr_cli.textlayer import rows_of
from gravityocr_models.signs import Box

_SAME = 3.0  # points between rules that are one
_DRAWN = 0.6  # share of a cell's side that has to be drawn
_GAP = 2.0  # font sizes between two texts of one row that are no longer one cell's
_FIGURES = 0.7  # share of texts that are numbers where they all are
_OVER = 2.0  # points that text may reach over a rule
Grid = NDArray[np.bool_]


def rules_in(pixels: NDArray[np.uint8], dpi: float, box: Box) -> tuple[Box, ...]:
    """The horizontal and vertical rules of a region, as thin boxes in points.

    pixels: uint8 [H, W, 3] of the page at `dpi`. box: the region's, in points.
    """
    scale = dpi / 72
    top, left = max(0, int((box.y0 - _SAME) * scale)), max(0, int((box.x0 - _SAME) * scale))
    place = pixels[top : int((box.y1 + _SAME) * scale) + 1, left : int((box.x1 + _SAME) * scale) + 1]
    return tuple(
        Box((x0 + left) / scale, (y0 + top) / scale, (x1 + left) / scale, (y1 + top) / scale)
        for x0, y0, x1, y1 in rules_of(ink_on_grounds(place, scale), scale)
    )


def rows_from_rules(lines: Sequence[Line], rules: Sequence[Box]) -> Rows:
    """The table that the rules part into cells; no rows where they don't part it wholly."""
    edges = _edges(lines, rules)
    if edges is None:
        return ()
    xs, ys, across, down = edges
    areas = _areas(across, down)
    held: dict[int, list[Line]] = {}
    for line in lines:
        at = _area_of(line.box, xs, ys, areas)
        if at is None:
            return ()
        held.setdefault(at, []).append(line)
    return _rows(areas, held) if _are_rectangles(areas) and _are_cells(held.values()) else ()


def _are_cells(groups: Collection[Sequence[Line]]) -> bool:
    """Whether texts are those of cells, and not of a column whose rows, or a row whose columns, no rules part."""
    painted = [rows_of(group) for group in groups]
    if any(len(rows) > 1 and _are_figures([line for row in rows for line in row]) for rows in painted):
        return False  # numbers one over the other
    wide = sum(map(_has_gutter, groups))
    return median(map(len, painted)) <= 2 and wide <= 0.2 * len(painted)


def _are_figures(lines: Sequence[Line]) -> bool:
    """Whether nearly all of the texts are numbers; some may be misread."""
    figures = sum(FIGURE.fullmatch(line.text.replace(" ", "")) is not None for line in lines)
    return figures > _FIGURES * len(lines)


def _has_gutter(group: Sequence[Line]) -> bool:
    """Whether white runs down between the texts, wider than any that justified setting leaves."""
    by_left = sorted(group, key=lambda line: line.box.x0)
    rights = accumulate((line.box.x1 for line in by_left), max)
    return any(line.box.x0 - right > _GAP * line.size for line, right in zip(by_left[1:], rights, strict=False))


def _edges(lines: Sequence[Line], rules: Sequence[Box]) -> tuple[list[float], list[float], Grid, Grid] | None:
    """Where columns and rows part, the sides of the table included, and which sides of the places are drawn.

    The grids: [row, column boundary] and [row boundary, column].
    """
    if not lines:
        return None
    upright = [rule for rule in rules if rule.height > rule.width]
    level = [rule for rule in rules if rule.height <= rule.width]
    xs, ys = _merged([(r.x0 + r.x1) / 2 for r in upright]), _merged([(r.y0 + r.y1) / 2 for r in level])
    xs = _with_ends(xs, min(line.box.x0 for line in lines), max(line.box.x1 for line in lines))
    ys = _with_ends(ys, min(line.box.y0 for line in lines), max(line.box.y1 for line in lines))
    if len(xs) < 3 or len(ys) < 3:
        return None
    across = np.array([[_drawn(upright, x, a, b, True) for x in xs] for a, b in pairwise(ys)])
    down = np.array([[_drawn(level, y, a, b, False) for a, b in pairwise(xs)] for y in ys])
    return xs, ys, across, down


def _merged(places: Sequence[float]) -> list[float]:
    merged: list[float] = []
    for place in sorted(places):
        if not merged or place - merged[-1] > _SAME:
            merged.append(place)
    return merged


def _with_ends(places: list[float], first: float, last: float) -> list[float]:
    """The places, and where text stands beyond them the end of that: tables are often open at their sides."""
    if not places:
        return []
    before = [first - 1] if first < places[0] - _OVER else []
    return [*before, *places, *([last + 1] if last > places[-1] + _OVER else [])]


def _drawn(rules: Sequence[Box], place: float, start: float, end: float, upright: bool) -> bool:
    """Whether enough of the side [start, end] at the place is drawn."""
    drawn = 0.0
    for rule in rules:
        middle, a, b = (
            ((rule.x0 + rule.x1) / 2, rule.y0, rule.y1) if upright else ((rule.y0 + rule.y1) / 2, rule.x0, rule.x1)
        )
        if abs(middle - place) <= _SAME:
            drawn += max(0.0, min(b, end) - max(a, start))
    return drawn >= _DRAWN * (end - start)


def _areas(across: Grid, down: Grid) -> NDArray[np.int_]:
    """[row, column] -> the number of the cell that the place belongs to: places without a line between are one."""
    height, width = across.shape[0], down.shape[1]
    areas = np.arange(height * width).reshape(height, width)
    for y in range(height):
        for x in range(width):
            if x and not across[y, x]:
                areas[areas == areas[y, x]] = areas[y, x - 1]
            if y and not down[y, x]:
                areas[areas == areas[y, x]] = areas[y - 1, x]
    return areas


def _are_rectangles(areas: NDArray[np.int_]) -> bool:
    for number in np.unique(areas):
        ys, xs = np.nonzero(areas == number)
        if len(ys) != (np.ptp(ys) + 1) * (np.ptp(xs) + 1):
            return False
    return True


def _area_of(box: Box, xs: Sequence[float], ys: Sequence[float], areas: NDArray[np.int_]) -> int | None:
    """The number of the cell that holds the text; None where it reaches over a rule."""
    y = int(np.searchsorted(ys, (box.y0 + box.y1) / 2)) - 1
    first, last = int(np.searchsorted(xs, box.x0 + _OVER)) - 1, int(np.searchsorted(xs, box.x1 - _OVER)) - 1
    y, first, last = min(max(y, 0), len(ys) - 2), *(min(max(at, 0), len(xs) - 2) for at in (first, last))
    return int(areas[y, first]) if areas[y, first] == areas[y, last] else None


def _rows(areas: NDArray[np.int_], held: dict[int, list[Line]]) -> Rows:
    """The cells row by row; rows that are wholly bold at the top are the header."""
    rows: list[tuple[Cell, ...]] = []
    done: set[int] = set()
    header = True
    for numbers in areas:
        cells = []
        own = [number for number in dict.fromkeys(numbers.tolist()) if number not in done]
        texts = [line for number in own for line in held.get(number, ())]
        header = header and bool(texts) and all(line.bold for line in texts)
        for number in own:
            ys, xs = np.nonzero(areas == number)
            lines = [line for row in rows_of(held.get(number, ())) for line in row]
            content = markup_of(reduce(together, lines)) if lines else ""
            cells.append(Cell(content, int(np.ptp(xs)) + 1, int(np.ptp(ys)) + 1, header))
        done.update(own)
        rows.append(tuple(cells))
    return _without_empty(rows)


def _without_empty(rows: Sequence[tuple[Cell, ...]]) -> Rows:
    """The rows that have a cell of their own; what reaches into the others is so much less high."""
    kept: list[tuple[Cell, ...]] = []
    for row in rows:
        if row:
            kept.append(row)
        else:
            kept = [
                tuple(replace(cell, rows=cell.rows - (cell.rows > len(kept) - at)) for cell in cells)
                for at, cells in enumerate(kept)
            ]
    return tuple(kept)
