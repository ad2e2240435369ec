"""Heading levels: from the PDF's own outline, else the numbering, else the font size among the headings seen so far.

The document's title has level 1 and a section numbered "1" level 2, whether or not there is a title, so that levels do
not depend on what a first page happened to show.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from gravityocr_cli.document import Block, Kind, Line

LOWEST = 6
_DECIMAL = re.compile(r"(?:§\s*)?([0-9]{1,2}(?:\.[0-9]{1,3})*)\.?(?=\s|$|[\u3000-\u9fff])")
_PLAIN = re.compile(r"[0-9]{1,2}\.\s")
_BRACKETED = re.compile(r"\(?[0-9]{1,2}\)\s")
_APPENDED = re.compile(r"([A-Z](?:\.[0-9]{1,3})+)\.?(?=\s|$)")
_ROMAN = re.compile(r"(?=[IVX])(X{0,3}(?:IX|IV|V?I{0,3}))\.(?=\s)")
_LETTER = re.compile(r"([A-Z])\.(?=\s)")
_NAMED = re.compile(r"(?:chapter|part|appendix|annex|kapitel|teil|anhang)\s+(?:[0-9]{1,3}|[ivxlc]+|[a-z])\b", re.I)
_DIGITS = "一二三四五六七八九十"
_CHINESE = re.compile(rf"第[0-9百{_DIGITS}]+([章部编篇节])|[{_DIGITS}]+、|（[{_DIGITS}]+）")
_UNNUMBERED = frozenset(
    "abstract acknowledgements acknowledgments acknowledgement acknowledgment references bibliography contents "
    "introduction conclusion conclusions appendix appendices summary foreword preface index".split()
)


class Outline:
    """What the headings so far say about the ones to come. Feed each page with `look` before asking for its levels."""

    def __init__(self, contents: Iterable[tuple[int, str, int]] = ()) -> None:
        """contents: the PDF's outline, as level from 1, title, and page from 1."""
        self._contents = {(page, _bare(title)): level for level, title, page in contents if _bare(title)}
        self._titled = False
        self._roman = False
        self._letter = ""
        self._sizes: set[float] = set()  # of headings that no number places, in half points
        self._numbered: dict[float, int] = {}  # size -> level that a numbered heading of that size had

    def with_headings(self, blocks: Iterable[Block]) -> list[Block]:
        """The blocks, short ones that say what the PDF's outline calls a section of their page marked as headings, and
        what stands between the title and the abstract marked as text."""
        marked = []
        for block in blocks:
            region = block.region
            if region.kind in (Kind.TEXT, Kind.LIST) and self._stated(block) is not None:
                block = replace(block, region=replace(region, kind=Kind.HEADING))
            marked.append(block)
        return _without_authors(marked)

    def _stated(self, block: Block) -> int | None:
        """The level that the PDF's outline gives the block, from 1."""
        return self._contents.get((block.region.page, _bare(block.text))) if self._contents else None

    def look(self, blocks: Iterable[Block]) -> None:
        """Takes note of a page's headings."""
        for block in blocks:
            if block.region.kind is Kind.HEADING and (roman := _ROMAN.match(block.text)):
                self._roman = self._roman or len(roman[1]) > 1
            if block.region.kind is Kind.HEADING and not block.lost and (size := size_of(block.region.lines)):
                if (depth := depth_of(block.text)) is not None:
                    self._numbered.setdefault(size, depth + 1)
                else:
                    self._sizes.add(size)

    def level(self, block: Block) -> int:
        """The level of the next title or heading in reading order, 1 to 6."""
        if block.region.kind is Kind.TITLE:
            level = 2 if self._titled else 1
            self._titled = True
            return level
        if (stated := self._stated(block)) is not None:
            return min(stated + 1, LOWEST)
        level = self._lettered(block.text) or 1 + (depth_of(block.text) or 0)
        return min(level if level > 1 else self._by_size(block), LOWEST)

    def _lettered(self, text: str) -> int | None:
        """Level of "IV.", "B." and "1.": where the document has Roman numerals, each stands under the one before."""
        letter, roman = _LETTER.match(text), _ROMAN.match(text)
        follows = letter is not None and self._letter != "" and ord(letter[1]) == ord(self._letter) + 1
        if roman and not follows:
            self._roman, self._letter = True, ""
            return 2
        if letter:
            self._letter = letter[1]
            return 3 if self._roman else 2
        if self._roman and (_BRACKETED.match(text) or (self._letter and _PLAIN.match(text))):
            return 4
        return None

    def _by_size(self, block: Block) -> int:
        size = size_of(block.region.lines)
        if size in self._numbered:
            return self._numbered[size]
        if not size or _is_section(block.text):
            return 2
        larger = sorted(other for other in self._sizes if other > size + 0.5)
        steps = sum(after - before > 0.5 for before, after in pairwise(larger)) + bool(larger)
        above = max((level for other, level in self._numbered.items() if other > size + 0.5), default=1)
        return max(2 + steps, above + 1)


def _without_authors(blocks: list[Block]) -> list[Block]:
    """The blocks of a page, headings between a title and the first section that is one for sure marked as text: names,
    places and dates set large."""
    kinds = [block.region.kind for block in blocks]
    title = kinds.index(Kind.TITLE) if Kind.TITLE in kinds else len(blocks)
    sections = [at for at in range(title, len(blocks)) if kinds[at] is Kind.HEADING and _is_section(blocks[at].text)]
    return [
        replace(block, region=replace(block.region, kind=Kind.TEXT))
        if sections and title < at < sections[0] and kinds[at] is Kind.HEADING
        else block
        for at, block in enumerate(blocks)
    ]


def _is_section(text: str) -> bool:
    return depth_of(text) is not None or text.strip().rstrip(".:").casefold() in _UNNUMBERED


def size_of(lines: Sequence[Line]) -> float:
    """Font size that most characters have, to half a point; 0 without lines."""
    weights: dict[float, int] = {}
    for line in lines:
        size = round(line.size * 2) / 2
        weights[size] = weights.get(size, 0) + len(line.text)
    return max(weights, key=lambda size: (weights[size], size)) if weights else 0.0


def _bare(text: str) -> str:
    """A title as it compares: letters and digits only, its number gone, for outlines often leave that out."""
    text = re.sub(r"^\s*(?:[0-9]+(?:\.[0-9]+)*\.?|[IVX]+\.|[A-Z]\.)\s+", "", text)
    return "".join(each for each in text.casefold() if each.isalnum())


def depth_of(text: str) -> int | None:
    """How deep a number puts a heading: 1 for "1" or "Chapter 3", 2 for "1.3" or "A.2"; None without one."""
    text = text.strip()
    if match := _DECIMAL.match(text) or _APPENDED.match(text):
        return match[1].removesuffix(".0").count(".") + 1
    if match := _CHINESE.match(text):
        return 2 if match[1] == "节" or match[0].startswith("（") else 1
    if _NAMED.match(text) or _ROMAN.match(text) or _BRACKETED.match(text):
        return 1
    return None
