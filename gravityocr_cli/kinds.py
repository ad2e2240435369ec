"""What regions are, where the text itself knows better than the layout analysis: headings, notes, captions, furniture.

A label of the analysis stands unless the page speaks against it. The signs are those that a reader uses: numbering,
weight, size against the body text, place on the page.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from gravityocr_cli.document import Kind, Line, Page, Region
from gravityocr_cli.headings import depth_of, size_of
from gravityocr_cli.inlinemath import is_formula
from gravityocr_cli.listings import is_code, listings_in
from gravityocr_cli.lists import LEADERS, has_bullet, has_mark
from gravityocr_cli.textlayer import rows_of
from gravityocr_models.signs import Box

CAPTION_LABEL = re.compile(r"(?:table|fig(?:ure|\.)?|algorithm)\s+[\dIVXLA-Z.]+[.:]?", re.IGNORECASE)
_CAPTION = re.compile(
    r"(?:(?:table|fig(?:ure|\.)?|algorithm)\s*[\dIVXLA-Z.]+\s*[.:]\s|[表图圖図]\s*[\d.]+\s*[:：])", re.I
)
_SECTION = re.compile(r"(?:\d+(?:\.\d+)*\.?|[IVX]+\.|[A-Z]\.)\s+[^\W\d_][^.!?;,:]{2,70}")
_NUMBERED = re.compile(
    r"(?:(\d{1,2})(?:\.\d{1,2})*\.?|[IVX]+\.|[A-Z](?:\.\d{1,2})+\.?|[A-Z]\.(?!\s+[A-Z]\.))\s+(?=[^\W\d_])"
)
_DOTTED = re.compile(r"\d{1,2}(?:\.\d{1,2})+\s")
_ITEM = re.compile(r"(\d{1,2})[.)]?\s")
_EQUATION_NUMBER = re.compile(r"\(\s*[\w.′'-]{1,8}\s*\)")  # of an equation, beside it
_NOTE = re.compile(r"[*†‡§¶‖∥⋆∗]|\d{1,2}(?=[^\d.,)\s]|\s+[^\W\d_])")
_PAGE_NUMBER = re.compile(r"[-–—\s]*(?:\d{1,4}|[ivxlc]{1,7})[-–—\s]*")
_FOLIO = re.compile(r"[\d\s]{1,8}|[ivxlc]{1,7}")  # a page's number, in a scan perhaps with a speck before it
_LARGER = 1.12  # times the body's size: what a reader sees as larger
_SMALLER = 0.92


def settled(regions: Sequence[Region], page: Page) -> list[Region]:
    """The regions with their kinds corrected, a heading that stuck to a paragraph split off it."""
    body = _body_size(regions, page)
    parts = [_as_prose(part) for region in _without_running_head(regions, page) for part in _parted(region)]
    kept = [_settled(region, parts, page, body) for region in parts]
    kept = _with_title(kept, page, body)
    if all(region.kind in (Kind.HEADER, Kind.FOOTER) for region in kept):
        # Where nothing else stands, what looks like furniture is the page's content.
        kept = [region if _is_aside(region, page) else replace(region, kind=Kind.TEXT) for region in kept]
    return kept


def _with_title(regions: list[Region], page: Page, body: float) -> list[Region]:
    """The regions, the largest heading of a first page marked as the title: unnumbered, and with no text above it.

    One that heads the page, centred, need not be much larger, nor larger at all where it is set in capitals.
    """
    heads = [region for region in regions if region.kind is Kind.HEADING or _is_high_title(region, regions, body)]
    if page.number != 1 or not heads or any(region.kind is Kind.TITLE for region in regions):
        return regions
    sizes = [size_of(region.lines) for region in heads]
    title = heads[sizes.index(max(sizes))]
    above = [region for region in regions if region.kind is Kind.TEXT and region.box.y1 <= title.box.y0]
    centred = abs(title.box.x0 + title.box.x1 - page.width) < 0.1 * page.width
    if centred and not above and title is heads[0]:
        in_capitals = _is_capitals(_text(title)) and len(_text(title).split()) > 3
        large = in_capitals or max(sizes) > 1.15 * body
    else:
        large = max(sizes) > 1.35 * body and sizes.count(max(sizes)) == 1
    if not large or depth_of(_text(title)) is not None or any(len(rows_of(each.lines)) > 2 for each in above):
        return regions
    return [replace(region, kind=Kind.TITLE) if region is title else region for region in regions]


def _is_high_title(region: Region, regions: Sequence[Region], body: float) -> bool:
    """Whether what looks like a running head is a title: larger than the text, without a figure, over short lines."""
    if region.kind is not Kind.HEADER or size_of(region.lines) <= _LARGER * body or re.search(r"\d", _text(region)):
        return False
    below = min((x for x in regions if x.box.y0 >= region.box.y1), key=lambda x: x.box.y0, default=None)
    return below is not None and len(rows_of(below.lines)) < 4


def _body_size(regions: Sequence[Region], page: Page) -> float:
    """The font size of running text, in points; what tables are set in says nothing about it."""
    prose = [line for region in regions if region.kind in (Kind.TEXT, Kind.LIST) for line in region.lines]
    return size_of(prose) or size_of(page.lines)


def _settled(region: Region, regions: Sequence[Region], page: Page, body: float) -> Region:
    kind = region.kind
    text = _text(region)
    plain = kind is Kind.TEXT or (kind is Kind.HEADING and not _stands_out(region, body))
    if plain and is_code(region, page):
        kind = Kind.CODE
    elif kind is Kind.TABLE and _has_leaders(region):
        kind = Kind.LIST
    elif kind is Kind.TEXT and page.signs and is_formula(text):
        kind = Kind.FORMULA
    elif kind in (Kind.TEXT, Kind.HEADING, Kind.TITLE) and _CAPTION.match(text) and len(rows_of(region.lines)) <= 4:
        kind = Kind.CAPTION
    elif _may_be_heading(kind, text) and _is_heading(region, text, page, body):
        kind = Kind.HEADING
    elif _is_only_text(region, text, body):
        kind = Kind.TEXT
    elif kind in (Kind.TEXT, Kind.LIST) and _is_footnote(region, text, regions, page, body):
        kind = Kind.FOOTNOTE
    return replace(region, kind=_furniture(region, kind, text, regions, page))


def _as_prose(region: Region) -> Region:
    """The region; as text where it is called a formula and is a page's number or a heading, or called a list and is a
    single line without a mark."""
    text = _text(region)
    if region.kind is Kind.LIST:
        prose = len(rows_of(region.lines)) == 1 and not has_mark(text) and not _DOTTED.match(text)
    else:
        worded = _SECTION.fullmatch(text) is not None and re.search(r"[^\W\d_]{4}", text) is not None
        prose = region.kind is Kind.FORMULA and (worded or _PAGE_NUMBER.fullmatch(text) is not None)
    return replace(region, kind=Kind.TEXT) if prose and not is_formula(text) else region


def _may_be_heading(kind: Kind, text: str) -> bool:
    return kind in (Kind.TEXT, Kind.CAPTION) or (kind is Kind.LIST and _DOTTED.match(text) is not None)


def _has_leaders(region: Region) -> bool:
    """Whether rows lead over dots to page numbers, many over two lines: contents or an index, which are no table."""
    rows = [" ".join(line.text for line in row) for row in rows_of(region.lines)]
    return sum(LEADERS.search(row) is not None for row in rows) > max(1, 0.3 * len(rows))


def _text(region: Region) -> str:
    return " ".join(line.text for row in rows_of(region.lines) for line in row)


def _is_heading(region: Region, text: str, page: Page, body: float) -> bool:
    rows = rows_of(region.lines)
    if not rows or len(rows) > 3 or len(text) > 200 or sum(each.isalpha() for each in text) < 2:
        return False
    if text[-1] in ".;,:" or CAPTION_LABEL.match(text):
        return False
    large = size_of(region.lines) > _LARGER * body
    strong = large or _is_bold(region) or _is_capitals(text)
    if numbered := _NUMBERED.match(text):
        if strong or (len(rows) > 1 and _is_centred(rows, page)):
            return True
        plain = region.kind is Kind.TEXT and len(rows) == 1 and _SECTION.fullmatch(text) is not None
        return plain and not (numbered[1] and _has_neighbour(int(numbered[1]), region, page))
    if region.kind is not Kind.TEXT or len(rows) > 2 or not (text[0].isupper() or text[0].isdigit()):
        return False
    bold_body = sum(len(line.text) for line in page.lines if line.bold) > 0.4 * sum(len(x.text) for x in page.lines)
    weighty = _is_bold(region) and not bold_body and size_of(region.lines) >= 0.95 * body
    alone = len(page.lines) > len(region.lines) and not _is_label(region, page) and not _ends_clause(region, page)
    return (large or weighty) and len(text) < 120 and alone


def _is_bold(region: Region) -> bool:
    """Whether nearly all letters are: a bold name and what it is said to be are no heading."""
    spans = [span for line in region.lines for span in line.spans]
    letters = sum(len(span.text.strip()) for span in spans)
    bold = sum(len(span.text.strip()) for span in spans if span.style.bold)
    return all(line.bold for line in region.lines) and bold >= 0.8 * letters


def _ends_clause(region: Region, page: Page) -> bool:
    """Whether the line right above breaks off at a comma, as a long address does."""
    size = size_of(region.lines)
    return any(
        line.text.endswith(",")
        and 0 <= region.box.y0 - line.box.y1 + 0.3 * size < size
        and min(line.box.x1, region.box.x1) > max(line.box.x0, region.box.x0)
        and abs(line.size - size) < 0.6
        for line in page.lines
    )


def _is_label(region: Region, page: Page) -> bool:
    """Whether something stands close beside it on its row, as a value does beside its label."""
    box, near = region.box, 6 * size_of(region.lines)
    return any(
        min(line.box.y1, box.y1) - max(line.box.y0, box.y0) > 0.5 * line.box.height
        and max(line.box.x0 - box.x1, box.x0 - line.box.x1) < near
        for line in page.lines
        if line not in region.lines
    )


def _is_only_text(region: Region, text: str, body: float) -> bool:
    """An equation's number without its equation, or a few words or an item of the body that happen to stand alone."""
    if region.kind is Kind.FORMULA:
        return _EQUATION_NUMBER.fullmatch(text) is not None
    if region.kind is not Kind.HEADING or not region.lines:
        return False
    if _NUMBERED.match(text):
        return False
    if text.endswith(":"):  # what it announces follows
        return size_of(region.lines) <= _LARGER * body
    return (text[-1:] in (",", ";") or text[:1].islower() or has_bullet(text)) and not _stands_out(region, body)


