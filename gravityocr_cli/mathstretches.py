"""Which stretches of a painted line are maths: what is set in its fonts, and what goes with that.

Works on the lines of PyMuPDF's `get_text("rawdict")`, whole (`mathlines.py`).
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import inf
from typing import Any

from gravityocr_cli.mathlines import SMALL, is_maths
from gravityocr_cli.typewriter import is_mono
from gravityocr_models.latex import FUNCTIONS
from gravityocr_models.signs import UNSOUND, Box

_ACCENTS = frozenset("˜ˆ¯˙¨ˇ\u0303\u0302\u0304\u0307\u0308\u030c\u20d7")
_BRIDGES = frozenset("()[]{}+=<>/|!:;,.0123456789−±×·′∞∈∆") | _ACCENTS
_OPERATORS = frozenset("+=<>−±×·∈/:,;")
_SLANT = 0.27  # of the size: less white before a bracket is the letter's slant
_LENT = 4  # letters in a row that are a word, whatever they are set in
_OPERATOR = 7  # letters of an upright name that stands right before maths
_THIN = 0.25  # of the size: less white between two signs of maths is no blank
_LOWERED = 0.15, 0.7  # of the size: off the baseline what is as large as the line is its scripts
_MARKS = frozenset("•∙·∗*†‡§¶‖∥|⋆◦∘⟨⟩\u2329\u232a\u3008\u3009{}()[]")  # that fonts of maths lend to text
_OPENING, _CLOSING = "([", ")]"
_TURNED = dict(zip(_OPENING + _CLOSING, _CLOSING + _OPENING, strict=True))
_ENDS = ".,;:"


@dataclass(frozen=True)
class Glyph:
    """A painted character of a line.

    small: a script's. spaced: whether a character for a blank precedes. blank: whether there is white of a blank. at:
    numbers of its span and of the character in it.
    """

    text: str
    math: bool
    mono: bool
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


def glyphs_of(line: dict[str, Any]) -> Iterator[Glyph]:
    """The glyphs of a line, as they are painted, blanks left out."""
    spaced, size, right = False, size_of(line), -inf
    baseline = baseline_of(line, size)
    before: Glyph | None = None
    for number, span in enumerate(line["spans"]):
        math, mono = is_maths(span), is_mono(span)
        bold = bool(span["flags"] & 16)
        for place, char in enumerate(span["chars"]):
            if char["c"].isspace():
                spaced = True
                continue
            text, box = unicodedata.normalize("NFC", char["c"]), tuple(char["bbox"])
            off = abs(char["origin"][1] - baseline)
            off_line = not math and _LOWERED[0] * size < off < _LOWERED[1] * size and text not in _ACCENTS
            small = span["size"] < SMALL * size or off_line
            white = box[0] - right
            pardoned = before is not None and _is_no_blank(before, text, math, small, white < _THIN * size)
            blank = (before is not None and white > _SLANT * size) or (spaced and not pardoned)
            before = Glyph(text, math, mono, bold, small, spaced, blank, box, char["origin"], (number, place))
            yield before
            spaced, right = False, max(right, box[2])  # of a lower and an upper script the wider one counts


def with_fractions(glyphs: Sequence[Glyph], bars: Sequence[Box], size: float) -> list[Glyph]:
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


def _is_no_blank(before: Glyph, text: str, math: bool, small: bool, thin: bool) -> bool:
    """Whether what MuPDF takes for a blank is a letter's slant or thin white within maths."""
    if not (before.math or before.small):
        return False
    return small or text in _ACCENTS or (before.math and text in _OPENING) or (math and thin)


def stretches(glyphs: Sequence[Glyph]) -> Iterator[tuple[int, int]]:
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


def _joins(glyphs: Sequence[Glyph], left: int, right: int) -> bool:
    """Whether two neighbours are of one stretch, where one of them is."""
    a, b = glyphs[left], glyphs[right]
    if not (belongs(glyphs, left) and belongs(glyphs, right)):
        return False
    if not b.blank or a.text in _ACCENTS:  # which MuPDF may have moved
        return True
    if _word_at(glyphs, left) in FUNCTIONS:  # set apart a little: `log n`, `cos (2x)`
        return b.math or b.text in _OPENING
    if _word_at(glyphs, right) in FUNCTIONS and (a.math or a.text in _CLOSING):
        return True
    ends = a.text in _ENDS and not a.math and not (a.text == ":" and a.blank) and _depth(glyphs, left) == 0
    return (a.is_operator or b.is_operator) and not ends


