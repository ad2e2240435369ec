"""Numbers beside lines, and what only looks like them."""

from collections.abc import Callable
from pathlib import Path

import pymupdf
import pytest

from gravityocr_cli.linenumbers import line_numbers
from gravityocr_cli.pdf import Sheet, Source

MakePdf = Callable[..., Path]
PROSE = "and the rain fell in torrents all over the city of London that night"


def count_on(paint: Callable[[pymupdf.Page], None]) -> int:
    page = pymupdf.open().new_page()
    paint(page)
    return len(line_numbers(page.get_text("rawdict")))


def numbered(
    page: pymupdf.Page, text: str, size: float, small: float, lift: float = 0, font: str = "helv", gap: float = 20
) -> None:
    """Twelve lines from 95 on; numbers of the given size end left of them."""
    for row in range(12):
        y, number = 100 + 14 * row, str(95 + row)
        width = pymupdf.get_text_length(number, fontsize=small)
        page.insert_text((100 - gap - width, y - lift), number, fontsize=small)
        page.insert_text((100, y), text, fontname=font, fontsize=size)


@pytest.mark.parametrize("text", [PROSE, "return 0;", "Capitals"])
def test_small_numbers_beside_lines(text: str) -> None:
    assert count_on(lambda page: numbered(page, text, 10, 6)) == 12


def test_numbers_of_every_other_line() -> None:
    def paint(page: pymupdf.Page) -> None:
        for row in range(12):
            page.insert_text((100, 100 + 14 * row), "return 0;", fontname="cour", fontsize=10)
            if row % 2:
                page.insert_text((300, 100 + 14 * row), str(row + 1), fontsize=6)

    assert count_on(paint) == 6


def test_numbers_as_large_as_the_prose_in_the_margin() -> None:
    assert count_on(lambda page: numbered(page, PROSE, 10, 10)) == 12


@pytest.mark.parametrize("text", ["Apples and pears", "apples", PROSE.capitalize()])
def test_rows_of_tables_and_lists_keep_their_numbers(text: str) -> None:
    assert count_on(lambda page: numbered(page, text, 10, 10)) == 0


def test_marks_of_notes_stay() -> None:
    def paint(page: pymupdf.Page) -> None:
        page.insert_text((60, 60), "a heading left of the notes", fontsize=10)
        numbered(page, PROSE, 10, 6, lift=3)

    assert count_on(paint) == 0


def test_numbers_that_do_not_count_stay() -> None:
    def paint(page: pymupdf.Page) -> None:
        for row, number in enumerate([3, 17, 4, 101, 5, 12, 90, 7]):
            page.insert_text((60, 100 + 14 * row), str(number), fontsize=6)
            page.insert_text((100, 100 + 14 * row), PROSE, fontsize=10)

    assert count_on(paint) == 0


@pytest.mark.parametrize("gap", [20, 4])  # 4: so close that MuPDF makes one line of both
def test_a_page_is_laid_out_without_them(make_pdf: MakePdf, gap: float) -> None:
    path = make_pdf(lambda page: numbered(page, PROSE, 10, 6, gap=gap))
    with Source(path) as source:
        (sheet,) = source.sheets([1], 72)
    assert isinstance(sheet, Sheet)
    assert [line.text for line in sheet.page.lines] == [PROSE] * 12
    assert (sheet.page.pixels[80:280, :98] == 255).all()
