"""What formulas are painted with: their glyphs, each with its ink's exact box, and thin rules. Asks MuPDF for both.

PyMuPDF's text pages move glyphs without a width, accents above all, to the sign before. Its trace of the painting
doesn't, but it knows only lines' heights; a glyph's box comes from its outline in the embedded font.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pymupdf

from gravityocr_models.mathsigns import sign_of
from gravityocr_models.signs import UNSOUND, Box, Sign

_LEVEL = 0.999  # cosine of a line's angle
_INVISIBLE = 3  # a trace's type of text that leaves no mark
_NAME = 20  # letters of a font's name that are compared: a trace keeps 24 behind the subset's prefix
_MOST_BAR, _LEAST_BAR = 2.0, 2.5  # points: the height of a rule at most, its width at least
_MARGIN = 3.0  # points around a formula's box in which its signs are looked for
_AS_WIDE = 0.02  # of the size: how far a glyph's width may be off where it is the font's
mupdf = pymupdf.mupdf


def formula_paint(page: pymupdf.Page, boxes: Sequence[Box]) -> tuple[tuple[Sign, ...], tuple[Box, ...]]:
    """The signs and level rules in the boxes, in points of the page as displayed; nothing where MuPDF fails."""
    if not boxes:
        return (), ()
    fonts, places = _Fonts(page), _Places(boxes)
    try:
        signs = tuple(sign for span in page.get_texttrace() for sign in _signs(span, places, fonts))
        return signs, tuple(bar for bar in _bars(page) if places.hold(bar.x0, bar.y0))
    except (RuntimeError, mupdf.FzErrorBase, ValueError, ArithmeticError):  # a page's text can do without
        return (), ()


def level_rules(page: pymupdf.Page) -> list[Box]:
    """All thin level rules of a page, in points as displayed; none where MuPDF fails."""
    try:
        return list(_bars(page))
    except (RuntimeError, mupdf.FzErrorBase, ValueError):
        return []


def _signs(span: dict[str, Any], places: "_Places", fonts: "_Fonts") -> Iterator[Sign]:
    if span["type"] == _INVISIBLE or span["dir"][0] < _LEVEL or span["size"] <= 0:
        return
    for number, text, (x, y), (x0, y0, x1, y1) in _glyphs(span["chars"]):
        if text.isspace() or not places.hold(x, y):
            continue
        glyph = fonts.glyph(span["font"], number, (x1 - x0) / span["size"])
        box = glyph.box(span["size"], x, y) if glyph else None
        yield sign_of(
            text, glyph.name if glyph else "", span["font"], span["flags"], span["size"],
            box or Box(min(x0, x1), y0, max(x0, x1), y1), (x, y),
        )  # fmt: skip


def _glyphs(chars: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, str, Any, Any]]:
    """Number, text, origin and box of each glyph; one that stands for several characters has them all."""
    glyph: tuple[int, str, Any, Any] | None = None
    for code, number, origin, box in chars:
        text = chr(code) if 0 < code < 0x110000 else UNSOUND
        if number < 0 and glyph is not None:
            glyph = (glyph[0], glyph[1] + text * text.isalnum(), *glyph[2:])
            continue
        if glyph is not None:
            yield glyph
        glyph = (number, text, origin, box)
    if glyph is not None:
        yield glyph


def _bars(page: pymupdf.Page) -> Iterator[Box]:
    """Thin level rules: of fractions, roots and overlines."""
    for kind, (x0, y0, x1, y1), *_ in page.get_bboxlog():
        if kind in ("fill-path", "stroke-path") and 0 <= y1 - y0 <= _MOST_BAR and x1 - x0 >= _LEAST_BAR:
            yield Box(x0, y0, x1, y1)


class _Places:
    """Boxes with their margins, by the rows of points that they cover."""

    def __init__(self, boxes: Sequence[Box]) -> None:
        self._rows: dict[int, list[Box]] = {}
        for box in boxes:
            for row in range(int(box.y0 - _MARGIN), int(box.y1 + _MARGIN) + 1):
                self._rows.setdefault(row, []).append(box)

    def hold(self, x: float, y: float) -> bool:
        row = self._rows.get(int(y))
        return row is not None and any(box.x0 - _MARGIN <= x <= box.x1 + _MARGIN for box in row)


@dataclass(frozen=True)
class _Glyph:
    """A glyph of an embedded font. ink: left, top, right, bottom at size 1, y down; None where it has none."""

    name: str
    ink: tuple[float, float, float, float] | None

    def box(self, size: float, x: float, y: float) -> Box | None:
        """Of its ink, painted at a size with its origin at a point."""
        if self.ink is None:
            return None
        x0, y0, x1, y1 = self.ink
        return Box(x + size * x0, y + size * y0, x + size * x1, y + size * y1)


def _glyph(font: pymupdf.Font, number: int) -> _Glyph:
    outline = mupdf.fz_outline_glyph(font.this, number, mupdf.FzMatrix(1, 0, 0, -1, 0, 0))
    ink = mupdf.fz_bound_path(outline, mupdf.FzStrokeState(None), mupdf.FzMatrix())
    inked = ink.x0 <= ink.x1 and ink.y0 <= ink.y1
    name = str(mupdf.fz_get_glyph_name2(font.this, number))
    return _Glyph(name, (ink.x0, ink.y0, ink.x1, ink.y1) if inked else None)


def _bare(name: str) -> str:
    return re.sub(r"[\s-]", "", name.rpartition("+")[2])[:_NAME]


class _Fonts:
    """The embedded fonts of a page, by the part of their name that a trace tells. Several may share one."""

    def __init__(self, page: pymupdf.Page) -> None:
        self._page, self._fonts = page, dict[str, list[pymupdf.Font]]()
        self._glyphs: dict[tuple[str, int, float], _Glyph | None] = {}
        self._numbers: dict[str, list[int]] = {}
        for number, _, _, name, *_ in page.get_fonts(full=True):
            self._numbers.setdefault(_bare(name), []).append(number)

    def glyph(self, name: str, number: int, width: float) -> _Glyph | None:
        """The glyph of this number, whose width in sizes tells the fonts of one name apart."""
        key = (name, number, round(width, 3))
        if key not in self._glyphs:
            self._glyphs[key] = self._found(_bare(name), number, width)
        return self._glyphs[key]

    def _found(self, name: str, number: int, width: float) -> _Glyph | None:
        if name not in self._fonts:
            self._fonts[name] = [font for each in self._numbers.get(name, ()) if (font := self._load(each))]
        for font in self._fonts[name]:
            if number < font.glyph_count and abs(mupdf.fz_advance_glyph(font.this, number, 0) - width) < _AS_WIDE:
                return _glyph(font, number)
        return None

    def _load(self, number: int) -> pymupdf.Font | None:
        try:
            return pymupdf.Font(fontbuffer=self._page.parent.extract_font(number)[-1])
        except Exception:  # a font that FreeType cannot load, or none: MuPDF raises whatever it likes
            return None
