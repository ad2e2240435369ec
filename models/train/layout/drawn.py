"""Pages drawn on the spot, of kinds that papers and manuals are not: forms, receipts, slides, Chinese and Japanese.

They judge the detector and never train it, so that they tell what it makes of pages unlike its own. Every piece is set
by MuPDF's HTML engine in MuPDF's own fonts; its region is the ink that it leaves. As in training, every item of a list
is one.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pymupdf
from numpy.typing import NDArray

from gravityocr_models.train.layout.labels import DARK, Labelled, Rect
from gravityocr_models.train.layout.look import Shown

_WORDS = """account address annual applicant before business certain change city claim complete contract copy date day
delivery each employer form general household income law letter month name notice number office order other payment
period person please provide public receipt record report request service sign state tax telephone term time total
transfer under value written year""".split()
_GOODS = (
    "apples bread butter cheese coffee eggs flour juice lemons milk oats onions paper pasta rice salt soap tea".split()
)
_SHOPS = ("Corner Store", "HARBOUR MARKET", "Green & Sons", "CITY BOOKS")
_CHINESE = (
    "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "人人有资格享受本宣言所载的一切权利和自由，不分种族、肤色、性别、语言、宗教或其他见解。",
    "任何人不得使为奴隶或奴役；一切形式的奴隶制度和奴隶买卖，均应予以禁止。",
    "法律之前人人平等，并有权享受法律的平等保护，不受任何歧视。",
)
_JAPANESE = (
    "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "何人も、奴隷にされ、又は苦役に服することはない。奴隷制度及び奴隷売買は、いかなる形においても禁止する。",
    "すべての人は、法の下において平等であり、また、いかなる差別もなしに法の平等な保護を受ける権利を有する。",
)
_HEADS = ("权利与自由", "法律面前的平等", "总则", "教育和文化")


@dataclass(frozen=True)
class Drawn:
    """One page. shown: grey pixels and true regions, in its pixels. lines: boxes of its lines of text, in pixels."""

    kind: str
    shown: Shown
    lines: tuple[Rect, ...]


class _Sheet:
    """A page being drawn, in points; `y` is where the next piece stands."""

    def __init__(self, width: float, height: float, margin: float) -> None:
        self._document = pymupdf.open()
        self.page = self._document.new_page(width=width, height=height)
        self.left, self.right, self.y = margin, width - margin, margin
        self._labels: list[tuple[str, Rect]] = []

    def put(self, label: str, html: str, css: str = "", gap: float = 10.0) -> None:
        """Sets the piece between `left` and `right` at `y`, and goes on under it."""
        place = pymupdf.Rect(self.left, self.y, self.right, self.y + 2000)
        spare, _ = self.page.insert_htmlbox(place, html, css="* {margin: 0; padding: 0}" + css)
        bottom = place.y1 - spare
        self.mark(label, (self.left, self.y, self.right, bottom))
        self.y = bottom + gap

    def mark(self, label: str, box: Rect) -> None:
        """Says what stands in a box."""
        self._labels.append((label, box))

    def drawn(self, kind: str, dpi: float) -> Drawn:
        """The page as pixels."""
        zoom = dpi / 72
        pixmap = self.page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), colorspace=pymupdf.csGRAY, alpha=False)
        grey = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)[:, : pixmap.width].copy()
        regions = [Labelled(label, _ink_box(grey, _times(box, zoom))) for label, box in self._labels]
        blocks = self.page.get_text("dict")["blocks"]
        lines = [line for block in blocks for line in block.get("lines", ()) if _text_of(line)]
        return Drawn(kind, Shown(grey, tuple(regions)), tuple(_times(line["bbox"], zoom) for line in lines))


def drawn_pages(kind: str, count: int, dpi: float) -> Iterator[Drawn]:
    """So many pages of a kind of KINDS, always the same."""
    for number in range(count):
        yield KINDS[kind](random.Random(f"{kind} {number}")).drawn(kind, dpi)


def _form(rng: random.Random) -> _Sheet:
    sheet = _Sheet(595, 842, 50)
    sheet.put("title", _words(rng, 3).title(), "* {font-size: 18px; font-weight: bold; font-family: sans-serif}", 16)
    sheet.put("text", _prose(rng, 25), _SANS)
    for number in range(1, rng.randint(3, 4)):
        sheet.put("heading", f"{number}. {_words(rng, 2).title()}", _SANS + "* {font-weight: bold; font-size: 12px}", 6)
        sheet.put("table", _grid(rng, rng.randint(3, 6)), _SANS + _RULED, 14)
        for _ in range(rng.randint(3, 5)):
            _ticked(sheet, _words(rng, rng.randint(2, 6)), rng.random() < 0.4)
        sheet.y += 10
    sheet.put("text", _prose(rng, 40), _SANS)
    sheet.y = 800
    sheet.put("footer", f"Form {rng.randint(10, 99)}-B, page 1 of {rng.randint(2, 9)}", "* {font-size: 8px}")
    return sheet


def _ticked(sheet: _Sheet, text: str, on: bool) -> None:
    """A box to tick and its label, an item of a list."""
    box = pymupdf.Rect(sheet.left + 2, sheet.y + 1, sheet.left + 11, sheet.y + 10)
    sheet.page.draw_rect(box, width=0.8)
    if on:
        sheet.page.draw_line(box.tl, box.br, width=0.8)
        sheet.page.draw_line(box.tr, box.bl, width=0.8)
    sheet.page.insert_text((sheet.left + 18, sheet.y + 9), text, fontsize=9)
    sheet.mark("list", (sheet.left, sheet.y, sheet.right, sheet.y + 12))
    sheet.y += 15


def _receipt(rng: random.Random) -> _Sheet:
    goods = rng.randint(4, 14)
    sheet = _Sheet(226, 230 + 14 * goods, 12)
    mono, centred = "* {font-family: monospace; font-size: 8px}", "* {text-align: center}"
    sheet.put("title", rng.choice(_SHOPS), centred + "* {font-size: 14px; font-weight: bold}", 4)
    sheet.put("text", f"{rng.randint(1, 99)} Harbour Street<br>Tel. 555 0{rng.randint(100, 999)}", mono + centred, 10)
    prices = [rng.randint(40, 2500) for _ in range(goods)]
    rows = [(f"{rng.randint(1, 4)} {rng.choice(_GOODS).upper()}", f"{price / 100:.2f}") for price in prices]
    rows.append(("TOTAL", f"{sum(prices) / 100:.2f}"))
    cells = "".join(f'<tr><td>{name}</td><td style="text-align: right">{price}</td></tr>' for name, price in rows)
    sheet.put("table", f'<table style="width: 100%">{cells}</table>', mono, 12)
    sheet.put(
        "text", f"CARD **** {rng.randint(1000, 9999)}<br>2026-0{rng.randint(1, 9)}-14 12:3{rng.randint(0, 9)}", mono
    )
    sheet.put("text", "Thank you for your visit!<br>Goods can be returned within 14 days.", mono + centred)
    return sheet


def _slide(rng: random.Random) -> _Sheet:
    sheet = _Sheet(720, 405, 40)
    dark = rng.random() < 0.5
    if dark:
        sheet.page.draw_rect((0, 0, 720, 70), color=None, fill=(0.12, 0.2, 0.45))
    sheet.y = 22
    colour = "white" if dark else "#203080"
    sheet.put("title", _words(rng, 3).title(), f"* {{font-size: 26px; color: {colour}; font-family: sans-serif}}")
    sheet.y, sheet.right = 100, 400
    for _ in range(rng.randint(3, 5)):
        item = f"<ul><li>{_words(rng, rng.randint(3, 6)).capitalize()}</li></ul>"
        sheet.put("list", item, "* {font-size: 17px; font-family: sans-serif} ul {margin: 0; padding-left: 20px}", 4)
    _chart(sheet, rng)
    sheet.left, sheet.right, sheet.y = 430, 680, 315
    sheet.put("caption", f"Figure {rng.randint(1, 9)}: {_words(rng, 4)}", "* {font-size: 12px}")
    sheet.left, sheet.y = 640, 380
    sheet.put("footer", f"{rng.randint(2, 40)} / 41", "* {font-size: 9px}")
    return sheet


def _chart(sheet: _Sheet, rng: random.Random) -> None:
    """Bars over a line, a picture."""
    bars = rng.randint(4, 7)
    for bar in range(bars):
        x, high = 440 + bar * 230 / bars, rng.uniform(30, 180)
        shade = rng.uniform(0.2, 0.6)
        sheet.page.draw_rect((x, 300 - high, x + 150 / bars, 300), color=None, fill=(shade, shade, 0.7))
    sheet.page.draw_line((435, 300), (675, 300), width=1)
    sheet.mark("picture", (433, 110, 677, 302))


def _cjk(rng: random.Random) -> _Sheet:
    sheet = _Sheet(595, 842, 55)
    sentences = rng.choice((_CHINESE, _JAPANESE))
    sheet.y = 30
    sheet.put("header", rng.choice(_HEADS), "* {font-size: 8px}", 20)
    sheet.put("title", rng.choice(_HEADS), "* {font-size: 20px; text-align: center}", 16)
    top, columns = sheet.y, rng.choice((1, 2))
    for column in range(columns):
        sheet.y = top
        if columns == 2:
            sheet.left, sheet.right = 55 + 252 * column, 55 + 252 * column + 232
        for number in range(1, 3):
            sheet.put("heading", f"{number} {rng.choice(_HEADS)}", "* {font-size: 13px}", 6)
            for _ in range(2):
                sheet.put("text", "".join(rng.choices(sentences, k=rng.randint(2, 4))), "* {font-size: 10.5px}", 9)
    rows = [[rng.choice(_HEADS)[:3], str(rng.randint(1, 999)), str(rng.randint(1, 999))] for _ in range(4)]
    sheet.put("caption", f"表 {rng.randint(1, 9)}：{rng.choice(_HEADS)}", "* {font-size: 9px; text-align: center}", 4)
    sheet.put("table", _table(rows), _RULED + "* {font-size: 9.5px}")
    sheet.left, sheet.right, sheet.y = 290, 320, 800
    sheet.put("footer", str(rng.randint(2, 300)), "* {font-size: 9px}")
    return sheet


KINDS: dict[str, Callable[[random.Random], _Sheet]] = {
    "form": _form,
    "receipt": _receipt,
    "slide": _slide,
    "cjk": _cjk,
}
_SANS = "* {font-family: sans-serif; font-size: 9.5px}"
_RULED = "table {width: 100%; border-collapse: collapse} td {border: 1px solid black; padding: 4px}"


def _grid(rng: random.Random, rows: int) -> str:
    """A table of questions with room for answers, some of them given."""
    answers = [_words(rng, 2) if rng.random() < 0.5 else "&nbsp;" for _ in range(2 * rows)]
    labels = [_words(rng, rng.randint(1, 2)).capitalize() for _ in answers]
    return _table([[labels[i], answers[i], labels[i + 1], answers[i + 1]] for i in range(0, 2 * rows, 2)])


def _table(rows: list[list[str]]) -> str:
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _words(rng: random.Random, count: int) -> str:
    return " ".join(rng.choices(_WORDS, k=count))


def _prose(rng: random.Random, count: int) -> str:
    return f"{_words(rng, count).capitalize()}."


def _text_of(line: dict[str, list[dict[str, str]]]) -> str:
    return "".join(span["text"] for span in line["spans"]).strip()


def _times(box: Rect, factor: float) -> Rect:
    x0, y0, x1, y1 = (edge * factor for edge in box)
    return x0, y0, x1, y1


def _ink_box(grey: NDArray[np.uint8], box: Rect) -> Rect:
    """The part of a box that its ink fills: what differs from its own ground, be that white or dark."""
    x0, y0, x1, y1 = (max(0, round(edge)) for edge in box)
    part = grey[y0:y1, x0:x1]
    rows, columns = np.nonzero(np.abs(part.astype(np.int16) - int(np.bincount(part.ravel()).argmax())) > 255 - DARK)
    return (
        float(x0 + columns.min()),
        float(y0 + rows.min()),
        float(x0 + columns.max() + 1),
        float(y0 + rows.max() + 1),
    )
