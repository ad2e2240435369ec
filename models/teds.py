"""TEDS: how alike two tables are, by tree edit distance over `table > tr > td`, exact and fast.

Costs: 1 for a node too many or too few, a wrong tag or a wrong span; else a cell costs its text's relative edit
distance. Insertion and deletion give a node's children to its parent, as in every tree edit distance, so that a row
cut in two costs less than its cells.

A table is a tree of depth three whose roots always pair (giving them to each other never costs more), so Zhang and
Shasha's forest distance over the two tables' nodes in postorder is the whole of it: one grid of cells and rows against
cells and rows, a row of which numpy fills at once. A general algorithm (APTED) takes seconds on a table of 50 x 8
cells, this one some milliseconds; the tests hold the two equal.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

import numpy as np
from lxml import etree
from lxml import html as lxml_html
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cdist

from gravityocr_models.folding import FENCED, PIPE_RULE, fold_text
from gravityocr_models.sequences import best_pairs

Costs = NDArray[np.float64]


@dataclass(frozen=True)
class Cell:
    """text: folded. columns, rows: how many it spans."""

    text: str
    columns: int = 1
    rows: int = 1


@dataclass(frozen=True)
class Table:
    """Rows of cells as written: a cell that spans several rows stands in the first of them only."""

    rows: tuple[tuple[Cell, ...], ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for row in self.rows for cell in row)

    @property
    def size(self) -> int:
        """Nodes of the tree: the table, its rows and its cells."""
        return 1 + len(self.rows) + len(self.cells)


# ---------------------------------------------------------------- reading


def read_table(table: str) -> Table:
    """One HTML table. Sections and `th` make no difference; a table in a cell is that cell's text."""
    root = lxml_html.fragment_fromstring(table, create_parent="div").find(".//table")
    if root is None:
        return Table()
    rows = [row for row in root.iter("tr") if next(row.iterancestors("table")) is root]
    return Table(tuple(tuple(_cell(cell) for cell in row.xpath("./td|./th")) for row in rows))


def _cell(cell: etree._Element) -> Cell:
    inside = html.escape(cell.text or "", quote=False) + "".join(etree.tostring(c, encoding="unicode") for c in cell)
    return Cell(_folded(inside), _span(cell, "colspan"), _span(cell, "rowspan"))


_folded = lru_cache(maxsize=4096)(fold_text)  # one true table meets many predictions, and cells repeat


def _span(cell: etree._Element, name: str) -> int:
    value = cell.get(name, "1").strip()
    return int(value) if value.isdecimal() and int(value) > 0 else 1


_TABLE_TAG = re.compile(r"<(/?)table\b[^>]*>", re.IGNORECASE)
_PIPE_ROW = re.compile(r"(?:[^|\\\n]|\\.)*\|")
_CELL_END = re.compile(r"(?<!\\)\|")


def tables_of(markdown: str) -> list[str]:
    """A page's tables as HTML: first the HTML ones as written (an unclosed one to the end), then the pipe tables."""
    return split_tables(markdown)[0]


def split_tables(markdown: str) -> tuple[list[str], str]:
    """`tables_of`, and the page without them; fenced code stays in it, and no table is looked for inside."""
    found: list[str] = []
    depth = start = 0
    for tag in _TABLE_TAG.finditer(markdown):
        start = tag.start() if depth == 0 else start
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth == 0 and tag[1]:
            found.append(markdown[start : tag.end()])
    if depth:
        found.append(markdown[start:])
    for table in found:
        markdown = markdown.replace(table, "\n\n", 1)
    code = {at for fence in FENCED.finditer(markdown) for at in range(fence.start(), fence.end())}
    kept: list[str] = []
    at = 0
    lines = []
    for line in markdown.split("\n"):
        lines.append((line, at not in code and bool(_PIPE_ROW.match(line))))
        at += len(line) + 1
    for is_row, group in groupby(lines, key=lambda line: line[1]):
        block = [line for line, _ in group]
        if is_row and len(block) > 1 and PIPE_RULE.match(block[1]):
            found.append(f"<table>{''.join(_pipe_row(line) for line in block[:1] + block[2:])}</table>")
        else:
            kept += block
    return found, "\n".join(kept)


def _pipe_row(line: str) -> str:
    cells = _CELL_END.split(line.strip().removeprefix("|"))
    cells = cells[:-1] if cells and not cells[-1].strip() else cells
    return f"<tr>{''.join(f'<td>{cell.strip()}</td>' for cell in cells)}</tr>"


# ---------------------------------------------------------------- distance


def teds(pred_html: str, true_html: str, structure_only: bool = False) -> float:
    """1 - tree edit distance / nodes of the larger tree, for one HTML table each; 0 where `pred_html` has no table."""
    if not _TABLE_TAG.search(pred_html):
        return 0.0
    return table_similarity(read_table(pred_html), read_table(true_html), structure_only)


def table_similarity(ours: Table, theirs: Table, structure_only: bool = False) -> float:
    """`teds` of tables already read."""
    if ours == theirs:
        return 1.0
    return 1 - tree_distance(ours, theirs, structure_only) / max(ours.size, theirs.size)


