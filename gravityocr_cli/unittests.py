"""Unit tests of a page, in the manner of olmOCR-bench: small facts that hold for the right Markdown in any style.

`present`, `absent`: a text is, or is not, on the page (or in its first or last characters). `order`: one text begins
before another. `table`: a cell with this text has that neighbour. `math`: a formula is there. Both sides are folded as
for every other score; up to `max_diffs` letters may differ. A page without text passes none.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein

from gravityocr_models.latex import tokens
from gravityocr_models.metrics import fold_text, formulas_of
from gravityocr_models.teds import Table, read_table, tables_of

KINDS = ("present", "absent", "order", "table", "math")
WIDEST_SPAN = 1000  # columns that one cell may claim: a model that loops writes any number


@dataclass(frozen=True)
class UnitTest:
    """One test. Which fields count depends on `type`; max_diffs: letters that may differ.

    Raises ValueError for a type that is not known, and where the text to look for is empty.
    """

    id: str
    type: str
    text: str = ""
    first_n: int | None = None
    last_n: int | None = None
    case_sensitive: bool = True
    before: str = ""
    after: str = ""
    cell: str = ""
    up: str = ""
    down: str = ""
    left: str = ""
    right: str = ""
    top_heading: str = ""
    left_heading: str = ""
    math: str = ""
    max_diffs: int = 0

    def __post_init__(self) -> None:
        if self.type not in KINDS:
            raise ValueError(f"unit test {self.id}: unknown type {self.type!r}")
        wanted = {"order": [self.before, self.after], "table": [self.cell], "math": [self.math]}
        if not all(fold_text(each) or tokens(each) for each in wanted.get(self.type, [self.text])):
            raise ValueError(f"unit test {self.id}: nothing to look for")


def read_test(record: Mapping[str, Any]) -> UnitTest:
    """A record of truth.json or of olmOCR-bench's JSON lines. Raises ValueError or TypeError for a broken one."""
    names = {each.name for each in fields(UnitTest)}
    return UnitTest(**{name: value for name, value in record.items() if name in names and value is not None})


def share_passed(markdown: str, tests: Sequence[UnitTest]) -> float:
    """Share of the tests (at least one) that the page passes."""
    return 1 - len(failed(markdown, tests)) / len(tests)


def failed(markdown: str, tests: Sequence[UnitTest]) -> list[UnitTest]:
    """The tests that the page does not pass, in order."""
    answer = _Answer(markdown)
    if not answer.text and not answer.formulas:
        return list(tests)
    return [test for test in tests if not _passes(test, answer)]


@dataclass(frozen=True)
class _Answer:
    """A page's Markdown, in the forms that tests look at."""

    markdown: str

    @cached_property
    def text(self) -> str:
        return fold_text(self.markdown)

    @cached_property
    def tables(self) -> list["_Grid"]:
        return [_Grid(read_table(table)) for table in tables_of(self.markdown)]

    @cached_property
    def formulas(self) -> list[tuple[str, ...]]:
        return [tokens(formula) for formula in formulas_of(self.markdown)]


def _passes(test: UnitTest, answer: _Answer) -> bool:
    if test.type == "order":
        before = places(fold_text(test.before), answer.text, test.max_diffs)
        after = places(fold_text(test.after), answer.text, test.max_diffs)
        return bool(before and after) and before[0] < after[-1]
    if test.type == "table":
        return any(grid.has(test) for grid in answer.tables)
    if test.type == "math":
        return any(_contains(formula, tokens(test.math)) for formula in answer.formulas)
    wanted, text = fold_text(test.text), answer.text
    if test.first_n or test.last_n:
        text = text[: test.first_n or 0] + (text[-test.last_n :] if test.last_n else "")
    if not test.case_sensitive:
        wanted, text = wanted.lower(), text.lower()
    return bool(places(wanted, text, test.max_diffs)) == (test.type == "present")


def places(needle: str, text: str, max_diffs: int) -> list[int]:
    """Where in the text something begins that differs from the needle by at most `max_diffs` letters, ascending.

    Sellers' algorithm on both strings backwards, so that ends of matches are their beginnings.
    """
    if not needle or len(needle) - max_diffs > len(text):
        return []
    letters, ramp = _codes(text[::-1]), np.arange(len(text) + 1)
    distance = np.zeros(len(text) + 1, dtype=np.int64)
    for letter in _codes(needle[::-1]):
        best = distance + 1
        np.minimum(best[1:], distance[:-1] + (letters != letter), out=best[1:])
        distance = np.minimum.accumulate(best - ramp) + ramp
    return [len(text) - int(end) for end in np.flatnonzero(distance <= max_diffs)[::-1]]


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _contains(formula: Sequence[str], part: Sequence[str]) -> bool:
    return any(formula[at : at + len(part)] == part for at in range(len(formula) - len(part) + 1))


class _Grid:
    """A table's texts by row and column, a merged cell in every place that it covers."""

    def __init__(self, table: Table) -> None:
        self._texts: dict[tuple[int, int], str] = {}
        self._spots: list[tuple[str, range, range]] = []
        for row, cells in enumerate(table.rows):
            column = 0
            for cell in cells:
                while (row, column) in self._texts:
                    column += 1
                rows = range(row, min(row + cell.rows, len(table.rows)))
                columns = range(column, column + min(cell.columns, WIDEST_SPAN))
                self._spots.append((cell.text, rows, columns))
                self._texts |= dict.fromkeys(((y, x) for y in rows for x in columns), cell.text)

    def has(self, test: UnitTest) -> bool:
        """Whether some cell has the text and every neighbour that the test names."""
        wanted = {name: fold_text(getattr(test, name)) for name in _NEIGHBOURS if getattr(test, name)}

        def fits(text: str, other: str) -> bool:
            return Levenshtein.distance(text, other) <= test.max_diffs

        return any(
            fits(text, fold_text(test.cell))
            and all(
                any(fits(near, other) for near in self._near(name, rows, columns)) for name, other in wanted.items()
            )
            for text, rows, columns in self._spots
        )

    def _near(self, name: str, rows: range, columns: range) -> Iterator[str]:
        """Texts beside a cell; for headings, of everything above it or left of it."""
        down, across = _NEIGHBOURS[name]
        ys = range(rows[0]) if name == "top_heading" else [rows[-1 if down > 0 else 0] + down] if down else rows
        xs = (
            range(columns[0])
            if name == "left_heading"
            else [columns[-1 if across > 0 else 0] + across]
            if across
            else columns
        )
        return (self._texts[y, x] for y in ys for x in xs if (y, x) in self._texts)


_NEIGHBOURS = {
    "up": (-1, 0),
    "down": (1, 0),
    "left": (0, -1),
    "right": (0, 1),
    "top_heading": (-1, 0),
    "left_heading": (0, -1),
}
