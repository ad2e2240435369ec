"""Painted lines to list items: where an item starts, what its marker says, how deep it stands.

A marker is a bullet (any glyph; the writer uses one), or a number with a dot or bracket. Depth comes from the indents
of the painted lines where the page has a text layer, else from leading blanks, else from the order in which marker
styles turn up.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gravityocr_cli.hyphens import join_lines
from gravityocr_cli.inline import Runs

_GLYPHS = "•◦▪▫‣⁃●○■□◆◇➢➤►▶✓✔·∙\uf0b7\uf0a7\uf076\uf0d8"
_GLYPH = re.compile(rf"([{_GLYPHS}])(?:\s*)(?=\S|$)")
_DASH = re.compile(r"([-–—*+])(?:\s+|$)")
_NUMBER = re.compile(r"([0-9]{1,3})([.)])(?:\s+|$)")
_REFERENCE = re.compile(r"\[([0-9]{1,3})\]\s*(?=\S)")
_LETTERED = re.compile(r"\(?(?:[a-zA-Z]|[ivx]{1,5}|[0-9]{1,2})\)\s+")
_ITEM_END = re.compile(r"[.!?)\]/0-9]\s*$")
_HIGH = 100  # a number that no list in the middle of a column starts with; pages and years are higher
LEADERS = re.compile(r"(?:\s*[.·…]){4,}\s*(?=[0-9ivxlc]+(?:(?:,\s+|[–-])[0-9ivxlc]+)*\s*$)")


@dataclass(frozen=True)
class Item:
    """One list item. number: as painted, with its dot or bracket, or "" for a bullet. depth: from 0.

    marked: false for text before the first marker, which may go on an item of an earlier column or page.
    """

    text: str
    number: str = ""
    depth: int = 0
    marked: bool = True
    runs: Runs = ()


@dataclass(frozen=True)
class _Start:
    """A painted line that starts an item: its style ("•", ".", ")" ...), number ("" for a bullet) and text."""

    style: str
    number: str
    text: str


def looks_like_list(text: str) -> bool:
    """Whether a text that nobody called a list is one: a bullet glyph first, or two lines with markers in sequence."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return False
    if _GLYPH.match(lines[0]) and len(lines[0] + "".join(lines[1:2])) > 1:
        return True
    if sum(LEADERS.search(line) is not None for line in lines) >= 2:
        return True
    if _DASH.match(lines[0]):
        return sum(_DASH.match(line) is not None for line in lines) >= 2
    for pattern in (_NUMBER, _REFERENCE):
        if first := pattern.match(lines[0]):
            following = [int(match[1]) for line in lines[1:] if (match := pattern.match(line))]
            return int(first[1]) + 1 in following
    return False


def number_of(text: str) -> int | None:
    """The number that the text starts with as a list item would, else None."""
    match = _NUMBER.match(text.lstrip())
    return int(match[1]) if match else None


def items_of(text: str, indents: Sequence[float | None], seen: Mapping[str, int], tolerance: float) -> tuple[Item, ...]:
    """Splits painted lines into items.

    indents: left edge of each line of `text`, in points, None where unknown. seen: words of the document, for hyphens.
    tolerance: edges closer than this, in points, are one column.
    """
    groups: list[tuple[_Start | None, float, list[str]]] = []
    starts: list[_Start] = []
    lines = text.splitlines()
    each_line = any(LEADERS.search(line) for line in lines)
    outdented = _outdented(lines, indents, tolerance)
    for at, (line, indent) in enumerate(zip(lines, indents, strict=True)):
        if not line.strip():
            continue
        start = _start_of(line.strip(), starts, is_first=not groups)
        if start is None and (each_line or at in outdented):
            start = _Start("", "", line.strip())
        edge = float(len(line) - len(line.lstrip())) * tolerance if indent is None else indent
        if start is not None:
            starts.append(start)
            groups.append((start, edge, [start.text]))
        elif groups:
            groups[-1][2].append(line)
        else:
            groups.append((None, edge, [line]))
    marked = [(start, edge) for start, edge, _ in groups if start is not None]
    depths = iter(_depths([start.style for start, _ in marked], [edge for _, edge in marked], tolerance))
    items = (
        Item(_tidy(join_lines(lines, seen)), start.number, next(depths))
        if start
        else Item(join_lines(lines, seen), marked=False)
        for start, _, lines in groups
    )
    return tuple(item if item.text else Item(item.number, depth=item.depth) for item in items)


def _outdented(lines: Sequence[str], indents: Sequence[float | None], tolerance: float) -> frozenset[int]:
    """The lines that start an item with no more of a sign than that the others are indented, as in bibliographies."""
    edges = [indent for indent in indents if indent is not None]
    if not edges or len(edges) < len(lines) or any(_start_of(line.strip(), ()) for line in lines):
        return frozenset()
    left = min(edges)
    starts = [at for at, edge in enumerate(edges) if edge - left <= tolerance]
    ends_before = all(_ITEM_END.search(lines[at - 1]) for at in starts[1:])
    return frozenset(starts if starts[0] == 0 and len(starts) < len(lines) and ends_before else ())


def has_bullet(line: str) -> bool:
    """Whether a line begins with a glyph that marks items."""
    return _GLYPH.match(line) is not None


def has_mark(line: str) -> bool:
    """Whether a line begins as an item does."""
    return _start_of(line, ()) is not None


def _start_of(line: str, earlier: Sequence[_Start], is_first: bool = True) -> _Start | None:
    if match := _GLYPH.match(line) or _DASH.match(line):
        style = match[1] if match[1] not in "-–—" else "-"
        return _Start(style, "", line[match.end() :])
    if match := _NUMBER.match(line):
        starts = _in_sequence(match, earlier, is_first)
        return _Start(match[2], match[1] + match[2], line[match.end() :]) if starts else None
    if match := _REFERENCE.match(line):
        return _Start("[]", "", line)
    if match := _LETTERED.match(line):
        return _Start("a)", "", line)
    return None


def _in_sequence(match: re.Match[str], earlier: Sequence[_Start], is_first: bool) -> bool:
    """Whether a number at a line start goes on a list. Else a wrapped sentence just happens to break there."""
    numbers = [int(start.number[:-1]) for start in earlier if start.style == match[2]]
    number, alone = int(match[1]), match.end() == len(match.string)
    if number == 1 or any(number - 2 <= each < number for each in numbers):
        return True
    return not numbers and (is_first or (number < _HIGH and not alone))


def _depths(styles: Sequence[str], edges: Sequence[float], tolerance: float) -> list[int]:
    """Depths from the columns that the markers stand in; from the order of styles where they all stand in one."""
    columns: list[float] = []
    for edge in sorted(edges):
        if not columns or edge - columns[-1] > tolerance:
            columns.append(edge)
    if len(columns) > 1:
        ranks = [max(rank for rank, column in enumerate(columns) if edge >= column) for edge in edges]
    else:
        order = list(dict.fromkeys(styles))
        ranks = [order.index(style) for style in styles] if _glyphs_differ(order) else [0] * len(styles)
    depths: list[int] = []
    for rank in ranks:
        depths.append(min(rank, depths[-1] + 1) if depths else 0)
    return depths


def _glyphs_differ(order: Sequence[str]) -> bool:
    return len(order) > 1 and "[]" not in order and "" not in order


def _tidy(text: str) -> str:
    return LEADERS.sub(" ... ", text)
