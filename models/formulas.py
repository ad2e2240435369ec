"""Tagged glyphs -> LaTeX: the structure of a formula in a line without a decoder.

The glyph head says of each glyph whether it stands in a numerator, a denominator, a superscript, a subscript or under a
root. Glyphs that stand in one follow each other from left to right, so runs of equal tags are its parts.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile

from gravityocr_models.glyphs import Named, Tag
from gravityocr_models.latex import FUNCTIONS, SYMBOLS

FRACTION = Tag.UPPER | Tag.LOWER
SCRIPT = Tag.RAISED | Tag.SUNK
GAP_COLUMNS = 4  # without a glyph, that are more than the space around a relation


def _alphabet(command: str, name: str) -> dict[str, str]:
    """LaTeX of each capital in another alphabet -> its Unicode sign; a few lack "MATHEMATICAL" in their names."""
    signs = {}
    for code in range(ord("A"), ord("Z") + 1):
        for prefix in ("MATHEMATICAL ", ""):
            try:
                signs[f"{command}{{{chr(code)}}}"] = unicodedata.lookup(f"{prefix}{name} CAPITAL {chr(code)}")
            except KeyError:
                continue
    return signs


SIGNS = SYMBOLS | _alphabet(r"\mathcal", "SCRIPT") | _alphabet(r"\mathbb", "DOUBLE-STRUCK")
"""LaTeX of one sign -> its Unicode character."""
ACCENTS = {
    r"\hat": "\u0302", r"\bar": "\u0304", r"\tilde": "\u0303", r"\vec": "\u20d7", r"\dot": "\u0307", r"\ddot": "\u0308",
    r"\check": "\u030c", r"\breve": "\u0306", r"\acute": "\u0301", r"\grave": "\u0300", r"\mathring": "\u030a",
}  # fmt: skip
"""LaTeX of an accent -> the sign that names it, before its letter."""
_ACCENT_OF = {sign: command for command, sign in ACCENTS.items()}
COMMANDS = {sign: command for command, sign in SIGNS.items()} | {sign: f"\\{sign}" for sign in "{}%#&_"} | {"′": "'"}
_OPERATORS = frozenset("∑∏∐⋃⋂⨁⨂⋀⋁∫∮")
_LIMITS_BEFORE = 2  # columns that a limit, centred on its operator, may begin before it
_FUNCTION = re.compile(rf"(?<![A-Za-z\\])({'|'.join(sorted(FUNCTIONS, key=len, reverse=True))})(?![a-z]{{2}})")
_DOTS = re.compile(r"(?:\\cdot ?){3}|\.\.\.")


def latex(glyphs: Sequence[Named]) -> str:
    """The formula that the glyphs of a line, from left to right, are."""
    text = r"\quad ".join(_spelled(_limits_behind(stretch)) for stretch in _stretches(glyphs))
    return re.sub(r" (?![A-Za-z])", "", with_dots(_FUNCTION.sub(r"\\\1 ", text)))


def with_dots(text: str) -> str:
    """LaTeX with ellipses for three dots in a row."""
    return _DOTS.sub(lambda dots: r"\ldots " if dots[0] == "..." else r"\cdots ", text)


def _stretches(glyphs: Sequence[Named]) -> list[list[Named]]:
    """The glyphs between wide gaps: before an equation's number, and between formulas on one line."""
    stretches: list[list[Named]] = []
    for glyph in glyphs:
        if not stretches or glyph.column - stretches[-1][-1].column > GAP_COLUMNS:
            stretches.append([])
        stretches[-1].append(glyph)
    return stretches


def _limits_behind(glyphs: Sequence[Named]) -> list[Named]:
    """Limits that begin to the left of their operator, set behind it."""
    out: list[Named] = []
    for glyph in glyphs:
        if glyph.sign in _OPERATORS and not glyph.tags & SCRIPT:
            limits = list(takewhile(partial(_is_limit, glyph), reversed(out)))
            out[len(out) - len(limits) :] = [glyph, *reversed(limits)]
        else:
            out.append(glyph)
    return out


