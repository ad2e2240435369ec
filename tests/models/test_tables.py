"""Tables: their HTML says what is painted, and every glyph is known."""

import html
import re

import numpy as np
import pymupdf
import pytest

from gravityocr_models.records import Task
from gravityocr_models.train.corpora import Corpora, Text
from gravityocr_models.train.curriculum import Stage
from gravityocr_models.train.data import samples
from gravityocr_models.train.tablepaint import Style, draw_table, edges, made_up_style, wrapped
from gravityocr_models.train.tables import Cell, Table, answer_of, made_up_table

WORDS = ["alpha", "beta", "gamma", "delta", "of", "rate", "mean", "total", "R&D"]
CORPORA = Corpora(prose=tuple(Text(f"doc{n}", (" ".join(WORDS),)) for n in range(40)))


def _grid(table: Table) -> np.ndarray:
    """How many cells cover each place."""
    covered = np.zeros((table.rows, table.columns), int)
    for cell in table.cells:
        covered[cell.row : cell.row + cell.rows, cell.column : cell.column + cell.columns] += 1
    return covered


@pytest.mark.parametrize("seed", range(40))
def test_cells_fill_the_grid_in_reading_order(seed: int) -> None:
    table = made_up_table(WORDS, np.random.default_rng(seed), 40)
    assert (_grid(table) == 1).all()
    assert table.rows * table.columns <= 40
    places = [(cell.row, cell.column) for cell in table.cells]
    assert places == sorted(places)


def test_tables_have_all_that_tables_are_feared_for() -> None:
    tables = [made_up_table(WORDS, np.random.default_rng(seed), 60) for seed in range(60)]
    cells = [cell for table in tables for cell in table.cells]
    assert {table.headers for table in tables} == {0, 1, 2}
    assert any(1 < cell.columns < 4 and cell.heading for cell in cells)
    assert any(cell.rows > 1 and not cell.heading for cell in cells)
    assert any(cell.text == "" for cell in cells)
    assert any(re.fullmatch(r"-?\d+\.\d+", cell.text) for cell in cells)


def test_answer_is_minimal_html_and_markup_has_no_glyph() -> None:
    cells = (Cell("A", 0, 0, rows=2), Cell("b c", 0, 1, columns=2), Cell("<1", 1, 1), Cell("", 1, 2))
    glyphs = [[("A", 1.0, 1.0)], [("b", 2.0, 1.0), ("c", 3.0, 1.0)], [("<", 2.0, 2.0), ("1", 3.0, 2.0)], []]
    text, spelled = answer_of(Table(cells, 2, 3, 1), glyphs)
    assert text == (
        '<table><tr><td rowspan="2">A</td><td colspan="2">b c</td></tr><tr><td>&lt;1</td><td></td></tr></table>'
    )
    letters = [char for char in text if not char.isspace()]
    told = [(letter, glyph[0]) for letter, glyph in zip(letters, spelled, strict=True) if glyph]
    assert told == [("A", "A"), ("b", "b"), ("c", "c"), ("&", "<"), ("l", "<"), ("t", "<"), (";", "<"), ("1", "1")]


@pytest.mark.parametrize("seed", range(8))
def test_glyphs_of_painted_tables_lie_on_ink_and_spell_the_cells(seed: int) -> None:
    sample = draw_table(CORPORA, np.random.default_rng(seed), 30, 1.0)
    assert sample.task is Task.TABLE
    assert len(sample.glyphs) == len("".join(sample.text.split()))
    cells = html.unescape("".join(re.sub(r"<[^>]*>", "", sample.text).split()))
    told = [glyph for glyph in sample.glyphs if glyph]
    assert "".join(glyph[0] for glyph in dict.fromkeys(told)) == cells
    for _, x, y in told:
        near = sample.pixels[max(0, int(y) - 5) : int(y) + 6, max(0, int(x) - 4) : int(x) + 5].astype(int)
        assert near.max() - near.min() > 60


def test_large_tables_are_rendered_smaller() -> None:
    for seed in range(3):
        height, width = draw_table(CORPORA, np.random.default_rng(seed), 120, 1.2).pixels.shape
        assert -(-height // 16) * -(-width // 16) <= 1100


def _style(**changes: float) -> Style:
    style = made_up_style((), np.random.default_rng(0))
    return Style(**vars(style) | {"size": 10.0, "leading": 12.0, "pad_x": 2.0, "pad_y": 1.0, "wrap": 60.0} | changes)


def test_words_wrap_and_numbers_do_not() -> None:
    font, style = pymupdf.Font("tiro"), _style()
    assert wrapped("a rather long heading here", font, style) == ["a rather long", "heading here"]
    assert wrapped("12.5 (10.1 to 13.7, n = 3)", font, style) == ["12.5 (10.1 to 13.7, n = 3)"]
    assert wrapped("", font, style) == []


def test_spanning_cells_widen_what_they_span() -> None:
    cells = (Cell("a wide heading", 0, 0, columns=2), Cell("x", 1, 0), Cell("y", 1, 1))
    xs, ys = edges(Table(cells, 2, 2, 1), [["a wide heading"], ["x"], ["y"]], _style())
    assert xs[2] > 60 > 2 * xs[1]
    assert ys == [0.0, 14.0, 28.0]


def test_stage_has_its_share_of_tables() -> None:
    stream = samples(CORPORA, 3, Stage(words=0.5, lines=0.5, paragraphs=0.0, tables=0.4, max_cells=8))
    kinds = [next(stream).task for _ in range(30)]
    assert 4 < kinds.count(Task.TABLE) < 22
