"""The painted text of a page as lines, and the draft that a region gets from them.

Reads the plain dictionaries that PyMuPDF's `get_text("rawdict")` returns, so that nothing here needs PyMuPDF. Decides
what a reader can see, never whether it is true: a wrong ToUnicode table is the verifying model's to catch. What cannot
be text (control bytes, private-use or unknown characters) is marked with U+FFFD, and lines with such a mark give no
draft.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gravityocr_cli.document import PLAIN, Line, Link, Span, Style, Tick
from gravityocr_cli.hyphens import is_wide
from gravityocr_cli.typewriter import is_mono
from gravityocr_models.signs import UNSOUND, Box

_PAINTED = 16 | 8 | 32  # filled, stroked or clipped: the bits of a span's `char_flags` that leave marks on the page
_BOLD, _ITALIC = 16, 2  # bits of a span's `flags`
_BOLD_NAME = re.compile(r"bold|black|heavy|cmbx|cmssbx|-bd|demi", re.IGNORECASE)
_ITALIC_NAME = re.compile(r"italic|oblique|cmti|cmsl|slanted", re.IGNORECASE)
_MATH_FONT = re.compile(r"cmmi|cmsy|cmex|cmbsy|msam|msbm|euf|eus|mtmi|mtsy|math|symbol|rsfs|stix", re.IGNORECASE)
_ACCENTS = dict(
    zip("`´ˆ˜¨¯˘˙˚ˇ˝¸˛", "\u0300\u0301\u0302\u0303\u0308\u0304\u0306\u0307\u030a\u030c\u030b\u0327\u0328", strict=True)
)
_ACCENTS[UNSOUND] = ""
_STROKE = "\u0338"
Corners = tuple[float, float, float, float]  # left, top, right, bottom
_BLANK = 0.15  # of the font size: the gap that MuPDF takes for a blank
_LONGEST_UNDERSCORE = 12.0  # points
_TOUCHING = 0.06  # of the font size: pieces with less between them are of one word
_SYMBOL = 8  # letters of a line that may be one symbol with its index
CONTRAST = 24  # grey levels between a glyph and its ground; less is not readable (white on white, covered text)


def lines_of(
    raw: dict[str, Any],
    page: Box,
    pixels: NDArray[np.uint8],
    dpi: float,
    hidden: bool,
    links: Sequence[Link] = (),
) -> tuple[Line, ...]:
    """The visible lines of a page.

    raw: `get_text("rawdict")` in the page's displayed frame, points. pixels: uint8 [H, W, 3] of the same page at `dpi`.
    hidden: keep text that is not painted (the OCR layer of a scan, whose picture shows what it says).
    """
    lines = []
    for block in raw["blocks"]:
        for raw_line in block.get("lines", ()):
            line = _line_of(raw_line, hidden, links)
            if hidden and line is not None:  # the fonts of an OCR layer say nothing about the picture
                line = Line(line.box, line.text, line.size)
            if line is not None and _holds(page, line.box) and _has_contrast(line.box, pixels, dpi):
                lines.append(line)
    return tuple(lines)


def with_underscores(raw: dict[str, Any], rules: Sequence[Box]) -> dict[str, Any]:
    """The page; a short rule at the foot of white within a line is an underscore, as TeX draws it in manuals.

    raw: as for `lines_of`, whose blanks for white are MuPDF's own.
    """
    short = [rule for rule in rules if rule.width < _LONGEST_UNDERSCORE]
    if not short:
        return raw
    for line in (line for block in raw["blocks"] for line in block.get("lines", ())):
        for span in line["spans"]:
            for char in span["chars"]:
                if char["c"] == " " and char["synthetic"] and any(_fills(rule, char, span["size"]) for rule in short):
                    char.update(c="_", synthetic=False)
    return raw


def _fills(rule: Box, blank: dict[str, Any], size: float) -> bool:
    x0, _, x1, _ = blank["bbox"]
    inside = x0 - 0.1 * size < rule.x0 and rule.x1 < x1 + 0.1 * size and rule.width > 0.5 * (x1 - x0)
    return bool(inside and -0.05 * size < rule.y0 - blank["origin"][1] < 0.3 * size)


def with_ticks(lines: Sequence[Line], ticks: Sequence[Tick]) -> tuple[Line, ...]:
    """The lines, each check box of a form as `[x]` or `[ ]` beside its label instead of whatever glyph it shows."""
    kept = [line for line in lines if not any(_holds(tick.box, line.box) for tick in ticks)]
    for tick in ticks:
        mark, reach = "[x]" if tick.on else "[ ]", 2.5 * tick.box.height
        row = [line for line in kept if line.box.y0 < (tick.box.y0 + tick.box.y1) / 2 < line.box.y1]
        right = min((x for x in row if 0 <= x.box.x0 - tick.box.x1 + 2 < reach), key=lambda x: x.box.x0, default=None)
        left = max((x for x in row if 0 <= tick.box.x0 - x.box.x1 + 2 < reach), key=lambda x: x.box.x1, default=None)
        if label := right or left:
            kept[kept.index(label)] = _marked(label, mark, tick.box, before=label is right)
        else:
            kept.append(Line(tick.box, mark, tick.box.height))
    return tuple(kept)


def _marked(line: Line, mark: str, box: Box, before: bool) -> Line:
    hull = _hull((each.x0, each.x1, line.box.y0, line.box.y1) for each in (line.box, box))
    spans = line.spans
    if before:
        return replace(line, box=hull, text=f"{mark} {line.text}", spans=spans and (Span(f"{mark} "), *spans))
    return replace(line, box=hull, text=f"{line.text} {mark}", spans=spans and (*spans, Span(f" {mark}")))


def _holds(outer: Box, inner: Box) -> bool:
    """Whether the middle of a box lies in another."""
    x, y = (inner.x0 + inner.x1) / 2, (inner.y0 + inner.y1) / 2
    return outer.x0 <= x <= outer.x1 and outer.y0 <= y <= outer.y1


def draft_of(lines: Sequence[Line]) -> str | None:
    """The text of a region's lines, one painted row a line; None without text or where any of it is unsound."""
    text = "\n".join(_in_a_row(row) for row in rows_of(lines))
    return None if not text or UNSOUND in text else text


