from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
import pytest

from gravityocr_cli import errors
from gravityocr_cli.document import Kind
from gravityocr_cli.pdf import MAX_PIXELS, LostPage, Sheet, Source, _layout_networks, image_dpi
from gravityocr_cli.regions import Found
from gravityocr_models.signs import Box

MakePdf = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("no_layout")


def sheet_of(path: Path, number: int = 1) -> Sheet:
    with Source(path) as source:
        (sheet,) = source.sheets((number,), 144.0)
    assert isinstance(sheet, Sheet), sheet
    return sheet


def words(page: Any) -> None:
    page.insert_text((100, 40), "outside the crop box")
    page.insert_text((100, 200), "Inside words of a page")
    page.draw_rect((300, 300, 400, 600), fill=(1, 0, 0))


def test_the_layout_analysis_does_not_look_for_cells(make_pdf: MakePdf) -> None:
    """Which would be a third of its time, for nothing."""

    def table(page: Any) -> None:
        for row in range(8):
            for column in range(4):
                page.draw_rect((100 + 80 * column, 100 + 20 * row, 180 + 80 * column, 120 + 20 * row))
                page.insert_text((105 + 80 * column, 115 + 20 * row), f"{row * 37} {column}", fontsize=10)

    with pymupdf.open(make_pdf(table)) as document:
        page = document[0]
        page.get_layout(return_raw=True)
    groups = page.layout_information
    assert "table" in [group["class_name"] for group in groups]
    assert not any("table_grid" in group for group in groups)


def test_the_layout_analysis_keeps_its_memory_and_its_threads_sleep_while_they_wait() -> None:
    networks = _layout_networks()
    for session in (networks.session, networks.feature_extractor._session):
        options = session.get_session_options()
        assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
        assert options.enable_cpu_mem_arena


