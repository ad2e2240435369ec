"""What is a listing, and where it begins and ends."""

from dataclasses import replace

import numpy as np
import pytest

from gravityocr_cli.document import Kind, Line, Page, Region
from gravityocr_cli.listings import is_code, listings_in, whole_listings
from gravityocr_models.signs import Box

PROSE = Line(Box(50, 700, 400, 710), "and the rain fell in torrents", 10)


def code(text: str, row: float, x: float = 50, mono: bool = True) -> Line:
    return Line(Box(x, 100 + 12 * row, x + 6 * len(text), 110 + 12 * row), text, 10, mono=mono)


def region(*lines: Line, kind: Kind = Kind.TEXT) -> Region:
    return Region(1, 0, kind, Box(0, 0, 1, 1)).with_lines(lines)


def page_of(*lines: Line) -> Page:
    return Page(1, 600, 800, 72, np.zeros((1, 1, 3), np.uint8), lines)


def is_code_on(region: Region, *others: Line) -> bool:
    return is_code(region, page_of(*region.lines, *others))


def merged(*regions: Region, others: tuple[Line, ...] = (PROSE,)) -> list[Region]:
    return whole_listings(regions, page_of(*(line for each in regions for line in each.lines), *others))


def test_typewriter_lines_are_code_and_typewriter_prose_is_not() -> None:
    assert is_code_on(region(code("x = 1", 0), code("y", 1)))
    prose = "It was a dark and stormy night, and the rain", '"fell" (in torrents) all over the city of London.'
    assert not is_code_on(region(*(code(text, row) for row, text in enumerate(prose))))
    assert not is_code_on(region(code("x = 1", 0), code("words", 1, mono=False)))


@pytest.mark.parametrize(("text", "is_one"), [("\\def\\A@B{ }", True), ("a@b.org (me)", False), ("plain", False)])
def test_a_line_alone_shows_code_among_other_type(text: str, is_one: bool) -> None:
    assert is_code_on(region(code(text, 0)), *(code("y = 1", row) for row in range(1, 9)), PROSE) is is_one
    assert not is_code_on(region(code(text, 0)), code("y = 1", 1))


def test_code_between_rows_of_text_is_a_listing_of_its_own() -> None:
    long = "words that fill a line of text up to its very end, as they do"
    lines = [code(long, 0, mono=False), code("{", 1), code("  a", 2), code("}", 3), code(long, 4, mono=False)]
    parts = listings_in(region(*lines))
    assert [[line.text for line in part.lines] for part in parts] == [[long], ["{", "  a", "}"], [long]]
    full = [code(long, 0, mono=False), code("\\a" * 30, 1), code("\\b" * 30, 2), code(long, 3, mono=False)]
    assert listings_in(region(*full)) == []  # a long name within a paragraph
    assert listings_in(region(code("{", 0), code("}", 1))) == []


def test_what_goes_on_a_listing_is_part_of_it() -> None:
    first = region(code("if a:", 0), code("  b()", 1), kind=Kind.CODE)
    rest, far, beside = region(code("c", 4)), region(code("d()", 12)), region(code("e()", 3, x=300), kind=Kind.CODE)
    assert [(each.kind, len(each.lines)) for each in merged(first, rest)] == [(Kind.CODE, 3)]
    assert [(each.kind, len(each.lines)) for each in merged(rest, first)] == [(Kind.TEXT, 1), (Kind.CODE, 2)]
    assert len(merged(first, far)) == 2
    assert len(merged(first, beside)) == 2
    assert len(merged(first, region(code("words", 3, mono=False)))) == 2
    for kind in (Kind.LIST, Kind.HEADING):
        assert [each.kind for each in merged(first, region(code("4. end", 3), kind=kind))] == [Kind.CODE]
    assert len(merged(first, region(replace(code("NAME", 3), bold=True), kind=Kind.HEADING))) == 2
    assert [each.kind for each in merged(first, rest, others=())] == [Kind.CODE, Kind.TEXT]  # a typewriter's page
    assert len(merged(first, region(code("c", 3), code("d", 4), kind=Kind.CODE), others=())) == 1