def belongs(glyphs: Sequence[Glyph], at: int) -> bool:
    """Whether a glyph can be part of maths: set in its fonts, a sign that it shares with text, or no word."""
    glyph = glyphs[at]
    if glyph.math or glyph.text == UNSOUND or (glyph.text in _BRIDGES and not glyph.mono):
        return True
    if not glyph.text.isalpha():
        return False
    start, end = _ends_of_word(glyphs, at)
    word = "".join(each.text for each in glyphs[start:end])
    greek = "\u0370" <= glyph.text <= "\u03ff"
    if word in FUNCTIONS or (glyph.small and start > 0 and not glyphs[start].blank):  # `N_max`
        return True
    if len(word) <= _OPERATOR and _touches_maths(glyphs, start, end):
        return True
    return len(word) == 1 and (greek or glyph.bold or not glyph.blank)


def _ends_of_word(glyphs: Sequence[Glyph], at: int) -> tuple[int, int]:
    """Where the word of letters begins and ends that a letter is part of."""
    start, end, letter = at, at + 1, glyphs[at]
    while start > 0 and not glyphs[start].blank and _are_of_a_word(glyphs[start - 1], letter):
        start -= 1
    while end < len(glyphs) and not glyphs[end].blank and _are_of_a_word(glyphs[end], letter):
        end += 1
    return start, end


def _word_at(glyphs: Sequence[Glyph], at: int) -> str:
    start, end = _ends_of_word(glyphs, at)
    return "".join(each.text for each in glyphs[start:end])


def _touches_maths(glyphs: Sequence[Glyph], start: int, end: int) -> bool:
    """Whether a word stands right before maths that is no script of its own, or right behind an operator."""
    before = glyphs[start - 1] if start > 0 and not glyphs[start].blank else None
    after = glyphs[end] if end < len(glyphs) and not glyphs[end].blank else None
    if before is not None and before.math and before.is_operator:
        return True
    if after is None or after.small or after.text in _ACCENTS:  # those MuPDF moves before a blank
        return False
    return after.math or after.text == "("  # `dx`, `supp(f)`


def _are_of_a_word(glyph: Glyph, other: Glyph) -> bool:
    return not glyph.math and glyph.text.isalpha() and glyph.small == other.small


def _depth(glyphs: Sequence[Glyph], at: int) -> int:
    """How many brackets are open behind a glyph, counted from the last word before it."""
    start = at
    while start > 0 and belongs(glyphs, start - 1):
        start -= 1
    texts = [glyph.text for glyph in glyphs[start : at + 1]]
    return max(0, sum((text in _OPENING) - (text in _CLOSING) for text in texts))


def _trimmed(glyphs: Sequence[Glyph], start: int, end: int, math: int) -> tuple[int, int]:
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


def _says_something(stretch: Sequence[Glyph]) -> bool:
    """Whether it is maths, and not marks or words that a font of maths lent to the text, nor scripts of a word."""
    math = [glyph for glyph in stretch if glyph.math]
    one_word = not any(glyph.blank for glyph in stretch[1:])
    if len(stretch) >= _LENT and one_word and all(re.fullmatch("[A-Za-z_]", glyph.text) for glyph in stretch):
        return any(glyph.small for glyph in stretch)
    return not stretch[0].small and any(glyph.text not in _MARKS and glyph.text not in _ENDS for glyph in math)


def baseline_of(line: dict[str, Any], size: float) -> float:
    """Of most of what has this size."""
    chars = (char for span in line["spans"] if span["size"] == size for char in span["chars"])
    heights = Counter[float](round(char["origin"][1], 1) for char in chars)
    return heights.most_common(1)[0][0]


def size_of(line: dict[str, Any]) -> float:
    """The size of most of a line."""
    counts = Counter[float]()
    for span in line["spans"]:
        counts[span["size"]] += len(span["chars"])
    return counts.most_common(1)[0][0]
