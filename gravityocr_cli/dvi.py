"""What TeX has set, from its own output (DVI): signs by name, each with its box."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from gravityocr_models.signs import Box

SECONDS = 30  # that a program of TeX's may take
BLOT = "sign "  # begins what is said to `read_dvi` about the rule that comes next


@dataclass(frozen=True)
class Sign:
    """What TeX has set: a glyph or several that are one sign, or a rule. box: in points, y downwards."""

    name: str
    box: Box


Metrics = Mapping[int, tuple[float, float, float]]
"""Width, height and depth of each character of a font, in shares of the font's size."""
RULE = "rule"
_BP = 72 / 72.27 / 2**16  # points in TeX's unit


@cache
def metrics_of(font: str) -> Metrics:
    """Of a font by TeX's name. Raises OSError where it is not there."""
    found = subprocess.run(["kpsewhich", f"{font}.tfm"], capture_output=True, text=True, timeout=SECONDS, check=False)
    return read_tfm(Path(found.stdout.strip()).read_bytes())


def read_tfm(data: bytes) -> Metrics:
    """The metrics in a file of TeX's format TFM (D. E. Knuth, TFtoPL)."""
    head, first, last, widths, heights = (int(word) for word in np.frombuffer(data, ">u2", 6)[1:])
    count = last - first + 1
    places = np.frombuffer(data, np.uint8).reshape(-1, 4)[6 + head :][:count].tolist()
    sizes = (np.frombuffer(data, ">i4")[6 + head + count :] / 2**20).tolist()
    return {
        first + number: (sizes[wide], sizes[widths + (high >> 4)], sizes[widths + heights + (high & 15)])
        for number, (wide, high, *_) in enumerate(places)
    }


def read_dvi(data: bytes, metrics: Callable[[str], Metrics]) -> dict[int, tuple[Sign, ...]]:
    """Glyphs and rules with ink of each page, by TeX's first page number (DVI as in D. E. Knuth, DVItype)."""
    fonts: dict[int, tuple[str, int, Metrics]] = {}
    pages: dict[int, tuple[Sign, ...]] = {}
    page: list[Sign] = []
    places: list[tuple[int, int, dict[int, int]]] = []
    at = x = y = font = number = 0
    rule = RULE
    steps: dict[int, int] = {}  # the last step of each kind, by the code of its repetition

    def take(count: int, signed: bool = True) -> int:
        nonlocal at
        at += count
        return int.from_bytes(data[at - count : at], "big", signed=signed)

    def skip(count: int) -> None:
        nonlocal at
        at += count

    while (code := take(1, signed=False)) != 248:
        if code < 132 or 133 <= code <= 136:
            glyph = code if code < 128 else take((code - 128) % 5 + 1, signed=False)
            name, size, sizes = fonts[font]
            wide, high, deep = (round(size * share) for share in sizes[glyph])
            page.append(Sign(_name(name, glyph), _box(x, y - high, x + wide, y + deep)))
            x += wide if code < 132 else 0
        elif code in (132, 137):
            high, wide = take(4), take(4)
            if high > 0 and wide > 0:
                page.append(Sign(rule, _box(x, y - high, x + wide, y)))
                rule = RULE
            x += wide if code == 132 else 0
        elif code == 139:
            number, page, places, steps, x, y = take(4), [], [], dict.fromkeys((147, 152, 161, 166), 0), 0, 0
            skip(40)
        elif code == 140:
            pages[number] = tuple(page)
        elif code == 141:
            places.append((x, y, dict(steps)))
        elif code == 142:
            x, y, steps = places.pop()
        elif 143 <= code <= 146:
            x += take(code - 142)
        elif 157 <= code <= 160:
            y += take(code - 156)
        elif 147 <= code <= 170:
            kind = max(kind for kind in steps if kind <= code)
            if code > kind:
                steps[kind] = take(code - kind)
            x, y = (x + steps[kind], y) if kind < 157 else (x, y + steps[kind])
        elif 171 <= code <= 238:
            font = code - 171 if code < 235 else take(code - 234, signed=False)
        elif 239 <= code <= 242:
            length = take(code - 238, signed=False)
            skip(length)
            said = data[at - length : at].decode("utf-8", "replace")
            rule = said.removeprefix(BLOT) if said.startswith(BLOT) else RULE
        elif 243 <= code <= 246:
            which_font = take(code - 242, signed=False)
            skip(4)
            size = take(4)
            skip(4)
            length = take(1, signed=False) + take(1, signed=False)
            skip(length)
            name = data[at - length : at].decode("ascii")
            fonts[which_font] = re.sub(r"\d+\Z", "", name), size, metrics(name)
        elif code == 247:
            skip(13)
            skip(take(1, signed=False))
    return pages


