"""Mathematics within lines of text: the stretches of a painted line that are set in fonts of maths, as `$...$`.

Works on the plain dictionaries that PyMuPDF's `get_text("rawdict")` returns, before they become lines: a stretch
becomes one character, whose text is LaTeX. Only TeX's fonts tell what is maths; a word processor sets Greek letters and
bullets in such fonts too.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf
from typing import Any

from gravityocr_cli.inlinemath import is_math
from gravityocr_cli.mathlines import SMALL, is_maths, place_of, whole_lines
from gravityocr_models.latex import FUNCTIONS
from gravityocr_models.mathlayout import inline_latex
from gravityocr_models.signs import UNSOUND, Box, Sign, hull_of

_ACCENTS = frozenset("˜ˆ¯˙¨ˇ\u0303\u0302\u0304\u0307\u0308\u030c\u20d7")
_BRIDGES = frozenset("()[]{}+=<>/|!:;,.0123456789−±×·′∞∈∆") | _ACCENTS
_OPERATORS = frozenset("+=<>−±×·∈/:,;")
_SLANT = 0.27  # of the size: less white before a bracket is the letter's slant
_WHITE = 0.15  # of the size: as much beside maths is a blank, which MuPDF sees between letters alone
_MOST_SCRIPTS = 12  # glyphs of a line that is nothing but scripts
_LENT = 4  # letters in a row that are a word, whatever they are set in
_OPERATOR = 7  # letters of an upright name that stands right before maths
_THIN = 0.25  # of the size: less white between two signs of maths is no blank
_LOWERED = 0.15, 0.7  # of the size: off the baseline what is as large as the line is its scripts
_GROWN = frozenset("√∑∏∫()[]{}|‖⟨⟩")
_MARKS = frozenset("•∙·∗*†‡§¶‖∥|⋆◦∘⟨⟩\u2329\u232a\u3008\u3009{}()[]")  # that fonts of maths lend to text
_OPENING, _CLOSING = "([", ")]"
_TURNED = dict(zip(_OPENING + _CLOSING, _CLOSING + _OPENING, strict=True))
_ENDS = ".,;:"


@dataclass(frozen=True)
class _Glyph:
    """A painted character of a line.

    small: a script's. spaced: whether a character for a blank precedes. blank: whether there is white of a blank. at:
    numbers of its span and of the character in it.
    """

    text: str
    math: bool
    bold: bool
    small: bool
    spaced: bool
    blank: bool
    box: tuple[float, float, float, float]
    origin: tuple[float, float]
    at: tuple[int, int]

    @property
    def is_operator(self) -> bool:
        return self.text in _OPERATORS or (self.math and self.text == ".") or unicodedata.category(self.text[0]) == "Sm"


def maths_in_lines(raw: dict[str, Any]) -> list[Box]:
    """The boxes of lines with a span in a font of maths."""
    blocks = _with_scripts(whole_lines([block.get("lines") for block in raw["blocks"]], ()))
    return [
        Box(*line["bbox"]) for lines in blocks for line in lines or () if any(is_maths(span) for span in line["spans"])
    ]


def with_maths(raw: dict[str, Any], signs: Sequence[Sign], bars: Sequence[Box], but: Sequence[Box]) -> dict[str, Any]:
    """The page with maths in its lines as LaTeX between dollars, outside the boxes `but`."""
    found = _with_scripts(whole_lines([block.get("lines") for block in raw["blocks"]], signs))
    rows = _Rows(signs, [line for lines in found for line in lines or ()])

    def of_line(line: dict[str, Any]) -> dict[str, Any]:
        elsewhere = any(box.holds(Box(*line["bbox"])) for box in but)
        return line if elsewhere or line["dir"][0] < 0.99 else _with_maths(line, rows, bars)

    blocks = [
        {**block, "lines": [of_line(line) for line in lines]} if lines is not None else block
        for block, lines in zip(raw["blocks"], found, strict=True)
    ]
    return {**raw, "blocks": blocks}


def _with_scripts(blocks: Sequence[list[dict[str, Any]] | None]) -> list[list[dict[str, Any]] | None]:
    """The lines of each block; scripts that MuPDF takes for lines of their own are put into the lines that they are of.

    It does so where a letter has scripts on both sides, and with small fractions.
    """
    every = [line for lines in blocks for line in lines or ()]
    possible = [line for line in every if any(is_maths(span) for span in line["spans"])]
    hosts: dict[int, list[dict[str, Any]]] = {}
    gone: set[int] = set()
    for line in every:
        host = _host(line, possible) if _is_script(line) else None
        if host is not None:
            hosts.setdefault(id(host), []).append(line)
            gone.add(id(line))
    return [
        lines and [_merged(line, hosts.get(id(line), ())) for line in lines if id(line) not in gone] for lines in blocks
    ]


def _is_script(line: dict[str, Any]) -> bool:
    """Whether a line is one word, or nothing but maths."""
    if sum(len(span["chars"]) for span in line["spans"]) > 2 * _MOST_SCRIPTS:
        return False
    glyphs = list(_glyphs(line))
    one_word = not any(glyph.blank for glyph in glyphs[1:])
    maths = one_word or all(_belongs(glyphs, at) for at in range(len(glyphs)))
    return 0 < len(glyphs) <= _MOST_SCRIPTS and maths


def _host(line: dict[str, Any], others: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The line, of those with maths, that a small one stands within; of several the one whose middle is nearest."""
    x0, y0, x1, y1 = line["bbox"]
    size, middle = max(span["size"] for span in line["spans"]), (y0 + y1) / 2
    hosts: list[tuple[float, int, dict[str, Any]]] = []
    for other in others:
        left, top, right, bottom = other["bbox"]
        if x0 < left or not 2 * top - bottom < middle < 2 * bottom - top:  # most are far away
            continue
        larger = max(span["size"] for span in other["spans"])
        within = left <= x0 and x1 <= right + larger and top - 0.3 * larger < middle < bottom + 0.3 * larger
        if other is not line and size < SMALL * larger and within:
            hosts.append((abs(middle - (top + bottom) / 2), len(hosts), other))
    return min(hosts)[2] if hosts else None