def _stands_out(region: Region, body: float) -> bool:
    return any(line.bold for line in region.lines) or size_of(region.lines) > _LARGER * body


def _is_capitals(text: str) -> bool:
    letters = [each for each in text if each.isalpha()]
    return len(letters) >= 4 and all(each.isupper() for each in letters)


def _is_centred(rows: Sequence[Sequence[Line]], page: Page) -> bool:
    """Whether the rows stand on one axis, each of another length."""
    axes = [(row[0].box.x0 + row[-1].box.x1) / 2 for row in rows]
    widths = [row[-1].box.x1 - row[0].box.x0 for row in rows]
    return max(axes) - min(axes) < 0.02 * page.width and max(widths) - min(widths) > 0.05 * page.width


def _has_neighbour(number: int, region: Region, page: Page) -> bool:
    """Whether the number before or after starts a line close by, as in a list."""
    for line in page.lines:
        match = _ITEM.match(line.text)
        near = max(line.box.y0 - region.box.y1, region.box.y0 - line.box.y1) < 3 * region.box.height
        if match and near and abs(int(match[1]) - number) == 1 and abs(line.box.x0 - region.box.x0) < 3 * line.size:
            return True
    return False


def _is_footnote(region: Region, text: str, regions: Sequence[Region], page: Page, body: float) -> bool:
    """Small print with a mark in front, under which the column has no body text any more."""
    small = 0 < size_of(region.lines) < _SMALLER * body
    if not small or region.box.y0 < 0.5 * page.height or not _NOTE.match(text):
        return False
    return not any(
        other.kind in (Kind.TEXT, Kind.LIST, Kind.TABLE, Kind.PICTURE)
        and other.box.y0 >= region.box.y1
        and min(other.box.x1, region.box.x1) > max(other.box.x0, region.box.x0)
        and not 0 < size_of(other.lines) < _SMALLER * body
        for other in regions
        if other is not region and not _PAGE_NUMBER.fullmatch(_text(other))
    )


