"""HTML tables as Markdown pipe tables, where those can say the same."""

import html
import re

from gravityocr_cli.tables import Rows, rows_from_html, width_of


def to_pipes(markup: str, forced: bool) -> str | None:
    """The table as a pipe table; None where that would lose something.

    A pipe table has one header row and no spans. forced: give it that form all the same, spans written out as empty
    cells and the first row as the header.
    """
    rows = rows_from_html(markup)
    width = width_of(rows)
    spans = any(cell.columns > 1 or cell.rows > 1 for row in rows for cell in row)
    heads = sum(all(cell.header for cell in row) for row in rows)
    if not rows or width == 0 or (not forced and (spans or heads > 1 or any(len(row) != width for row in rows))):
        return None
    grid = _grid(rows, width)
    lines = ["| " + " | ".join(_text(cell) for cell in row) + " |" for row in grid]
    return "\n".join([lines[0], "| " + " | ".join(["---"] * width) + " |", *lines[1:]])


def _grid(rows: Rows, width: int) -> list[list[str]]:
    """Every row with `width` contents, what a cell spans beyond its first place left empty."""
    grid = [[""] * width for _ in rows]
    taken: set[tuple[int, int]] = set()
    for y, row in enumerate(rows):
        x = 0
        for cell in row:
            while (y, x) in taken:
                x += 1
            if x >= width:
                break
            grid[y][x] = cell.content
            taken |= {(y + down, x + across) for down in range(cell.rows) for across in range(cell.columns)}
            x += cell.columns
    return grid


def _text(content: str) -> str:
    """A cell's HTML as Markdown: entities stay where they keep a sign from acting."""
    plain = re.sub(r"([\\`*_\[\]])", r"\\\1", content)
    return (
        html.unescape(plain).replace("<", "&lt;").replace("|", "\\|")
        if "<" not in content
        else plain.replace("|", "\\|")
    )
