"""Cases 21, 30 and 31: links, forms, pictures, pages of absurd size."""

import re
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from cases.conftest import LOREM, Convert, new_page, raw_pdf
from PIL import Image

from gravityocr_cli.pdf import MAX_PIXELS, Sheet, Source

pytestmark = pytest.mark.usefixtures("no_layout")


def test_case_31_a_link_over_two_lines_is_one(converted: Convert) -> None:
    document, page = new_page()
    for index, line in enumerate(
        (LOREM[:80], "and whoever wants to know more may read the long", "page about it at any time, as", LOREM[:70])
    ):
        page.insert_text((72, 100 + 14 * index), line, fontsize=11)
    at = 72 + pymupdf.get_text_length("and whoever wants to know more may read ", fontsize=11)
    end = 72 + pymupdf.get_text_length("page about it", fontsize=11)
    for box in ((at, 104, 400, 118), (70, 118, end, 132)):
        page.insert_link({"kind": pymupdf.LINK_URI, "from": pymupdf.Rect(box), "uri": "https://example.org/a(b)"})
    assert "may read [the long page about it](https://example.org/a%28b%29) at any time" in converted(document)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize("sideways", [False, True])
def test_case_31_links_on_a_turned_page(converted: Convert, rotation: int, sideways: bool) -> None:
    document, page = new_page()
    page.set_rotation(rotation)
    back = pymupdf.Matrix(1, 1) if sideways else page.derotation_matrix  # sideways: the text is shown turned
    for index, line in enumerate(("Whoever wants to know more", "may look it up at any time")):
        at = pymupdf.Point(72, 100 + 20 * index) * back
        page.insert_text(at, line, fontsize=11, rotate=0 if sideways else rotation)
    words = pymupdf.Rect(72 + pymupdf.get_text_length("may ", fontsize=11), 110, 0, 124)
    words.x1 = words.x0 + pymupdf.get_text_length("look it up", fontsize=11)
    place = (words * back).normalize()
    page.insert_link({"kind": pymupdf.LINK_URI, "from": place, "uri": "https://example.org"})
    assert "may [look it up](https://example.org) at any time" in converted(document)


def test_case_31_a_link_that_runs_something_is_text(converted: Convert) -> None:
    document, page = new_page()
    page.insert_text((72, 100), "Click here now", fontsize=11)
    page.insert_link({"kind": pymupdf.LINK_URI, "from": pymupdf.Rect(70, 88, 200, 104), "uri": "javascript:alert(1)"})
    assert converted(document).strip() == "Click here now"


def test_case_31_the_value_of_a_form_field(converted: Convert) -> None:
    document, page = new_page()
    page.insert_text((72, 114), "Name of the applicant:", fontsize=11)
    field = pymupdf.Widget()
    field.field_type, field.field_name, field.field_value = pymupdf.PDF_WIDGET_TYPE_TEXT, "name", "Jane Doe"
    field.rect = pymupdf.Rect(220, 100, 400, 120)
    page.add_widget(field)
    assert "Jane Doe" in converted(document)


@pytest.mark.parametrize("rotation", [0, 90])
def test_case_31_what_a_form_says(converted: Convert, rotation: int) -> None:
    document, page = new_page()
    page.insert_text((72, 60), "What would you like, and how much of it?", fontsize=11)
    kinds = pymupdf.PDF_WIDGET_TYPE_CHECKBOX, pymupdf.PDF_WIDGET_TYPE_RADIOBUTTON
    for index, (kind, label, on) in enumerate(
        [(kinds[0], "Bread", True), (kinds[0], "Butter", False), (kinds[1], "Much", True), (kinds[1], "Little", True)]
    ):
        y = 100 + 60 * index
        page.insert_text((90, y + 11), label, fontsize=11)
        field = pymupdf.Widget()
        field.field_type, field.field_name = kind, f"field{index}"
        field.rect = pymupdf.Rect(72, y, 84, y + 12)
        field.field_value = on
        page.add_widget(field)
        if label == "Much":
            document.xref_set_key(field.xref, "V", "/Off")
            document.xref_set_key(field.xref, "AS", "/Off")
    field = pymupdf.Widget()
    field.field_type, field.field_name, field.choice_values = pymupdf.PDF_WIDGET_TYPE_COMBOBOX, "size", ["one", "two"]
    field.rect, field.field_value = pymupdf.Rect(72, 400, 200, 416), "two"
    page.add_widget(field)
    page.set_rotation(rotation)
    words = " ".join(converted(document).split())
    assert words.endswith("[x] Bread [ ] Butter [ ] Much [x] Little two")


def test_case_30_one_place_on_two_pages_two_files(tmp_path: Path) -> None:
    from cli.conftest import FakeEngine

    from gravityocr_cli.output import FileProduct
    from gravityocr_cli.pipeline import convert
    from gravityocr_cli.settings import Settings

    document = pymupdf.open()
    for number in range(2):
        page = document.new_page(width=612, height=792)
        page.insert_text((72, 90), f"Page {number} has a picture below this line of text.", fontsize=11)
        noise = np.random.default_rng(number).integers(0, 255, (120, 120, 3), dtype=np.uint8)
        pixels = pymupdf.Pixmap(pymupdf.csRGB, 120, 120, noise.tobytes(), 0)
        page.insert_image((150, 200, 400, 450), pixmap=pixels)
    document.save(tmp_path / "in.pdf")
    with FileProduct(tmp_path / "out.md") as product:
        convert(tmp_path / "in.pdf", product, FakeEngine, Settings())
    paths = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", (tmp_path / "out.md").read_text("utf-8"))
    assert len(set(paths)) == 2
    first, second = (np.asarray(Image.open(tmp_path / path)) for path in paths)
    assert not np.array_equal(first, second)


def first_sheet(path: Path) -> Sheet:
    with Source(path) as source:
        (sheet,) = source.sheets((1,), 144.0)
    assert isinstance(sheet, Sheet), sheet
    return sheet


@pytest.mark.parametrize(("width", "height"), [(14400.0, 14400.0), (1.0, 66000.0)])
def test_case_21_a_page_of_absurd_size_is_bounded(tmp_path: Path, width: float, height: float) -> None:
    document = pymupdf.open()
    document.new_page(width=width, height=height).insert_text((0.1, 50), "x", fontsize=11)
    document.save(tmp_path / "huge.pdf")
    pixels = first_sheet(tmp_path / "huge.pdf").page.pixels
    assert 0 < pixels.shape[0] * pixels.shape[1] <= 1.001 * MAX_PIXELS


def test_case_21_user_unit(tmp_path: Path) -> None:
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    data = raw_pdf(b"BT /F1 12 Tf 72 700 Td (Ten times the size) Tj ET", font)
    (tmp_path / "unit.pdf").write_bytes(data.replace(b"/MediaBox", b"/UserUnit 10/MediaBox"))
    pixels = first_sheet(tmp_path / "unit.pdf").page.pixels
    assert 0 < pixels.shape[0] * pixels.shape[1] <= 1.001 * MAX_PIXELS


def test_case_21_an_image_of_extreme_resolution(converted: Convert) -> None:
    document, page = new_page(144, 144)
    pixels = pymupdf.Pixmap(pymupdf.csGRAY, pymupdf.IRect(0, 0, 5800, 5800), False)
    pixels.clear_with(200)
    page.insert_image(page.rect, pixmap=pixels)
    page.insert_text((20, 60), "On a huge image", fontsize=9)
    assert isinstance(converted(document), str)
