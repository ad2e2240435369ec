from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gravityocr_cli import prepare, scans
from gravityocr_cli.crops import Limits
from gravityocr_cli.document import Kind, Line, Page
from gravityocr_cli.errors import ModelError
from gravityocr_cli.pdf import Sheet, Source
from gravityocr_cli.prepared import plan_of
from gravityocr_cli.regions import Found, regions_of
from gravityocr_cli.scans import found_on_scan, read_scan, seen_by
from gravityocr_cli.settings import Settings
from gravityocr_models import layout
from gravityocr_models.signs import Box

MakePdf = Callable[..., Path]
TEXT = "Some words in a column that is long enough. " * 8


def scan(make_pdf: MakePdf, paint: Callable[[Any], None]) -> Page:
    with Source(make_pdf(paint)) as source:
        (sheet,) = source.sheets((1,), 144.0)
    assert isinstance(sheet, Sheet)
    return Page(1, 612, 792, 144, sheet.page.pixels)


def seen(label: str, x0: float, y0: float, x1: float, y1: float, score: float = 0.9) -> layout.Found:
    """A detection given in points."""
    return layout.Found(label, (2 * x0, 2 * y0, 2 * x1, 2 * y1), score)


def two_paragraphs(page: Any) -> None:
    page.insert_textbox((60, 60, 300, 200), TEXT, fontsize=10)
    page.insert_textbox((60, 300, 300, 440), TEXT, fontsize=10)


def test_a_box_grows_to_hold_its_lines_whole(make_pdf: MakePdf) -> None:
    page = scan(make_pdf, two_paragraphs)
    whole = found_on_scan(page, [seen("text", 55, 55, 305, 205), seen("text", 55, 290, 305, 440)])
    loose = found_on_scan(page, [seen("text", 90, 66, 270, 190), seen("text", 50, 250, 310, 450)])
    assert [each.kind for each in loose] == [Kind.TEXT, Kind.TEXT]
    for one, other in zip(whole, loose, strict=True):
        assert one.box == other.box
    assert whole[0].box.x0 == pytest.approx(60, abs=2)
    assert whole[0].box.width > 200


def test_ink_that_no_box_holds_is_read_as_text(make_pdf: MakePdf) -> None:
    page = scan(make_pdf, two_paragraphs)
    found = found_on_scan(page, [seen("heading", 55, 55, 305, 205)])
    assert [each.kind for each in found] == [Kind.HEADING, Kind.TEXT]
    assert found[1].box.y0 > 290
    assert len(found_on_scan(page, [])) == 2


