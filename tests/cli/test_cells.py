"""Pieces of text and rules from the pixels of small painted tables."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from numpy.typing import NDArray
from PIL import Image

from gravityocr_cli import cells
from gravityocr_cli.cells import ink_on_grounds, pieces_of
from gravityocr_cli.crops import Limits
from gravityocr_cli.document import Kind, Line, Page, Region
from gravityocr_cli.grid import rows_from_lines
from gravityocr_cli.ink import ink_of
from gravityocr_cli.prepare import _part
from gravityocr_cli.prepared import Plan
from gravityocr_cli.ruled import rows_from_rules, rules_in
from gravityocr_cli.textlayer import rows_of
from gravityocr_models.signs import Box

WIDTH, HEIGHT = 300, 120
Paint = Callable[[pymupdf.Page], object]


def page_of(pixels: NDArray[np.uint8]) -> Page:
    """A page at 144 dpi."""
    return Page(1, pixels.shape[1] / 2, pixels.shape[0] / 2, 144.0, np.ascontiguousarray(pixels))


def page(paint: Paint, dpi: int = 144, degrees: float = 0.0) -> Page:
    """What `paint` draws, seen at `dpi` and enlarged to 144."""
    with pymupdf.open() as document:
        sheet = document.new_page(width=WIDTH, height=HEIGHT)
        paint(sheet)
        pixmap = sheet.get_pixmap(dpi=dpi)
    image = Image.fromarray(np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width, 3))
    image = image.resize((2 * WIDTH, 2 * HEIGHT), Image.Resampling.BILINEAR)
    return page_of(np.asarray(image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=(255, 255, 255))))


def words(*placed: tuple[float, float, str], size: float = 10, font: str = "helv", grey: float = 0.0) -> Paint:
    """Paints words at left, baseline."""

    def paint(sheet: pymupdf.Page) -> None:
        for x, y, text in placed:
            sheet.insert_text((x, y), text, fontsize=size, fontname=font, color=(grey,) * 3)

    return paint


def all_of(*paints: Paint) -> Paint:
    return lambda sheet: [paint(sheet) for paint in paints]


def grid(xs: Sequence[float], ys: Sequence[float]) -> Paint:
    def paint(sheet: pymupdf.Page) -> None:
        for x in xs:
            sheet.draw_line((x, ys[0]), (x, ys[-1]), width=0.6)
        for y in ys:
            sheet.draw_line((xs[0], y), (xs[-1], y), width=0.6)

    return paint


def found(shown: Page) -> tuple[Line, ...]:
    return pieces_of(shown, Box(0, 0, shown.width, shown.height))


def lefts(pieces: Sequence[Line]) -> list[list[int]]:
    """Where the pieces of each painted row start, in tens of points."""
    return [[round(piece.box.x0 / 10) for piece in row] for row in rows_of(pieces)]


def shape(shown: Page) -> list[list[tuple[int, int]]]:
    """Columns and rows of each cell that the rules part."""
    lines = [replace(piece, text="x") for piece in found(shown)]
    rules = rules_in(shown.pixels, shown.dpi, Box(0, 0, shown.width, shown.height))
    return [[(cell.columns, cell.rows) for cell in row] for row in rows_from_rules(lines, rules)]


def test_words_of_a_line_are_one_piece_and_columns_are_several() -> None:
    pieces = found(page(words((20, 30, "Two of the words"), (150, 30, "1,234 (5.6)"), (20, 60, "A"), (150, 60, "2"))))
    assert lefts(pieces) == [[2, 15], [2, 15]]
    assert all(8 < piece.size < 12 for piece in pieces)


def test_what_stands_on_a_line_is_as_high_as_the_line() -> None:
    pieces = found(page(words((20, 50, "ace"), (80, 50, "Tall"), (140, 50, "-"), (180, 50, "***"), (240, 50, "..."))))
    assert lefts(pieces) == [[2, 8, 14, 18, 24]]
    assert np.ptp([piece.box.y0 for piece in pieces]) <= 1.5
    assert np.ptp([piece.box.y1 for piece in pieces]) <= 1.5


def test_dots_and_accents_belong_to_their_letters_and_a_speck_to_nothing() -> None:
    def specks(sheet: pymupdf.Page) -> None:
        for x in (120, 200):
            sheet.draw_circle((x, 88), 0.5, color=None, fill=(0, 0, 0))
        sheet.draw_circle((160, 86), 2, color=None, fill=(0, 0, 0))  # a bullet

    pieces = found(page(all_of(words((20, 30, "É; i:"), (20, 90, "word")), specks)))
    assert lefts(pieces) == [[2], [2, 16]]
    assert pieces[0].box.y0 < 21.5  # the accent is in it


def test_a_dash_between_figures_joins_them() -> None:
    assert lefts(found(page(words((20, 40, "9364–138869"), (150, 40, "− 0.5"))))) == [[2, 15]]


def test_lines_that_touch_come_apart() -> None:
    lines = [(20, 30 + 9.4 * n, "(gypsy) flight Äpfel") for n in range(2)]
    pieces = found(page(words(*lines)))
    assert [len(row) for row in rows_of(pieces)] == [1, 1]


def test_letters_that_run_together_are_no_rules() -> None:
    shown = page(words((20, 40, "Number"), (150, 40, "HEMMUNG"), (20, 80, "commune"), size=7, font="hebo"), dpi=72)
    assert rules_in(shown.pixels, shown.dpi, Box(0, 0, WIDTH, HEIGHT)) == ()
    assert lefts(found(shown)) == [[2, 15], [2]]


def test_small_letters_that_run_together_are_no_rules() -> None:
    texts = "disagree", "ill people are only", "tolerable", "Mentally ill", "dependency", "communes"
    small = [(20.3, 20.0 + 14 * at, text) for at, text in enumerate(texts)]
    shown = page(words(*small, size=6.5, font="tiro"), dpi=72)
    assert rules_in(shown.pixels, shown.dpi, Box(0, 0, WIDTH, HEIGHT)) == ()


def test_rules_that_cut_letters_leave_them() -> None:
    text = words((22, 38, "gypsy"), (102, 38, "1,5"), (22, 60, "jug"), (102, 60, "2"))
    shown = page(all_of(text, grid((20, 100, 180), (20, 40, 62))))
    assert lefts(found(shown)) == [[2, 10], [2, 10]]
    assert shape(shown) == [[(1, 1), (1, 1)], [(1, 1), (1, 1)]]


def test_rules_are_no_pieces_in_low_rows() -> None:
    shown = page(all_of(words((25, 31, "word"), (104, 31, "1,234")), grid((20, 100, 180), (20, 34))))
    assert lefts(found(shown)) == [[2, 10]]


@pytest.mark.parametrize("degrees", [0.0, 0.4, -0.4])
def test_a_grid_of_broken_and_tilted_rules(degrees: float) -> None:
    texts = words(*((x, y, "word 1") for x in (30, 110, 190) for y in (34, 64, 94)))

    def gaps(sheet: pymupdf.Page) -> None:
        for at in range(20, 280, 24):
            sheet.draw_rect((at, 0, at + 1, HEIGHT), color=None, fill=(1, 1, 1))

    shown = page(all_of(grid((22, 100, 180, 262), (20, 50, 80, 110)), gaps, texts), degrees=degrees)
    assert shape(shown) == [[(1, 1)] * 3] * 3


def test_light_text_on_a_dark_band() -> None:
    def band(sheet: pymupdf.Page) -> None:
        sheet.draw_rect((5, 20, 295, 40), color=None, fill=(0.1, 0.2, 0.4))  # white beside it, as a crop has

    shown = page(all_of(band, words((20, 34, "Head"), (150, 34, "More"), grey=1), words((20, 60, "a"), (150, 60, "b"))))
    assert lefts(found(shown)) == [[2, 15], [2, 15]]


def test_text_on_areas_of_any_shape() -> None:
    def areas(sheet: pymupdf.Page) -> None:
        sheet.draw_rect((0, 0, 300, 20), color=None, fill=(0.9, 0.5, 0.2))
        sheet.draw_rect((0, 0, 100, 120), color=None, fill=(0.9, 0.5, 0.2))

    text = words((20, 14, "Head"), (150, 14, "More"), (20, 50, "one"), (150, 50, "1"), (20, 80, "two"), (150, 80, "2"))
    assert lefts(found(page(all_of(areas, text)))) == [[2, 15], [2, 15], [2, 15]]


def test_the_ink_of_a_plain_table_is_that_of_the_page() -> None:
    pixels = page(words((20, 40, "word"))).pixels
    assert np.array_equal(ink_on_grounds(pixels, 2.0), ink_of(pixels))


def test_the_grid_of_pieces_with_a_wrapped_cell_beside_others() -> None:
    rows = [(20, 20, "first line"), (20, 32, "second"), (150, 26, "1.5"), (20, 60, "other"), (150, 60, "2")]
    lines = [replace(piece, text="x") for piece in found(page(words(*rows)))]
    assert [[cell.content for cell in row] for row in rows_from_lines(lines)] == [["x x", "x"], ["x", "x"]]


def test_nothing_on_blank_and_speckled_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(page_of(np.full((60, 80, 3), 255, np.uint8))) == ()
    assert found(page_of(np.zeros((60, 80, 3), np.uint8))) == ()
    assert found(page_of(np.full((2, 2, 3), 255, np.uint8))) == ()
    monkeypatch.setattr(cells, "_MOST", 3)
    assert found(page(words((20, 40, "halftone")))) == ()


def test_a_table_whose_ink_is_no_letters_is_still_read() -> None:
    """Dots too small for letters, or a halftone with too many: no pieces, and the region must not vanish."""
    pixels = np.full((200, 300, 3), 255, np.uint8)
    pixels[20:180:9, 20:280:7] = pixels[21:180:9, 20:280:7] = 0
    dotted = page_of(pixels)
    region = Region(1, 0, Kind.TABLE, Box(5, 5, 145, 95))
    assert pieces_of(dotted, region.box) == ()
    plan = Plan(144, Limits(16, 1024, 1), trust_layer=True, images=True, headers_footers=False, detector=Path())
    assert _part(dotted, region, plan).crops


def test_a_painted_table_is_read_cell_by_cell_by_who_reads_a_line() -> None:
    """White gaps as wide as those of a table's row, and rules in it, are no text of one line."""
    placed = [(20, 40, "2004"), (120, 40, "36.2"), (20, 70, "2005"), (120, 70, "61.6")]
    shown = page(all_of(words(*placed), grid((10, 100, 200), (25, 50, 80))))
    lines = tuple(Line(Box(x, y - 9, x + 25, y + 2), text, 10.0, font="A+Roman") for x, y, text in placed)
    unseen = Line(Box(250, 30, 280, 40), "white", 10.0)
    region = Region(1, 3, Kind.TABLE, Box(10, 25, 290, 80), (*lines, unseen))
    plan = Plan(144, Limits(16, 1024, 1), trust_layer=True, images=True, headers_footers=False, detector=Path())
    part = _part(shown, region, plan)
    assert part.pieces == lines
    assert [crop.draft for crop in part.crops] == [line.text for line in lines]
    assert {(crop.region, crop.font) for crop in part.crops} == {((1, 3), (1, "A+Roman"))}
    assert max(crop.pixels.shape[1] for crop in part.crops) < 80
    assert all(crop.draft is None for crop in _part(shown, region, replace(plan, trust_layer=False)).crops)
