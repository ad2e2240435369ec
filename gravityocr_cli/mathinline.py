"""Mathematics within lines of text: the stretches of a painted line that are set in fonts of maths, as `$...$`.

Works on the plain dictionaries that PyMuPDF's `get_text("rawdict")` returns, before they become lines: a stretch
becomes one character, whose text is LaTeX. Only TeX's fonts tell what is maths; a word processor sets Greek letters and
bullets in such fonts too.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from gravityocr_cli.inlinemath import is_math
from gravityocr_cli.mathlines import SMALL, around, is_maths, place_of, whole_lines
from gravityocr_cli.mathstretches import Glyph, baseline_of, belongs, glyphs_of, size_of, stretches, with_fractions
from gravityocr_models.mathlayout import inline_latex
from gravityocr_models.signs import Box, Sign, hull_of

_WHITE = 0.15  # of the size: as much beside maths is a blank, which MuPDF sees between letters alone
_MOST_SCRIPTS = 12  # glyphs of a line that is nothing but scripts
_CLOSING = frozenset(".,)")
_GROWN = frozenset("√∑∏∫()[]{}|‖⟨⟩")


def maths_in_lines(raw: dict[str, Any]) -> list[Box]:
    """The boxes of lines with a span in a font of maths, whole, for what stands in them is to be looked for."""
    blocks = _with_scripts(whole_lines([block.get("lines") for block in raw["blocks"]], ()))
    return [
        Box(*line["bbox"]) for lines in blocks for line in lines or () if any(is_maths(span) for span in line["spans"])
    ]


def with_maths(raw: dict[str, Any], signs: Sequence[Sign], bars: Sequence[Box], but: Sequence[Box]) -> dict[str, Any]:
    """The page with maths in its lines as LaTeX between dollars, outside the boxes `but`."""
    whole = _with_scripts(whole_lines([block.get("lines") for block in raw["blocks"]], signs))
    found = [lines and [_tight(line) for line in lines] for lines in whole]
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
    glyphs = list(glyphs_of(line))
    one_word = not any(glyph.blank for glyph in glyphs[1:])
    maths = one_word or all(belongs(glyphs, at) for at in range(len(glyphs)))
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
    return {
        **line,
        "bbox": around([line, *scripts]),
        "spans": sorted(spans, key=lambda span: span["chars"][0]["bbox"][0]),
    }


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
    glyphs = with_fractions(list(glyphs_of(line)), bars, size_of(line))
    spans: list[dict[str, Any]] = list(line["spans"])
    size = size_of(line)
    for start, end in reversed(list(stretches(glyphs))):
        stretch = glyphs[start:end]
        box = _reach(stretch, glyphs[end:], line)
        others = {place_of(glyph.origin) for glyph in (*glyphs[:start], *glyphs[end:])}
        signs = [sign for sign in rows.of(line, box) if place_of(sign.origin) not in others]
        latex = inline_latex(signs, [bar for bar in bars if box.holds(bar)])
        if not latex:
            continue
        ink = hull_of(sign.box for sign in signs)
        before, after = glyphs[start - 1] if start else None, glyphs[end] if end < len(glyphs) else None
        # MuPDF sees blanks between letters alone; and right behind a letter or a digit no dollar is one of maths.
        apart = before and (ink.x0 - before.box[2] > _WHITE * size or before.text.isalnum())
        left = " " * bool(apart and not stretch[0].spaced)
        apart = after and after.box[0] - ink.x1 > _WHITE * size and after.text not in _CLOSING
        right = " " * bool(apart and after and not after.spaced)
        spans = _replaced(spans, stretch, f"{left}${_spaced(latex)}${right}", line)
    return {**line, "spans": spans}


def _tight(line: dict[str, Any]) -> dict[str, Any]:
    """The line without the blanks that MuPDF sees between maths, whose letters lean, and a mark that closes."""
    if not any(is_maths(span) for span in line["spans"]):
        return line
    gaps = [
        (a.at, b.at) for a, b in pairwise(glyphs_of(line)) if b.spaced and b.text in _CLOSING and (a.math or a.small)
    ]
    if not gaps:
        return line
    spans = []
    for number, span in enumerate(line["spans"]):
        chars = enumerate(span["chars"])
        made_up = {
            place for place, char in chars if char["synthetic"] and any(a < (number, place) < b for a, b in gaps)
        }
        spans.append({**span, "chars": [char for place, char in enumerate(span["chars"]) if place not in made_up]})
    return {**line, "spans": spans}


def _reach(stretch: Sequence[Glyph], after: Sequence[Glyph], line: dict[str, Any]) -> Box:
    """Where the stretch's ink may be: up to the next glyph, as high as its line."""
    x0, x1 = min(glyph.box[0] for glyph in stretch), max(glyph.box[2] for glyph in stretch)
    _, y0, _, y1 = line["bbox"]
    end = after[0].box[0] if after else x1 + 2
    over = 0.2 * size_of(line)  # accents and roots stand out of it
    return Box(x0 - 0.3, y0 - over, max(x0, min(max(x1, end), x1 + 2)), y1 + over)


def _is_on(line: dict[str, Any], sign: Sign) -> bool:
    """Whether a sign is of this line, and no script of the next. Signs that have grown hang from anywhere."""
    size = size_of(line)
    down = (sign.origin[1] - baseline_of(line, size)) / size
    grown = sign.text in _GROWN
    return grown or (abs(down) < 0.3 if sign.size > SMALL * size else -0.75 < down < 0.4)


def _replaced(
    spans: Sequence[dict[str, Any]], stretch: Sequence[Glyph], latex: str, line: dict[str, Any]
) -> list[dict[str, Any]]:
    """The line's spans with one character of LaTeX instead of a stretch."""
    (first, start), (last, end) = stretch[0].at, stretch[-1].at
    size = size_of(line)
    usual = max(
        (s for s in line["spans"] if s["size"] == size), key=lambda span: float(span["bbox"][3] - span["bbox"][1])
    )
    baseline = baseline_of(line, size)
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