def _furniture(region: Region, kind: Kind, text: str, regions: Sequence[Region], page: Page) -> Kind:
    """Headers and footers stand at the edge of the page, and what stands beside one is one."""
    middle = (region.box.y0 + region.box.y1) / 2 / page.height
    if kind in (Kind.HEADER, Kind.FOOTER):
        if 0.12 < middle < 0.88 and not in_margin(region.box, page):
            return Kind.TEXT
        return Kind.HEADER if middle < 0.5 else Kind.FOOTER
    if kind is not Kind.TEXT or 0.12 < middle < 0.88 or len(rows_of(region.lines)) != 1:
        return kind
    beside = [
        other
        for other in regions
        if other is not region
        and min(other.box.y1, region.box.y1) - max(other.box.y0, region.box.y0) > 0.5 * region.box.height
    ]
    if any(other.kind in (Kind.HEADER, Kind.FOOTER) for other in beside) or (
        _PAGE_NUMBER.fullmatch(text)
        and not beside
        and not any((other.box.y0 < region.box.y0) == (middle < 0.5) for other in regions if other is not region)
    ):
        return Kind.HEADER if middle < 0.5 else Kind.FOOTER
    return kind


def _is_aside(region: Region, page: Page) -> bool:
    return in_margin(region.box, page) or _PAGE_NUMBER.fullmatch(_text(region)) is not None