def test_specks_are_not_read_and_a_page_number_is(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        two_paragraphs(page)
        page.insert_text((300, 760), "57", fontsize=10)
        for x, y in ((500, 300), (20, 650), (590, 100)):
            page.draw_rect((x, y, x + 3, y + 4), color=None, fill=(0, 0, 0))

    boxes = [seen("text", 55, 55, 305, 205), seen("text", 55, 290, 305, 440)]
    number = found_on_scan(scan(make_pdf, paint), boxes)[2:]
    assert [(round(each.box.x0), each.kind) for each in number] == [(300, Kind.TEXT)]


@pytest.mark.parametrize("filled", [False, True])
def test_an_empty_form_says_nothing(make_pdf: MakePdf, filled: bool) -> None:
    def paint(page: Any) -> None:
        two_paragraphs(page)
        for y in (600, 612, 624):
            page.draw_line((60, y), (540, y), width=1)
        for x in (60, 85, 180, 340, 540):
            page.draw_line((x, 600), (x, 624), width=1)
        if filled:
            page.insert_text((190, 609), "name", fontsize=8)

    boxes = [seen("text", 55, 55, 305, 205), seen("text", 55, 290, 305, 440)]
    texts = [each for each in found_on_scan(scan(make_pdf, paint), boxes) if each.kind is Kind.TEXT]
    assert len(texts) == 2 + filled


def test_a_box_without_ink_is_nothing(make_pdf: MakePdf) -> None:
    page = scan(make_pdf, two_paragraphs)
    found = found_on_scan(page, [seen("text", 55, 55, 305, 205), seen("text", 60, 600, 300, 700)])
    assert len(found) == 2
    assert all(each.box.y1 < 500 for each in found)


def test_an_unsure_box_around_surer_ones_is_no_paragraph(make_pdf: MakePdf) -> None:
    page = scan(make_pdf, two_paragraphs)
    boxes = [seen("text", 55, 55, 305, 205), seen("text", 55, 290, 305, 440), seen("list", 50, 50, 310, 345, 0.3)]
    assert [each.kind for each in found_on_scan(page, boxes)] == [Kind.TEXT, Kind.TEXT]


def test_text_under_a_footnote_is_one(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        for y, text in ((100, "body"), (600, "first"), (640, "second")):
            page.insert_textbox((60, y, 300, y + 36), f"{text} {TEXT}"[:100], fontsize=9)

    boxes = [seen("text", 55, 95, 305, 140), seen("footnote", 55, 595, 305, 638), seen("text", 55, 638, 305, 680)]
    kinds = [each.kind for each in found_on_scan(scan(make_pdf, paint), boxes)]
    assert kinds == [Kind.TEXT, Kind.FOOTNOTE, Kind.FOOTNOTE]


def test_a_picture_that_is_all_lines_of_text_is_text(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        two_paragraphs(page)
        page.draw_rect((350, 60, 550, 200), fill=(0.4, 0.2, 0.2))
        page.insert_text((352, 215), "a label", fontsize=9)

    found = found_on_scan(
        scan(make_pdf, paint), [seen("picture", 55, 55, 305, 205), seen("picture", 345, 55, 555, 220)]
    )
    assert [each.kind for each in found] == [Kind.TEXT, Kind.PICTURE, Kind.TEXT]


def test_a_solid_box_is_a_picture_whatever_it_is_called(make_pdf: MakePdf) -> None:
    page = scan(make_pdf, lambda page: page.draw_rect((100, 300, 300, 400), fill=(0.2, 0.3, 0.2)))
    (found,) = found_on_scan(page, [seen("table", 98, 298, 302, 402)])
    assert found.kind is Kind.PICTURE


def test_light_letters_on_a_dark_band_are_read(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        two_paragraphs(page)
        page.draw_rect((0, 0, 612, 50), color=None, fill=(0.1, 0.2, 0.4))
        page.insert_text((60, 32), "A heading in white on blue", fontsize=18, color=(1, 1, 1))

    page = scan(make_pdf, paint)
    heading = seen("heading", 58, 14, 290, 40)
    found = found_on_scan(page, [heading, seen("text", 55, 55, 305, 205), seen("text", 55, 290, 305, 440)])
    regions = regions_of(page, found)
    assert [region.kind for region in regions] == [Kind.HEADING, Kind.TEXT, Kind.TEXT]
    assert regions[0].box.y1 <= 50


def test_a_scan_is_straightened_and_read_by_the_detector(make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, ...]] = []

    class Fake:
        def find(self, pixels: Any, least: float) -> tuple[layout.Found, ...]:
            asked.append(pixels.shape)
            return (seen("heading", 55, 55, 305, 205),)

    monkeypatch.setattr(scans, "_detector", lambda weights: Fake())
    page = scan(make_pdf, two_paragraphs)
    sideways = Page(1, 792, 612, 144, np.ascontiguousarray(np.rot90(page.pixels, 1)))
    sheet = prepare.laid_out(Sheet(sideways, (), 0.0))
    assert asked == [page.pixels.shape]
    assert (sheet.page.width, sheet.page.height) == (612, 792)
    assert [region.kind for region in regions_of(sheet.page, sheet.found)] == [Kind.HEADING, Kind.TEXT]


def test_a_scan_with_a_stamp_is_read_as_a_scan(make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Painted text is there, and says nothing about most of the page."""

    class Fake:
        def find(self, pixels: Any, least: float) -> tuple[layout.Found, ...]:
            return (seen("heading", 55, 55, 305, 205),)

    monkeypatch.setattr(scans, "_detector", lambda weights: Fake())
    scanned = scan(make_pdf, two_paragraphs)
    stamp = Line(Box(60, 770, 300, 780), "Downloaded from somewhere", 9)
    sheet = prepare.laid_out(Sheet(replace(scanned, lines=(stamp,)), (Found(stamp.box, Kind.FOOTER),), 0.0))
    assert [region.kind for region in regions_of(sheet.page, sheet.found)] == [Kind.HEADING, Kind.TEXT, Kind.FOOTER]


def test_a_page_that_painted_text_explains_is_not_looked_at(make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch) -> None:
    def unwanted(weights: Path) -> None:
        raise AssertionError("nobody asked for a detector")

    monkeypatch.setattr(scans, "_detector", unwanted)
    with Source(make_pdf(two_paragraphs)) as source:
        (sheet,) = source.sheets((1,), 144.0)
    assert isinstance(sheet, Sheet)
    assert prepare.laid_out(sheet).found == sheet.found


def test_without_a_detector_the_ink_decides_and_the_report_says_so(make_pdf: MakePdf, tmp_path: Path) -> None:
    _, found, warnings = read_scan(scan(make_pdf, two_paragraphs), tmp_path / "none.onnx")
    assert len(found) == 2
    assert warnings[0].startswith("layout detection failed: no such file")


def test_a_detector_that_somebody_names_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such layout model"):
        plan_of(144.0, Limits(16, 1024, 6), Settings(layout_model=str(tmp_path / "none.onnx")))


def test_a_table_that_is_all_there_is_is_looked_at_on_a_sheet_of_paper() -> None:
    class Fake:
        """Sees the edges of what is dark where paper is around it, and else a part."""

        def find(self, pixels: Any, least: float) -> tuple[layout.Found, ...]:
            asked.append(pixels.shape[:2])
            if pixels.shape == piece.pixels.shape:
                return (layout.Found("table", (200, 0, 480, 200), 0.4), *others)
            rows, columns = np.nonzero(pixels[..., 0] < 100)
            return (layout.Found("table", (columns.min() - 9, rows.min(), columns.max() + 1, rows.max() + 1), 0.9),)

    asked: list[tuple[int, ...]] = []
    piece = Page(1, 250, 100, 144, np.full((200, 500, 3), 240, np.uint8))
    piece.pixels[10:190, 0:495] = 0
    piece.pixels[12:188, 2:493] = 240
    others: tuple[layout.Found, ...] = ()
    assert [each.box for each in seen_by(Fake(), piece)] == [(0, 10, 495, 190)]  # type: ignore[arg-type]
    assert asked == [(200, 500), (1684, 1190)]
    others = (seen("text", 0, 0, 50, 20), seen("text", 0, 40, 50, 60))  # a small page with a table
    assert seen_by(Fake(), piece)[0].box == (200, 0, 480, 200)  # type: ignore[arg-type]
    assert asked[2:] == [(200, 500)]


def test_a_picture_leaves_out_the_column_of_text_beside_it(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        page.draw_rect((60, 60, 290, 500), color=None, fill=(0, 0, 0))
        page.insert_textbox((300, 60, 500, 300), TEXT, fontsize=10)
        page.insert_text((310, 450), "A photograph", fontsize=10)

    picture, *texts = found_on_scan(scan(make_pdf, paint), [seen("picture", 55, 55, 505, 505)])
    assert picture.kind is Kind.PICTURE
    assert picture.box.x1 <= 302
    assert [(each.kind, round(each.box.x0, -1)) for each in texts] == [(Kind.TEXT, 300), (Kind.TEXT, 310)]


def test_a_picture_keeps_its_labels_and_what_stands_amid_it(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        page.draw_rect((60, 60, 180, 500), color=None, fill=(0, 0, 0))
        page.draw_rect((420, 60, 500, 500), color=None, fill=(0, 0, 0))
        page.insert_textbox((200, 60, 400, 300), TEXT, fontsize=10)
        for at in range(8):
            page.insert_text((200, 350 + 12 * at), f"{at}00", fontsize=10)

    assert [each.kind for each in found_on_scan(scan(make_pdf, paint), [seen("picture", 55, 55, 505, 505)])] == [
        Kind.PICTURE
    ]
