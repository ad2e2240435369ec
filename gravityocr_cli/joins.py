"""Over columns and pages: elements that are halves of one become one.

Elements come in one at a time and go out as soon as nothing later can change them. Only one whose end is open (a
sentence in its middle, a table at the foot of a page) is held, with what stands between it and its second half.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gravityocr_cli import tables
from gravityocr_cli.document import Line, Region
from gravityocr_cli.elements import (
    Aside,
    Element,
    Figure,
    ItemList,
    Lost,
    Note,
    PageBreak,
    Paragraph,
    Table,
)
from gravityocr_cli.headings import size_of
from gravityocr_cli.hyphens import ends_broken, is_wide, join
from gravityocr_cli.inline import Runs, joined_runs
from gravityocr_cli.lists import Item, looks_like_list
from gravityocr_cli.textlayer import rows_of
from gravityocr_models.signs import Box

_FINAL = re.compile(r"""[.?!:…。！？：．]["'”’»)\]」』）】]*$""")
_CONTINUED = re.compile(r"\b(?:continued|cont(?:['’]d|d?\.)|fortsetzung|suite)|续|続", re.IGNORECASE)
# A paragraph that breaks off after one of these has not ended, whatever the next one starts with.
_UNFINISHED = re.compile(r"(?:^|\s)(?:the|an?|of|and|or|by|with|from|for|in|to|at|that|which|is|are|was|were|as|its)$")
_PAGES_HELD = 2


def flow(held: list[Element], new: Element, seen: Mapping[str, int]) -> tuple[list[Element], list[Element]]:
    """What is finished now that `new` has come, and what is still held. held: an open element and what came since."""
    if held:
        for at, element in enumerate(held):
            joined = _joined(element, new, held[at + 1 :], seen)
            if joined is not None:
                changed = [*held[:at], joined[0], *held[at + 1 :]]
                rest = joined[1]
                return (changed, [rest]) if rest is not None else ([], changed)
        floats = isinstance(new, Table | Figure | Aside | Note | Lost | PageBreak) or _stands_between(held[0], new)
        stale = isinstance(new, PageBreak) and new.page - max(map(_last_page, held)) > _PAGES_HELD
        if floats and not stale:
            return [], [*held, new]
    return (held, [new]) if _is_open(new) else ([*held, new], [])


def _stands_between(first: Element, new: Element) -> bool:
    """Whether a paragraph only interrupts one that broke off within a word: its rest has to come."""
    if not isinstance(first, Paragraph) or not isinstance(new, Paragraph):
        return False
    return ends_broken(first.text) and not new.text[:1].islower() and not _is_open(new)


def _is_open(element: Element) -> bool:
    """Whether something later may go on this element."""
    if isinstance(element, Paragraph):
        return is_unfinished(element.text) and _fills_last_line(element.last.lines)
    if isinstance(element, ItemList):
        return is_unfinished(element.items[-1].text)
    return isinstance(element, Table)


def _last_page(element: Element) -> int:
    """The page that an element which may be open ends on; 0 for others."""
    match element:
        case Paragraph(last=region) | ItemList(region=region) | Table(region=region):
            return region.page
        case _:
            return 0


def _joined(
    a: Element, b: Element, between: Sequence[Element], seen: Mapping[str, int]
) -> tuple[Element, Element | None] | None:
    """Two elements as one, and what of the second is left; None where they are not halves of one."""
    if isinstance(a, Paragraph) and isinstance(b, Paragraph) and _is_open(a):
        apart = bool(between) or _breaks(a.last, b.first)
        if (apart and _goes_on(a, b)) or (ends_broken(a.text) and b.text[:1].islower()):
            text = join(a.text, b.text, seen)
            return replace(a, text=text, last=b.last, runs=joined_runs(text, a.runs, b.runs, len(b.text))), None
    if isinstance(a, ItemList) and isinstance(b, ItemList) and _is_open(a) and not b.items[0].marked:
        last = longer(a.items[-1], b.items[0].text, b.items[0].runs, seen)
        whole = replace(a, items=(*a.items[:-1], last), region=b.region)
        return whole, replace(b, items=b.items[1:]) if len(b.items) > 1 else None
    if isinstance(a, ItemList) and isinstance(b, Paragraph) and _is_open(a):
        goes_on = b.text[:1].islower() or _UNFINISHED.search(a.items[-1].text)
        if not goes_on or (not between and not _breaks(a.region, b.first)):
            return None
        last = longer(a.items[-1], b.text, b.runs, seen)
        return replace(a, items=(*a.items[:-1], last), region=b.last), None
    if isinstance(a, Table) and isinstance(b, Table) and _table_goes_on(a, b, between):
        same = _same_edges(a.region.box, b.region.box)
        if whole_html := tables.continued(a.html, b.html, same):
            return replace(a, html=whole_html, region=b.region), None
    return None


