"""Listings: where they begin and end among text, told by typewriter type and by what programs are made of."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, groupby

from gravityocr_cli.document import Kind, Line, Page, Region
from gravityocr_cli.headings import size_of
from gravityocr_cli.textlayer import rows_of

_CODE = re.compile(r"[{}();=<>\\$]")
_ADDRESS = re.compile(r"://|[\w.+-]@[\w-]+\.\w")
_CODE_MARKS = frozenset("{}[]=<>;_\\#*+|&$@%^~`")  # and not of quotations or asides in brackets
_BLANK_LINES = 3.0  # times the size: white within a listing
_MAY_GO_ON = frozenset({Kind.CODE, Kind.TEXT, Kind.LIST, Kind.HEADING})  # the analysis sees one region at a time
Rows = Sequence[Sequence[Line]]


def is_code(region: Region, page: Page) -> bool:
    """Typewriter lines that are no prose; one alone only where it shows code, and the page has text in other type."""
    if not region.lines or not all(line.mono for line in region.lines) or _is_prose(rows_of(region.lines)):
        return False
    if len(region.lines) > 1:
        return True
    text = region.lines[0].text
    return _CODE.search(text) is not None and not _ADDRESS.search(text) and not _is_typed(page)


def _is_typed(page: Page) -> bool:
    """Whether all of the page's text is in typewriter type."""
    return all(line.mono or len(line.text.split()) < 3 for line in page.lines)


def listings_in(region: Region) -> list[Region]:
    """The region in parts, its listings apart from the text around them or beside them; none where it lacks one."""
    if region.kind is not Kind.TEXT or all(line.mono for line in region.lines):
        return []
    return _code_and_result(region) or _among_text(region)


def _code_and_result(region: Region) -> list[Region]:
    """A listing and what stands to its right in other type, as manuals show what a program does."""
    code, other = [x for x in region.lines if x.mono], [x for x in region.lines if not x.mono]
    if len(rows_of(code)) < 2 or min(x.box.x0 for x in other) - max(x.box.x1 for x in code) < size_of(code):
        return []
    return [region.with_lines(code), region.with_lines(other)]


def _among_text(region: Region) -> list[Region]:
    """Rows of code, most of which stop short of where the text ends, and the rows of text between them."""
    parts: list[tuple[bool, list[list[Line]]]] = []
    for mono, rows in groupby(rows_of(region.lines), lambda row: all(line.mono for line in row)):
        some = list(rows)
        short = sum(row[-1].box.x1 < region.box.x1 - 3 * row[-1].size for row in some)
        code = mono and len(some) > 1 and 2 * short > len(some) and not _is_prose(some)
        if parts and not code and not parts[-1][0]:
            parts[-1][1].extend(some)
        else:
            parts.append((code, some))
    return [region.with_lines(chain(*rows)) for _, rows in parts] if len(parts) > 1 else []


def whole_listings(ordered: Iterable[Region], page: Page) -> list[Region]:
    """The regions in reading order, those that go on a listing with little white between made part of it."""
    found: list[Region] = []
    may_go_on = frozenset({Kind.CODE}) if _is_typed(page) else _MAY_GO_ON
    for region in ordered:
        if found and {found[-1].kind, region.kind} <= may_go_on and _go_on(found[-1], region):
            found[-1] = replace(found[-1].with_lines((*found[-1].lines, *region.lines)), kind=Kind.CODE)
        else:
            found.append(region)
    return found


def _go_on(above: Region, below: Region) -> bool:
    lines = *above.lines, *below.lines
    if Kind.CODE not in (above.kind, below.kind) or not (above.lines and below.lines):
        return False
    if not all(line.mono for line in lines) or len({line.bold for line in lines}) > 1:
        return False
    size = size_of(above.lines)
    beside = min(above.box.x1, below.box.x1) - max(above.box.x0, below.box.x0)
    gap = below.box.y0 - above.box.y1
    return abs(size - size_of(below.lines)) < 0.5 and beside > 0 and -size < gap < _BLANK_LINES * size


def _is_prose(rows: Rows) -> bool:
    """Whether typewriter text is a typewriter's: long lines of words, hardly a mark that programs are made of."""
    text = " ".join(line.text for row in rows for line in row)
    return sum(each in _CODE_MARKS for each in text) < 0.02 * len(text) and len(text.split()) >= 7 * len(rows)