def _merged(line: dict[str, Any], scripts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A line with the characters of others in their places."""
    if not scripts:
        return line
    spans = [
        {**span, "chars": [char]}
        for each in (line, *scripts)
        for span in each["spans"]
        for char in span["chars"]
        if each is line or not char["c"].isspace()
    ]
    boxes = [line["bbox"], *(each["bbox"] for each in scripts)]
    box = (line["bbox"][0], min(b[1] for b in boxes), max(b[2] for b in boxes), max(b[3] for b in boxes))
    return {**line, "bbox": box, "spans": sorted(spans, key=lambda span: span["chars"][0]["bbox"][0])}


class _Rows:
    """Signs by the height of their middle, and the lines whose characters they are."""

    def __init__(self, signs: Sequence[Sign], lines: Sequence[dict[str, Any]]) -> None:
        self._rows: dict[int, list[Sign]] = {}
        for sign in signs:
            self._rows.setdefault(int((sign.box.y0 + sign.box.y1) / 2), []).append(sign)
        self._owner = {
            place_of(char["origin"]): id(line) for line in lines for span in line["spans"] for char in span["chars"]
        }

    def of(self, line: dict[str, Any], box: Box) -> list[Sign]:
        """The line's signs whose middle lies in a box."""
        rows = (self._rows.get(y, ()) for y in range(int(box.y0), int(box.y1) + 1))
        return [sign for row in rows for sign in row if box.holds(sign.box) and self._is_of(line, sign)]

    def _is_of(self, line: dict[str, Any], sign: Sign) -> bool:
        """MuPDF moves accents; what it has moved is known by its height."""
        owner = self._owner.get(place_of(sign.origin))
        return owner == id(line) if owner is not None else _is_on(line, sign)


def _with_maths(line: dict[str, Any], rows: _Rows, bars: Sequence[Box]) -> dict[str, Any]:
    if not any(is_maths(span) for span in line["spans"]):
        return line
    glyphs = _with_fractions(list(_glyphs(line)), bars, _size(line))
    spans: list[dict[str, Any]] = list(line["spans"])
    size = _size(line)
    for start, end in reversed(list(_stretches(glyphs))):
        stretch = glyphs[start:end]
        box = _reach(stretch, glyphs[end:], line)
        others = {place_of(glyph.origin) for glyph in (*glyphs[:start], *glyphs[end:])}
        signs = [sign for sign in rows.of(line, box) if place_of(sign.origin) not in others]
        latex = inline_latex(signs, [bar for bar in bars if box.holds(bar)])
        if not latex:
            continue
        ink = hull_of(sign.box for sign in signs)
        before, after = glyphs[start - 1] if start else None, glyphs[end] if end < len(glyphs) else None
        glued = before and (ink.x0 - before.box[2] > _WHITE * size or before.text.isalnum())  # which no dollar may be
        left = " " * bool(glued and not stretch[0].spaced)
        apart = after and after.box[0] - ink.x1 > _WHITE * size and after.text not in ",."
        right = " " * bool(apart and after and not after.spaced)
        spans = _replaced(spans, stretch, f"{left}${_spaced(latex)}${right}", line)
    return {**line, "spans": spans}


def _glyphs(line: dict[str, Any]) -> Iterator[_Glyph]:
    spaced, size, right = False, _size(line), -inf
    baseline = _baseline(line, size)
    before: _Glyph | None = None
    for number, span in enumerate(line["spans"]):
        math = is_maths(span)
        bold = bool(span["flags"] & 16)
        for place, char in enumerate(span["chars"]):
            if char["c"].isspace():
                spaced = True
                continue
            text, box = unicodedata.normalize("NFC", char["c"]), tuple(char["bbox"])
            off = abs(char["origin"][1] - baseline) / size
            off_line = not math and _LOWERED[0] < off < _LOWERED[1] and text not in _ACCENTS
            small = span["size"] < SMALL * size or off_line
            white = (box[0] - right) / size
            pardoned = before is not None and _is_no_blank(before, text, math, small, white)
            blank = (before is not None and white > _SLANT) or (spaced and not pardoned)
            before = _Glyph(text, math, bold, small, spaced, blank, box, char["origin"], (number, place))
            yield before
            spaced, right = False, max(right, box[2])  # of a lower and an upper script the wider one counts


def _with_fractions(glyphs: Sequence[_Glyph], bars: Sequence[Box], size: float) -> list[_Glyph]:
    """The glyphs; what stands over and under a rule, and the signs around it, without the blanks that MuPDF sees."""
    x, y = ([(glyph.box[at] + glyph.box[at + 2]) / 2 for glyph in glyphs] for at in (0, 1))
    parted = [
        glyph.small and any(bar.x0 - 0.5 <= x[at] <= bar.x1 + 0.5 and abs(y[at] - bar.y0) < size for bar in bars)
        for at, glyph in enumerate(glyphs)
    ]
    return [
        replace(glyph, blank=False) if is_part or (follows and glyph.text in _BRIDGES) else glyph
        for glyph, is_part, follows in zip(glyphs, parted, [False, *parted], strict=False)
    ]


def _is_no_blank(before: _Glyph, text: str, math: bool, small: bool, white: float) -> bool:
    """Whether what MuPDF takes for a blank is a letter's slant or thin white within maths."""
    if not (before.math or before.small):
        return False
    return small or text in _ACCENTS or (before.math and text in _OPENING) or (math and white < _THIN)


def _stretches(glyphs: Sequence[_Glyph]) -> Iterator[tuple[int, int]]:
    """Start and end of each stretch of maths, from the left."""
    at = 0
    while at < len(glyphs):
        if not glyphs[at].math:
            at += 1
            continue
        start, end = at, at + 1
        while start > 0 and _joins(glyphs, start - 1, start):
            start -= 1
        while end < len(glyphs) and _joins(glyphs, end - 1, end):
            end += 1
        end_of_run = end
        start, end = _trimmed(glyphs, start, end, at)
        if _says_something(glyphs[start:end]):
            yield start, end
        at = max(end_of_run, at + 1)


def _joins(glyphs: Sequence[_Glyph], left: int, right: int) -> bool:
    """Whether two neighbours are of one stretch, where one of them is."""
    a, b = glyphs[left], glyphs[right]
    if not (_belongs(glyphs, left) and _belongs(glyphs, right)):
        return False
    if not b.blank or a.text in _ACCENTS:  # which MuPDF may have moved
        return True
    ends = a.text in _ENDS and not a.math and not (a.text == ":" and a.blank) and _depth(glyphs, left) == 0
    return (a.is_operator or b.is_operator) and not ends


def _belongs(glyphs: Sequence[_Glyph], at: int) -> bool:
    """Whether a glyph can be part of maths: set in its fonts, a sign that it shares with text, or no word."""
    glyph = glyphs[at]
    if glyph.math or glyph.text in _BRIDGES or glyph.text == UNSOUND:
        return True
    if not glyph.text.isalpha():
        return False
    start, end = at, at + 1
    while start > 0 and not glyphs[start].blank and _are_of_a_word(glyphs[start - 1], glyph):
        start -= 1
    while end < len(glyphs) and not glyphs[end].blank and _are_of_a_word(glyphs[end], glyph):
        end += 1
    word = "".join(each.text for each in glyphs[start:end])
    greek = "\u0370" <= glyph.text <= "\u03ff"
    if word in FUNCTIONS or (glyph.small and start > 0 and not glyphs[start].blank):  # `N_max`
        return True
    if len(word) <= _OPERATOR and _touches_maths(glyphs, start, end):
        return True
    return len(word) == 1 and (greek or glyph.bold or not glyph.blank)


def _touches_maths(glyphs: Sequence[_Glyph], start: int, end: int) -> bool:
    """Whether a word stands right before maths that is no script of its own, or right behind an operator."""
    before = glyphs[start - 1] if start > 0 and not glyphs[start].blank else None
    after = glyphs[end] if end < len(glyphs) and not glyphs[end].blank else None
    if before is not None and before.math and before.is_operator:
        return True
    if after is None or after.small or after.text in _ACCENTS:  # those MuPDF moves before a blank
        return False
    return after.math or after.text == "("  # `dx`, `supp(f)`


def _are_of_a_word(glyph: _Glyph, other: _Glyph) -> bool:
    return not glyph.math and glyph.text.isalpha() and glyph.small == other.small


def _depth(glyphs: Sequence[_Glyph], at: int) -> int:
    """How many brackets are open behind a glyph, counted from the last word before it."""
    start = at
    while start > 0 and _belongs(glyphs, start - 1):
        start -= 1
    texts = [glyph.text for glyph in glyphs[start : at + 1]]
    return max(0, sum((text in _OPENING) - (text in _CLOSING) for text in texts))


def _trimmed(glyphs: Sequence[_Glyph], start: int, end: int, math: int) -> tuple[int, int]:
    """The stretch around the sign at `math` without punctuation at its ends, and without brackets whose partners stand
    outside."""
    before = after = True
    while before or after:
        texts = [glyph.text for glyph in glyphs[start:end]]
        if texts.count("[") == texts.count("]"):  # ]0, 1[ is an interval
            texts = [text.strip("[]") or "-" for text in texts]
        first, last = texts[0], texts[-1]
        before = start < math and (first in _ENDS or first in _CLOSING or (first in _OPENING and not _closed(texts)))
        backwards = [_TURNED.get(text, text) for text in reversed(texts)]
        after = end - 1 > math and (last in _ENDS or last in _OPENING or (last in _CLOSING and not _closed(backwards)))
        start, end = start + before, end - after
    return start, end


def _closed(texts: Sequence[str]) -> bool:
    """Whether the bracket that comes first is closed."""
    depths = accumulate((text in _OPENING) - (text in _CLOSING) for text in texts)
    return any(depth == 0 for depth in depths)


def _says_something(stretch: Sequence[_Glyph]) -> bool:
    """Whether it is maths, and not marks or words that a font of maths lent to the text, nor scripts of a word."""
    math = [glyph for glyph in stretch if glyph.math]
    if len(stretch) >= _LENT and all(glyph.text.isascii() and glyph.text.isalpha() for glyph in stretch):
        return any(glyph.small for glyph in stretch)
    return not stretch[0].small and any(glyph.text not in _MARKS and glyph.text not in _ENDS for glyph in math)


def _reach(stretch: Sequence[_Glyph], after: Sequence[_Glyph], line: dict[str, Any]) -> Box:
    """Where the stretch's ink may be: up to the next glyph, as high as its line."""
    x0, x1 = min(glyph.box[0] for glyph in stretch), max(glyph.box[2] for glyph in stretch)
    _, y0, _, y1 = line["bbox"]
    end = after[0].box[0] if after else x1 + 2
    over = 0.2 * _size(line)  # accents and roots stand out of it
    return Box(x0 - 0.3, y0 - over, max(x0, min(max(x1, end), x1 + 2)), y1 + over)


def _is_on(line: dict[str, Any], sign: Sign) -> bool:
    """Whether a sign is of this line, and no script of the next. Signs that have grown hang from anywhere."""
    size = _size(line)
    down = (sign.origin[1] - _baseline(line, size)) / size
    grown = sign.text in _GROWN
    return grown or (abs(down) < 0.3 if sign.size > SMALL * size else -0.75 < down < 0.4)


def _baseline(line: dict[str, Any], size: float) -> float:
    """Of most of what has this size."""
    chars = (char for span in line["spans"] if span["size"] == size for char in span["chars"])
    heights = Counter[float](round(char["origin"][1], 1) for char in chars)
    return heights.most_common(1)[0][0]


def _size(line: dict[str, Any]) -> float:
    """The size of most of a line."""
    counts = Counter[float]()
    for span in line["spans"]:
        counts[span["size"]] += len(span["chars"])
    return counts.most_common(1)[0][0]


def _replaced(
    spans: Sequence[dict[str, Any]], stretch: Sequence[_Glyph], latex: str, line: dict[str, Any]
) -> list[dict[str, Any]]:
    """The line's spans with one character of LaTeX instead of a stretch."""
    (first, start), (last, end) = stretch[0].at, stretch[-1].at
    size = _size(line)
    usual = max(
        (s for s in line["spans"] if s["size"] == size), key=lambda span: float(span["bbox"][3] - span["bbox"][1])
    )
    baseline = _baseline(line, size)
    x0, x1 = min(glyph.box[0] for glyph in stretch), max(glyph.box[2] for glyph in stretch)
    box = (x0, usual["bbox"][1], x1, usual["bbox"][3])
    char = {**spans[first]["chars"][start], "c": latex, "bbox": box, "origin": (x0, baseline)}
    before = {**spans[first], "chars": spans[first]["chars"][:start]}
    behind = {**spans[last], "chars": spans[last]["chars"][end + 1 :]}
    maths = {**usual, "font": "", "flags": 0, "origin": (x0, baseline), "bbox": box, "chars": [char]}
    return [*spans[:first], *(s for s in (before, maths, behind) if s["chars"]), *spans[last + 1 :]]


def _spaced(latex: str) -> str:
    """LaTeX that can be told from money: letters in a row apart, where nothing else says that it is maths."""
    return latex if is_math(latex) else re.sub(r"(?<=[A-Za-z])(?=[A-Za-z])", " ", latex)
