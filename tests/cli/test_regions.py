from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gravityocr_cli.document import Kind, Line, Page
from gravityocr_cli.pdf import Sheet, Source
from gravityocr_cli.regions import Found, regions_of
from gravityocr_models.signs import Box

MakePdf = Callable[..., Path]


def line(x0: float, y0: float, x1: float, text: str, size: float = 10, mono: bool = False) -> Line:
    return Line(Box(x0, y0, x1, y0 + size), text, size, mono=mono)


def blank(*lines: Line) -> Page:
    return Page(3, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), lines)


def test_layout_analysis_labels_a_page(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        page.insert_text((72, 90), "1 Introduction", fontsize=18, fontname="hebo")
        page.insert_textbox((72, 120, 540, 400), "A sentence of body text goes here. " * 20, fontsize=11)

    with Source(make_pdf(paint)) as source:
        (sheet,) = source.sheets((1,), 144.0)
    assert isinstance(sheet, Sheet)
    regions = regions_of(sheet.page, sheet.found)
    assert sheet.warnings == ()
    assert [region.kind for region in regions] == [Kind.HEADING, Kind.TEXT]
    assert [region.order for region in regions] == [0, 1]


def test_lines_go_to_their_box_and_no_line_is_lost() -> None:
    page = blank(line(50, 100, 280, "in the box"), line(50, 300, 280, "outside"), line(50, 312, 280, "any box"))
    inside, outside = regions_of(page, [Found(Box(45, 95, 290, 120), Kind.TEXT)])
    assert [each.text for each in inside.lines] == ["in the box"]
    assert [each.text for each in outside.lines] == ["outside", "any box"]
    assert (inside.page, inside.order, outside.order) == (3, 0, 1)
    assert outside.kind is Kind.TEXT


def test_a_region_holds_its_lines_whole() -> None:
    (region,) = regions_of(blank(line(50, 100, 280, "wider than its box")), [Found(Box(100, 101, 280, 109), Kind.TEXT)])
    assert region.box == Box(50, 100, 280, 110)


def test_a_box_in_a_larger_one_is_no_region() -> None:
    found = [Found(Box(50, 100, 300, 300), Kind.TABLE), Found(Box(60, 110, 200, 130), Kind.TEXT)]
    (region,) = regions_of(blank(line(60, 112, 200, "cell")), found)
    assert region.kind is Kind.TABLE


def test_a_picture_behind_the_page_does_not_swallow_it() -> None:
    found = [Found(Box(0, 0, 600, 800), Kind.PICTURE), Found(Box(50, 100, 300, 120), Kind.TEXT)]
    (region,) = regions_of(blank(line(50, 105, 300, "text on it")), found)
    assert region.kind is Kind.TEXT


def test_furniture_comes_first_and_last_and_only_at_the_edges() -> None:
    found = [
        Found(Box(500, 770, 550, 780), Kind.FOOTER),
        Found(Box(50, 100, 280, 700), Kind.TEXT),
        Found(Box(310, 100, 550, 500), Kind.TEXT),
        Found(Box(400, 20, 550, 30), Kind.HEADER),
        Found(Box(50, 720, 150, 730), Kind.HEADER),
        Found(Box(310, 600, 550, 650), Kind.FOOTER),
    ]
    texts = [line(each.box.x0, each.box.y0, each.box.x1, str(i)) for i, each in enumerate(found)]
    regions = regions_of(blank(*texts), found)
    assert [region.lines[0].text for region in regions] == ["3", "1", "2", "5", "4", "0"]
    kinds = [Kind.HEADER, Kind.TEXT, Kind.TEXT, Kind.TEXT, Kind.FOOTER, Kind.FOOTER]
    assert [region.kind for region in regions] == kinds


def test_labels_are_corrected() -> None:
    boxes = [Box(50, y, 500, y + 30) for y in (100, 200, 300, 400)]
    kinds = [Kind.TEXT, Kind.TEXT, Kind.FORMULA, Kind.TEXT]
    lines = [
        line(50, 100, 200, "def f(x):", mono=True),
        line(50, 112, 200, "return x", mono=True),
        line(50, 200, 200, "II. Related work"),
        line(480, 300, 500, "(2.3)"),
        line(50, 400, 300, "An ordinary sentence."),
    ]
    regions = regions_of(blank(*lines), [Found(box, kind) for box, kind in zip(boxes, kinds, strict=True)])
    assert [region.kind for region in regions] == [Kind.CODE, Kind.HEADING, Kind.TEXT, Kind.TEXT]


def test_a_caption_label_joins_its_title() -> None:
    found = [Found(Box(280, 100, 320, 110), Kind.CAPTION), Found(Box(200, 112, 400, 122), Kind.TEXT)]
    page = blank(line(280, 100, 320, "TABLE IV"), line(200, 112, 400, "RESULTS ON THE TEST SET"))
    (caption,) = regions_of(page, found)
    assert caption.kind is Kind.CAPTION
    assert [each.text for each in caption.lines] == ["TABLE IV", "RESULTS ON THE TEST SET"]


def test_a_stamp_in_the_margin_is_furniture() -> None:
    (stamp,) = regions_of(blank(Line(Box(15, 200, 30, 500), "arXiv:1234.5678v1 [cs.CL]", 12)), [])
    assert stamp.kind is Kind.HEADER


def test_boxes_off_the_page_are_cut_or_dropped() -> None:
    found = [Found(Box(-20, 100, 300, 120), Kind.TEXT), Found(Box(700, 0, 800, 10), Kind.TEXT)]
    (region,) = regions_of(blank(line(10, 105, 300, "text", size=8)), found)
    assert region.box == Box(0, 100, 300, 120)


def test_a_page_without_text_is_cut_by_its_ink(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        page.insert_textbox((60, 60, 295, 300), "Some words in a column. " * 20, fontsize=10)
        page.insert_textbox((315, 60, 550, 300), "Some words in a column. " * 20, fontsize=10)

    with Source(make_pdf(paint)) as source:
        (sheet,) = source.sheets((1,), 144.0)
    assert isinstance(sheet, Sheet)
    page = Page(1, 612, 792, 144, sheet.page.pixels)
    left, right = regions_of(page, [])
    assert left.box.x1 < right.box.x0
    assert left.lines == ()


def test_numbered_cards_are_read_by_their_numbers() -> None:
    found, lines = [], []
    for number, (x, y) in enumerate([(50, 100), (330, 100), (50, 300), (330, 300)], 1):
        lines += [line(x, y, x + 100, f"{number}. Some Card", 14), line(x, y + 30, x + 200, f"text of {number}")]
        found += [Found(Box(x, y, x + 100, y + 14), Kind.HEADING), Found(Box(x, y + 30, x + 200, y + 40), Kind.TEXT)]
    texts = [region.lines[0].text for region in regions_of(blank(*lines), found)]
    assert texts == [text for number in range(1, 5) for text in (f"{number}. Some Card", f"text of {number}")]


def test_hebrew_columns_are_read_from_the_right() -> None:
    page = blank(line(50, 100, 280, "שמאל"), line(320, 100, 550, "ימין"), line(50, 60, 550, "כותרת"))
    found = [Found(each.box, Kind.TEXT) for each in page.lines]
    assert [region.lines[0].text for region in regions_of(page, found)] == ["כותרת", "ימין", "שמאל"]


def test_a_box_that_only_frames_lines_of_others_is_not_read_twice() -> None:
    page = blank(line(50, 100, 280, "a line of text"))
    found = [Found(Box(45, 95, 290, 115), Kind.TEXT), Found(Box(60, 101, 400, 109), Kind.HEADING)]
    assert [region.kind for region in regions_of(page, found)] == [Kind.TEXT]
