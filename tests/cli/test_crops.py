import io
from dataclasses import replace

import numpy as np
import pymupdf
import pytest
from PIL import Image

from gravityocr_cli.crops import (
    MARGIN_PX,
    Limits,
    crops_of,
    crops_of_pieces,
    is_read_as_rows,
    pieces_painted,
    png_of,
    whole_picture,
)
from gravityocr_cli.document import Kind, Line, Page, Region
from gravityocr_models.records import Task
from gravityocr_models.signs import UNSOUND, Box, Sign

LIMITS = Limits(16, 1024, 6)


def page_with(lines: int, width: float = 300, size: float = 10) -> tuple[Page, Region]:
    """A page of numbered lines 14 points apart, with its text layer, and the region that holds them."""
    document = pymupdf.open()
    sheet = document.new_page(width=612, height=792)
    painted = []
    for i in range(lines):
        text = f"line {i} of the text"
        sheet.insert_text((50, 60 + 14 * i), text, fontsize=size)
        painted.append(Line(Box(50, 50 + 14 * i, 50 + width, 62 + 14 * i), text, size))
    pixmap = sheet.get_pixmap(dpi=144)
    pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width, 3)
    region = Region(1, 0, Kind.TEXT, Box(50, 50, 50 + width, 62 + 14 * max(lines - 1, 0)), tuple(painted))
    return Page(1, 612, 792, 144, pixels, tuple(painted)), region


def test_a_small_region_is_one_crop_with_a_margin() -> None:
    page, region = page_with(3)
    (crop,) = crops_of(page, region, LIMITS, True)
    rows, columns = np.nonzero(crop.pixels.min(axis=2) < 128)
    margins = [int(rows.min()), int(columns.min())]
    assert margins == pytest.approx([MARGIN_PX, MARGIN_PX], abs=1)
    assert crop.pixels.shape[1] < 600, "the white behind short lines is left out"
    assert crop.task is Task.TEXT
    assert crop.draft == "line 0 of the text\nline 1 of the text\nline 2 of the text"


@pytest.mark.parametrize("with_lines", [True, False])
def test_strips_are_cut_at_white_and_lose_nothing(with_lines: bool) -> None:
    page, region = page_with(20)
    crops = crops_of(page, region if with_lines else replace(region, lines=()), LIMITS, True)
    assert len(crops) == 4
    assert sum(int((crop.pixels < 128).sum()) for crop in crops) == (page.pixels < 128).sum()
    for crop in crops:
        assert (crop.pixels[[0, -1]] == 255).all()
    if with_lines:
        drafts = [str(crop.draft).splitlines() for crop in crops]
        assert [line for draft in drafts for line in draft] == [line.text for line in region.lines]
        assert max(map(len, drafts)) <= LIMITS.max_lines
    else:
        assert all(crop.draft is None for crop in crops)


def test_a_crop_knows_the_font_that_most_of_it_is_set_in() -> None:
    page, region = page_with(12)
    fonts = ["A+Roman"] * 7 + ["B+Italic"] * 4 + [""]
    lines = tuple(replace(line, font=font) for line, font in zip(region.lines, fonts, strict=True))
    crops = crops_of(page, replace(region, lines=lines), replace(LIMITS, max_lines=4), True)
    assert [crop.font for crop in crops] == [(1, "A+Roman"), (1, "A+Roman"), (1, "B+Italic")]
    assert crops_of(page, region, LIMITS, True)[0].font is None


def test_an_unsound_line_is_read_alone() -> None:
    page, region = page_with(5)
    lines = list(region.lines)
    lines[2] = replace(lines[2], text=f"line 2 {UNSOUND}")
    crops = crops_of(page, replace(region, lines=tuple(lines)), LIMITS, True)
    assert [crop.draft for crop in crops] == [
        "line 0 of the text\nline 1 of the text",
        None,
        "line 3 of the text\nline 4 of the text",
    ]


def test_unsound_lines_that_reach_into_each_other_are_read_one_by_one() -> None:
    """Made one crop they would be shrunk to the height of a line, and read as anything."""
    page, region = page_with(4)
    high = Line(Box(50, 52, 60, 102), f"a large sign {UNSOUND}", 10)
    crops = crops_of(page, replace(region, lines=(*region.lines, high)), replace(LIMITS, max_lines=1), True)
    assert [crop.draft for crop in crops] == ["line 0 of the text", "line 1 of the text", None, None]
    assert sum(int((crop.pixels < 128).sum()) for crop in crops) == (page.pixels < 128).sum()


def test_a_rule_just_over_a_formula_is_part_of_it() -> None:
    pixels = np.full((200, 400, 3), 255, np.uint8)
    pixels[80:100, 100:160] = 0
    sign = Sign("A", Box(50, 41, 57, 48), (50, 48), 10)
    page = Page(1, 200, 100, 144, pixels, signs=(sign,), bars=(Box(50, 38.6, 57, 39),))
    (crop,) = crops_of(page, Region(1, 0, Kind.FORMULA, Box(48, 40, 80, 50)), LIMITS, True)
    assert crop.draft == r"\overline{A}"


