import numpy as np
import pymupdf
from numpy.typing import NDArray

from gravityocr_cli.document import Kind
from gravityocr_cli.ink import ink_of
from gravityocr_cli.inkcut import cut_by_ink, pictures_outside
from gravityocr_models.signs import Box

BODY = "Body text that runs on for some lines so that there is a block. " * 12


def page(*boxes: tuple[float, float, float, float], dark: bool = False) -> pymupdf.Page:
    document = pymupdf.open()
    sheet = document.new_page(width=612, height=792)
    if dark:
        sheet.draw_rect(sheet.rect, fill=(0, 0, 0.2))
    for box in boxes:
        assert sheet.insert_textbox(box, BODY, fontsize=10, color=(1, 1, 1) if dark else (0, 0, 0)) > 0
    sheet.owner = document
    return sheet


def pixels_of(sheet: pymupdf.Page) -> NDArray[np.uint8]:
    pixmap = sheet.get_pixmap(dpi=144)
    return np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.width, 3)


def test_two_columns_under_a_title() -> None:
    sheet = page((60, 120, 295, 700), (315, 120, 550, 700))
    sheet.insert_text((150, 80), "A title over both", fontsize=24)
    blocks = sorted(cut_by_ink(pixels_of(sheet), 144), key=lambda block: (block[1], block[0].x0))
    assert [kind for _, kind in blocks] == [Kind.HEADING, Kind.TEXT, Kind.TEXT]
    title, left, right = (box for box, _ in blocks)
    assert (title.y0, title.y1) < (90, 90)
    assert left.x1 < 305 < right.x0
    assert abs(left.x0 - 60) < 3


def test_paragraphs_apart_by_white_come_apart() -> None:
    blocks = cut_by_ink(pixels_of(page((60, 60, 550, 200), (60, 230, 550, 400))), 144)
    assert len(blocks) == 2


def test_light_text_on_a_dark_page() -> None:
    blocks = cut_by_ink(pixels_of(page((60, 60, 550, 300), dark=True)), 144)
    assert [kind for _, kind in blocks] == [Kind.TEXT]


def test_a_photograph_is_a_picture_and_a_dark_edge_is_nothing() -> None:
    sheet = page((60, 60, 550, 250))
    sheet.draw_rect((100, 300, 300, 450), fill=(0.2, 0.3, 0.2))
    sheet.draw_rect((590, 0, 612, 792), fill=(0, 0, 0))
    blocks = cut_by_ink(pixels_of(sheet), 144)
    assert sorted(kind for _, kind in blocks) == [Kind.PICTURE, Kind.TEXT]
    (picture,) = [box for box, kind in blocks if kind is Kind.PICTURE]
    assert abs(picture.x0 - 100) < 3
    assert abs(picture.y1 - 450) < 3


def test_nothing_on_blank_grey_and_faint_pages() -> None:
    assert cut_by_ink(np.full((792, 612, 3), 255, np.uint8), 72) == []
    assert cut_by_ink(np.full((792, 612, 3), 128, np.uint8), 72) == []
    faint = pixels_of(page((60, 60, 550, 300))).astype(np.float32)
    assert cut_by_ink((255 - (255 - faint) * 0.04).astype(np.uint8), 144) == []


def test_ink_stands_out_from_the_ground() -> None:
    pixels = np.full((4, 4, 3), 200, np.uint8)
    pixels[1, 1] = 20
    assert ink_of(pixels).sum() == 1


def test_paper_lit_from_one_side_is_no_ink() -> None:
    clean = pixels_of(page((60, 60, 550, 300), (60, 400, 550, 700)))
    height, width, _ = clean.shape
    bend = np.square(np.linspace(0, 1, width))  # darker towards the spine of a book
    light = 1 - 0.2 * np.linspace(0, 1, height)[:, None] - 0.2 * bend
    lit = (clean * light[..., None]).astype(np.uint8)
    assert np.ptp(lit[4:-4, 4:-4].max(axis=2)) > 80
    apart = np.count_nonzero(ink_of(lit) != ink_of(clean))
    assert apart < 0.1 * np.count_nonzero(ink_of(clean))
    assert [kind for _, kind in cut_by_ink(lit, 144)] == [Kind.TEXT, Kind.TEXT]


def test_grainy_paper_is_the_ground_though_black_has_most_pixels() -> None:
    sheet = page((60, 60, 550, 700))
    sheet.draw_rect((582, 0, 612, 792), color=None, fill=(0, 0, 0))  # the edge of the glass
    clean = pixels_of(sheet).astype(np.float32)
    grain = np.random.default_rng(0).normal(-40, 14, clean.shape[:2])[..., None]
    grainy = np.clip(clean + grain, 0, 255).astype(np.uint8)
    assert np.bincount(grainy[..., 0].ravel()).argmax() == 0
    assert 0 < ink_of(grainy).mean() < 0.2


def test_what_is_printed_dark_is_no_shadow() -> None:
    """A tint that fills a third of the page stands out from its paper as before."""
    sheet = page((60, 60, 550, 250))
    sheet.draw_rect((0, 500, 612, 792), color=None, fill=(0.6, 0.6, 0.6))
    ink = ink_of(pixels_of(sheet))
    assert ink[1010:].all()
    assert not ink[700:990].any()


def test_figures_outside_the_regions_are_found_and_frames_are_not() -> None:
    sheet = page((60, 60, 550, 250))
    for x in range(100, 300, 8):  # a drawing of loose parts
        sheet.draw_line((x, 400), (x + 2, 470))
    sheet.draw_rect((50, 50, 560, 260))  # a frame around the text
    (figure,) = pictures_outside(ink_of(pixels_of(sheet)), 144, [Box(60, 60, 550, 250)])
    assert (round(figure.x0, -1), round(figure.y0, -1), round(figure.y1, -1)) == (100, 400, 470)


def test_a_page_lower_than_a_pixel_of_the_mask() -> None:
    assert cut_by_ink(np.full((1, 600, 3), 255, np.uint8), 144.0) == []
