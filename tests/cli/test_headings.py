"""Heading levels."""

import pytest

from gravityocr_cli.document import Block, Kind, Line, Region
from gravityocr_cli.headings import Outline, size_of
from gravityocr_models.signs import Box


def heading(text: str, size: float = 0.0, kind: Kind = Kind.HEADING) -> Block:
    box = Box(0, 0, 100, 10)
    return Block(Region(1, 0, kind, box, (Line(box, text, size),) if size else ()), text)


def levels(*blocks: Block) -> list[int]:
    outline = Outline()
    outline.look(blocks)
    return [outline.level(block) for block in blocks]


def test_one_size_and_three_levels() -> None:  # case 8
    assert levels(heading("1 Start", 12), heading("1.3 Middle", 12), heading("1.3.1 End", 12)) == [2, 3, 4]


def test_titles() -> None:
    assert levels(heading("Title", 20, Kind.TITLE), heading("Again", 20, Kind.TITLE)) == [1, 2]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["IV. METHODS", "A. First", "B. Second", "V. RESULTS", "A. Third"], [2, 3, 3, 2, 3]),
        (["II. METHODS", "A. First", "1. Small", "2. Small too", "III. RESULTS"], [2, 3, 4, 4, 2]),
        (["I. Part", "1. Chapter"], [2, 2]),
        (["A. First", "B. Second", "C. Third"], [2, 2, 2]),
        (["H. Letter", "I. Letter too"], [2, 2]),
        (["I. ONE", "1) small"], [2, 4]),
        (["A.2 Proofs", "A.2.1 More"], [3, 4]),
        (["Chapter 3", "Appendix B", "3.1. Dotted"], [2, 2, 3]),
        (["第三章 方法", "第一节 数据", "一、引言", "（二）结果"], [2, 3, 2, 3]),
        (["1.2.3.4.5.6.7 Deep"], [6]),
        (["1. Dot", "2020 was a year", "3D views"], [2, 2, 2]),
    ],
)
def test_numbering(texts: list[str], expected: list[int]) -> None:
    assert levels(*map(heading, texts)) == expected


def test_sizes_without_numbers() -> None:
    assert levels(heading("Big", 18), heading("Mid", 14), heading("Mid too", 14.2), heading("Small", 11)) == [
        2,
        3,
        3,
        4,
    ]


def test_a_numbered_heading_places_the_others_of_its_size() -> None:
    assert levels(heading("2.1 Numbered", 13), heading("Not", 13), heading("Smaller", 11)) == [3, 3, 4]
    assert levels(heading("Huge", 30), heading("References", 12)) == [2, 2]


def test_size_of_is_what_most_characters_have() -> None:
    box = Box(0, 0, 1, 1)
    assert size_of((Line(box, "x", 30), Line(box, "longer", 12.1))) == 12.0
    assert size_of(()) == 0.0


def test_names_under_a_title_are_no_headings() -> None:
    page = [heading("On Crabs", 20, Kind.TITLE), heading("Ann Author", 12), heading("May 2020", 12)]
    kinds = [block.region.kind for block in Outline().with_headings([*page, heading("Abstract"), heading("More")])]
    assert kinds == [Kind.TITLE, Kind.TEXT, Kind.TEXT, Kind.HEADING, Kind.HEADING]
    assert [block.region.kind for block in Outline().with_headings(page)] == [Kind.TITLE, Kind.HEADING, Kind.HEADING]
