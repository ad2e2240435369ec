"""TEDS by hand-computed values, and its distance against APTED's."""

import random
import time
from typing import Any

import pytest
from apted import APTED, Config

from gravityocr_models.sequences import similarity
from gravityocr_models.teds import (
    Cell,
    Table,
    read_table,
    split_tables,
    table_score,
    tables_of,
    teds,
    tree_distance,
)


def rows(*table: str) -> str:
    """'ab|c' -> a row of two cells with the texts ab and c."""
    return "<table>" + "".join("<tr><td>" + row.replace("|", "</td><td>") + "</td></tr>" for row in table) + "</table>"


SQUARE = rows("aa|bb", "cc|dd")  # 1 + 2 + 4 = 7 nodes


@pytest.mark.parametrize(
    ("pred", "truth", "full", "structure"),
    [
        (SQUARE, SQUARE, 1, 1),
        # half of one cell's text
        (rows("aa|bb", "cc|dX"), SQUARE, 1 - 0.5 / 7, 1),
        # a row missing: three nodes
        (rows("aa|bb"), SQUARE, 1 - 3 / 7, 1 - 3 / 7),
        # a cell too many: 8 nodes
        (rows("aa|bb", "cc|dd|ee"), SQUARE, 1 - 1 / 8, 1 - 1 / 8),
        # empty table: six nodes missing
        ("<table></table>", SQUARE, 1 - 6 / 7, 1 - 6 / 7),
        # sections and th do not matter
        (
            "<table><thead><tr><th>aa</th><th>bb</th></tr></thead><tbody><tr><td>cc</td><td>dd</td></tr></tbody></table>",
            SQUARE,
            1,
            1,
        ),
        # markup inside cells does not matter
        (
            "<table><tr><td><b>aa</b></td><td>b<br>b</td></tr><tr><td>$cc$</td><td>dd</td></tr></table>",
            SQUARE,
            1 - (1 / 3) / 7,
            1,
        ),
        # a merged head against two single cells: a wrong span and a surplus cell, of 5 nodes
        ("<table><tr><td colspan=2>a</td></tr><tr><td>c</td></tr></table>", rows("a|b", "c"), 1 - 2 / 6, 1 - 2 / 6),
        # wrong span alone
        ("<table><tr><td rowspan='2'>a</td></tr></table>", rows("a"), 1 - 1 / 3, 1 - 1 / 3),
        # broken span values count as 1
        ("<table><tr><td colspan='x' rowspan='0'>a</td></tr></table>", rows("a"), 1, 1),
        # columns swapped: both texts differ wholly, the shape is right
        (rows("a|b"), rows("b|a"), 1 - 2 / 4, 1),
        # nested table is text of its cell
        ("<table><tr><td>a<table><tr><td>b</td></tr></table></td></tr></table>", rows("a b"), 1, 1),
    ],
)
def test_teds(pred: str, truth: str, full: float, structure: float) -> None:
    assert teds(pred, truth) == pytest.approx(full)
    assert teds(truth, pred) == pytest.approx(full)
    assert teds(pred, truth, structure_only=True) == pytest.approx(structure)


def test_tables_of_finds_html_and_pipes_but_no_code() -> None:
    page = (
        f"text\n\n{SQUARE}\n\n| a | b\\|c |\n| --- | --- |\n| 1 |  |\n\n```\n| x | y |\n|---|---|\n```\n\n"
        "no | table\n\n<table><tr><td>cut off"
    )
    assert tables_of(page) == [
        SQUARE,
        "<table><tr><td>cut off",
        "<table><tr><td>a</td><td>b\\|c</td></tr><tr><td>1</td><td></td></tr></table>",
    ]


def test_pipe_and_html_tables_score_alike() -> None:
    pipes = "| aa | bb |\n|----|----|\n| cc | dd |"
    score = table_score(pipes, [SQUARE])
    assert (score.teds, score.teds_structure, score.surplus) == (1, 1, 0)


def test_missing_surplus_and_swapped_tables() -> None:
    other = rows("x")
    assert table_score("no table here", [SQUARE]).teds == 0
    assert table_score(other + SQUARE, [SQUARE, other]).teds == 1
    missing = table_score(SQUARE, [SQUARE, other])
    assert missing.teds == pytest.approx(1 / 2)
    surplus = table_score(SQUARE + other + other, [SQUARE])
    assert (surplus.teds, surplus.surplus) == (1, 2)


