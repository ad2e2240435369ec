"""Blocks to document elements, a page at a time: what belongs together within a page, and what each block is.

What goes on over columns and pages is for `joins.py`; memory does not grow with the number of pages.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from gravityocr_cli.document import Block, Kind, Line
from gravityocr_cli.elements import (
    Aside,
    Code,
    Element,
    Figure,
    Formula,
    Heading,
    ItemList,
    Lost,
    PageBreak,
    Paragraph,
    Table,
)
from gravityocr_cli.headings import Outline
from gravityocr_cli.hyphens import join_lines, unbroken, words_in
from gravityocr_cli.inline import of_heading, runs_of
from gravityocr_cli.joins import flow, is_unfinished, longer, same_column
from gravityocr_cli.lists import Item, items_of, number_of
from gravityocr_cli.notes import Labels, notes_in, with_links
from gravityocr_cli.textlayer import rows_of
from gravityocr_models.signs import Box

_TABLE_LABEL = re.compile(r"\s*(?:table|tab\.|tableau|tabelle|tabla|表)\s*", re.IGNORECASE)
_FIGURE_LABEL = re.compile(r"\s*(?:fig(?:ure)?s?\b|abb(?:ildung)?\b|scheme|chart|plate|photo|图|圖|図)", re.IGNORECASE)
_REFERENCES = re.compile(
    r"(?:[0-9IVX]+\.?\s+)?(?:references|bibliography|literature(?: cited)?|works cited|literatur(?:verzeichnis)?|"
    r"références|bibliographie|参考文献|参考资料)\s*:?",
    re.IGNORECASE,
)
_YEAR = re.compile(r"\b(?:1[89]|20)[0-9]{2}[a-z]?\b")
_EQUATION_NUMBER = re.compile(r"\(\s*((?:[A-Z]\.?)?[0-9]{1,3}(?:[.\-][0-9]{1,3})*[a-z]?)\s*\)")


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
    in_references = False
    for index, (number, given) in enumerate(pages):
        blocks = outline.with_headings(_with_numbered_items(given))
        blocks, in_references = _with_references(blocks, in_references)
        prose = (block.text.splitlines() for block in blocks if block.region.kind in _PROSE)
        seen.update(words_in(chain.from_iterable(prose)))
        outline.look(blocks)
        elements = with_links(*_page_elements(blocks, outline, seen), number, labels)
        for element in [PageBreak(number), *elements] if index else elements:
            done, held = flow(held, element, seen)
            yield from done
    yield from held


_PROSE = frozenset({Kind.TITLE, Kind.HEADING, Kind.TEXT, Kind.LIST, Kind.CAPTION, Kind.FOOTNOTE})


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
            return Table(unbroken(block.text, seen), caption.text, block.region, caption.runs)
        case Kind.PICTURE:
            return Figure(block.text, caption.text, caption.runs)
        case _:
            return _aside(block, seen)


def _aside(block: Block, seen: Mapping[str, int]) -> Aside:
    text = join_lines(block.text.splitlines(), seen)
    return Aside(text, runs_of([text], block.region.lines)[0])


def _with_references(blocks: Sequence[Block], inside: bool) -> tuple[list[Block], bool]:
    """The blocks, texts with a year in them marked as lists in the bibliography; and whether the page ends in it.

    inside: whether the page before did.
    """
    marked = []
    for block in blocks:
        kind = block.region.kind
        if kind in (Kind.TITLE, Kind.HEADING):
            inside = _REFERENCES.fullmatch(block.text.strip()) is not None
        elif inside and kind is Kind.TEXT and _YEAR.search(block.text):
            block = replace(block, region=replace(block.region, kind=Kind.LIST))
        marked.append(block)
    return marked, inside


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
    if items and isinstance(before, ItemList) and same_column(before.region.box, region.box):
        shift = max(0, round((region.box.x0 - before.region.box.x0) / (2 * size)))
        depth = min(shift, before.items[-1].depth + 1)
        earlier, rest = before.items, items
        hangs = region.box.x0 - before.region.box.x0 > size / 2
        if hangs and not items[0].marked and is_unfinished(earlier[-1].text):
            earlier, rest = (*earlier[:-1], longer(earlier[-1], items[0].text, items[0].runs, seen)), items[1:]
        rest = tuple(replace(item, depth=item.depth + depth) for item in rest)
        elements[-1] = ItemList(earlier + rest, replace(region, box=_with_left(region.box, before.region.box.x0)))
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


def _distance(a: Box, b: Box) -> float:
    """The gap between two boxes, in points; 0 where they touch."""
    across = max(0.0, a.x0 - b.x1, b.x0 - a.x1)
    down = max(0.0, a.y0 - b.y1, b.y0 - a.y1)
    return across + down
