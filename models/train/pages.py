"""Pages as pixels and words: the text layer of a born-digital page, each glyph with its outline's box.

Words carry the letters of the answer and, for each, the painted glyph that it spells. Prose has one glyph a letter; in
pages that we typeset ourselves (sheets.py) a word may also be a formula, whose letters are LaTeX.
"""

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pymupdf
from numpy.typing import NDArray

from gravityocr_models.train.sample import ALPHABET, Grey

Box = tuple[float, ...]
Boxes = NDArray[np.float64]
Painted = tuple[str, Box]

PIXELS_PER_POINT = 2.0  # 144 dpi
MAX_PAGE_PIXELS = 6_000_000
TEXT_FLAGS = pymupdf.TEXT_PRESERVE_LIGATURES | pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_ACCURATE_BBOXES

_MATH_FONT = re.compile(
    r"CMMI|CMSY|CMEX|CMBSY|MSBM|MSAM|EUSM|EUFM|EUF|stmary|wasy|rsfs|txsy|txmi|txex|pxsy|pxmi|rtxmi|math|symbol|dingbat|dsrom"
    r"|CSC|SFCC|caps|grmn|^F\d+$|^Fo\d|bbm|lasy|MnSymbol|esint|type3|^$",
    re.IGNORECASE,
)
_LIGATURES = "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06\u00ad\u2010\u2011\u00b5"
_LETTERS = dict(zip(_LIGATURES, "ff fi fl ffi ffl st st - - - μ".split(), strict=True))
_COMBINING = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
_ACCENTS = dict(zip("`´ˆ˜¯˘˙¨˚˝ˇ¸", _COMBINING, strict=True))


@dataclass(frozen=True)
class Word:
    """What stands between two blanks of a line.

    letters: characters of the answer. glyphs: for each letter the painted character and its box in points that it
    spells, or None; letters that spell one glyph together repeat it. sound: whether it can be trusted. rules: boxes
    in which it has ink besides, such as fraction bars and the overhang of italics.
    """

    letters: tuple[str, ...]
    glyphs: tuple[Painted | None, ...]
    sound: bool
    rules: tuple[Box, ...] = ()

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        """The box of each glyph, once."""
        return tuple(box for _, box in dict.fromkeys(glyph for glyph in self.glyphs if glyph))


@dataclass(frozen=True)
class PageLine:
    """A painted line; block: number of its paragraph on the page."""

    words: tuple[Word, ...]
    block: int

    @property
    def sound(self) -> bool:
        return all(word.sound for word in self.words)


@dataclass(frozen=True)
class TextPage:
    """Grey pixels [H, W] of a page, pixels to a point, and the lines of its text layer."""

    pixels: Grey
    zoom: float
    lines: tuple[PageLine, ...]
    source: str

    @cached_property
    def boxes(self) -> Boxes:
        """All glyphs, [n, 4] in pixels."""
        return np.array([box for line in self.lines for word in line.words for box in word.boxes]) * self.zoom


def grey_pixels(page: pymupdf.Page, zoom: float) -> Grey:
    """The page at `zoom` pixels to a point, [H, W]."""
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), colorspace=pymupdf.csGRAY)
    return np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)[:, : pixmap.width]


def read_page(page: pymupdf.Page, scale: float, source: str) -> TextPage:
    """Pixels of a page at `scale` times 144 dpi and the lines of its text layer; none for turned or huge pages."""
    zoom = PIXELS_PER_POINT * scale
    if page.rotation or page.rect.width * page.rect.height * zoom * zoom > MAX_PAGE_PIXELS:
        return TextPage(np.full((1, 1), 255, np.uint8), zoom, (), source)
    lines: list[PageLine] = []
    for number, block in enumerate(page.get_text("rawdict", flags=TEXT_FLAGS)["blocks"]):
        rows: list[list[dict[str, Any]]] = []
        for line in block.get("lines", ()):
            if line["dir"] == (1.0, 0.0):
                spans = [span for span in line["spans"] if span["chars"]]
                if rows and spans and _continues(rows[-1][-1], spans[0]):
                    rows[-1].extend(spans)
                elif spans:
                    rows.append(spans)
        lines.extend(PageLine(words, number) for row in rows if (words := _words(row)))
    return TextPage(grey_pixels(page, zoom), zoom, tuple(lines), source)


