"""Cases 7 to 10, 19 and 25 to 27: headings and tables."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from cases.conftest import LOREM, Convert, new_page, paragraphs
from cli.conftest import FakeEngine, markdown_of

from gravityocr_cli.tables import rows_from_html
from gravityocr_models.records import Crop, Decoded


def grid(
    page: Any, left: float, top: float, rows: Sequence[Sequence[str]], width: float = 90, height: float = 20
) -> None:
    """A ruled table."""
    for y, row in enumerate(rows):
        for x, text in enumerate(row):
            page.draw_rect(
                (left + x * width, top + y * height, left + (x + 1) * width, top + (y + 1) * height), width=0.7
            )
            page.insert_text((left + x * width + 5, top + y * height + 14), text, fontsize=10)


def cells(markdown: str) -> list[list[list[str]]]:
    """The contents of each table's cells."""
    tables = [part for part in paragraphs(markdown) if part.startswith("<table>")]
    return [[[cell.content for cell in row] for row in rows_from_html(table)] for table in tables]


def words(page: Any, y: float, count: int = 2) -> None:
    for index in range(count):
        page.insert_text((72, y + 14 * index), LOREM[:85] if index < count - 1 else LOREM[:60] + ".", fontsize=11)


def test_case_07_a_white_head_on_a_dark_box(converted: Convert) -> None:
    document, page = new_page()
    page.draw_rect((66, 90, 546, 116), color=(0.1, 0.1, 0.4), fill=(0.1, 0.1, 0.4))
    page.insert_text((72, 109), "2 Materials and Methods", fontname="hebo", fontsize=14, color=(1, 1, 1))
    words(page, 140, 6)
    assert converted(document).startswith("## 2 Materials and Methods\n")


def test_case_08_levels_from_numbers_in_one_size(converted: Convert) -> None:
    document, page = new_page()
    for index, text in enumerate(("1 The beginning", "1.3 The middle", "1.3.1 The detail")):
        page.insert_text((72, 100 + 120 * index), text, fontname="hebo", fontsize=12)
        words(page, 120 + 120 * index, 4)
    heads = [line for line in converted(document).split("\n") if line.startswith("#")]
    assert heads == ["## 1 The beginning", "### 1.3 The middle", "#### 1.3.1 The detail"]


def test_case_08_levels_from_the_outline(converted: Convert) -> None:
    document, page = new_page()
    for index, text in enumerate(("Overview", "Background", "Sources")):
        page.insert_text((72, 100 + 120 * index), text, fontname="hebo", fontsize=12)
        words(page, 120 + 120 * index, 4)
    document.set_toc([[1, "Overview", 1], [2, "Background", 1], [3, "Sources", 1]])
    heads = [line for line in converted(document).split("\n") if line.startswith("#")]
    assert heads == ["## Overview", "### Background", "#### Sources"]


def test_case_09_a_head_close_above_a_table(converted: Convert) -> None:
    document, page = new_page()
    words(page, 80, 3)
    page.insert_text((72, 194), "4.2 Results of the trials", fontname="hebo", fontsize=11)
    grid(
        page, 72, 200, [("Name", "Size", "Cost"), ("alpha", "10", "3.5"), ("beta", "20", "7.1"), ("gamma", "35", "9.9")]
    )
    markdown = converted(document)
    assert "### 4.2 Results of the trials\n" in markdown
    (table,) = cells(markdown)
    assert table == [["Name", "Size", "Cost"], ["alpha", "10", "3.5"], ["beta", "20", "7.1"], ["gamma", "35", "9.9"]]


def test_case_10_a_small_table_between_texts(converted: Convert) -> None:
    document, page = new_page()
    words(page, 100, 4)
    grid(page, 72, 180, [("Key", "Value"), ("north", "south")])
    words(page, 260, 4)
    markdown = converted(document)
    assert [markdown.count(word) for word in ("Key", "Value", "north", "south")] == [1, 1, 1, 1]
    assert markdown.index("Key") > markdown.index("quick brown")


@pytest.mark.parametrize("turn", [90, 270])
def test_case_19_a_turned_page(converted: Convert, turn: int) -> None:
    upright, page = new_page(792, 612)
    words(page, 80, 3)
    rows = [("Name", "Size", "Cost"), ("alpha", "10", "3.5"), ("beta", "20", "7.1"), ("gamma", "35", "9.9")]
    grid(page, 72, 160, rows, 120)
    document = pymupdf.open()
    turned = document.new_page(width=612, height=792)
    turned.show_pdf_page(turned.rect, upright, 0, rotate=turn)
    turned.set_rotation(360 - turn if turn == 270 else 270 - turn + 180 - 270 + 90)
    (table,) = cells(converted(document))
    assert table == [list(row) for row in rows]


def test_case_25_a_contents_page_with_leaders(converted: Convert) -> None:
    document, page = new_page()
    page.insert_text((72, 90), "Contents", fontname="hebo", fontsize=16)
    for index in range(12):
        page.insert_text(
            (72, 120 + 16 * index), f"{index + 1} Chapter of things {'. ' * 45}{10 * index + 3}", fontsize=10
        )
    markdown = converted(document)
    assert "......" not in markdown.replace(" ", "")
    assert sum(f"Chapter of things ... {10 * index + 3}" in markdown for index in range(12)) == 12


def test_case_25_a_row_of_sixty_equal_cells(converted: Convert) -> None:
    document, page = new_page(1500, 400)
    words(page, 60)
    grid(page, 72, 150, [["7"] * 60, ["8"] * 60], 22)
    markdown = converted(document)
    assert [markdown.count(figure) for figure in "78"] == [60, 60]


