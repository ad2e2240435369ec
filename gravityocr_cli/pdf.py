"""A path -> its pages, one at a time. With `painted.py` the only file that knows PyMuPDF.

A page comes rendered, with its visible text and with the boxes that PyMuPDF's layout analysis sees, all in one frame:
points of the page as displayed, turned upright where its text lies on its side. Nothing of a page is kept once the next
one is asked for. A page that cannot be read is a `LostPage`, not an exception.
"""

import inspect
import math
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pymupdf
import pymupdf.layout
from numpy.typing import NDArray
from PIL import Image

from gravityocr_cli import errors
from gravityocr_cli.asides import Aside, as_table, asides_of, turned, with_places, without
from gravityocr_cli.document import Kind, Line, Link, Page, Tick
from gravityocr_cli.inlinemath import is_formula
from gravityocr_cli.linenumbers import line_numbers
from gravityocr_cli.mathinline import maths_in_lines, with_maths
from gravityocr_cli.painted import formula_paint, level_rules
from gravityocr_cli.regions import Found
from gravityocr_cli.textlayer import lines_of, with_ticks, with_underscores
from gravityocr_cli.typewriter import with_typewriters
from gravityocr_models.layout import fused, unspun
from gravityocr_models.signs import Box

MAX_FILE_BYTES = 4 * 2**30
MAX_PIXELS = 24_000_000  # a rendered page's, unless told otherwise; an A4 page at 144 dpi has 2 million
_KINDS = {
    "title": Kind.TITLE,
    "section-header": Kind.HEADING,
    "text": Kind.TEXT,
    "list-item": Kind.LIST,
    "caption": Kind.CAPTION,
    "footnote": Kind.FOOTNOTE,
    "table": Kind.TABLE,
    "formula": Kind.FORMULA,
    "picture": Kind.PICTURE,
    "page-header": Kind.HEADER,
    "page-footer": Kind.FOOTER,
}
_MUPDF_ERRORS = (RuntimeError, pymupdf.mupdf.FzErrorBase)  # PyMuPDF's own, and those that it lets through
# Ligatures come resolved; what glyphs are, not what a file would have read aloud in their place.
_TEXT_FLAGS = pymupdf.TEXT_MEDIABOX_CLIP | pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_IGNORE_ACTUALTEXT

pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)


def _layout_networks() -> Any:
    """What PyMuPDF's layout analysis loads as it is imported; None where a release keeps that elsewhere."""
    return getattr(inspect.getclosurevars(pymupdf._get_layout).nonlocals.get("MODEL"), "_model", None)


def _spare_layout_analysis() -> None:
    """Has the layout analysis leave the cells of tables alone, up to a third of its time, for which nobody here asks;
    has its threads sleep while they wait; has it keep its memory from page to page, all of which have one size for
    it: fetching that anew is a fifth of its time; and spares the network that looks at the page another pass over its
    features behind every convolution. A release that is made otherwise goes on as before."""
    networks = _layout_networks()
    with suppress(AttributeError):
        networks.table_grid_extractor = None
        for session in (networks.session, networks.feature_extractor._session):
            unspun(session._sess_options_initial).enable_cpu_mem_arena = True
        looks = networks.feature_extractor._session
        looks._model_bytes, looks._model_path = fused(Path(looks._model_path).read_bytes()), None
        for session in (networks.session, looks):
            session.set_providers(session.get_providers())  # loads the network anew


_spare_layout_analysis()


@dataclass(frozen=True)
class Sheet:
    """A page and what the layout analysis found on it (empty for a page without painted text).

    asides: parts of it that stand on their side, each with a sheet that shows it upright.
    """

    page: Page
    found: tuple[Found, ...]
    seconds: float
    warnings: tuple[str, ...] = ()
    asides: tuple[tuple[Aside, "Sheet"], ...] = ()


@dataclass(frozen=True)
class LostPage:
    """A page that could not be read, and why."""

    number: int
    reason: str