def _parted(region: Region) -> list[Region]:
    """The region, and a numbered line in italics or bold that is its first or last, as regions of their own."""
    rows = rows_of(region.lines)
    if found := _columns(region, rows) or _columns_of_entries(region) or listings_in(region):
        return found
    if region.kind is not Kind.TEXT or len(rows) < 3:
        return [region]
    parts = [rows]
    for cut in (1, len(rows) - 1):
        alone, rest = (rows[:1], rows[1:]) if cut == 1 else (rows[-1:], rows[:-1])
        text = " ".join(line.text for line in alone[0])
        if _SECTION.fullmatch(text) and _is_set_off(alone[0]) and not any(_is_set_off(row) for row in rest[:2]):
            parts = [rows[:cut], rows[cut:]]
            break
    return [region] if len(parts) == 1 else [region.with_lines(chain(*part)) for part in parts]


def _columns(region: Region, rows: Sequence[Sequence[Line]]) -> list[Region]:
    """The two columns of prose that a text region turns out to hold; none where it holds one, or labels and values."""
    if region.kind is not Kind.TEXT or len(rows) < 2 or any(len(row) != 2 for row in rows):
        return []
    size = size_of(region.lines)
    gap = min(row[1].box.x0 for row in rows) - max(row[0].box.x1 for row in rows)
    widths = [[row[side].box.width for row in rows] for side in (0, 1)]
    if gap < 2 * size or any(sum(each) / len(each) < 7 * size for each in widths):
        return []
    return [region.with_lines(row[side] for row in rows) for side in (0, 1)]


