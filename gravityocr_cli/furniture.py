"""Running heads and feet: what stands at the edge of neighbouring pages, at one height and in the same words.

The layout analysis sees one page at a time and takes many a running head for a heading or a line of text. Its
neighbours tell: left and right pages may differ, so two pages on either side are looked at.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from rapidfuzz.distance import Levenshtein

from gravityocr_cli.document import Block, Kind
from gravityocr_cli.headings import size_of
from gravityocr_cli.report import Method, PageReport

_REACH = 2  # pages
_SAME_HEIGHT = 4.0  # points
_ALIKE = 0.85  # of the letters: a head that was read from pixels may come out in two ways
_KINDS = frozenset({Kind.TEXT, Kind.HEADING, Kind.LIST, Kind.FOOTNOTE, Kind.HEADER, Kind.FOOTER})
Page = tuple[PageReport, list[Block]]


@dataclass(frozen=True)
class _Edge:
    """A line at the top or the foot of a page. order: its region's. y: its middle, in points.

    words: folded, without figures. offset: the number that it shows less the page's own, None where it shows none.
    large: set larger than the page's text, as headings are.
    """

    order: int
    kind: Kind
    y: float
    words: str
    offset: int | None
    large: bool


@dataclass(frozen=True)
class _Sheet:
    """A page as its neighbours see it. body: what it says between its edges, block by block, folded."""

    edges: tuple[_Edge, ...]
    body: frozenset[str]

    def is_like(self, other: "_Sheet") -> bool:
        """Whether the two are copies of one form: then all repeats, and nothing is a running head."""
        return bool(self.body) and len(self.body & other.body) >= 0.5 * len(self.body)


def without_running_heads(pages: Iterable[Page], keep: bool) -> Iterator[Page]:
    """The pages in the order they come, up to two of them held back, without their running heads and feet.

    keep: leave them in, as headers and footers.
    """
    before: deque[_Sheet] = deque(maxlen=_REACH)
    ahead: deque[tuple[Page, _Sheet]] = deque()
    for page in chain(pages, [None] * _REACH):
        if page is not None:
            ahead.append((page, _sheet(*page)))
        if ahead and (page is None or len(ahead) > _REACH):
            current, own = ahead.popleft()
            yield _settled(current, own, [*before, *(sheet for _, sheet in ahead)], keep)
            before.append(own)


def _settled(page: Page, own: _Sheet, around: Sequence[_Sheet], keep: bool) -> Page:
    report, blocks = page
    others = [edge for sheet in around if not own.is_like(sheet) for edge in sheet.edges]
    kinds = {each.order: each.kind for each in own.edges if any(_repeats(each, other) for other in others)}
    if all(block.region.order in kinds for block in blocks):
        return page  # where nothing else stands, it is the page's content
    regions = tuple(
        replace(region, kind=kinds[region.order].value, method=region.method if keep else Method.SKIPPED)
        if region.order in kinds
        else region
        for region in report.regions
    )
    kept = [
        replace(block, region=replace(block.region, kind=kinds.get(block.region.order, block.region.kind)))
        for block in blocks
        if keep or block.region.order not in kinds
    ]
    return replace(report, regions=regions), kept


def _sheet(report: PageReport, blocks: Sequence[Block]) -> _Sheet:
    edges = tuple(_edges(report, blocks))
    at_edge = {edge.order for edge in edges}
    body = frozenset(_letters(block.text) for block in blocks if block.region.order not in at_edge)
    return _Sheet(edges, body - {""})


def _letters(text: str) -> str:
    return "".join(each for each in text.casefold() if each.isalpha())


def _edges(report: PageReport, blocks: Sequence[Block]) -> list[_Edge]:
    """The short lines in the topmost and the lowest row of the page; larger ones where a number heads them."""
    if not blocks:
        return []
    body = size_of([line for block in blocks if block.region.kind is Kind.TEXT for line in block.region.lines])
    top = min((block.region.box for block in blocks), key=lambda box: box.y0).y1
    foot = max((block.region.box for block in blocks), key=lambda box: box.y1).y0
    edges = []
    for block in blocks:
        box, text = block.region.box, " ".join(block.text.split())
        middle = (box.y0 + box.y1) / 2
        at_edge = middle < top or middle > foot
        large = size_of(block.region.lines) > 1.05 * body > 0
        if at_edge and block.region.kind in _KINDS and not block.lost and 0 < len(text) < 150:
            numbers = [word for word in text.split() if word.isdecimal()]
            offset = int(numbers[0]) - report.page if len(numbers) == 1 and len(numbers[0]) < 6 else None
            kind = Kind.HEADER if middle < top else Kind.FOOTER
            if not large or (offset is not None and text[0].isdecimal()):  # `Exercise 1` counts with the pages too
                edges.append(_Edge(block.region.order, kind, middle, _letters(text), offset, large))
    return edges


def _repeats(a: _Edge, b: _Edge) -> bool:
    if a.kind is not b.kind or abs(a.y - b.y) > _SAME_HEIGHT:
        return False
    if (a.large or b.large) and a.offset != b.offset:
        return False
    if len(a.words) < 3:
        return a.words == b.words and a.offset is not None and a.offset == b.offset
    return Levenshtein.normalized_similarity(a.words, b.words) >= _ALIKE