class Source:
    """An open document. Use as a context, or close it.

    Raises the InputError or password error that names the fault (and `name`, by default the path), on construction.
    """

    def __init__(self, path: Path, password: str | None = None, max_pixels: int = MAX_PIXELS, name: str = "") -> None:
        self._name = name or str(path)
        _check_file(path, self._name)
        self._path, self._max_pixels = path, max_pixels
        self._document = _open(path, self._name)
        if self._document.needs_pass and not self._document.authenticate(password or ""):
            self._document.close()
            raise errors.PasswordNeeded(self._name) if password is None else errors.WrongPassword(self._name)
        self.count = self._count()
        self.warnings = ("the file is damaged and was repaired",) if self._document.is_repaired else ()

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._document.close()

    def sheets(self, numbers: Sequence[int], dpi: float) -> Iterator[Sheet | LostPage]:
        """The pages with these numbers (from 1), rendered at `dpi`, or at less where a page is enormous."""
        for number in numbers:
            started = time.perf_counter()
            try:
                yield self._sheet(number, dpi, started)
            except (*_MUPDF_ERRORS, ValueError, MemoryError, IndexError, TypeError) as error:
                yield LostPage(number, f"cannot be rendered: {(str(error) or repr(error)).splitlines()[0]}")
            pymupdf.TOOLS.store_shrink(100)

    def contents(self) -> tuple[tuple[int, str, int], ...]:
        """The document's own outline: level from 1, title, page from 1; empty where it has none or a broken one."""
        try:
            return tuple((int(level), str(title), int(page)) for level, title, page in self._document.get_toc())
        except (*_MUPDF_ERRORS, ValueError, TypeError):
            return ()

    def _count(self) -> int:
        try:
            count = int(self._document.page_count)
        except _MUPDF_ERRORS as error:
            raise errors.DamagedInput(self._name) from error
        if count == 0:
            raise errors.DamagedInput(self._name) if self._document.is_repaired else errors.NoPages(self._name)
        return count

    def _sheet(self, number: int, dpi: float, started: float) -> Sheet:
        page = self._document[number - 1]
        if not self._document.is_pdf:
            return _image_sheet(page, self._path, number, dpi, self._max_pixels, started)
        _check_content(self._document, page)
        given, links, ticks = page, _links(page), _ticks(page)
        page, turn, raw = _upright(self._document, page)
        raw = _without_line_numbers(page, raw)
        frame = _frame(given, turn)
        links = [Link(_moved(each.box, frame), each.target) for each in links]
        ticks = [Tick(_moved(each.box, frame), each.on) for each in ticks]
        pixels, dpi = _render(page, dpi / 72, self._max_pixels)
        shown = Box(0, 0, page.rect.width, page.rect.height)
        raw, scan = with_typewriters(with_underscores(raw, level_rules(page))), _is_scan(page)
        maths = [] if scan else maths_in_lines(raw)
        lines = () if maths else with_ticks(lines_of(raw, shown, pixels, dpi, scan, links), ticks)
        found, warnings = _layout(page) if maths or lines else ((), ())
        formulas = [each.box for each in found if each.kind is Kind.FORMULA or _is_formula(each, lines)]
        signs, bars = formula_paint(page, [*formulas, *maths, *_of_formulas(lines, formulas)])
        if maths:  # which then are part of the lines, but for displays, and for tables, whose cells stay as they are
            tables = [each.box for each in found if each.kind is Kind.TABLE]
            raw = with_maths(raw, signs, bars, [*formulas, *tables])
            lines = with_ticks(lines_of(raw, shown, pixels, dpi, scan, links), ticks)
        parts = asides_of(raw, lines, found)
        asides = tuple((part, _aside(page, part, number, dpi)) for part in parts)
        record = Page(number, shown.x1, shown.y1, dpi, pixels, without(parts, lines), signs, bars)
        return Sheet(record, with_places(parts, found), time.perf_counter() - started, warnings, asides)


def _check_file(path: Path, name: str) -> None:
    if not path.is_file():
        raise errors.MissingInput(name)
    try:
        size = path.stat().st_size
        with open(path, "rb") as file:
            head = file.read(1024)
    except OSError as error:
        raise errors.InputError(f"{name}: cannot be read ({(error.strerror or str(error)).lower()})") from error
    if size == 0:
        raise errors.EmptyInput(name)
    if size > MAX_FILE_BYTES:
        raise errors.InputTooLarge(name, size, MAX_FILE_BYTES)
    if b"%PDF-" not in head and not head.startswith(
        (b"\x89PNG", b"\xff\xd8\xff", b"II*\x00", b"MM\x00*", b"BM", b"RIFF")
    ):
        raise errors.NotADocument(name)


def _open(path: Path, name: str) -> pymupdf.Document:
    with open(path, "rb") as file:
        is_pdf = b"%PDF-" in file.read(1024)
    try:
        if not is_pdf:
            Image.open(path).close()
        return pymupdf.open(path, filetype="pdf" if is_pdf else None)
    except Image.DecompressionBombError as error:
        raise errors.TooManyPixels(name) from error
    except (*_MUPDF_ERRORS, OSError) as error:
        raise (errors.DamagedInput(name) if is_pdf else errors.NotADocument(name)) from error


def _check_content(document: pymupdf.Document, page: pymupdf.Page) -> None:
    """Raises ValueError where a part of the page is missing from the file: MuPDF shows a blank page then."""
    if document.xref_object(page.xref).strip() == "null":
        raise ValueError("its object is missing from the file")
    kind, value = document.xref_get_key(page.xref, "Contents")
    streams = [int(number) for number in re.findall(r"(\d+) 0 R", value)] if kind in ("xref", "array") else []
    if len(streams) == 1 and not document.xref_is_stream(streams[0]):
        streams = [int(number) for number in re.findall(r"(\d+) 0 R", document.xref_object(streams[0]))] or streams
    if not all(document.xref_is_stream(stream) for stream in streams):
        raise ValueError("its content is missing from the file")