def test_case_25_an_answer_that_was_cut_is_no_answer(tmp_path: Path) -> None:
    class Runaway(FakeEngine):
        def read(self, crops: Sequence[Crop], **options: Any) -> list[Decoded]:
            return [replace(answer, truncated=True) for answer in super().read(crops, **options)]

    document, page = new_page()
    grid(page, 72, 150, [["7"] * 6, ["7"] * 6], 60)
    document.save(tmp_path / "cells.pdf")
    markdown = markdown_of(tmp_path / "cells.pdf", Runaway("<table><tr>" + "<td>7" * 900), text_layer="off")
    assert "not read (the answer ran into the token limit)" in markdown
    assert "7" not in markdown


def test_case_25_a_table_of_ninety_rows(converted: Convert) -> None:
    document, page = new_page(612, 1500)
    words(page, 60)
    grid(page, 72, 100, [(f"row{index}", str(index), str(7 * index)) for index in range(90)], 110, 15)
    (table,) = cells(converted(document))
    assert [row[0] for row in table] == [f"row{index}" for index in range(90)]


def test_case_26_spans_in_the_header(converted: Convert) -> None:
    """The engine reads the pixels as a table; its spans come through, cleaned."""
    answer = (
        '<table border="1"><thead><tr><th rowspan="3">Place</th><th colspan="3">Harvest</th></tr>'
        '<tr><td rowspan="2">2020</td><td colspan="2">later</td></tr><tr><td>2021</td><td>2022</td></tr></thead>'
        "<tr><td>North<td>1<td>2<td>3</table>"
    )
    document, page = new_page()
    grid(page, 72, 200, [("Place", "Harvest", "", ""), ("", "2020", "later", ""), ("", "", "2021", "2022"),
                         ("North", "1", "2", "3")])  # fmt: skip
    markdown = converted(document, canned=answer, text_layer="off")
    rows = rows_from_html(markdown)
    assert [[(cell.content, cell.columns, cell.rows) for cell in row] for row in rows] == [
        [("Place", 1, 3), ("Harvest", 3, 1)],
        [("2020", 1, 2), ("later", 2, 1)],
        [("2021", 1, 1), ("2022", 1, 1)],
        [("North", 1, 1), ("1", 1, 1), ("2", 1, 1), ("3", 1, 1)],
    ]
    assert "border" not in markdown


def test_case_26_spans_from_the_ruling(converted: Convert) -> None:
    """The same with the text layer: the lines between the cells tell."""
    document, page = new_page()
    words(page, 100, 3)
    heads = [(0, 0, 1, 3, "Place"), (1, 0, 3, 1, "Harvest"), (1, 1, 1, 2, "2020"), (2, 1, 2, 1, "later"),
             (2, 2, 1, 1, "2021"), (3, 2, 1, 1, "2022")]  # fmt: skip
    body = [(x, 3 + y, 1, 1, f"{name}{x}") for y, name in enumerate(("a", "b", "c")) for x in range(4)]
    for x, y, columns, rows, text in [*heads, *body]:
        box = pymupdf.Rect(72 + 90 * x, 200 + 20 * y, 72 + 90 * (x + columns), 200 + 20 * (y + rows))
        page.draw_rect(box, width=0.7)
        left = (box.x0 + box.x1 - pymupdf.get_text_length(text, fontsize=10)) / 2
        page.insert_text((left, (box.y0 + box.y1) / 2 + 4), text, fontsize=10)
    table = next(part for part in paragraphs(converted(document)) if part.startswith("<table>"))
    found = rows_from_html(table)
    assert [[(cell.content, cell.columns, cell.rows) for cell in row] for row in found[:3]] == [
        [("Place", 1, 3), ("Harvest", 3, 1)],
        [("2020", 1, 2), ("later", 2, 1)],
        [("2021", 1, 1), ("2022", 1, 1)],
    ]
    assert [[cell.content for cell in row] for row in found[3:]] == [[f"{n}{x}" for x in range(4)] for n in "abc"]


HEAD = ("Name", "Size", "Cost", "Note")


def long_table(document: Any, pages: int, rows: int, header: str) -> list[list[str]]:
    """A table over several pages, its header on each ("repeated") or on the first. Returns the whole of it."""
    body = [[f"item{index}", str(index), str(3 * index), ""] for index in range(rows * pages)]
    for number in range(pages):
        page = document.new_page(width=612, height=792)
        part: list[Sequence[str]] = list(body[number * rows : (number + 1) * rows])
        if header == "repeated" or (header == "first" and number == 0):
            part.insert(0, HEAD)
        top = 60.0
        if number == 0:
            words(page, 60, 4)
            top = 740 - 20.0 * len(part)
        grid(page, 72, top, part, 110)
    return [list(HEAD), *body]


@pytest.mark.parametrize(("pages", "header"), [(2, "repeated"), (3, "repeated"), (2, "first"), (3, "first")])
def test_case_27_a_table_over_pages_is_one(converted: Convert, pages: int, header: str) -> None:
    document = pymupdf.open()
    expected = long_table(document, pages, 20, header)
    (table,) = cells(converted(document))
    assert table == expected


def test_case_27_a_header_alone_at_the_page_foot(converted: Convert) -> None:
    document, page = new_page()
    words(page, 60, 44)
    grid(page, 72, 715, [HEAD, ("item0", "0", "0", "x")], 110)
    second = document.new_page(width=612, height=792)
    grid(second, 72, 60, [(f"item{index}", str(index), "4", "y") for index in range(1, 9)], 110)
    words(second, 300, 6)
    (table,) = cells(converted(document))
    assert [row[0] for row in table] == ["Name", *(f"item{index}" for index in range(9))]