def test_what_is_left_of_a_page_without_its_tables() -> None:
    found, rest = split_tables(f"a\n\n{SQUARE}\n\nb\n\n| x |\n|---|\n| 1 |\n\n```\n| y |\n|---|\n```\nc")
    assert len(found) == 2
    assert rest.split() == ["a", "b", "```", "|", "y", "|", "|---|", "```", "c"]


def test_a_row_cut_in_two_costs_rows_and_not_cells() -> None:
    # Taking the row away gives its cells to the table, where they meet the cells of both rows: 1 + 2 edits. Keeping it
    # would cost four cells twice and a row.
    one, two = rows("a|b|c|d|e|f|g|h"), rows("a|b|c|d", "e|f|g|h")
    assert tree_distance(read_table(one), read_table(two)) == 3
    assert teds(one, two) == pytest.approx(1 - 3 / 11)


def test_small_trees() -> None:
    assert tree_distance(read_table(rows("a|b")), Table(((Cell("a"),), ()))) == 2  # a cell away, a row in
    assert tree_distance(Table(((),)), Table()) == 1
    assert tree_distance(Table(), Table()) == 0
    assert teds("", rows("a")) == 0
    assert teds("<table></table>", rows("a")) == pytest.approx(1 / 3)


class _Tree:
    def __init__(self, tag: str, children: list["_Tree"], cell: Cell | None = None) -> None:
        self.tag, self.children, self.cell = tag, children, cell


class _Costs(Config):  # type: ignore[misc]
    def __init__(self, structure_only: bool) -> None:
        self.structure_only = structure_only

    def rename(self, one: _Tree, other: _Tree) -> float:
        if one.tag != other.tag:
            return 1.0
        if one.cell is None or other.cell is None:
            return 0.0
        if (one.cell.columns, one.cell.rows) != (other.cell.columns, other.cell.rows):
            return 1.0
        return 0.0 if self.structure_only else 1 - similarity(one.cell.text, other.cell.text)

    def children(self, node: _Tree) -> list[_Tree]:
        return node.children


def tree(table: Table) -> _Tree:
    return _Tree("table", [_Tree("tr", [_Tree("td", [], cell) for cell in row]) for row in table.rows])


def random_table(dice: random.Random, most_rows: int, most_cells: int) -> Table:
    def cell() -> Cell:
        return Cell(dice.choice(["", "a", "b", "ab", "abc", "xyz"]), dice.choice([1, 1, 1, 2]), dice.choice([1, 1, 2]))

    return Table(
        tuple(tuple(cell() for _ in range(dice.randint(0, most_cells))) for _ in range(dice.randint(0, most_rows)))
    )


@pytest.mark.parametrize("structure_only", [False, True])
def test_the_distance_is_that_of_apted(structure_only: bool) -> None:
    dice = random.Random(7)
    for _ in range(100):
        one, other = random_table(dice, 4, 6), random_table(dice, 5, 4)
        truth: Any = APTED(tree(one), tree(other), _Costs(structure_only)).compute_edit_distance()
        assert tree_distance(one, other, structure_only) == pytest.approx(truth, abs=1e-9), (one, other)
        assert tree_distance(other, one, structure_only) == pytest.approx(truth, abs=1e-9)


def test_a_large_table_is_quick() -> None:
    dice = random.Random(1)
    one, other = (rows(*("|".join(str(dice.random()) for _ in range(8)) for _ in range(50))) for _ in range(2))
    started = time.process_time()
    assert 0 < teds(one, other) < 1
    assert time.process_time() - started < 1  # APTED: nine seconds


@pytest.mark.parametrize("loop", ["<tr><td>1", "<td>1", "<table><tr><td>", "<tr>", "<td colspan=99999999999>"])
def test_a_looping_answer_is_scored_quickly(loop: str) -> None:
    started = time.process_time()
    assert teds("<table>" + loop * 2000, SQUARE) < 0.6
    assert time.process_time() - started < 1