def _upright(document: pymupdf.Document, page: pymupdf.Page) -> tuple[pymupdf.Page, int, dict[str, Any]]:
    """The page in its displayed frame, without rotation left, turned so that most of its text runs left to right; by
    how many degrees clockwise that is; and its painted text."""
    shown = page.rotation
    page.set_rotation(0)  # the frame in which PyMuPDF reports text in any case
    raw = _painted_text(page)
    turn = _text_angle(raw)
    shown = shown if turn is None else -turn % 360
    if shown == 0:
        return page, 0, raw
    width, height = page.rect.width, page.rect.height
    if shown in (90, 270):
        width, height = height, width
    copy = pymupdf.open()  # a plain page with this one drawn on it: one frame for text, layout and pixels
    turned = copy.new_page(width=width, height=height)
    source, number = _without_fields(document, page)
    turned.show_pdf_page(turned.rect, source, number, rotate=-shown)
    turned.owner = copy  # a page does not keep its document alive
    return turned, shown, _painted_text(turned)


def _aside(page: pymupdf.Page, part: Aside, number: int, dpi: float) -> Sheet:
    """The page turned so that a part of it stands upright, and nothing but that part on it."""
    copy = pymupdf.open()
    upright = copy.new_page(width=page.rect.height, height=page.rect.width)
    place, clip = (
        pymupdf.Rect(box.x0, box.y0, box.x1, box.y1)
        for box in (turned(part.box, part.turn, page.rect.width, page.rect.height), part.box)
    )
    upright.show_pdf_page(place, *_without_fields(page.parent, page), clip=clip, rotate=-part.turn)
    pixels, dpi = _render(upright, dpi / 72, MAX_PIXELS)
    frame = Box(place.x0, place.y0, place.x1, place.y1)
    lines = lines_of(_painted_text(upright), frame, pixels, dpi, hidden=False)
    found, warnings = _layout(upright)
    record = Page(number, upright.rect.width, upright.rect.height, dpi, pixels, lines)
    copy.close()
    return Sheet(record, as_table(lines, found), 0.0, warnings)


def _painted_text(page: pymupdf.Page) -> dict[str, Any]:
    """A "rawdict" with the fonts' full names: each subset of one has a ToUnicode table of its own."""
    pymupdf.TOOLS.set_subset_fontnames(True)
    try:
        raw: dict[str, Any] = page.get_text("rawdict", flags=_TEXT_FLAGS)
    finally:
        pymupdf.TOOLS.set_subset_fontnames(False)
    return raw


def _without_line_numbers(page: pymupdf.Page, raw: dict[str, Any]) -> dict[str, Any]:
    """The page's text, the numbers beside its lines taken off the page itself: its layout is not analysed with them."""
    numbers = line_numbers(raw)
    if not numbers or _is_scan(page):
        return raw
    for box in numbers:
        core = pymupdf.Rect(box.x0, box.y0 + 0.4 * box.height, box.x1, box.y1 - 0.4 * box.height)
        page.add_redact_annot(core, fill=False, cross_out=False)
    page.apply_redactions(pymupdf.PDF_REDACT_IMAGE_NONE, pymupdf.PDF_REDACT_LINE_ART_NONE)
    return _painted_text(page)


def _without_fields(document: pymupdf.Document, page: pymupdf.Page) -> tuple[pymupdf.Document, int]:
    """A document and a number that give the page with the values of its form as plain content, fit for drawing."""
    if page.first_widget is None:
        return document, page.number
    copy = pymupdf.open()
    copy.insert_pdf(document, from_page=page.number, to_page=page.number)
    copy.bake()
    return copy, 0


def _text_angle(raw: dict[str, Any]) -> int | None:
    """Where most of the text runs to: 0 right, 90 down, 180 left, 270 up; None with too little text to tell."""
    turns = Counter[int]()
    for block in raw["blocks"]:
        for line in block.get("lines", ()):
            if line["wmode"]:
                continue  # Chinese or Japanese in columns stands upright as it is
            across, down = line["dir"]
            angle = round(math.degrees(math.atan2(down, across)) / 90) * 90 % 360
            turns[angle] += sum(not char["c"].isspace() for span in line["spans"] for char in span["chars"])
    if turns.total() < 20:
        return None
    angle, count = turns.most_common(1)[0]
    return angle if count >= 0.8 * turns.total() else None