def _columns_of_entries(region: Region) -> list[Region]:
    """The columns of an index or of contents that a region turns out to hold; none where it holds one."""
    if region.kind not in (Kind.TEXT, Kind.LIST, Kind.TABLE):
        return []
    for cut in _gaps(region.lines):
        sides = [[line for line in region.lines if (line.box.x0 < cut) == left] for left in (True, False)]
        parts = [replace(region.with_lines(lines), kind=Kind.LIST) for lines in sides]
        if all(map(_has_leaders, parts)):
            return parts
    return []


def _gaps(lines: Sequence[Line]) -> Iterator[float]:
    """Where white runs down between the lines, from the left."""
    right = math.inf
    for line in sorted(lines, key=lambda line: line.box.x0):
        if line.box.x0 - right > line.size / 2:
            yield line.box.x0
        right = line.box.x1 if right == math.inf else max(right, line.box.x1)


def _without_running_head(regions: Sequence[Region], page: Page) -> list[Region]:
    """The regions, a first row of the topmost that is a page's number and title apart made a header of its own."""
    top = min(regions, key=lambda region: region.box.y0, default=None)
    rows = rows_of(top.lines) if top is not None else []
    if top is None or top.kind is not Kind.TEXT or len(rows) < 2 or rows[0][0].box.y1 > 0.12 * page.height:
        return list(regions)
    gaps = [b.box.x0 - a.box.x1 for a, b in pairwise(rows[0])]
    numbered = any(_FOLIO.fullmatch(line.text) for line in (rows[0][0], rows[0][-1]))
    if not gaps or not numbered or min(gaps) < 3 * rows[0][0].size:
        return list(regions)
    head = replace(top.with_lines(rows[0]), kind=Kind.HEADER)
    return [head, *(top.with_lines(chain(*rows[1:])) if region is top else region for region in regions)]


def _is_set_off(row: Sequence[Line]) -> bool:
    """Whether the whole row is bold or italic."""
    styles = [span.style for line in row for span in line.spans if span.text.strip()]
    return all(line.spans for line in row) and (
        all(style.bold for style in styles) or all(style.italic for style in styles)
    )


def by_numbers(ordered: Sequence[Region]) -> list[Region]:
    """The regions, sections numbered 1, 2, 3 ... put in that order: cards on a page run in rows or in columns.

    A section is its heading and what follows up to the next numbered one.
    """
    starts = [(at, int(match[1])) for at, each in enumerate(ordered) if (match := _section_number(each))]
    numbers = [number for _, number in starts]
    if len(numbers) < 3 or numbers == sorted(numbers) or sorted(numbers) != list(range(min(numbers), max(numbers) + 1)):
        return list(ordered)
    ends = [at for at, _ in starts[1:]] + [_body_end(ordered)]
    parts = {number: ordered[at:end] for (at, number), end in zip(starts, ends, strict=True)}
    inner = [region for number in sorted(parts) for region in parts[number]]
    return [*ordered[: starts[0][0]], *inner, *ordered[ends[-1] :]]


def _section_number(region: Region) -> re.Match[str] | None:
    return re.match(r"(\d{1,2})\.?\s+[^\W\d_]", _text(region)) if region.kind is Kind.HEADING else None


def _body_end(ordered: Sequence[Region]) -> int:
    """Where the footers begin."""
    return next((at for at, region in enumerate(ordered) if region.kind is Kind.FOOTER), len(ordered))


def in_margin(box: Box, page: Page) -> bool:
    """Whether the box lies in the page's left or right margin."""
    return box.x1 < 0.1 * page.width or box.x0 > 0.9 * page.width