def test_the_network_that_looks_at_a_page_has_its_activations_within_its_convolutions() -> None:
    assert b"PRelu" not in _layout_networks().feature_extractor._session._model_bytes


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
@pytest.mark.parametrize("cropped", [False, True])
def test_boxes_lie_on_the_pixels_of_their_text(make_pdf: MakePdf, rotation: int, cropped: bool) -> None:
    def paint(page: Any) -> None:
        for y in (200, 230, 260):
            page.insert_text((100, y), "Inside words of a page", fontsize=14)
        page.insert_text((100, 40), "outside the crop box")
        if cropped:
            page.set_cropbox(pymupdf.Rect(50, 81, 600, 700))
        page.set_rotation(rotation)

    page = sheet_of(make_pdf(paint)).page
    inside = [line for line in page.lines if line.text == "Inside words of a page"]
    assert len(inside) == 3
    assert any("outside" in line.text for line in page.lines) is not cropped
    assert (page.width > page.height) is False  # sideways text has been turned upright
    dark = page.pixels.min(axis=2) < 128
    scale = page.dpi / 72
    for line in inside:
        box = line.box
        assert box.width > 5 * box.height
        ink = dark[int(box.y0 * scale) : int(box.y1 * scale), int(box.x0 * scale) : int(box.x1 * scale)]
        assert ink[:, : ink.shape[1] // 8].any()
        assert ink[:, -ink.shape[1] // 8 :].any()
        dark[int(box.y0 * scale) - 1 : int(box.y1 * scale) + 1, int(box.x0 * scale) - 2 : int(box.x1 * scale) + 2] = (
            False
        )
    assert cropped is False or not dark.any()


def test_rotation_without_text_to_tell_is_what_the_viewer_shows(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        page.draw_rect((10, 10, 60, 60), fill=(0, 0, 0))
        page.set_rotation(90)

    page = sheet_of(make_pdf(paint)).page
    assert (page.width, page.height) == (792, 612)
    assert page.pixels[:124, -124:].min() == 0  # the top left corner is shown at the top right
    assert page.pixels[:, :-124].min() == 255


def test_rendering_is_antialiased_on_every_page(make_pdf: MakePdf) -> None:
    path = make_pdf(words, words)
    with Source(path) as source:
        greys = [
            len(np.unique(sheet.page.pixels)) for sheet in source.sheets((1, 2), 144.0) if isinstance(sheet, Sheet)
        ]
    assert greys[0] == greys[1] > 16


def test_what_is_painted_counts_and_not_what_is_to_be_read_aloud(make_pdf: MakePdf) -> None:
    def paint(page: Any) -> None:
        words(page)
        page.clean_contents()
        (xref,) = page.get_contents()
        stream = page.parent.xref_stream(xref)
        page.parent.update_stream(xref, b"/Span <</ActualText (protect)>> BDC " + stream + b" EMC")

    assert [line.text for line in sheet_of(make_pdf(paint)).page.lines][-1] == "Inside words of a page"


@pytest.mark.parametrize(("width", "height"), [(14400, 14400), (1, 66000), (3, 3)])
def test_pixels_are_bounded_whatever_the_page(make_pdf: MakePdf, width: float, height: float) -> None:
    page = sheet_of(make_pdf(lambda page: None, width=width, height=height)).page
    assert 0 < page.pixels.shape[0] * page.pixels.shape[1] <= MAX_PIXELS * 1.01
    assert page.lines == ()


@pytest.mark.parametrize("part", ["page", "content"])
def test_a_page_with_a_part_missing_is_lost_and_the_others_are_not(make_pdf: MakePdf, part: str) -> None:
    data = make_pdf(words, words, words).read_bytes()
    with pymupdf.open(stream=data) as document:
        page = document[1]
        xref = page.xref if part == "page" else page.get_contents()[0]
    start = data.index(b"\n%d 0 obj" % xref) + 1
    end = data.index(b"endobj", start)
    path = make_pdf(words, name="gone.pdf")
    path.write_bytes(data[:start] + (b"%d 0 obj\nnull\n" % xref).ljust(end - start) + data[end:])
    with Source(path) as source:
        sheets = list(source.sheets(range(1, source.count + 1), 144.0))
    assert [type(sheet) for sheet in sheets] == [Sheet, LostPage, Sheet]


def test_a_page_that_raises_becomes_a_record(make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_pdf(words, words, words)
    render = pymupdf.Page.get_pixmap

    def broken(page: Any, *args: Any, **kwargs: Any) -> Any:
        if page.number == 1:
            raise RuntimeError("syntax error\nin content stream")
        return render(page, *args, **kwargs)

    monkeypatch.setattr(pymupdf.Page, "get_pixmap", broken)
    with Source(path) as source:
        sheets = list(source.sheets((1, 2, 3), 144.0))
    assert sheets[1] == LostPage(2, "cannot be rendered: syntax error")
    assert isinstance(sheets[0], Sheet)
    assert isinstance(sheets[2], Sheet)


def test_an_image_is_a_page_of_its_own_size(tmp_path: Path) -> None:
    pixmap = pymupdf.Pixmap(pymupdf.csRGB, (0, 0, 1275, 1650), False)
    pixmap.clear_with(255)
    pixmap.save(tmp_path / "scan.png")
    page = sheet_of(tmp_path / "scan.png").page
    assert (round(page.width), round(page.height)) == (612, 792)
    assert page.pixels.shape == (1584, 1224, 3)
    assert page.dpi == pytest.approx(144)


@pytest.mark.parametrize(
    ("width", "height", "stated", "dpi"),
    [(2550, 3300, 0, 300), (2480, 3508, 300, 300), (2550, 3300, 72, 300), (500, 45, 0, 72), (1200, 800, 200, 200)],
)
def test_image_dpi(width: int, height: int, stated: float, dpi: float) -> None:
    assert image_dpi(width, height, stated) == pytest.approx(dpi, rel=0.02)


def test_every_fault_has_its_own_error(make_pdf: MakePdf, tmp_path: Path) -> None:
    whole = make_pdf(words).read_bytes()
    cases: dict[str, tuple[bytes | None, type[errors.GravityOcrError]]] = {
        "missing.pdf": (None, errors.MissingInput),
        "empty.pdf": (b"", errors.EmptyInput),
        "page.html.pdf": (b"<html><body>no</body></html>", errors.NotADocument),
        "noise.pdf": (bytes(range(1, 256)) * 4, errors.NotADocument),
        "cut.pdf": (whole[:200], errors.DamagedInput),
        "broken.png": (b"\x89PNG\r\n\x1a\n" + bytes(64), errors.NotADocument),
    }
    messages = set()
    for name, (data, kind) in cases.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        with pytest.raises(kind) as caught:
            Source(tmp_path / name)
        assert name in str(caught.value)
        assert caught.value.exit_code == 3
        messages.add(str(caught.value).replace(name, ""))
    assert len(messages) == 4


def test_a_document_without_pages(tmp_path: Path) -> None:
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[]/Count 0>>"]
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj%s\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 3\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    data += b"trailer<</Size 3/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % start
    (tmp_path / "none.pdf").write_bytes(data)
    with pytest.raises(errors.NoPages):
        Source(tmp_path / "none.pdf")


def test_passwords(make_pdf: MakePdf) -> None:
    lock = {"encryption": pymupdf.PDF_ENCRYPT_AES_256, "owner_pw": "owner", "user_pw": "user"}
    path = make_pdf(words, name="locked.pdf", **lock)
    with pytest.raises(errors.PasswordNeeded):
        Source(path)
    with pytest.raises(errors.WrongPassword):
        Source(path, "guess")
    with Source(path, "user") as source:
        assert source.count == 1
    owner_only = make_pdf(words, name="open.pdf", encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="owner", user_pw="")
    with Source(owner_only) as source:
        assert source.count == 1


def test_too_large(make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gravityocr_cli.pdf.MAX_FILE_BYTES", 100)
    with pytest.raises(errors.InputTooLarge):
        Source(make_pdf(words))


def test_fewer_pixels_where_fewer_are_wanted(make_pdf: MakePdf) -> None:
    with Source(make_pdf(words), max_pixels=50_000) as source:
        (sheet,) = source.sheets((1,), 144.0)
    assert isinstance(sheet, Sheet)
    assert 40_000 < sheet.page.pixels.shape[0] * sheet.page.pixels.shape[1] <= 51_000
    assert sheet.page.dpi == pytest.approx(72 * (50_000 / (612 * 792)) ** 0.5, rel=0.01)


@pytest.mark.parametrize(("kind", "width"), [(Kind.TEXT, 80), (Kind.PICTURE, 80), (Kind.FORMULA, 65)])
def test_all_of_a_formula_is_painted_whatever_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Kind, width: float
) -> None:
    """As web pages print them: in pieces, of which few look like a formula; a box may end within one."""
    document = pymupdf.open()
    page = document.new_page(width=300, height=200)
    for words, x, y in (("E =", 100, 100), ("r", 135, 92), ("e", 135, 110), ("m a", 155, 100)):
        page.insert_text((x, y), words, fontsize=12, fontname="tiit")
    document.save(tmp_path / "formula.pdf")
    found = (Found(Box(98, 80, 98 + width, 116), kind),)
    monkeypatch.setattr("gravityocr_cli.pdf._layout", lambda _: (found, ()))
    with Source(tmp_path / "formula.pdf") as source:
        (sheet,) = source.sheets([1], 144)
    assert isinstance(sheet, Sheet)
    assert len(sheet.page.lines) > 1
    assert sorted(sign.text for sign in sheet.page.signs) == sorted("E=rema")