def tree_distance(ours: Table, theirs: Table, structure_only: bool = False) -> float:
    """The edit distance of the two trees, exactly."""
    if ours.size > theirs.size:  # the distance is symmetric, and numpy takes the longer side
        ours, theirs = theirs, ours
    cells = _cell_costs(ours.cells, theirs.cells, structure_only)
    rows = _row_costs(ours, theirs, cells)
    ends, lengths, is_row = _postorder(theirs)
    ramp = np.arange(len(ends) + 1, dtype=np.float64)
    starts = ends - lengths  # prefix of `theirs` that ends before the node's subtree
    cost = np.empty(len(ends))
    distance, at = ramp, 0
    for number, row in enumerate(ours.rows):
        before = distance
        for _ in row:
            cost[~is_row], cost[is_row] = cells[at], lengths[is_row]  # a cell taken for a row: 1, and the row's cells
            distance = _next_prefix(distance, distance[starts] + cost, ramp)
            at += 1
        cost[~is_row], cost[is_row] = 1 + len(row), rows[number]
        distance = _next_prefix(distance, before[starts] + cost, ramp)
    return float(distance[-1])


def _next_prefix(above: Costs, paired: Costs, ramp: Costs) -> Costs:
    """Distances [M + 1] to every prefix of the other side, one node further: deleted, paired, or after insertions.

    above: distances [M + 1] without the node. paired [M]: distance where the node is the partner of each node there.
    """
    best = above + 1
    np.minimum(best[1:], paired, out=best[1:])
    result: Costs = np.minimum.accumulate(best - ramp) + ramp
    return result


def _postorder(table: Table) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
    """For each cell and row, a row after its cells: its place from 1, the nodes of its subtree, whether it is a row."""
    lengths = np.array([size for row in table.rows for size in (*[1] * len(row), 1 + len(row))], dtype=np.intp)
    is_row = np.array([flag for row in table.rows for flag in (*[False] * len(row), True)], dtype=np.bool_)
    return np.arange(1, len(lengths) + 1), lengths, is_row


def _cell_costs(ours: Sequence[Cell], theirs: Sequence[Cell], structure_only: bool) -> Costs:
    """[ours, theirs]: 1 for a wrong span, else the relative edit distance of the texts (0 for the structure alone)."""
    costs = np.zeros((len(ours), len(theirs)))
    if not costs.size:
        return costs
    if not structure_only:
        texts, true_texts = (list(dict.fromkeys(cell.text for cell in side)) for side in (ours, theirs))
        distances = cdist(texts, true_texts, scorer=Levenshtein.normalized_distance, dtype=np.float64)
        rank, true_rank = ({text: at for at, text in enumerate(side)} for side in (texts, true_texts))
        costs = distances[np.ix_([rank[cell.text] for cell in ours], [true_rank[cell.text] for cell in theirs])]
    spans, true_spans = (np.array([(cell.columns, cell.rows) for cell in side]) for side in (ours, theirs))
    costs[(spans[:, None] != true_spans[None]).any(axis=2)] = 1.0
    return costs


def _row_costs(ours: Table, theirs: Table, cells: Costs) -> Costs:
    """[rows of ours, rows of theirs]: the edit distance of the two rows' sequences of cells."""
    widths = np.array([len(row) for row in theirs.rows], dtype=np.intp)
    costs = np.zeros((len(ours.rows), len(widths)))
    if not costs.size:
        return costs
    widest = int(widths.max())
    ramp = np.arange(widest + 1, dtype=np.float64)
    first = np.cumsum(widths) - widths
    places = np.minimum(first[:, None] + np.arange(widest), max(0, cells.shape[1] - 1))  # past a row's end: never asked
    at = 0
    for number, row in enumerate(ours.rows):
        distance = np.tile(ramp, (len(widths), 1))
        for _ in row:
            best = distance + 1
            if widest:
                np.minimum(best[:, 1:], distance[:, :-1] + cells[at][places], out=best[:, 1:])
            distance = np.minimum.accumulate(best - ramp, axis=1) + ramp
            at += 1
        costs[number] = distance[np.arange(len(widths)), widths]
    return costs


# ---------------------------------------------------------------- a page's tables


@dataclass(frozen=True)
class TableScore:
    """Means over the true tables; surplus: predicted tables without a partner, which cost nothing."""

    teds: float
    teds_structure: float
    surplus: int


def table_score(pred: str, truth: Sequence[str]) -> TableScore:
    """A Markdown page's tables against the true HTML tables (at least one), each with the partner that is best."""
    ours, theirs = [read_table(table) for table in tables_of(pred)], [read_table(table) for table in truth]

    def mean(structure_only: bool) -> float:
        scores = best_pairs([[table_similarity(a, b, structure_only) for a in ours] for b in theirs])
        return sum(scores) / len(theirs)

    return TableScore(mean(False), mean(True), max(0, len(ours) - len(theirs)))