def _is_limit(operator: Named, glyph: Named) -> bool:
    """Whether a glyph that precedes an operator is the start of one of its limits."""
    near = glyph.column >= operator.column - _LIMITS_BEFORE
    return bool(glyph.tags & SCRIPT) and glyph.row != operator.row and near


def _spelled(glyphs: Sequence[Named]) -> str:
    parts: list[str] = []
    at = 0
    while at < len(glyphs):
        tags = glyphs[at].tags
        fraction = _run(glyphs, at, FRACTION)
        if tags & SCRIPT and all(glyph.tags & SCRIPT for glyph in fraction):
            run = _run(glyphs, at, SCRIPT)
            part = _scripts(run)
        elif tags & Tag.ROOTED and all(glyph.tags & Tag.ROOTED for glyph in fraction):
            run = _run(glyphs, at, Tag.ROOTED)
            part = rf"\sqrt{{{_spelled(_without(run, Tag.ROOTED))}}}"
        elif tags & Tag.LINED and all(glyph.tags & Tag.LINED for glyph in fraction):
            run = _run(glyphs, at, Tag.LINED)
            part = rf"\overline{{{_spelled(_without(run, Tag.LINED))}}}"
        elif fraction:
            run = fraction
            upper = _without([glyph for glyph in run if glyph.tags & Tag.UPPER], FRACTION)
            lower = _without([glyph for glyph in run if not glyph.tags & Tag.UPPER], FRACTION)
            part = rf"\frac{{{_spelled(upper)}}}{{{_spelled(lower)}}}" if upper and lower else _spelled(upper or lower)
        elif glyphs[at].sign == "√" and at + 1 < len(glyphs):  # what it stands for is said by the tags, or follows it
            rooted = glyphs[at + 1].tags & Tag.ROOTED
            run = glyphs[at : at + 1 if rooted else at + 2]
            part = "" if rooted else rf"\sqrt{{{_spelled(run[1:])}}}"
        elif glyphs[at].sign in _ACCENT_OF and at + 1 < len(glyphs):
            run = glyphs[at : at + 2]
            part = f"{_ACCENT_OF[run[0].sign]}{{{_spelled(run[1:])}}}"
        else:
            run = glyphs[at : at + 1]
            part = COMMANDS.get(run[0].sign, run[0].sign)
            if tags & Tag.BOLD and run[0].sign.isalnum():
                part = rf"\mathbf{{{part}}}"
        run_in = parts and re.search(r"\\[A-Za-z]+\Z", parts[-1]) and part[:1].isalpha()
        parts.append(" " * bool(run_in) + part)
        at += len(run)
    return "".join(parts)


def _scripts(run: Sequence[Named]) -> str:
    """`_{}^{}`. A glyph of both tags is a script of the script that it follows, on the other side."""
    of: dict[Tag, list[Named]] = {Tag.SUNK: [], Tag.RAISED: []}
    side = Tag.RAISED
    for glyph in run:
        mixed = glyph.tags & SCRIPT == SCRIPT
        side = side if mixed else glyph.tags & SCRIPT
        spent = Tag.INNER if glyph.tags & Tag.INNER and not mixed else side
        of[side].append(replace(glyph, tags=glyph.tags & ~spent))
    return "".join(f"{sign}{{{_spelled(of[tag])}}}" for sign, tag in (("_", Tag.SUNK), ("^", Tag.RAISED)) if of[tag])


def _run(glyphs: Sequence[Named], at: int, tags: Tag) -> Sequence[Named]:
    """The glyphs from `at` on that have one of the tags."""
    return [*takewhile(lambda glyph: glyph.tags & tags, glyphs[at:])]


def _without(glyphs: Sequence[Named], tags: Tag) -> list[Named]:
    return [replace(glyph, tags=glyph.tags & ~tags) for glyph in glyphs]