def _in_a_row(row: Sequence[Line]) -> str:
    """The text of pieces that stand side by side; MuPDF ends one where a link does, within a word too."""
    text = row[0].text
    for before, line in pairwise(row):
        touching = abs(line.box.x0 - before.box.x1) < _TOUCHING * line.size
        text += ("" if touching else " ") + line.text
    return text


def font_of(lines: Sequence[Line]) -> str:
    """The font that most of a region's lines is set in; "" where it is unknown."""
    fonts = Counter[str]()
    for line in lines:
        fonts[line.font] += len(line.text)
    return max(fonts, key=lambda font: fonts[font], default="")


def rows_of(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines grouped into painted rows, top to bottom, each from left to right."""
    lines = list(lines)
    if len(lines) > 1 and is_vertical(lines) and all(line.box.height > 1.5 * line.box.width for line in lines):
        return [[line] for line in sorted(lines, key=lambda each: -each.box.x1)]
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda each: (each.box.y0 + each.box.y1, each.box.x0)):
        middle = (line.box.y0 + line.box.y1) / 2
        if rows and not _stacked(rows[-1], line) and middle < min(each.box.y1 for each in rows[-1]):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda each: each.box.x0) for row in rows]


def is_upright(line: Line) -> bool:
    """False for text that runs up or down the page."""
    return len(line.text) < 3 or line.box.height < 1.5 * line.box.width


def is_vertical(lines: Sequence[Line]) -> bool:
    """Whether the lines are columns of Chinese or Japanese, written downwards: tall ones, or a stack of signs."""
    signs = "".join(line.text for line in lines)
    if len(signs) < 3 or sum("\u3000" <= each <= "\u9fff" for each in signs) < 0.7 * len(signs):
        return False
    if all(len(line.text) == 1 for line in lines):
        x0, x1 = min(line.box.x0 for line in lines), max(line.box.x1 for line in lines)
        return x1 - x0 < 2 * lines[0].size
    return all(line.box.height > 1.5 * line.box.width for line in lines)


def _stacked(row: list[Line], line: Line) -> bool:
    """Whether the line stands over or under a part of the row: a fraction, limits, not one row of text."""
    return any(min(each.box.x1, line.box.x1) - max(each.box.x0, line.box.x0) > line.size / 2 for each in row)


def _line_of(raw_line: dict[str, Any], hidden: bool, links: Sequence[Link]) -> Line | None:
    seen = [span for span in raw_line["spans"] if hidden or (span["alpha"] > 0 and span["char_flags"] & _PAINTED)]
    letters = [(char, span) for span in seen for char in span["chars"] if not char["c"].isspace()]
    if not letters:
        return None
    # Blanks before the first letter are indent; those after the last are part of what was set, and keep cells together.
    box = _hull((char["bbox"][0], span["bbox"][2], span["bbox"][1], span["bbox"][3]) for char, span in letters)
    sizes, fonts, bold, mono = Counter[float](), Counter[str](), 0, 0
    for span in seen:
        count = sum(not char["c"].isspace() for char in span["chars"])
        sizes[round(span["size"], 1)] += count
        fonts[span["font"]] += count
        bold += count * _is_bold(span)
        mono += count * is_mono(span)
    size, _ = sizes.most_common(1)[0]
    first = round(letters[0][1]["size"], 1)
    if len(letters) <= _SYMBOL and 0.5 * first < size < 0.85 * first:
        size = first  # a symbol whose index is longer than itself
    if all(char["bbox"][2] - char["bbox"][0] < 0.02 * size for char, _ in letters):
        seen = _without_made_up_blanks(seen, size)
    spans = _spans_of(seen, size, raw_line, links)
    text = _clean("".join(span.text for span in spans))
    if not text:
        return None
    styled = spans if any(span.style != PLAIN for span in spans) else ()
    font, _ = fonts.most_common(1)[0]
    return Line(box, text, size, 2 * bold > sizes.total(), 5 * mono > 4 * sizes.total(), styled, font)


def _without_made_up_blanks(seen: Sequence[dict[str, Any]], size: float) -> list[dict[str, Any]]:
    """The spans of a font that states no widths, without the blanks that MuPDF then sees after every letter."""
    chars = [char for span in seen for char in span["chars"]]
    origins = [char["origin"][0] for char in chars]
    after = [*origins[1:], float("inf")]
    before = [float("-inf"), *origins[:-1]]
    made_up = {
        id(char)
        for char, start, end in zip(chars, before, after, strict=True)
        if char["c"] == " " and char["synthetic"] and end - start < 0.75 * size
    }
    return [{**span, "chars": [char for char in span["chars"] if id(char) not in made_up]} for span in seen]


def _spans_of(
    seen: Sequence[dict[str, Any]], size: float, raw_line: dict[str, Any], links: Sequence[Link]
) -> tuple[Span, ...]:
    """The line's text by style. Only a horizontal line has raised and lowered parts."""
    level = raw_line["dir"][0] > 0.99
    heights = Counter(round(span["origin"][1], 1) for span in seen if abs(span["size"] - size) < 0.06)
    baseline = heights.most_common(1)[0][0] if heights and level else None
    letters = [
        _Letter(char["c"], tuple(char["bbox"]), style)
        for span in seen
        for style in (_style_of(span, size, baseline),)
        for char in span["chars"]
    ]
    runs: list[tuple[Style, list[str]]] = []
    letters = _negated(_joined_accents(letters))
    for letter in _with_blanks(letters, size) if level else letters:
        own = replace(letter.style, link=_target(letter.box, links)) if links else letter.style
        if runs and (letter.text.isspace() or runs[-1][0] is own or runs[-1][0] == own):
            runs[-1][1].append(letter.text)
        else:
            runs.append((PLAIN if letter.text.isspace() else own, [letter.text]))
    return tuple(Span("".join(texts), style) for style, texts in runs)


class _Letter(NamedTuple):
    """A painted sign, where it stands, and how it is set."""

    text: str
    box: Corners
    style: Style


def _with_blanks(letters: Sequence[_Letter], size: float) -> Iterator[_Letter]:
    """The letters, with the blanks that are seen after mathematical signs: MuPDF makes them up after letters alone."""
    for at, letter in enumerate(letters):
        yield letter
        after = letters[at + 1] if at + 1 < len(letters) else None
        sign = letter.text > "\u20cf" and not is_wide(letter.text) and not letter.text.isspace()
        if sign and after and not after.text.isspace() and after.box[0] - letter.box[2] > _BLANK * size:
            yield _Letter(" ", (letter.box[2], letter.box[1], after.box[0], letter.box[3]), PLAIN)


def _style_of(span: dict[str, Any], size: float, baseline: float | None) -> Style:
    """A font that only mathematics uses is neither bold nor italic: its slant is spelling."""
    script = 0
    if baseline is not None and span["size"] < 0.85 * size:
        lift = (baseline - span["origin"][1]) / size
        script = 1 if lift > 0.15 else -1 if lift < -0.08 else 0
    if _says(_MATH_FONT, span["font"]):
        return Style(script=script)
    italic = bool(span["flags"] & _ITALIC) or _says(_ITALIC_NAME, span["font"])
    return Style(_is_bold(span), italic, is_mono(span), script)


def _is_bold(span: dict[str, Any]) -> bool:
    return bool(span["flags"] & _BOLD) or _says(_BOLD_NAME, span["font"])


@lru_cache(4096)
def _says(pattern: re.Pattern[str], font: str) -> bool:
    """Whether a font's name, without the letters and the plus that tell one subset of it from another, says so."""
    return pattern.search(font.rpartition("+")[2]) is not None


def _target(box: Corners, links: Sequence[Link]) -> str:
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    inside = (each for each in links if each.box.x0 <= x <= each.box.x1 and each.box.y0 <= y <= each.box.y1)
    return next((each.target for each in inside if is_safe_target(each.target)), "")


def _joined_accents(letters: Iterable[_Letter]) -> list[_Letter]:
    """The letters, accents set on those that they stand on, as TeX paints `ö` and `ł` in two glyphs."""
    out: list[_Letter] = []
    for letter in letters:
        joined = _accented(out[-1], letter) if out else None
        if joined is None:
            out.append(letter)
        else:
            out[-1] = joined
    return out


def _negated(letters: Sequence[_Letter]) -> list[_Letter]:
    """The letters, a stroke that TeX paints before a sign combined with it (`≠`); in Unicode it would strike out what
    stands before."""
    out = list(letters)
    for at in [at for at, letter in enumerate(out) if letter.text == _STROKE]:
        sign = next((other for other in range(at + 1, min(at + 3, len(out))) if not out[other].text.isspace()), at)
        struck = unicodedata.normalize("NFC", out[sign].text + _STROKE)
        if sign > at and len(struck) == 1:
            out[at] = out[at]._replace(text="")
            out[sign] = out[sign]._replace(text=struck)
    return [letter for letter in out if letter.text]


def _accented(first: _Letter, second: _Letter) -> _Letter | None:
    """The letter that two overlapping glyphs make; None where they stand apart or make none."""
    if first.text not in _ACCENTS and second.text not in _ACCENTS:
        return None
    (a, b, c, d), (e, f, g, h) = first.box, second.box
    if min(c, g) - max(a, e) < 0.5 * min(c - a, g - e):
        return None
    letter, accent = (second, first) if first.text in _ACCENTS else (first, second)
    if accent.text == UNSOUND:  # a stroke through the letter has no code of its own
        joined = {"l": "ł", "L": "Ł"}.get(letter.text, "")
    else:
        base = {"ı": "i", "ȷ": "j"}.get(letter.text, letter.text)
        joined = unicodedata.normalize("NFC", base + _ACCENTS[accent.text])
    box = (min(a, e), min(b, f), max(c, g), max(d, h))
    return _Letter(joined, box, letter.style) if len(joined) == 1 else None


def is_safe_target(target: str) -> bool:
    """Whether a link leads to a place, and does not run something."""
    return re.match(r"(?:https?|ftp|mailto|tel|doi):", target, re.IGNORECASE) is not None


def _hull(boxes: Iterable[tuple[float, float, float, float]]) -> Box:
    """Of boxes given as left, right, top, bottom."""
    x0, x1, y0, y1 = zip(*boxes, strict=True)
    return Box(min(x0), min(y0), max(x1), max(y1))


def _clean(text: str) -> str:
    """NFC, one blank for white space, soft hyphens resolved, everything that is not text turned into U+FFFD."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub("\u00ad$", "-", text).replace("\u00ad", "")
    text = "".join(UNSOUND if unicodedata.category(each) in ("Cc", "Co", "Cn", "Cs") else each for each in text)
    text = re.sub("[\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]", "", text)
    return unicodedata.normalize("NFC", text)


def _has_contrast(box: Box, pixels: NDArray[np.uint8], dpi: float) -> bool:
    """Whether the page shows anything where the line stands. Catches white on white and text under a later box."""
    height, width, _ = pixels.shape
    scale = dpi / 72
    inset = box.height * 0.15  # neighbours' ascenders and rules under the line are not this line's ink
    x0, x1 = max(0, int(box.x0 * scale)), min(width, int(box.x1 * scale) + 1)
    y0, y1 = max(0, int((box.y0 + inset) * scale)), min(height, int((box.y1 - inset) * scale) + 1)
    return contrast_of(pixels[y0:y1, x0:x1]) >= CONTRAST


def contrast_of(pixels: NDArray[np.uint8]) -> int:
    """The most that any of the colours varies by; row by row first, which is how pixels lie in memory."""
    if not pixels.size:
        return 0
    highest, lowest = pixels.max(axis=0).max(axis=0), pixels.min(axis=0).min(axis=0)
    return int((highest - lowest).max())