def longer(item: Item, text: str, runs: Runs, seen: Mapping[str, int]) -> Item:
    whole = join(item.text, text, seen)
    return replace(item, text=whole, runs=joined_runs(whole, item.runs, runs, len(text)))


def is_unfinished(text: str) -> bool:
    return text != "" and (ends_broken(text) or not _FINAL.search(text))


def _fills_last_line(lines: Sequence[Line]) -> bool:
    """False where the last painted line stops short of the lines above it, as the end of a paragraph does."""
    rows = rows_of(lines)
    if len(rows) < 2:
        return True
    left, right = min(line.box.x0 for line in lines), max(line.box.x1 for line in lines)
    return rows[-1][-1].box.x1 - left > 0.8 * (right - left)


def _goes_on(a: Paragraph, b: Paragraph) -> bool:
    start = b.text[0]
    if is_wide(start) and is_wide(a.text[-1]):  # without cases, only the setting tells
        return bool(a.last.lines) and _starts_flush(b)
    if looks_like_list(b.text):
        return False
    if start.islower() or (start.isalnum() and _UNFINISHED.search(a.text)):
        return True
    # Before a name or a bracket, the setting again: full lines of one size and width.
    return bool(a.last.lines) and _starts_flush(b) and _alike(a.last, b.first)


def _starts_flush(paragraph: Paragraph) -> bool:
    """Whether its first of several lines is not indented."""
    rows = rows_of(paragraph.first.lines)
    return len(rows) > 1 and rows[0][0].box.x0 - paragraph.first.box.x0 < rows[0][0].size


def _alike(a: Region, b: Region) -> bool:
    """Whether two regions are set in lines of one size and width, as halves of a paragraph are."""
    if len(rows_of(a.lines)) < 2 or not 0.9 < a.box.width / max(b.box.width, 1.0) < 1.1:
        return False
    return abs(size_of(a.lines) - size_of(b.lines)) < 0.6


def _breaks(a: Region, b: Region) -> bool:
    """Whether the text went to another column or page between two regions."""
    return a.page != b.page or (b.box.y0 < a.box.y1 and not same_column(a.box, b.box))


def _table_goes_on(a: Table, b: Table, between: Sequence[Element]) -> bool:
    """Whether b, first on its page, may be the rest of a, last on the page before."""
    if (
        not all(isinstance(each, PageBreak | Aside | Note | Lost) for each in between)
        or b.region.page != a.region.page + 1
    ):
        return False
    if b.caption and not _CONTINUED.search(b.caption):
        return False
    wide, narrow = a.region.box.width, b.region.box.width
    if abs(wide - narrow) < 0.1 * max(wide, narrow):
        return True
    fewer = tables.columns_in(b.html) < tables.columns_in(a.html)  # the last ones are empty on this page
    return fewer and abs(a.region.box.x0 - b.region.box.x0) < 6 and 0.4 * wide < narrow < wide


def _same_edges(a: Box, b: Box) -> bool:
    """Whether both start at one edge, and the second ends there too or before, its last columns being empty."""
    return abs(a.x0 - b.x0) < 6 and b.x1 < a.x1 + 6


def same_column(a: Box, b: Box) -> bool:
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 0.5 * min(a.width, b.width)
