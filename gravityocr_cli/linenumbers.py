"""Numbers beside lines, as listings, manuscripts under review and court papers have them: part of the page, not of its
text.

They stand in one column of one type and count steadily down the page. So do the rows of many a table and the items of
many a list; but those are set as large as what they number, which is short or starts with capitals.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from statistics import median
from typing import Any

from gravityocr_models.signs import Box

_STEPS = (1, 2, 5, 10)
_FEWEST, _FEWEST_LARGE = 4, 10
_STEADY = 0.8  # of a column's numbers follow the one above
_ALIGNED = 1.5  # points
_SMALL = 0.85  # times the size of what they number
_LEVEL = 0.12  # of the size: the marks of notes stand higher
_GOES_ON = 0.3  # of prose's lines start with a small letter; titles don't
_LONG = 30  # letters of a line of prose; cells are shorter


@dataclass(frozen=True)
class _Row:
    """A level line of a "rawdict". size: font size in points. baseline: y of its first letter's."""

    box: Box
    text: str
    font: str
    size: float
    baseline: float


def line_numbers(raw: dict[str, Any]) -> list[Box]:
    """The boxes of the numbers on a page. raw: PyMuPDF's "rawdict"."""
    rows = list(_rows(raw))
    numbers = [row for row in rows if re.fullmatch(r"\d{1,5}", row.text)]
    if len(numbers) < _FEWEST:
        return []
    return list({row.box for column in _columns(numbers) if _numbers_lines(column, rows) for row in column})


def _rows(raw: dict[str, Any]) -> Iterator[_Row]:
    """The level lines, a number of another type that heads one apart from it."""
    for block in raw["blocks"]:
        for line in block.get("lines", ()):
            if line["dir"][0] > 0.99:
                letters = [(char, span) for span in line["spans"] for char in span["chars"] if not char["c"].isspace()]
                head = list(takewhile(lambda letter: letter[0]["c"].isdecimal(), letters))
                rest = letters[len(head) :]
                if head and rest and _type(head[-1][1]) == _type(rest[0][1]):
                    head, rest = [], letters
                yield from (_row(part, line) for part in (head, rest) if part)


def _row(letters: Sequence[tuple[dict[str, Any], dict[str, Any]]], line: dict[str, Any]) -> _Row:
    first, span = letters[0]
    x0, x1 = min(char["bbox"][0] for char, _ in letters), max(char["bbox"][2] for char, _ in letters)
    return _Row(
        Box(x0, line["bbox"][1], x1, line["bbox"][3]),
        "".join(char["c"] for char, _ in letters),
        *_type(span),
        first["origin"][1],
    )


def _type(span: dict[str, Any]) -> tuple[str, float]:
    return span["font"], span["size"]


def _columns(numbers: Sequence[_Row]) -> Iterator[list[_Row]]:
    """The numbers of one type that stand under one another, by their left edges and again by their right ones."""
    for edge in (_left, _right):
        column: list[_Row] = []
        for row in sorted(numbers, key=lambda row: (row.font, row.size, edge(row))):
            last = column[-1] if column else row
            if (row.font, row.size) != (last.font, last.size) or edge(row) - edge(last) > _ALIGNED:
                yield column
                column = []
            column.append(row)
        yield column


def _left(row: _Row) -> float:
    return row.box.x0


def _right(row: _Row) -> float:
    return row.box.x1


def _numbers_lines(column: Sequence[_Row], rows: Sequence[_Row]) -> bool:
    downwards = sorted(column, key=lambda row: row.baseline)
    if len(column) < _FEWEST or not _is_steady([int(row.text) for row in downwards]):
        return False
    beside = [(number, near) for number in column if (near := _beside(number, rows)) is not None]
    if 2 * len(beside) < len(column):
        return False
    level = median(abs(number.baseline - near.baseline) / near.size for number, near in beside) < _LEVEL
    others = [row.box for row in rows if not row.text.isdecimal()]
    outside = max(map(_right, column)) <= min(box.x0 for box in others) or (
        min(map(_left, column)) >= max(box.x1 for box in others)
    )
    if median(number.size / near.size for number, near in beside) < _SMALL:
        return level or outside
    going_on = sum(near.text[0].islower() for _, near in beside)
    prose = going_on >= _GOES_ON * len(beside) and median(len(near.text) for _, near in beside) >= _LONG
    return level and outside and prose and len(column) >= _FEWEST_LARGE


def _is_steady(values: Sequence[int]) -> bool:
    """Whether nearly each is the one above and the usual step, or starts anew."""
    steps = [below - above for above, below in pairwise(values)]
    step = max(_STEPS, key=steps.count)
    starts = sum(each < 0 for each in steps)
    return steps.count(step) >= _FEWEST - 1 and steps.count(step) + starts >= _STEADY * len(steps)


def _beside(number: _Row, rows: Sequence[_Row]) -> _Row | None:
    """The text that is nearest on the number's row, on either side."""
    on_row = (
        row
        for row in rows
        if not row.text.isdecimal() and row.box.y0 < number.baseline <= row.box.y1 + _LEVEL * row.size
    )
    return min(on_row, key=lambda row: max(row.box.x0 - number.box.x1, number.box.x0 - row.box.x1), default=None)