def _box(x0: int, y0: int, x1: int, y1: int) -> Box:
    return Box(min(x0, x1) * _BP, min(y0, y1) * _BP, max(x0, x1) * _BP, max(y0, y1) * _BP)


NEAR = 0.5  # points between pieces that touch
_EXTENSIBLE = (  # cmex, by code: the same sign at many sizes, and the pieces of tall ones
    r"()[]⌊⌋⌈⌉{}⟨⟩|‖/\()()[]⌊⌋⌈⌉{}⟨⟩/\()[]⌊⌋⌈⌉{}⟨⟩/\/\()[][][]{}{}{}{|()()⟨⟩"
    r"⊔⊔∮∮⊙⊙⊕⊕⊗⊗∑∏∫⋃⋂⊎⋀⋁∑∏∫⋃⋂⊎⋀⋁∐∐^^^~~~[]⌊⌋⌈⌉{}√√√√√√√‖↑↓⏞⏞⏞⏞⇑⇓"
)
_SYMBOLS = dict(enumerate("⌊⌋⌈⌉{}⟨⟩|‖", 98)) | {0: "-", 3: "*", 48: "'", 110: "\\", 112: "√"}  # cmsy
_ITALICS = {58: ".", 59: ",", 60: "<", 61: "/", 62: ">"} | {  # cmmi; the variants of Greek letters count as one
    34: "cmmi 15", 35: "cmmi 18", 36: "cmmi 25", 37: "cmmi 26", 38: "cmmi 27", 39: "cmmi 30"
}  # fmt: skip
_BOLD = {"cmmib": "cmmi", "cmbsy": "cmsy"}
_TEXT = re.compile(r"cm(?:r|bx|bxti|b|ti|ss|ssbx|ssi|ssdc|tt|sl|bxsl|sltt|itt|u|csc)|eufm|eufb|rsfs")
_NOT_ASCII = {34, 60, 62, 92, 123, 124, 125}  # in TeX's text fonts


def _name(font: str, code: int) -> str:
    """What a glyph is, in whichever size and alphabet. font: TeX's name without the size."""
    family = "cmr" if _TEXT.fullmatch(font) else _BOLD.get(font, font)
    if family == "cmex":
        return _EXTENSIBLE[code]
    letter = chr(code) if chr(code).isalpha() and code < 128 else ""
    if family == "cmsy":
        return _SYMBOLS.get(code) or letter or f"cmsy {code}"
    if family == "cmmi" and code > 10:
        return _ITALICS.get(code) or letter or f"cmmi {code}"
    if family == "msbm" and letter.isupper():
        return letter
    if family == "cmr" and 33 <= code < 127 and code not in _NOT_ASCII:
        return chr(code)
    return f"{'cmr' if family == 'cmmi' else family} {code}"  # capital Greek letters have the same places in both


def whole(glyphs: Sequence[Sign]) -> tuple[Sign, ...]:
    """Glyphs that make up one sign as one, the others as they are."""
    signs: list[Sign] = []
    for glyph in glyphs:
        last = signs[-1] if signs else glyph
        if signs and last.box.width == 0:  # the stroke of \ne, the bar of \mapsto
            signs[-1] = Sign(f"{last.name} {glyph.name}", _around(last.box, glyph.box))
        elif signs and _goes_on(last, glyph):
            signs[-1] = Sign(last.name, _around(last.box, glyph.box))
        else:
            signs.append(glyph)
    return tuple(signs)


def _goes_on(last: Sign, glyph: Sign) -> bool:
    """Whether this is the next piece of a tall bracket or root, or the rule or piece right beside a root or brace."""
    if last.name in "√⏞" and glyph.name in (RULE, "⏞"):
        return abs(last.box.x1 - glyph.box.x0) < NEAR
    pieces = {last.name, glyph.name} <= set(_EXTENSIBLE) and abs(last.box.y1 - glyph.box.y0) < NEAR
    return pieces and abs(last.box.x0 - glyph.box.x0) + abs(last.box.x1 - glyph.box.x1) < NEAR


def _around(a: Box, b: Box) -> Box:
    return Box(min(a.x0, b.x0), min(a.y0, b.y0), max(a.x1, b.x1), max(a.y1, b.y1))
