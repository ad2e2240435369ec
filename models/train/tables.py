"""Made-up tables: cells of numbers and words under headers that may span, and their answer in minimal HTML."""

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from gravityocr_models.train.sample import ALPHABET, Glyph
from gravityocr_models.train.typeset import UNITS, made_up, pick

Rng = np.random.Generator
Maker = Callable[[], str]

MOST_COLUMNS = 9


@dataclass(frozen=True)
class Cell:
    """A cell at its upper left place in the grid. align: left, center or right. heading: of a column or the table."""

    text: str
    row: int
    column: int
    rows: int = 1
    columns: int = 1
    align: str = "left"
    heading: bool = False


@dataclass(frozen=True)
class Table:
    """Cells row by row, which together fill the grid; headers: how many rows at the top are headings."""

    cells: tuple[Cell, ...]
    rows: int
    columns: int
    headers: int


def answer_of(table: Table, glyphs: Sequence[Sequence[Glyph | None]]) -> tuple[str, tuple[Glyph | None, ...]]:
    """The table as HTML, and what each of its non-blank characters spells.

    glyphs: for each cell those of its non-blank characters. Markup spells nothing; `&lt;` spells one glyph together.
    """
    text, spelled = "<table>", list[Glyph | None]()
    for _, row in groupby(zip(table.cells, glyphs, strict=True), key=lambda pair: pair[0].row):
        text += "<tr>"
        for cell, painted in row:
            text += _opening(cell)
            spelled += [None] * (len("".join(text.split())) - len(spelled))
            for char, glyph in zip("".join(cell.text.split()), painted, strict=True):
                spelled += [glyph] * len(html.escape(char, quote=False))
            text += html.escape(cell.text, quote=False) + "</td>"
        text += "</tr>"
    text += "</table>"
    return text, (*spelled, *[None] * (len("".join(text.split())) - len(spelled)))


def _opening(cell: Cell) -> str:
    columns = f' colspan="{cell.columns}"' if cell.columns > 1 else ""
    rows = f' rowspan="{cell.rows}"' if cell.rows > 1 else ""
    return f"<td{columns}{rows}>"


def made_up_table(words: Sequence[str], rng: Rng, max_cells: int) -> Table:
    """A table of at most `max_cells` places whose words are taken from `words`, with all that tables are feared for."""
    columns = int(rng.integers(2, min(MOST_COLUMNS, max_cells // 2) + 1))
    rows = int(rng.integers(2, max(2, min(max_cells // columns, 24)) + 1))
    headers = 0 if rng.random() < 0.1 else 2 if rng.random() < 0.3 and columns > 2 and rows > 3 else 1
    cells = _headers(headers, columns, words, rng)
    makers = [_column(number, words, rng) for number in range(columns)]
    empty = rng.choice((0.0, 0.0, 0.05, 0.25))
    section = rng.choice((0.0, 0.0, 0.0, 0.15))
    grouped = rng.random() < 0.15
    covered = 0  # rows that the first column's last cell still reaches down
    for row in range(headers, rows):
        if not covered and rng.random() < section:
            cells.append(Cell(_phrase(words, rng, 4), row, 0, columns=columns, heading=True))
            continue
        reach = 0 if covered else int(rng.integers(1, min(3, rows - row) + 1)) if grouped else 1
        covered += reach - 1
        for column, (make, align) in enumerate(makers):
            if column or reach:
                text = "" if column and rng.random() < empty else make()
                cells.append(Cell(text, row, column, rows=1 if column else reach, align=align))
    return Table(tuple(cells), rows, columns, headers)


def _headers(count: int, columns: int, words: Sequence[str], rng: Rng) -> list[Cell]:
    """One row of headings, or two: groups of columns, and what stands over no group reaches down."""
    align = pick(("left", "center", "center"), rng)

    def heading(row: int, column: int, rows: int = 1, wide: int = 1) -> Cell:
        text = _phrase(words, rng, 3) if rng.random() < 0.8 else f"{_phrase(words, rng, 1)} ({pick(UNITS, rng)})"
        if column == 0 and rng.random() < 0.25:
            text = ""
        return Cell(text, row, column, rows, wide, "left" if column == 0 else align, heading=True)

    if count < 2:
        return [heading(0, column) for column in range(columns)] if count else []
    upper, lower = [heading(0, 0, rows=2)], list[Cell]()
    at = 1
    while at < columns:
        wide = min(int(rng.integers(1, 4)), columns - at)
        upper.append(heading(0, at, rows=2 if wide == 1 else 1, wide=wide))
        lower += [heading(1, at + n) for n in range(wide)] if wide > 1 else []
        at += wide
    return upper + lower


def _phrase(words: Sequence[str], rng: Rng, most: int) -> str:
    start, count = int(rng.integers(len(words))), int(rng.integers(1, most + 1))
    text = " ".join(words[start : start + count])
    return pick((text, text, *[text.capitalize()] * 4, text.title(), text.upper()), rng)


def _column(number: int, words: Sequence[str], rng: Rng) -> tuple[Maker, str]:
    """What makes the cells of a column, and how they are aligned."""
    if number == 0 and rng.random() < 0.8:
        most = pick((1, 2, 3, 8), rng)
        return (lambda: _phrase(words, rng, most)), "left"
    makers = _makers(words, rng)
    kind = pick(tuple(makers), rng)
    wordy = kind in ("words", "sentence", "made up")
    return makers[kind], pick(("left", "left", "center") if wordy else ("right", "center", "center", "left"), rng)


def _makers(words: Sequence[str], rng: Rng) -> dict[str, Maker]:
    """Kinds of columns; within one, numbers have the same number of digits behind the point."""
    top, digits = 10 ** int(rng.integers(1, 6)), int(rng.integers(1, 4))
    unit = pick(UNITS, rng)

    def whole() -> int:
        return int(rng.integers(top))

    def decimal() -> str:
        return f"{rng.uniform(-0.2 * top, top):.{digits}f}".replace("-", pick(("-", "−"), rng))

    return {
        "whole": lambda: str(whole()),
        "thousands": lambda: f"{100 * whole():,}",
        "decimal": decimal,
        "decimals": decimal,
        "percent": lambda: f"{rng.uniform(0, 100):.{digits % 2}f}%",
        "share": lambda: f"{whole()} ({rng.uniform(0, 100):.1f})",
        "error": lambda: f"{rng.uniform(0, top):.{digits}f} ± {rng.uniform(0, 9):.{digits}f}",
        "interval": lambda: f"{rng.uniform(0, 9):.2f} [{rng.uniform(0, 1):.2f}, {rng.uniform(1, 9):.2f}]",
        "range": lambda: f"{whole()}–{top + whole()}",
        "significance": lambda: pick(
            ("<0.001", f"{rng.uniform(0, 1):.3f}", f"{rng.uniform(0, 0.05):.3f}*", "n.s."), rng
        ),
        "year": lambda: str(1950 + whole() % 90),
        "price": lambda: f"{pick('$€£', rng)}{whole()}.{int(rng.integers(100)):02}",
        "unit": lambda: f"{whole()} {unit}",
        "answer": lambda: pick(("Yes", "No", "–", "-", "n/a", "+", "++", "•"), rng),
        "made up": lambda: made_up(rng),
        "words": lambda: _phrase(words, rng, 2),
        "sentence": lambda: _phrase(words, rng, 12),
    }


def words_of(parts: Sequence[str], rng: Rng) -> list[str]:
    """Words of a few parts of a document, as far as an answer can spell them."""
    words = [word for _ in range(4) for word in pick(parts, rng).split() if ALPHABET.issuperset(word)]
    return words or ["item"]
