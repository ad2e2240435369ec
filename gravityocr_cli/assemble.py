"""Blocks to document elements: what belongs together over lines, columns and pages.

Pages come in one at a time and elements go out as soon as nothing later can change them. Only an element whose end is
open (a sentence in its middle, a table at the foot of a page) is held, with what stands between it and its second half,
so memory does not grow with the number of pages.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from gravityocr_cli import tables
from gravityocr_cli.document import Block, Box, Kind, Line, Region
from gravityocr_cli.elements import (
    Aside,
    Code,
    Element,
    Figure,
    Formula,
    Heading,
    ItemList,
    Lost,
    Note,
    PageBreak,
    Paragraph,
    Table,
)
from gravityocr_cli.headings import Outline
from gravityocr_cli.hyphens import ends_broken, is_wide, join, join_lines, words_in
from gravityocr_cli.inline import Runs, joined_runs, of_heading, runs_of
from gravityocr_cli.lists import Item, items_of, looks_like_list, number_of
from gravityocr_cli.notes import Labels, notes_in, with_links
from gravityocr_cli.textlayer import rows_of

_FINAL = re.compile(r"""[.?!:…。！？：．]["'”’»)\]」』）】]*$""")
_TABLE_LABEL = re.compile(r"\s*(?:table|tab\.|tableau|tabelle|tabla|表)\s*", re.IGNORECASE)
_FIGURE_LABEL = re.compile(r"\s*(?:fig(?:ure)?s?\b|abb(?:ildung)?\b|scheme|chart|plate|photo|图|圖|図)", re.IGNORECASE)
_CONTINUED = re.compile(r"\b(?:continued|cont(?:['’]d|d?\.)|fortsetzung|suite)|续|続", re.IGNORECASE)
_EQUATION_NUMBER = re.compile(r"\(\s*((?:[A-Z]\.?)?[0-9]{1,3}(?:[.\-][0-9]{1,3})*[a-z]?)\s*\)")
# A paragraph that breaks off after one of these has not ended, whatever the next one starts with.
_UNFINISHED = re.compile(r"(?:^|\s)(?:the|an?|of|and|or|by|with|from|for|in|to|at|that|which|is|are|was|were|as|its)$")
_PAGES_HELD = 2


def assemble(
    pages: Iterable[tuple[int, Sequence[Block]]], contents: Sequence[tuple[int, str, int]] = ()
) -> Iterator[Element]:
    """The document's elements in reading order.

    pages: number and blocks in reading order, one page at a time. contents: the PDF's own outline, as level from 1,
    title, and page from 1.
    """
    seen: Counter[str] = Counter()
    outline, labels = Outline(contents), Labels()
    held: list[Element] = []
    for index, (number, given) in enumerate(pages):
        blocks = outline.with_headings(_with_numbered_items(given))
        prose = (block.text.splitlines() for block in blocks if block.region.kind in _PROSE)
        seen.update(words_in(chain.from_iterable(prose)))
        outline.look(blocks)
        elements = with_links(*_page_elements(blocks, outline, seen), number, labels)
        for element in [PageBreak(number), *elements] if index else elements:
            done, held = _flow(held, element, seen)
            yield from done
    yield from held


_PROSE = frozenset({Kind.TITLE, Kind.HEADING, Kind.TEXT, Kind.LIST, Kind.CAPTION, Kind.FOOTNOTE})


# --- one page -------------------------------------------------------------------------------------------------------


def _page_elements(
    blocks: Sequence[Block], outline: Outline, seen: Mapping[str, int]
) -> tuple[list[Element], list[tuple[str, Aside]]]:
    """A page's elements in reading order, and its footnotes with their marks."""
    captions = _captions(blocks)
    tags = _equation_numbers(blocks)
    used = {*captions.values(), *tags.values()}
    elements: list[Element] = []
    notes: list[tuple[str, Aside]] = []
    for index, block in enumerate(blocks):
        caption = _aside(blocks[captions[index]], seen) if index in captions else Aside("")
        if block.lost:
            elements.append(Lost(block.region.page, block.region.order, block.lost))
        elif index in used or not (block.text or caption.text):
            continue
        elif block.region.kind is Kind.TEXT:
            texts = [join_lines(each.splitlines(), seen) for each in block.text.split("\n\n")]
            styled = zip(texts, runs_of(texts, block.region.lines), strict=True)
            elements += [Paragraph(text, block.region, block.region, runs) for text, runs in styled]
        elif block.region.kind is Kind.LIST:
            _add_list(elements, block, seen)
        elif block.region.kind is Kind.FOOTNOTE:
            found = notes_in(block.text.splitlines())
            texts = [join_lines(lines, seen) for _, lines in found]
            asides = map(Aside, texts, runs_of(texts, block.region.lines))
            notes += [(mark, aside) for (mark, _), aside in zip(found, asides, strict=True)]
        elif block.region.kind is Kind.FORMULA and index in tags:
            elements.append(Formula(f"{block.text} \\tag{{{_tag(blocks[tags[index]].text)}}}"))
        else:
            elements.append(_single(block, caption, outline, seen))
    return elements, notes


