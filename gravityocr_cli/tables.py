"""Tables as minimal, well-formed HTML: cleaned from a model's answer, written from cells, joined over pages.

Only `table`, `tr`, `th`, `td` with `colspan` and `rowspan`, and `br`, `sup`, `sub` inside cells come out, one row a
line and no blank line, so that Markdown takes the whole as one HTML block.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html.parser import HTMLParser

_INLINE = ("sup", "sub")
_MOST_COLUMNS = 1000  # the HTML standard's bound on colspan


@dataclass(frozen=True)
class Cell:
    """One cell. content: safe HTML (escaped text, `br`, `sup`, `sub`)."""

    content: str
    columns: int = 1
    rows: int = 1
    header: bool = False


Rows = tuple[tuple[Cell, ...], ...]


def has_table(text: str) -> bool:
    return re.search(r"<(?:table|tr|t[dh])\b", text, re.IGNORECASE) is not None


def text_around(text: str) -> str:
    """What stands before and after the table in an answer that should be nothing but a table."""
    before, _, after = _around_table(text)
    return " ".join(re.sub(r"<[^>]*>", " ", f"{before} {after}").split())


def rows_from_html(text: str) -> Rows:
    """The rows of the first table in `text`, however torn its markup. Nested tables give up their text."""
    reader = _Reader()
    reader.feed(_around_table(text)[1])
    reader.close()
    reader.end_row()
    return tuple(
        tuple(replace(cell, rows=min(cell.rows, len(reader.rows) - index)) for cell in row)
        for index, row in enumerate(reader.rows)
    )


def rows_from_pipes(text: str) -> Rows:
    """The rows of a Markdown pipe table; the row over the dashes is the header."""
    rows: list[tuple[Cell, ...]] = []
    for line in text.splitlines():
        cells = [cell.replace("\\|", "|").strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if rows and all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            rows[-1] = tuple(replace(cell, header=True) for cell in rows[-1])
        elif line.strip():
            rows.append(tuple(Cell(html.escape(cell, quote=False)) for cell in cells))
    return tuple(rows)


def rows_from_text(text: str) -> Rows:
    """The last resort: one row a line, columns at tabs or wide gaps."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return tuple(tuple(Cell(html.escape(cell, quote=False)) for cell in re.split(r"\t|\s{2,}", line)) for line in lines)


def to_html(rows: Rows) -> str:
    """The table, without a line break at the end; "" without a cell that has content."""
    if not any(cell.content for row in rows for cell in row):
        return ""
    body = "\n".join("<tr>" + "".join(_cell_html(cell) for cell in row) + "</tr>" for row in rows)
    return f"<table>\n{body}\n</table>"


def width_of(rows: Rows) -> int:
    """Columns of the widest row, cells that reach down from rows above counted."""
    widest, reaching = 0, list[tuple[int, int]]()  # (rows left, columns) of cells that reach down
    for row in rows:
        widest = max(widest, sum(columns for _, columns in reaching) + sum(cell.columns for cell in row))
        reaching += [(cell.rows, cell.columns) for cell in row]
        reaching = [(left - 1, columns) for left, columns in reaching if left > 1]
    return widest


def columns_in(markup: str) -> int:
    """Columns of the HTML table."""
    return width_of(rows_from_html(markup))


def continued(first: str, second: str, same_place: bool) -> str | None:
    """One HTML table of two that follow each other over a page break; None where they are two tables.

    A header that is printed again is dropped. same_place: both stand at the same left and right edge, so a narrower one
    lost empty columns and is filled up.
    """
    upper, lower = rows_from_html(first), rows_from_html(second)
    wide, narrow = width_of(upper), width_of(lower)
    if not upper or not lower or (wide != narrow and not same_place):
        return None
    repeated = 0
    while repeated < min(len(upper), len(lower) - 1) and _words(upper[repeated]) == _words(lower[repeated]):
        repeated += 1
    return to_html(_padded(upper, max(wide, narrow)) + _padded(lower[repeated:], max(wide, narrow)))


class _Reader(HTMLParser):
    """Collects rows from tags in any state of repair. Text between cells becomes a cell, so that nothing is lost."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[tuple[Cell, ...]] = []
        self._row: list[Cell] = []
        self._cell: Cell | None = None
        self._parts: list[str] = []
        self._open: list[str] = []  # inline tags to close with the cell
        self._depth = 0
        self._done = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self._depth += 1
        if self._done or self._depth > 1:
            return
        if tag == "tr":
            self.end_row()
        elif tag in ("td", "th"):
            self._end_cell()
            spans = dict(attrs)
            self._cell = Cell("", _count(spans.get("colspan")), _count(spans.get("rowspan")), tag == "th")
        elif tag == "br":
            self._parts.append("<br>")
        elif tag in _INLINE:
            self._parts.append(f"<{tag}>")
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "table":
            self._depth -= 1
            if self._depth <= 0:
                self.end_row()
                self._done = bool(self.rows)
        if self._done or self._depth > 1:
            return
        if tag in ("td", "th"):
            self._end_cell()
        elif tag == "tr":
            self.end_row()
        elif self._open and self._open[-1] == tag:
            self._open.pop()
            self._parts.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self._done:
            return
        if self._cell is None and data.strip():
            self._cell = Cell("")
        self._parts.append(html.escape(data, quote=False))

    def end_row(self) -> None:
        self._end_cell()
        if self._row:
            self.rows.append(tuple(self._row))
        self._row = []

    def _end_cell(self) -> None:
        self._parts += [f"</{tag}>" for tag in reversed(self._open)]
        if self._cell is not None:
            content = re.sub(r"\s+", " ", "".join(self._parts))
            content = re.sub(r"^(?: |<br>)+|(?: |<br>)+$", "", content)
            content = re.sub(r" ?<br> ?", "<br>", re.sub(r"<(su[pb])>\s*</\1>", "", content))
            self._row.append(replace(self._cell, content=content))
        self._cell, self._parts, self._open = None, [], []


def _around_table(text: str) -> tuple[str, str, str]:
    """The text before the first table's markup, the markup, the text after it."""
    opening = re.search(r"<table\b", text, re.IGNORECASE)
    closing = re.search(r".*</table\s*>", text, re.IGNORECASE | re.DOTALL)
    start = opening.start() if opening else 0
    end = closing.end() if closing and closing.end() > start else len(text)
    return text[:start], text[start:end], text[end:]


def _count(value: str | None) -> int:
    return min(max(int(value), 1), _MOST_COLUMNS) if value and re.fullmatch(r"[0-9]{1,6}", value.strip()) else 1


def _cell_html(cell: Cell) -> str:
    tag = "th" if cell.header else "td"
    columns = f' colspan="{cell.columns}"' if cell.columns > 1 else ""
    rows = f' rowspan="{cell.rows}"' if cell.rows > 1 else ""
    return f"<{tag}{columns}{rows}>{cell.content}</{tag}>"


def _words(row: Sequence[Cell]) -> list[str]:
    return [re.sub(r"<[^>]*>|\s+", "", cell.content).casefold() for cell in row]


def _padded(rows: Rows, width: int) -> Rows:
    missing = width - width_of(rows)
    filler = tuple(Cell("") for _ in range(missing))
    return tuple(row + filler for row in rows) if missing > 0 else rows