def _render(page: pymupdf.Page, zoom: float, most: int) -> tuple[NDArray[np.uint8], float]:
    """Pixels uint8 [H, W, 3] and their dpi, where a point of the page is 1/72 inch. At most `most` pixels."""
    area = page.rect.width * page.rect.height
    if not 0 < area < math.inf:
        raise ValueError("the page has no area")
    zoom = min(zoom, math.sqrt(most / area), most / 2 / max(page.rect.width, page.rect.height))
    if zoom * min(page.rect.width, page.rect.height) < 1:
        raise ValueError("the page is too narrow for a pixel")
    pymupdf.TOOLS.set_aa_level(8)  # the layout analysis of the page before switched it off
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), colorspace=pymupdf.csRGB, alpha=False)
    rows = np.frombuffer(pixmap.samples_mv, np.uint8).reshape(pixmap.height, pixmap.stride)
    pixels = rows[:, : pixmap.width * 3].reshape(pixmap.height, pixmap.width, 3).copy()
    return pixels, zoom * 72


def _is_scan(page: pymupdf.Page) -> bool:
    """Whether one picture covers most of the page, so that hidden text on it is an OCR layer."""
    for image in page.get_image_info():
        if (pymupdf.Rect(image["bbox"]) & page.rect).get_area() >= 0.6 * page.rect.get_area():
            return True
    return False


def _links(page: pymupdf.Page) -> list[Link]:
    """Where the page leads out of the document, in the frame that it has without its rotation."""
    return [
        Link(_moved(each["from"], page.derotation_matrix), str(each["uri"]))
        for each in page.get_links()
        if each.get("uri")
    ]


def _ticks(page: pymupdf.Page) -> list[Tick]:
    """The check boxes and radio buttons of a form, in the same frame, which is the one that PyMuPDF gives them in."""
    kinds = (pymupdf.PDF_WIDGET_TYPE_CHECKBOX, pymupdf.PDF_WIDGET_TYPE_RADIOBUTTON)
    return [
        Tick(_moved(each.rect, pymupdf.Identity), each.field_value not in (None, "", False, "Off"))
        for each in page.widgets(kinds)
    ]


def _frame(page: pymupdf.Page, turn: int) -> pymupdf.Matrix:
    """From the page without rotation to the page turned by this many degrees."""
    page.set_rotation(turn)
    frame = page.rotation_matrix
    page.set_rotation(0)
    return frame


def _moved(box: Any, frame: pymupdf.Matrix) -> Box:
    corners = (box.x0, box.y0, box.x1, box.y1)
    rect = (pymupdf.Rect(corners) * frame).normalize()
    return Box(rect.x0, rect.y0, rect.x1, rect.y1)


def _layout(page: pymupdf.Page) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    try:
        page.get_layout()
    except Exception as error:  # a foreign model: whatever it raises, the page's lines still make regions
        return (), (f"layout analysis failed: {error!r}",)
    found = []
    for x0, y0, x1, y1, label in page.layout_information or ():
        if x0 < x1 and y0 < y1:
            found.append(Found(Box(float(x0), float(y0), float(x1), float(y1)), _KINDS.get(label, Kind.TEXT)))
    return tuple(found), ()


def _is_formula(each: Found, lines: Sequence[Line]) -> bool:
    """Whether what the analysis calls text or a picture is a formula, painted in pieces of which few look like one."""
    held = (line.text for line in lines if each.box.holds(line.box))
    return each.kind in (Kind.TEXT, Kind.PICTURE) and is_formula(" ".join(held))


def _of_formulas(lines: Sequence[Line], formulas: Sequence[Box]) -> list[Box]:
    """The boxes of lines that are formulas or reach into one."""
    return [
        line.box for line in lines if is_formula(line.text) or any(formula.overlaps(line.box) for formula in formulas)
    ]


def _image_sheet(page: pymupdf.Page, path: Path, number: int, dpi: float, most: int, started: float) -> Sheet:
    """An image file's page: its size in points follows from its own dpi where that is believable."""
    with Image.open(path) as image:
        if number > 1:
            image.seek(number - 1)
        width, height = image.size
        stated: Any = image.info.get("dpi", (0, 0))
    own = image_dpi(width, height, float(stated[0]))
    scale = page.rect.width * own / 72 / width  # MuPDF's points for one of ours
    pixels, rendered = _render(page, dpi / 72 / scale, most)
    record = Page(number, width * 72 / own, height * 72 / own, rendered * scale, pixels)
    return Sheet(record, (), time.perf_counter() - started)


def image_dpi(width: int, height: int, stated: float) -> float:
    """The dpi of an image of this many pixels: what it states, else what makes it a page of eleven inches.

    A small image is a piece of a screen or of a page at 72 dpi. Less than 100 is not believed: programs write 72 and 96
    unasked, into scans as well.
    """
    longer = max(width, height)
    if stated >= 100 and longer / stated <= 30:
        return stated
    return min(max(longer / 11, 72.0), 600.0)
