from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from gravityocr_cli.document import Page
from gravityocr_cli.ink import ink_of
from gravityocr_cli.inkcut import text_mask
from gravityocr_cli.pdf import Sheet, Source
from gravityocr_cli.straighten import sharpest, straightened, up_or_down

MakePdf = Callable[..., Path]
WORDS = "Half of the old people by the bank had to be told that the tall clock had stopped. " * 12
CAPITALS = "NO LETTER OF A LINE IN CAPITALS RISES ABOVE ANOTHER. " * 12
RUSSIAN = "Все люди рождаются свободными и равными в своем достоинстве и правах. " * 12

GREEK = "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. " * 12
HEBREW = "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון. " * 12
ARABIC = "هذا المستوى غير منتشر كثيرا لأنه يستخدم قرصا إضافيا لتخزين المعلومات. " * 12


def scan(make_pdf: MakePdf, text: str) -> Page:
    """A page of text as pixels alone."""

    def paint(page: Any) -> None:
        page.insert_htmlbox((50, 60, 270, 500), f'<p style="font-size:10px">{text}</p>')

    with Source(make_pdf(paint, width=320, height=520)) as source:
        (sheet,) = source.sheets((1,), 144.0)
    assert isinstance(sheet, Sheet)
    return Page(1, 320, 520, 144, sheet.page.pixels)


def laid(page: Page, turn: int, skew: float) -> Page:
    """The page as a careless hand lays it on the glass: askew by some degrees, then turned by quarters, clockwise."""
    pixels = np.asarray(Image.fromarray(page.pixels).rotate(-skew, Image.Resampling.BICUBIC, fillcolor=(255, 255, 255)))
    pixels = np.ascontiguousarray(np.rot90(pixels, -turn // 90))
    height, width, _ = pixels.shape
    return Page(1, width / 2, height / 2, 144, pixels)


def alike(a: NDArray[np.uint8], b: NDArray[np.uint8]) -> float:
    """How much of the text of two pages of one size lies on the same places."""
    first, second = (text_mask(ink_of(pixels), 144)[0] for pixels in (a, b))
    return float(np.corrcoef(first.ravel(), second.ravel())[0, 1])


@pytest.mark.parametrize(("turn", "skew"), [(0, 0.0), (90, 0.0), (180, 1.5), (270, -2.5)])
def test_a_scan_is_held_upright(make_pdf: MakePdf, turn: int, skew: float) -> None:
    page = scan(make_pdf, WORDS)
    upright = straightened(laid(page, turn, skew))
    assert (upright.width, upright.height, upright.dpi) == (320, 520, 144)
    assert alike(upright.pixels, page.pixels) > 0.6


@pytest.mark.parametrize("text", [WORDS, GREEK])
def test_an_upright_page_stays_as_it_is(make_pdf: MakePdf, text: str) -> None:
    page = scan(make_pdf, text)
    assert straightened(page) is page


@pytest.mark.parametrize(
    "text",
    [CAPITALS, RUSSIAN, HEBREW, ARABIC, "12,345.60 7,890 11 " * 30, "人人生而自由在尊严和权利上一律平等" * 12],
)
def test_a_page_that_does_not_tell_stays_as_it_is(make_pdf: MakePdf, text: str) -> None:
    page = scan(make_pdf, text)
    for turn in (0, 180):
        laid_out = laid(page, turn, 0)
        assert straightened(laid_out) is laid_out


def test_skew_is_measured_to_a_fifth_of_a_degree(make_pdf: MakePdf) -> None:
    page = scan(make_pdf, WORDS)
    for skew in (-4.0, 0.7, 3.0):
        mask, _ = text_mask(laid(page, 0, skew).ink, 144)
        assert sharpest(mask)[0] == pytest.approx(skew, abs=0.2)


def test_nothing_to_measure_is_no_skew() -> None:
    blank = np.full((400, 300, 3), 255, np.uint8)
    assert sharpest(text_mask(ink_of(blank), 144)[0]) == (0.0, 0.0)
    assert up_or_down(ink_of(blank), 144, 0) == 0