@pytest.mark.parametrize("side", ["top", "left", "all"])
def test_rules_along_the_margin_are_not_shown(side: str) -> None:
    """Over a footnote, around a cell: they would be read as the lines of roots."""
    page, region = page_with(1, width=80)
    top, bottom, left, right = (
        round(2 * edge) for edge in (region.box.y0, region.box.y1, region.box.x0, region.box.x1)
    )
    ruled = page.pixels.copy()
    ruled[top - 2 : top, left - 60 : right + 60] = 0 if side != "left" else 255
    if side != "top":
        ruled[top - 20 : bottom + 20, left - 3] = 0
    if side == "all":
        ruled[bottom + 1 : bottom + 3, left - 60 : right + 60] = ruled[top - 20 : bottom + 20, right + 2] = 0
    shown = replace(page, pixels=ruled)
    one = replace(LIMITS, max_lines=1)
    for wanted, found in (
        (crops_of(page, region, one, True), crops_of(shown, region, one, True)),
        (crops_of_pieces(page, region, region.lines, one), crops_of_pieces(shown, region, region.lines, one)),
    ):
        assert [np.array_equal(a.pixels, b.pixels) for a, b in zip(wanted, found, strict=True)] == [True]


def test_a_crop_shows_no_line_of_another_region() -> None:
    page, region = page_with(2)
    first, _ = region.lines
    (crop,) = crops_of(page, replace(region, lines=(first,)), LIMITS, True)
    (alone,) = crops_of(page, replace(region, lines=(first,), box=first.box), LIMITS, True)
    assert np.array_equal(crop.pixels, alone.pixels)


def test_the_token_cap_makes_more_strips() -> None:
    page, region = page_with(6)
    crops = crops_of(page, region, Limits(16, 160, 6), True)
    assert len(crops) > 1
    assert all(Limits(16, 160, 6).tokens(*crop.pixels.shape[:2]) <= 160 for crop in crops)


def test_a_region_without_ink_gives_no_crop() -> None:
    page, _ = page_with(0)
    assert crops_of(page, Region(1, 0, Kind.TEXT, Box(50, 50, 500, 300)), LIMITS, True) == ()
    assert png_of(page, Region(1, 0, Kind.PICTURE, Box(50, 50, 500, 300))) is None


@pytest.mark.parametrize(("kind", "task"), [(Kind.TABLE, Task.TABLE), (Kind.FORMULA, Task.FORMULA)])
def test_tables_and_formulas_are_one_crop_made_to_fit(kind: Kind, task: Task) -> None:
    page, region = page_with(20)
    for limit in (100_000, 300):
        limits = Limits(16, limit, 6)
        (crop,) = crops_of(page, replace(region, kind=kind), limits, False)
        height, width, _ = crop.pixels.shape
        assert (crop.task, crop.draft) == (task, None)
        assert limits.tokens(height, width) <= limit
        assert width / height == pytest.approx(606 / 562, rel=0.05)


def test_a_table_with_a_sound_layer_that_may_be_kept_is_read_as_rows() -> None:
    page, region = page_with(2)
    (crop,) = crops_of(page, replace(region, kind=Kind.TABLE), LIMITS, True)
    assert (crop.task, crop.draft) == (Task.TEXT, "line 0 of the text\nline 1 of the text")


def test_one_unsound_cell_does_not_spoil_a_table() -> None:
    page, region = page_with(8)
    lines = list(region.lines)
    lines[2] = replace(lines[2], text=f"line 2 {UNSOUND}")
    lines.append(Line(Box(60, 60, 70, 70), UNSOUND, 10))  # an accent over what stands there
    table = replace(region, kind=Kind.TABLE, lines=tuple(lines))
    assert is_read_as_rows(table, True)
    pieces = pieces_painted(page, table.lines)
    crops = crops_of_pieces(page, table, pieces, replace(LIMITS, max_lines=1))
    assert [crop.draft for crop in crops] == [None if at == 2 else line.text for at, line in enumerate(region.lines)]
    assert not is_read_as_rows(replace(table, lines=tuple(replace(line, text=UNSOUND) for line in lines)), True)


def test_a_picture_file_shows_the_region() -> None:
    page, region = page_with(3)
    data = png_of(page, region)
    assert data is not None
    assert Image.open(io.BytesIO(data)).size == (600 + 2 * MARGIN_PX, 80 + 2 * MARGIN_PX)


def test_a_pictures_box_grows_to_the_ink_that_crosses_it_and_not_over_text() -> None:
    pixels = np.full((800, 800, 3), 255, np.uint8)
    pixels[200:202, 200:430] = 0  # a line that goes on behind the box
    pixels[500:520, 230:260] = 0  # ink of its own beside it
    page = Page(1, 400, 400, 144, pixels)
    box = Box(100, 90, 200, 200)
    assert whole_picture(page, box) == replace(box, x1=215)
    beside = replace(page, lines=(Line(Box(205, 95, 260, 105), "text", 10),))
    assert whole_picture(beside, box) == box


def test_a_picture_states_its_dpi() -> None:
    page, region = page_with(2)
    data = png_of(page, region)
    assert data is not None
    with Image.open(io.BytesIO(data)) as image:
        assert round(image.info["dpi"][0]) == round(page.dpi)
