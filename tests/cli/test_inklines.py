"""Lines of text from ink alone: those that touch, large ones, dots, and what reaches in from the neighbours."""

import numpy as np
import pymupdf
import pytest
from numpy.typing import NDArray

from gravityocr_cli.crops import LARGE_PX, USUAL_PX, Limits, crops_of
from gravityocr_cli.document import Kind, Page, Region
from gravityocr_cli.ink import ink_of
from gravityocr_cli.inklines import lines_in
from gravityocr_models.signs import Box

TEXT = "Robert Kilpatrick, now retired board chairman of CIGNA Corp., never took a course in parenting. He was simply"


def drawn(lines: list[str], size: float = 10, leading: float = 1.2, dpi: int = 144) -> NDArray[np.uint8]:
    """RGB pixels of lines of text and a little paper around."""
    with pymupdf.open() as document:
        page = document.new_page(width=400, height=20 + leading * size * (len(lines) + 1))
        for number, line in enumerate(lines):
            page.insert_text((10, 10 + size * (1 + leading * number)), line, fontsize=size, fontname="tiro")
        pixmap = page.get_pixmap(dpi=dpi)
    pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width, 3)
    rows = np.flatnonzero(ink_of(pixels).any(axis=1))
    return np.ascontiguousarray(pixels[rows[0] - 4 : rows[-1] + 5])


@pytest.mark.parametrize("leading", [1.5, 1.2, 1.0, 0.9])
def test_each_line_is_found_though_lines_touch(leading: float) -> None:
    words = TEXT.split()
    lines = [" ".join(words[at : at + 4]) for at in range(0, len(words), 4)]
    pixels = drawn(lines, leading=leading)
    bands = lines_in(ink_of(pixels))
    assert len(bands) == len(lines)
    for (a, b), expected in zip(bands, range(len(lines)), strict=True):
        assert abs((a + b) / 2 - 4 - 2 * 10 * (0.45 + leading * expected)) < 6


def test_a_short_last_line_is_a_line() -> None:
    assert len(lines_in(ink_of(drawn(["dignity and concern for how deeply", "I felt."], leading=0.95)))) == 2


@pytest.mark.parametrize("text", ["What Kids Need Most in a Dad", "minimum", "ÄÖÜ éèê", "a = b", "-"])
@pytest.mark.parametrize("size", [8, 12, 32])
def test_a_line_is_one_whatever_its_size_and_dots(text: str, size: float) -> None:
    assert len(lines_in(ink_of(drawn([text], size)))) == 1


def test_slivers_of_the_lines_around_are_left_out() -> None:
    pixels = drawn(["one line of it", "another line of it", "a third line of it", "the fourth line"], leading=1.2)
    bands = lines_in(ink_of(pixels))
    below = bands[3][0]
    assert len(lines_in(ink_of(pixels[: below + 8]))) == 3


def test_a_block_without_ink_is_one_band() -> None:
    assert lines_in(np.zeros((30, 50), np.bool_)) == [(0, 30)]


def test_a_reader_of_lines_gets_headings_in_the_size_of_text() -> None:
    pixels = drawn(["What Kids Need"], size=32)
    page = Page(1, 400, pixels.shape[0] / 2, 144, pixels)
    region = Region(1, 0, Kind.HEADING, Box(0, 0, 400, page.height))
    heights = [
        crop.pixels.shape[0]
        for most in (1, 6)
        for crop in crops_of(page, region, Limits(16, 1024, most), trust_layer=False)
    ]
    assert heights[0] == USUAL_PX
    assert heights[1] > LARGE_PX