def _continues(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether the right span goes on in the same painted line: MuPDF breaks lines at wide gaps."""
    end, start, size = left["chars"][-1], right["chars"][0], left["size"]
    level = abs(end["origin"][1] - start["origin"][1]) < 0.15 * size
    return bool(level and 0 <= start["bbox"][0] - end["bbox"][2] < 2 * size)


def _words(spans: list[dict[str, Any]]) -> tuple[Word, ...]:
    """Words of one painted line."""
    main = max(spans, key=lambda span: len(span["chars"]))
    baseline, size = main["chars"][0]["origin"][1], main["size"]
    words: list[Word] = []
    letters: list[str] = []
    boxes: list[Box] = []
    sound = True

    def close() -> None:
        nonlocal letters, boxes, sound
        if letters:
            words.append(read_word(letters, boxes, sound))
        letters, boxes, sound = [], [], True

    for span in spans:
        trusted = not _MATH_FONT.search(span["font"]) and span["size"] > 4
        for char in span["chars"]:
            if char["c"].isspace() or (letters and char["bbox"][0] - boxes[-1][2] > 0.2 * size):
                close()  # MuPDF makes no blank of the gap after some glyphs, such as ligatures
            if char["c"].isspace():
                continue
            letters.append(char["c"])
            boxes.append(char["bbox"])
            sound = sound and trusted and abs(char["origin"][1] - baseline) < 0.08 * size
    close()
    spelled_out = len(words) > 3 and sum(len(word.letters) == 1 for word in words) > 0.6 * len(words)
    return tuple(replace(word, sound=False) for word in words) if spelled_out else tuple(words)


def read_word(letters: list[str], boxes: list[Box], sound: bool) -> Word:
    """Ligatures resolved (their box shared out) and accents set on their letters."""
    out: list[str] = []
    places: list[Box] = []
    for letter, box in zip(letters, _shared(boxes), strict=True):
        if (
            out
            and (letter in _ACCENTS or out[-1] in _ACCENTS)
            and (joined := _accented(out[-1], places[-1], letter, box))
        ):
            out[-1] = joined
            places[-1] = (*map(min, places[-1][:2], box[:2]), *map(max, places[-1][2:], box[2:]))
        elif letter in _LETTERS:
            parts = _LETTERS[letter]
            step = (box[2] - box[0]) / len(parts)
            out.extend(parts)
            places.extend((box[0] + i * step, box[1], box[0] + (i + 1) * step, box[3]) for i in range(len(parts)))
        else:
            out.append(letter)
            places.append(box)
    text = unicodedata.normalize("NFC", "".join(out))
    sound = sound and len(text) == len(out) <= 40 and ALPHABET.issuperset(text)
    spelled = tuple(text) if sound else tuple(out)
    return Word(spelled, tuple(zip(spelled, places, strict=True)), sound)


def _shared(boxes: list[Box]) -> list[Box]:
    """The boxes; where a font says which letters its ligature spells, the first has all the width: it is shared out."""
    out: list[Box] = []
    ends = [n for n in range(1, len(boxes)) if boxes[n][2] - boxes[n][0] > 0.01]
    for first, end in pairwise([0, *ends, len(boxes)]):
        x0, y0, x1, y1 = boxes[first]
        step = (x1 - x0) / (end - first)
        out += [(x0 + n * step, y0, x0 + (n + 1) * step, y1) for n in range(end - first)]
    return out


def _accented(first: str, first_box: Box, second: str, box: Box) -> str | None:
    """The letter that a letter and an accent on top of it make, as TeX paints ö; None where they stand apart."""
    overlap = min(first_box[2], box[2]) - max(first_box[0], box[0])
    if overlap < 0.5 * min(first_box[2] - first_box[0], box[2] - box[0]):
        return None
    letter, accent = (second, first) if first in _ACCENTS else (first, second)
    joined = unicodedata.normalize("NFC", {"ı": "i", "ȷ": "j"}.get(letter, letter) + _ACCENTS[accent])
    return joined if len(joined) == 1 else None
