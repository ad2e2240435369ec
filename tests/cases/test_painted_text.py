"""Cases 1, 12 to 16, 20 and 24: only what a reader sees, and never a letter that the page does not show."""

from typing import Any

import pymupdf
import pytest
from cases.conftest import Convert, new_page, paragraphs, raw_pdf

pytestmark = pytest.mark.usefixtures("no_layout")
SENTENCE = "What the pixels say is this."


def test_case_01_text_that_is_not_painted(converted: Convert) -> None:
    document, page = new_page()
    red, white = (1, 0, 0), (1, 1, 1)
    page.insert_text((72, 100), "first line", fontsize=14)
    page.insert_text((72, 130), "white on the bare page", fontsize=14, color=white)
    page.draw_rect((70, 145, 300, 165), color=red, fill=red)
    page.insert_text((72, 160), "red on red", fontsize=14, color=red)
    page.insert_text((72, 190), "covered later", fontsize=14)
    page.draw_rect((70, 175, 300, 195), color=white, fill=white)
    page.insert_text((72, 220), "mode three", fontsize=14, render_mode=3)
    page.insert_text((72, 250), "sixth line", fontsize=14)
    second = document.new_page(width=612, height=792)
    off = document.add_ocg("layer", on=False)
    second.insert_text((72, 100), "a layer that is off", fontsize=14, oc=off)
    assert converted(document).split() == ["first", "line", "sixth", "line"]


def hidden_words(converted: Convert, document: Any) -> None:
    """The layer's text is nonsense; what an engine reads from the pixels has to come through, and only that."""
    markdown = converted(document, canned=SENTENCE)
    assert markdown.strip() == SENTENCE
    assert not any(ord(each) < 32 and each != "\n" for each in markdown)


def test_case_12_no_tounicode_and_wrong_glyph_names(converted: Convert) -> None:
    document, page = new_page()
    page.insert_font(fontname="F0", fontbuffer=pymupdf.Font("tiro").buffer)
    page.insert_text((72, 100), "The words of this line are painted well.", fontname="F0", fontsize=12)
    document = pymupdf.open("pdf", document.tobytes())
    for number in range(1, document.xref_length()):
        if document.xref_get_key(number, "ToUnicode")[0] == "xref":
            document.xref_set_key(number, "ToUnicode", "null")
        if document.xref_get_key(number, "Subtype")[1] == "/CIDFontType2":
            document.xref_set_key(number, "CIDSystemInfo", "<</Registry(None)/Ordering(None)/Supplement 0>>")
    hidden_words(converted, document)


def test_case_13_gid_names(converted: Convert) -> None:
    names = " ".join(f"/gid{number:05}" for number in range(43, 69))
    font = f"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding<</Differences[65 {names}]>>>>"
    hidden_words(converted, raw_pdf(b"BT /F1 14 Tf 72 700 Td (HELLOTHEREWORLD) Tj ET", font))


def test_case_15_words_apart_only_by_offsets(converted: Convert) -> None:
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    content = b"BT /F1 12 Tf 72 700 Td [(Words)-600(set)-600(apart)-600(by)-600(offsets)] TJ ET"
    assert converted(raw_pdf(content, font)).strip() == "Words set apart by offsets"


def test_case_16_all_widths_zero(converted: Convert) -> None:
    widths = " ".join(["0"] * 95)
    font = f"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/FirstChar 32/LastChar 126/Widths[{widths}]>>"
    glyphs = [(b"T", 72), (b"i", 80.6), (b"t", 83.7), (b"l", 87.6), (b"e", 90.7)]
    content = b"BT /F1 14 Tf " + b" ".join(b"1 0 0 1 %g 700 Tm (%s) Tj" % (x, glyph) for glyph, x in glyphs) + b" ET"
    assert converted(raw_pdf(content, font)).split()[-1] == "Title"


def test_case_20_text_outside_the_crop_box(converted: Convert) -> None:
    document, page = new_page(612, 842)
    page.insert_text((72, 400), "Inside the box", fontsize=12)
    page.insert_text((72, 820), "Outside the box", fontsize=12)
    page.set_cropbox(pymupdf.Rect(0, 50, 612, 761))
    assert converted(document).strip() == "Inside the box"


@pytest.mark.parametrize("grey", [1.0, 0.6])
def test_case_24_nothing_is_invented_on_an_even_page(converted: Convert, grey: float) -> None:
    document, page = new_page()
    page.draw_rect(page.rect, color=(grey,) * 3, fill=(grey,) * 3)
    assert converted(document, canned="invented words") == ""


def test_case_24_show_through_is_no_text(converted: Convert) -> None:
    document, page = new_page()
    for y in range(100, 700, 20):
        page.insert_text((540, y), "the other side of the leaf shines through", fontsize=11, color=(0.96,) * 3,
                         morph=(pymupdf.Point(540, y), pymupdf.Matrix(-1, 1)))  # fmt: skip
    assert converted(document, canned="invented words") == ""


def test_case_14_a_shifted_tounicode_is_for_the_model_to_catch(converted: Convert) -> None:
    """Its letters are letters: only reading the pixels shows the lie. Here the engine refuses the draft."""
    document, page = new_page()
    page.insert_text((72, 100), "Xlt", fontsize=12)
    markdown = converted(document, canned=SENTENCE, text_layer="off")
    assert paragraphs(markdown) == [SENTENCE]