def _single(block: Block, caption: Aside, outline: Outline, seen: Mapping[str, int]) -> Element:
    """The element of a block that stands for itself."""
    match block.region.kind:
        case Kind.TITLE | Kind.HEADING:
            text = join_lines(block.text.splitlines(), seen)
            return Heading(outline.level(block), text, of_heading(text, runs_of([text], block.region.lines)[0]))
        case Kind.CODE:
            return Code(block.text)
        case Kind.FORMULA:
            return Formula(block.text)
        case Kind.TABLE:
            return Table(block.text, caption.text, block.region, caption.runs)
        case Kind.PICTURE:
            return Figure(block.text, caption.text, caption.runs)
        case _:
            return _aside(block, seen)


def _aside(block: Block, seen: Mapping[str, int]) -> Aside:
    text = join_lines(block.text.splitlines(), seen)
    return Aside(text, runs_of([text], block.region.lines)[0])


def _with_numbered_items(blocks: Sequence[Block]) -> list[Block]:
    """The blocks, a text that is one numbered item (a neighbour has the number before or after) marked as a list."""
    numbers = [
        {number for line in block.text.splitlines() if (number := number_of(line)) is not None}
        if block.region.kind in (Kind.TEXT, Kind.LIST)
        else set()
        for block in blocks
    ]
    marked = []
    for at, block in enumerate(blocks):
        number = number_of(block.text) if block.region.kind is Kind.TEXT else None
        around = set().union(*numbers[max(0, at - 1) : at], *numbers[at + 1 : at + 2])
        if number is not None and around & {number - 1, number + 1}:
            block = replace(block, region=replace(block.region, kind=Kind.LIST))
        marked.append(block)
    return marked


def _add_list(elements: list[Element], block: Block, seen: Mapping[str, int]) -> None:
    """Adds a list, as further items of the list right before it where there is one."""
    region, items = block.region, items_in(block, seen)
    size = max((line.size for line in region.lines), default=10.0)
    before = elements[-1] if elements else None
    if items and isinstance(before, ItemList) and _same_column(before.region.box, region.box):
        shift = max(0, round((region.box.x0 - before.region.box.x0) / (2 * size)))
        depth = min(shift, before.items[-1].depth + 1)
        items = tuple(replace(item, depth=item.depth + depth) for item in items)
        elements[-1] = ItemList(before.items + items, replace(region, box=_with_left(region.box, before.region.box.x0)))
    elif items:
        elements.append(ItemList(items, region))


def items_in(block: Block, seen: Mapping[str, int]) -> tuple[Item, ...]:
    """The items of a list's block, styled as painted. seen: words of the document, for hyphens."""
    lines = block.region.lines
    size = max((line.size for line in lines), default=10.0)
    items = items_of(block.text, _left_edges(block.text.splitlines(), lines), seen, 0.7 * size)
    styled = zip(items, runs_of([item.text for item in items], lines), strict=True)
    return tuple(replace(item, runs=runs) for item, runs in styled)


def _with_left(box: Box, x0: float) -> Box:
    return Box(min(box.x0, x0), box.y0, box.x1, box.y1)


def _left_edges(written: Sequence[str], lines: Sequence[Line]) -> list[float | None]:
    """Left edge of each written line, in points, where the page's painted lines tell it."""
    rows = [(row[0].box.x0, "".join("".join(line.text for line in row).split())) for row in rows_of(lines)]
    if len(rows) == len(written):
        return [x0 for x0, _ in rows]
    edges: list[float | None] = []
    at = 0
    for line in written:
        bare = "".join(line.split())
        found = next((index for index in range(at, len(rows)) if rows[index][1] == bare), None)
        edges.append(None if found is None else rows[found][0])
        at = at if found is None else found + 1
    return edges if all(edge is not None for edge in edges) else [None] * len(written)


def _captions(blocks: Sequence[Block]) -> dict[int, int]:
    """Table or picture -> its caption, as indices: the nearest one on the page within two places in reading order."""
    pairs = []
    for at, block in enumerate(blocks):
        if block.region.kind is not Kind.CAPTION or block.lost or _EQUATION_NUMBER.fullmatch(block.text.strip()):
            continue
        for index in range(max(0, at - 2), min(len(blocks), at + 3)):
            other = blocks[index]
            if other.region.kind in (Kind.TABLE, Kind.PICTURE) and not other.lost:
                unlike = _FIGURE_LABEL if other.region.kind is Kind.TABLE else _TABLE_LABEL
                distance = _distance(block.region.box, other.region.box)
                pairs.append((unlike.match(block.text) is not None, distance, abs(index - at), index, at))
    captions: dict[int, int] = {}
    for _, _, _, index, at in sorted(pairs):
        if index not in captions and at not in captions.values():
            captions[index] = at
    return captions


