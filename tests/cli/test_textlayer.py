from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from gravityocr_cli.document import PLAIN, Line, Style
from gravityocr_cli.pdf import Sheet, Source
from gravityocr_cli.textlayer import (
    _clean,
    _joined_accents,
    _Letter,
    _negated,
    _with_blanks,
    draft_of,
    is_upright,
    rows_of,
)
from gravityocr_models.signs import UNSOUND, Box

MakePdf = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("no_layout")


def lines_on(path: Path) -> list[Line]:
    with Source(path) as source:
        (sheet,) = source.sheets((1,), 144.0)
    assert isinstance(sheet, Sheet), sheet
    return list(sheet.page.lines)


def raw_page(document: Any, content: bytes, font: str) -> None:
    """A page with this content stream, where /F1 is the given font dictionary."""
    page = document.new_page()
    font_xref, content_xref = document.get_new_xref(), document.get_new_xref()
    document.update_object(font_xref, font)
    document.update_object(content_xref, "<<>>")
    document.update_stream(content_xref, content)
    document.xref_set_key(page.xref, "Contents", f"{content_xref} 0 R")
    document.xref_set_key(page.xref, "Resources", f"<</Font<</F1 {font_xref} 0 R>>>>")


def test_only_what_a_reader_sees(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        at = iter(range(100, 300, 20))
        page.insert_text((72, next(at)), "first, black", fontsize=14)
        page.insert_text((72, next(at)), "white on nothing", fontsize=14, color=(1, 1, 1))
        y = next(at)
        page.draw_rect((70, y - 15, 300, y + 5), color=(1, 0, 0), fill=(1, 0, 0))
        page.insert_text((72, y), "red on red", fontsize=14, color=(1, 0, 0))
        y = next(at)
        page.insert_text((72, y), "under a white box", fontsize=14)
        page.draw_rect((70, y - 15, 300, y + 5), color=(1, 1, 1), fill=(1, 1, 1))
        page.insert_text((72, next(at)), "render mode three", fontsize=14, render_mode=3)
        page.insert_text((72, next(at)), "no opacity", fontsize=14, fill_opacity=0)
        page.insert_text((72, next(at)), "last, black", fontsize=14)

    assert [line.text for line in lines_on(make_pdf(paint))] == ["first, black", "last, black"]


def test_a_hidden_layer_over_a_scan_is_kept(make_pdf: MakePdf) -> None:
    scan = pymupdf.open()
    scan.new_page(width=612, height=792).insert_text((72, 100), "Scanned words", fontsize=14)
    image = scan[0].get_pixmap(dpi=72)

    def paint(page: Any) -> None:
        page.insert_image(page.rect, pixmap=image)
        page.insert_text((72, 100), "Scanned words", fontsize=14, render_mode=3)

    (line,) = lines_on(make_pdf(paint))
    assert line.text == "Scanned words"
    assert line.font == "", "its fonts say nothing about the picture"


def test_a_line_names_the_subset_that_it_is_set_in(tmp_path: Path) -> None:
    """Each subset has a ToUnicode table of its own; the letters of its name say nothing about how it looks."""
    document = pymupdf.open()
    font = "<</Type/Font/Subtype/Type1/BaseFont/XDEMIX+Helvetica>>"
    raw_page(document, b"BT /F1 12 Tf 72 700 Td (subset) Tj ET", font)
    document.save(tmp_path / "subset.pdf")
    (line,) = lines_on(tmp_path / "subset.pdf")
    assert line.font == "XDEMIX+Helvetica"
    assert not line.bold


def test_fonts_and_ligatures(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        page.insert_text((72, 100), "Plain words", fontsize=11)
        page.insert_text((72, 130), "Bold words", fontsize=16, fontname="hebo")
        page.insert_text((72, 160), "Mono words", fontsize=9, fontname="cour")

    plain, bold, mono = lines_on(make_pdf(paint))
    assert (plain.size, plain.bold, plain.mono) == (11, False, False)
    assert (bold.size, bold.bold, bold.mono) == (16, True, False)
    assert (mono.size, mono.bold, mono.mono) == (9, False, True)


def test_words_apart_only_by_offsets_come_apart(tmp_path: Path) -> None:
    document = pymupdf.open()
    content = b"BT /F1 12 Tf 72 700 Td [(Words)-600(set)-600(by)-600(offset)] TJ ET"
    raw_page(document, content, "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    document.save(tmp_path / "offsets.pdf")
    assert [line.text for line in lines_on(tmp_path / "offsets.pdf")] == ["Words set by offset"]


@pytest.mark.parametrize("code", ["F0FF", "E000", "FFFD"])
def test_what_cannot_be_text_gives_no_draft(tmp_path: Path, code: str) -> None:
    document = pymupdf.open()
    unicode_xref = document.get_new_xref()
    document.update_object(unicode_xref, "<<>>")
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange <00> <FF> "
        f"endcodespacerange 1 beginbfchar <41> <{code}> endbfchar endcmap end end"
    )
    document.update_stream(unicode_xref, cmap.encode())
    font = f"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode {unicode_xref} 0 R>>"
    raw_page(document, b"BT /F1 12 Tf 72 700 Td (ABBA words) Tj ET", font)
    document.save(tmp_path / "odd.pdf")
    lines = lines_on(tmp_path / "odd.pdf")
    assert any(UNSOUND in line.text for line in lines)
    assert not any(ord(char) < 32 for line in lines for char in line.text)
    assert draft_of(lines) is None


def test_control_bytes_and_soft_hyphens() -> None:
    assert _clean("a\x07b") == f"a{UNSOUND}b"
    assert _clean(" soft\u00adened  algo\u00ad") == "softened algo-"
    assert _clean("e\u0301 zero\u200bwidth") == "é zerowidth"


def line(x0: float, y0: float, x1: float, text: str, size: float = 10) -> Line:
    return Line(Box(x0, y0, x1, y0 + size), text, size)


def test_a_draft_follows_painted_rows() -> None:
    lines = [line(0, 20, 50, "second"), line(60, 0.5, 90, "row"), line(0, 0, 50, "first")]
    assert draft_of(lines) == "first row\nsecond"
    assert draft_of([]) is None


def test_a_fraction_is_two_rows() -> None:
    assert len(rows_of([line(0, 0, 20, "a + b"), line(0, 8, 20, "c + d")])) == 2


def test_sideways_text_is_told_apart() -> None:
    assert is_upright(line(0, 0, 50, "words"))
    assert not is_upright(Line(Box(0, 0, 10, 200), "arXiv:1234.5678", 10))


def glyphs(*letters: tuple[str, float, float]) -> list[_Letter]:
    """Letters with their left and right edges."""
    return [_Letter(text, (x0, 0.0, x1, 10.0), PLAIN) for text, x0, x1 in letters]


def test_accents_painted_apart_are_set_on_their_letters() -> None:
    tex = glyphs(
        ("Z", 0, 6),
        ("\u00b4", 6, 11),
        ("o", 6, 11),
        (UNSOUND, 11, 14),
        ("l", 11, 14),
        ("\u00a8", 14, 19),
        ("ı", 15, 18),
    )
    assert "".join(letter.text for letter in _joined_accents(tex)) == "Zółï"


def test_an_accent_that_stands_by_itself_stays() -> None:
    apart = glyphs(
        ("a", 0, 5),
        ("\u00b4", 5, 10),
        ("e", 10, 15),
        (UNSOUND, 15, 20),
        ("l", 20, 23),
        ("\u00b4", 23, 28),
        ("q", 23, 28),
    )
    assert "".join(letter.text for letter in _joined_accents(apart)) == f"a\u00b4e{UNSOUND}l\u00b4q"


def test_styles_and_links_of_a_line(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        x = 72.0
        for text, font, size, lift in (
            ("plain ", "helv", 11, 0), ("bold ", "hebo", 11, 0), ("slanted ", "heit", 11, 0), ("code", "cour", 11, 0),
            ("2", "helv", 7, 4), (" and linked", "helv", 11, 0),
        ):  # fmt: skip
            page.insert_text((x, 100 - lift), text, fontname=font, fontsize=size)
            x += pymupdf.get_text_length(text, font, size)
        page.insert_link({"kind": pymupdf.LINK_URI, "from": pymupdf.Rect(x - 31, 88, x + 2, 104), "uri": "https://a.b"})

    (only,) = lines_on(make_pdf(paint))
    assert [(span.text.strip(), span.style) for span in only.spans] == [
        ("plain", PLAIN), ("bold", Style(bold=True)), ("slanted", Style(italic=True)), ("code", Style(code=True)),
        ("2", Style(script=1)), ("and", PLAIN), ("linked", Style(link="https://a.b")),
    ]  # fmt: skip


def test_blanks_before_a_line_are_its_indent(make_pdf: MakePdf) -> None:
    indented, flush = lines_on(make_pdf(lambda page: page.insert_text((72, 100), ["    x", "y"], fontname="cour")))
    assert indented.box.x0 - flush.box.x0 > 20


def test_a_gap_after_a_mathematical_sign_is_a_blank() -> None:
    letters = glyphs(("u", 0, 5), (" ", 5, 8), ("\u2261", 8, 16), ("1", 18, 23), ("\u2113", 23, 27), ("p", 27.3, 32))
    assert "".join(letter.text for letter in _with_blanks(letters, 10)) == "u \u2261 1\u2113p"
    assert len(list(_with_blanks(glyphs(("\u4e8c", 0, 10), ("\u6708", 13, 23)), 10))) == 2


def test_a_stroke_goes_with_the_sign_behind_it() -> None:
    letters = glyphs(("x", 0, 5), ("\u0338", 5, 5), (" ", 5, 8), ("=", 8, 16), ("\u0338", 16, 16), ("y", 16, 21))
    assert "".join(letter.text for letter in _negated(letters)) == "x \u2260\u0338y"


def test_an_index_longer_than_its_symbol_is_still_one(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        page.insert_text((72, 100), "N", fontsize=12)
        page.insert_text((81, 102), "hom", fontsize=8)

    (symbol,) = lines_on(make_pdf(paint))
    assert symbol.size == 12
    assert [(span.text, span.style.script) for span in symbol.spans] == [("N", 0), ("hom", -1)]


def test_pieces_that_touch_are_of_one_word() -> None:
    pieces = [Line(Box(50, 100, 80, 110), "polish", 10), Line(Box(80, 100, 83, 110), ",", 10)]
    assert draft_of([*pieces, Line(Box(86, 100, 110, 110), "german", 10)]) == "polish, german"


def test_a_short_rule_at_the_foot_of_white_is_an_underscore(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        page.insert_text((72, 100), "gcm", fontsize=11)
        page.draw_line((93.2, 101), (96.6, 101), width=0.5)
        page.insert_text((97, 100), "aes", fontsize=11)
        page.draw_line((72, 131), (112, 131), width=0.5)  # which underlines what stands over it
        page.insert_text((72, 130), "two words", fontsize=11)

    assert [line.text for line in lines_on(make_pdf(paint))] == ["gcm_aes", "two words"]


def test_pieces_of_no_size_are_no_fault() -> None:
    assert draft_of([Line(Box(0, 0, 5, 9), "a", 0), Line(Box(9, 0, 12, 9), "b", 0)]) == "a b"


@pytest.mark.parametrize(
    ("font", "mono"),
    [("XYZABC+NimbusMonL-Regu", True), ("SFTT1000", True), ("FiraCode-Regular", True), ("MonotypeCorsiva", False)],
)
def test_typewriters_are_known_by_name(tmp_path: Path, font: str, mono: bool) -> None:
    document = pymupdf.open()
    raw_page(document, b"BT /F1 11 Tf 72 700 Td (for each) Tj ET", f"<</Type/Font/Subtype/Type1/BaseFont/{font}>>")
    document.save(tmp_path / "page.pdf")
    (line,) = lines_on(tmp_path / "page.pdf")
    assert line.mono is mono
