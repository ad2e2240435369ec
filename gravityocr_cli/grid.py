"""Painted lines to the cells of a table: rows by height on the page, columns by what stands above what.

The rows with the most cells know the columns best and are asked first. What then covers two columns spans them, and
what stands half-way between two rows, where both have nothing, spans those.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from operator import attrgetter
from statistics import median

import numpy as np
from scipy.sparse import csgraph

from gravityocr_cli.document import Line, Span
from gravityocr_cli.tables import Cell, Rows
from gravityocr_cli.textlayer import rows_of
from gravityocr_models.signs import Box

FIGURE = re.compile(r"[-–−+]?[0-9][0-9.,]*%?|[-–—]")
_LEADING = 1.35  # font sizes from line to line within a cell at most
_TIGHT = 0.9  # of the usual pitch: rows with most of the cells that are nearer only carry on those above
_TOUCH = 1.0  # points that two extents must share to count as overlapping


@dataclass(frozen=True)
class _Placed:
    """A piece of text in its columns, first and last counted; rows: how many it reaches over."""

    first: int
    last: int
    line: Line
    rows: int = 1


def rows_from_lines(lines: Sequence[Line], rules: Sequence[Box] = ()) -> Rows:
    """The table that painted lines make up; no rows without lines. rules: those drawn between them, if any."""
    pieces = rows_of(lines)
    if not pieces:
        return ()
    painted = [_merge_close(row, [other for other in pieces if other is not row]) for row in pieces]
    columns = _columns(painted)
    painted = _whole_cells(painted, columns)
    placed = [[cell for line in row for cell in _placed(line, columns)] for row in painted]
    placed = [_ruled(row, columns, rules) for row in placed]
    fullest = max(range(len(placed)), key=lambda index: len(placed[index]))
    lefts = [cell.line.box.x0 for cell in placed[fullest]]
    placed[:fullest] = [_widened(row, columns, lefts) for row in placed[:fullest]]
    return _filled(_with_tall_cells(_merge_wrapped(placed)), len(columns))


def _merge_close(row: Sequence[Line], others: Sequence[Sequence[Line]]) -> list[Line]:
    """Pieces of one painted row that only a word space parts become one cell.

    A space that justified setting has stretched gives itself away: more of the other rows have text across it than have
    a cell on either side.
    """
    cells: list[Line] = []
    for line in row:
        gap = (line.box.x0 - cells[-1].box.x1) / line.size if cells else float("inf")
        if gap < 0.45 or (gap < 2.5 and _bridges(cells[-1].box, line.box, others) > 0):
            cells[-1] = together(cells[-1], line)
        else:
            cells.append(line)
    return cells


def _bridges(a: Box, b: Box, rows: Sequence[Sequence[Line]]) -> int:
    """Rows with one piece of text over both boxes, less rows with a piece for each."""
    count = 0
    for row in rows:
        over_a = {index for index, line in enumerate(row) if _shared(line.box, a) > _TOUCH}
        over_b = {index for index, line in enumerate(row) if _shared(line.box, b) > _TOUCH}
        if over_a and over_b and not any(_are_figures(row[index].text) for index in over_a & over_b):
            count += 1 if over_a & over_b else -1
    return count


def _are_figures(text: str) -> bool:
    """Whether the text is several numbers, which no cell is."""
    words = text.split()
    return len(words) > 1 and all(FIGURE.fullmatch(word) for word in words)


def _shared(a: Box, b: Box) -> float:
    return min(a.x1, b.x1) - max(a.x0, b.x0)


def together(a: Line, b: Line) -> Line:
    box = Box(min(a.box.x0, b.box.x0), min(a.box.y0, b.box.y0), max(a.box.x1, b.box.x1), max(a.box.y1, b.box.y1))
    spans = (*_spans(a), Span(" "), *_spans(b)) if a.spans or b.spans else ()
    return replace(a, box=box, text=f"{a.text} {b.text}", bold=a.bold and b.bold, spans=spans)


def _spans(line: Line) -> tuple[Span, ...]:
    return line.spans or (Span(line.text),)


def markup_of(line: Line) -> str:
    """The text as HTML, its raised and lowered parts marked."""
    tags = {1: "sup", -1: "sub"}
    written = ""
    for span in _spans(line):
        text = html.escape(span.text, quote=False)
        tag = tags.get(span.style.script)
        written += f"<{tag}>{text.rstrip()}</{tag}{'> ' if text[-1:].isspace() else '>'}" if tag else text
    return " ".join(written.split())


def _columns(rows: Sequence[Sequence[Line]]) -> list[tuple[float, float]]:
    """Column extents in points, left to right, none overlapping another."""
    columns: list[tuple[float, float]] = []
    for row in sorted(rows, key=len, reverse=True):
        for line in row:
            x0, x1 = line.box.x0, line.box.x1
            touched = _touched(line.box, columns)
            before = max((right for _, right in columns if right <= x0 + _TOUCH), default=float("-inf"))
            after = min((left for left, _ in columns if left >= x1 - _TOUCH), default=float("inf"))
            if not touched and min(x0 - before, after - x1) > 0.3 * line.size:
                columns = sorted([*columns, (x0, x1)])
            elif len(touched) == 1:
                left, right = columns[touched[0]]
                columns[touched[0]] = (min(left, max(x0, before)), max(right, min(x1, after)))
    return _joined(columns, rows)


def _joined(columns: list[tuple[float, float]], rows: Sequence[Sequence[Line]]) -> list[tuple[float, float]]:
    """The columns, two neighbours as one where a text stands over both and no row has one in each."""
    for at in range(len(columns) - 1, 0, -1):
        pair = columns[at - 1 : at + 1]
        touched = [[_touched(line.box, pair) for line in row] for row in rows]
        if any([0, 1] in row for row in touched) and not any([0] in row and [1] in row for row in touched):
            columns = [*columns[: at - 1], (pair[0][0], pair[1][1]), *columns[at + 1 :]]
    return columns


def _whole_cells(rows: Sequence[list[Line]], columns: Sequence[tuple[float, float]]) -> list[list[Line]]:
    """The rows, the lines of a wrapped cell as one, wherever they stand beside the other cells of its row.

    Lines that stand close one under the other are a cell, unless that makes one cell of two full rows: then the whole
    table is set as tight as its text.
    """
    least = max(2.0, 0.6 * max(len(row) for row in rows))
    stacks: list[list[Line]] = []
    last: dict[int, int] = {}  # column -> its last stack
    full: set[int] = set()  # stacks that have a line in a full row
    for row in rows:
        for line in row:
            first, end = _span(line.box, columns)
            above = {last.get(at, -1) for at in range(first, end + 1)}
            at = above.pop()
            if above or at < 0 or not _carries_on(stacks[at][-1], line):
                at = len(stacks)
                stacks.append([])
            stacks[at].append(line)
            last |= dict.fromkeys(range(first, end + 1), at)
            if len(row) >= least:
                if at in full:
                    return list(rows)
                full.add(at)
    return _beside(stacks, columns)


def _carries_on(above: Line, line: Line) -> bool:
    """Whether the line stands under the other, no farther than lines of a cell do."""
    under = line.box.y0 - above.box.y1 > -0.4 * line.size and _is_near(above, line)
    return under and _shared(above.box, line.box) > 0.5 * min(above.box.width, line.box.width)


def _is_near(above: Line, line: Line) -> bool:
    return line.box.y0 - above.box.y1 < (_LEADING - 0.8) * line.size


def _beside(stacks: Sequence[Sequence[Line]], columns: Sequence[tuple[float, float]]) -> list[list[Line]]:
    """Rows of whole cells: those beside each other. Where two of them share a column, their lines are left apart."""
    cells = [reduce(together, stack) for stack in stacks]
    tops, bottoms = (np.array([side(cell.box) for cell in cells]) for side in (attrgetter("y0"), attrgetter("y1")))
    shared = np.minimum(bottoms[:, None], bottoms) - np.maximum(tops[:, None], tops)
    high = bottoms - tops
    count, row_of = csgraph.connected_components(shared > 0.5 * np.minimum(high[:, None], high), directed=False)
    rows: list[list[Line]] = []
    for number in range(count):
        group = sorted(np.flatnonzero(row_of == number).tolist(), key=lambda at: cells[at].box.x0)
        spans = sorted(_span(cells[at].box, columns) for at in group)
        if any(right[0] <= left[1] for left, right in pairwise(spans)):
            rows += rows_of([line for at in group for line in stacks[at]])
        else:
            rows.append([cells[at] for at in group])
    return sorted(rows, key=lambda row: min(line.box.y0 + line.box.y1 for line in row))


def _touched(box: Box, columns: Sequence[tuple[float, float]]) -> list[int]:
    return [index for index, (x0, x1) in enumerate(columns) if min(box.x1, x1) - max(box.x0, x0) > _TOUCH]


def _span(box: Box, columns: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """First and last column of a cell. What touches none and stands close between two belongs to both."""
    if touched := _touched(box, columns):
        return touched[0], touched[-1]
    left = [index for index, (_, x1) in enumerate(columns) if x1 <= box.x0 + _TOUCH]
    right = [index for index, (x0, _) in enumerate(columns) if x0 >= box.x1 - _TOUCH]
    return (left or right[:1])[-1], (right[:1] or left)[0 if right else -1]


def _placed(line: Line, columns: Sequence[tuple[float, float]]) -> list[_Placed]:
    """The line in its columns; apart, where it is as many numbers as columns that only a narrow gap ran together."""
    first, last = _span(line.box, columns)
    words = line.text.split()
    if last > first and len(words) == last - first + 1 and _are_figures(line.text):
        return [_Placed(at, at, replace(line, text=word, spans=())) for at, word in enumerate(words, start=first)]
    return [_Placed(first, last, line)]


def _ruled(row: Sequence[_Placed], columns: Sequence[tuple[float, float]], rules: Sequence[Box]) -> list[_Placed]:
    """The row, its cells spanning the columns of a rule that they stand over or under the middle of, alone."""
    spread: list[_Placed] = []
    for cell in row:
        for rule in rules:
            if _is_centred(cell.line, rule) and sum(_shared(other.line.box, rule) > _TOUCH for other in row) == 1:
                own = [at for at, (x0, x1) in enumerate(columns) if rule.x0 <= (x0 + x1) / 2 <= rule.x1]
                cell = replace(cell, first=min([cell.first, *own]), last=max([cell.last, *own]))
        spread.append(cell)
    return spread


def _is_centred(line: Line, rule: Box) -> bool:
    """Whether the line stands over or under the middle of a level rule, no farther than lines do."""
    apart = max(rule.y0 - line.box.y1, line.box.y0 - rule.y1)
    aside = abs(line.box.x0 + line.box.x1 - rule.x0 - rule.x1) / 2
    return rule.width > rule.height and apart < 0.8 * line.size and aside < 0.5 * line.size


def _widened(row: Sequence[_Placed], columns: Sequence[tuple[float, float]], lefts: Sequence[float]) -> list[_Placed]:
    """A header row whose cells span an empty neighbour where they are centred on both columns and not on their own.

    lefts: where the cells of a full row start, in points; a header that starts there too is not centred at all.
    """
    wide: list[_Placed] = []
    for index, cell in enumerate(row):
        centre = cell.line.box.x
        free_from = wide[-1].last + 1 if wide else 1  # a first column without a header is its rows' labels
        free_to = row[index + 1].first - 1 if index + 1 < len(row) else len(columns) - 1
        spans = [(cell.first, cell.last)]
        flush = any(abs(cell.line.box.x0 - left) < 2 * _TOUCH for left in lefts)
        if cell.first == cell.last and not flush:
            spans += [(at, at + 1) for at in (cell.first - 1, cell.first) if free_from <= at and at + 1 <= free_to]
        first, last = min(spans, key=lambda span: abs(centre - (columns[span[0]][0] + columns[span[1]][1]) / 2))
        wide.append(replace(cell, first=first, last=last))
    return wide


def _merge_wrapped(rows: Sequence[list[_Placed]]) -> list[list[_Placed]]:
    """Joins rows that only carry on the cells above: set tighter than full rows, first column empty or alone.

    Over the first full row few cells under many carry them on, however they are set.
    """
    tops = [_top(row) for row in rows]
    pitches = [float("inf"), *(below - above for above, below in pairwise(tops))]
    most = max(len(row) for row in rows)
    full = [row[0].first == 0 and 2 * len(row) > most > 1 for row in rows]
    usual = median([pitch for pitch, is_full in zip(pitches[1:], full[1:], strict=True) if is_full] or [0.0])
    often = 2 * sum(len(row) == 1 for row in rows) > sum(full)  # more than there are headings between rows
    head = True
    merged: list[list[_Placed]] = []
    for pitch, row in zip(pitches, rows, strict=True):
        head = head and len(row) < most
        known = {(cell.first, cell.last): at for at, cell in enumerate(merged[-1])} if merged else {}
        partial = row[0].first > 0 or len(row) == 1
        tight = 0.97 if 2 * len(row) <= most else _TIGHT
        close = pitch < tight * usual or (head and bool(merged) and 2 * len(row) <= len(merged[-1]))
        if ((often and len(row) == 1) or (close and partial)) and all(
            (at := known.get((cell.first, cell.last))) is not None and _is_near(merged[-1][at].line, cell.line)
            for cell in row
        ):
            for cell in row:
                at = known[cell.first, cell.last]
                merged[-1][at] = replace(merged[-1][at], line=together(merged[-1][at].line, cell.line))
        else:
            merged.append(list(row))
    return merged


def _with_tall_cells(rows: Sequence[list[_Placed]]) -> list[list[_Placed]]:
    """Cells centred on the rows above and below them, and alone in their columns there, reach over both."""
    kept = [list(row) for row in rows]
    for index in range(len(kept) - 2, 0, -1):
        above, row, below = kept[index - 1 : index + 2]
        between = _top(row) < _bottom(above) and _bottom(row) > _top(below)
        if between and not any(_collide(cell, other) for cell in row for other in (*above, *below)):
            kept[index - 1] = sorted([*above, *(replace(cell, rows=2) for cell in row)], key=lambda cell: cell.first)
            del kept[index]
    return kept


def _top(row: Sequence[_Placed]) -> float:
    return min(cell.line.box.y0 for cell in row)


def _bottom(row: Sequence[_Placed]) -> float:
    return max(cell.line.box.y1 for cell in row)


def _collide(a: _Placed, b: _Placed) -> bool:
    return a.first <= b.last and b.first <= a.last


def _filled(rows: Sequence[Sequence[_Placed]], width: int) -> Rows:
    """Rows with an empty cell for each place that has none. Bold rows at the top are the header."""
    filled: list[tuple[Cell, ...]] = []
    reached: set[int] = set()  # columns that a cell of the row above reaches into
    header = True
    for row in rows:
        header = header and all(cell.line.bold for cell in row)
        cells: list[Cell] = []
        at = 0
        for cell in row:
            text = markup_of(cell.line)
            if cell.first < at:  # two pieces of one cell
                cells[-1] = replace(cells[-1], content=f"{cells[-1].content} {text}".strip())
                continue
            cells += [Cell("", header=header) for column in range(at, cell.first) if column not in reached]
            cells.append(Cell(text, cell.last - cell.first + 1, cell.rows, header))
            at = cell.last + 1
        cells += [Cell("", header=header) for column in range(at, width) if column not in reached]
        reached = {column for cell in row if cell.rows > 1 for column in range(cell.first, cell.last + 1)}
        filled.append(tuple(cells))
    return tuple(filled)