def _equation_numbers(blocks: Sequence[Block]) -> dict[int, int]:
    """Formula -> the block beside it that is only its number, as indices."""
    tags: dict[int, int] = {}
    for at, block in enumerate(blocks):
        if block.region.kind in (Kind.TEXT, Kind.CAPTION) and _EQUATION_NUMBER.fullmatch(block.text.strip()):
            for index in (at - 1, at + 1):
                if 0 <= index < len(blocks) and index not in tags and "\\tag" not in blocks[index].text:
                    box, other = block.region.box, blocks[index].region
                    beside = min(box.y1, other.box.y1) - max(box.y0, other.box.y0) > 0
                    if other.kind is Kind.FORMULA and beside and not blocks[index].lost:
                        tags[index] = at
                        break
    return tags


def _tag(text: str) -> str:
    match = _EQUATION_NUMBER.fullmatch(text.strip())
    return match[1] if match else ""


# --- over columns and pages -----------------------------------------------------------------------------------------


def _flow(held: list[Element], new: Element, seen: Mapping[str, int]) -> tuple[list[Element], list[Element]]:
    """What is finished now that `new` has come, and what is still held. held: an open element and what came since."""
    if held:
        for at, element in enumerate(held):
            joined = _joined(element, new, held[at + 1 :], seen)
            if joined is not None:
                changed = [*held[:at], joined[0], *held[at + 1 :]]
                rest = joined[1]
                return (changed, [rest]) if rest is not None else ([], changed)
        floats = isinstance(new, Table | Figure | Aside | Note | Lost | PageBreak)
        stale = isinstance(new, PageBreak) and new.page - max(map(_last_page, held)) > _PAGES_HELD
        if floats and not stale:
            return [], [*held, new]
    return (held, [new]) if _is_open(new) else ([*held, new], [])


def _is_open(element: Element) -> bool:
    """Whether something later may go on this element."""
    if isinstance(element, Paragraph):
        return _is_unfinished(element.text) and _fills_last_line(element.last.lines)
    if isinstance(element, ItemList):
        return _is_unfinished(element.items[-1].text)
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
        last = _longer(a.items[-1], b.items[0].text, b.items[0].runs, seen)
        whole = replace(a, items=(*a.items[:-1], last), region=b.region)
        return whole, replace(b, items=b.items[1:]) if len(b.items) > 1 else None
    if isinstance(a, ItemList) and isinstance(b, Paragraph) and _is_open(a) and b.text[:1].islower():
        if not between and not _breaks(a.region, b.first):
            return None
        last = _longer(a.items[-1], b.text, b.runs, seen)
        return replace(a, items=(*a.items[:-1], last), region=b.last), None
    if isinstance(a, Table) and isinstance(b, Table) and _table_goes_on(a, b, between):
        same = _same_edges(a.region.box, b.region.box)
        if whole_html := tables.continued(a.html, b.html, same):
            return replace(a, html=whole_html, region=b.region), None
    return None


def _longer(item: Item, text: str, runs: Runs, seen: Mapping[str, int]) -> Item:
    whole = join(item.text, text, seen)
    return replace(item, text=whole, runs=joined_runs(whole, item.runs, runs, len(text)))


def _is_unfinished(text: str) -> bool:
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
    if is_wide(start) and is_wide(a.text[-1]):
        # Without cases, only the setting tells: a full last line before, no indent after.
        rows = rows_of(b.first.lines)
        return len(rows) > 1 and bool(a.last.lines) and rows[0][0].box.x0 - b.first.box.x0 < rows[0][0].size
    if start.islower():
        return not looks_like_list(b.text)
    return start.isalnum() and _UNFINISHED.search(a.text) is not None


def _breaks(a: Region, b: Region) -> bool:
    """Whether the text went to another column or page between two regions."""
    return a.page != b.page or (b.box.y0 < a.box.y1 and not _same_column(a.box, b.box))


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


def _same_column(a: Box, b: Box) -> bool:
    return min(a.x1, b.x1) - max(a.x0, b.x0) > 0.5 * min(a.width, b.width)


def _distance(a: Box, b: Box) -> float:
    """The gap between two boxes, in points; 0 where they touch."""
    across = max(0.0, a.x0 - b.x1, b.x0 - a.x1)
    down = max(0.0, a.y0 - b.y1, b.y0 - a.y1)
    return across + down
