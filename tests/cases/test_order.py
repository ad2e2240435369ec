"""Cases 2 to 6, 19 and 32: what is read after what, and which way up."""

import re
from typing import Any

import pymupdf
import pytest
from cases.conftest import LOREM, Convert, new_page

Box = tuple[float, float, float, float]


def fill(page: Any, box: Box, name: str, font: str = "helv", size: float = 10) -> None:
    """A paragraph that starts with its name and fills its box."""
    words, text = (LOREM * 40).split(), name
    width = box[2] - box[0]
    lines = [text]
    for word in words:
        longer = f"{lines[-1]} {word}"
        if pymupdf.get_text_length(longer, font, size) > width:
            lines.append(word)
        else:
            lines[-1] = longer
        if len(lines) * size * 1.2 > box[3] - box[1]:
            break
    for index, line in enumerate(lines[: int((box[3] - box[1]) / (size * 1.2))]):
        page.insert_text((box[0], box[1] + size + index * size * 1.2), line, fontname=font, fontsize=size)


def in_order(markdown: str, *names: str) -> bool:
    places = [markdown.find(name) for name in names]
    return -1 not in places and places == sorted(places)


def test_case_02_two_columns_painted_by_rows(converted: Convert) -> None:
    document, page = new_page()
    for x, y, text in [(60, 80, "Left one reads first"), (330, 80, "Right one reads third"),
                       (60, 94, "left two reads second"), (330, 94, "right two reads fourth")]:  # fmt: skip
        page.insert_text((x, y), text, fontsize=11)
    assert in_order(converted(document), "Left one", "left two", "Right one", "right two")


def test_case_03_side_heads(converted: Convert) -> None:
    document, page = new_page()
    for index, top in enumerate((100, 250, 400)):
        page.insert_text((50, top + 10), f"Head{index}", fontname="hebo", fontsize=11)
        fill(page, (200, top, 540, top + 90), f"Paragraph{index}")
    names = [name for index in range(3) for name in (f"Head{index}", f"Paragraph{index}")]
    assert in_order(converted(document), *names)


def test_case_04_a_rule_across_two_columns(converted: Convert) -> None:
    document, page = new_page()
    for name, x, y in (
        ("UpperLeft", 60, 100),
        ("UpperRight", 320, 100),
        ("LowerLeft", 60, 420),
        ("LowerRight", 320, 420),
    ):
        fill(page, (x, y, x + 230, y + 260), name)
    page.draw_line((60, 390), (550, 390), width=1.5)
    assert in_order(converted(document), "UpperLeft", "UpperRight", "LowerLeft", "LowerRight")


def test_case_05_no_jump_before_the_left_column_ends(converted: Convert) -> None:
    document, page = new_page()
    page.insert_text((150, 80), "A Title Over Both Columns", fontname="hebo", fontsize=18)
    page.insert_text((240, 105), "Ann Author, Bob Writer", fontsize=11)
    page.insert_text((60, 150), "Abstract", fontname="hebo", fontsize=11)
    fill(page, (60, 160, 290, 300), "Summary")
    page.insert_text((60, 330), "1 Introduction", fontname="hebo", fontsize=12)
    fill(page, (60, 345, 290, 700), "Opening")
    fill(page, (320, 150, 550, 700), "going on at the top right")
    names = ("A Title", "Ann Author", "Abstract", "Summary", "1 Introduction", "Opening", "going on")
    assert in_order(converted(document), *names)


def test_case_06_the_chapter_head_comes_first(converted: Convert) -> None:
    document, page = new_page()
    page.insert_text((72, 100), "Chapter 2 The Long Way", fontname="hebo", fontsize=20)
    for index, top in enumerate((140, 300)):
        page.insert_text((72, top), f"2.{index + 1} A subhead", fontname="hebo", fontsize=13)
        fill(page, (72, top + 12, 540, top + 100), f"Body{index}")
    markdown = converted(document)
    assert in_order(markdown, "Chapter 2", "2.1 A", "Body0", "2.2 A", "Body1")
    assert [line.split(" ")[0] for line in markdown.split("\n") if line.startswith("#")] == ["##", "###", "###"]


ROWS = [["Name", "Count", "Share"], ["alpha", "12", "0.5"], ["beta", "7", "0.3"], ["gamma", "5", "0.2"]]


@pytest.mark.parametrize("rotate", [90, 270])
def test_case_19_a_table_on_its_side(converted: Convert, rotate: int) -> None:
    """Text matrix 0 1 -1 0 (or 0 -1 1 0) on an upright page: rows run up (or down) the page."""
    document, page = new_page()
    page.insert_text((72, 150), "The table below stands on its side.", fontsize=10)
    way = -1 if rotate == 90 else 1
    x, y = (220, 560) if rotate == 90 else (340, 200)
    for row, cells in enumerate(ROWS):
        for column, cell in enumerate(cells):
            place = (x - way * (30 * row + 18), y + way * (120 * column + 8))
            page.insert_text(place, cell, fontsize=10, rotate=rotate)
    for row in range(5):
        page.draw_line((x - way * 30 * row, y), (x - way * 30 * row, y + way * 360))
    page.insert_text((72, 640), "This sentence comes after it.", fontsize=10)
    markdown = converted(document, tables="html")
    assert in_order(markdown, "The table below", "<table>", "This sentence")
    rows = re.findall("<tr>(.*?)</tr>", markdown)
    assert [re.findall("<t[dh]>(.*?)</t[dh]>", row) for row in rows] == ROWS


@pytest.mark.parametrize("rotation", [90, 270])
def test_case_19_a_page_shown_on_its_side(converted: Convert, rotation: int) -> None:
    document, page = new_page()
    fill(page, (60, 80, 290, 300), "LeftColumn")
    fill(page, (320, 80, 550, 300), "RightColumn")
    page.set_rotation(rotation)
    assert in_order(converted(document), "LeftColumn", "RightColumn")


def test_labels_that_stand_on_their_side_in_a_drawing_are_no_table(converted: Convert) -> None:
    document, page = new_page()
    fill(page, (72, 80, 540, 140), "Upright")
    page.draw_rect((100, 200, 500, 500))
    for index in range(8):
        page.draw_rect((130 + 45 * index, 480 - 30 * index, 150 + 45 * index, 500), fill=(0.2, 0.3, 0.7))
        page.insert_text((145 + 45 * index, 570), f"label {index}", fontsize=9, rotate=90)
    assert "<table>" not in converted(document, tables="html")


def test_case_32_vertical_columns_are_read_from_the_right(converted: Convert) -> None:
    document, page = new_page()
    for x, text in ((400, "右の列から先に読む文章です"), (340, "左の列はその後に読みます")):
        for index, character in enumerate(text):
            page.insert_text((x, 100 + 16 * index), character, fontname="japan", fontsize=14)
    markdown = "".join(converted(document).split())
    assert markdown == "右の列から先に読む文章です左の列はその後に読みます"
