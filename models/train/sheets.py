"""Pages typeset by LaTeX ahead of time: what their colours say, and how they are read.

A PDF of maths doesn't say which glyph is the `\\alpha` of which formula. So each piece of a page's source is set in a
colour of its own, all so near to black that nobody sees it, and the number of the colour leads from a painted glyph
back to its letters. `latexpages.py` writes such sheets; here they are read, as pages of text and as formulas.

A sheet is a PDF with an attachment that lists the paragraphs of each page (`SOURCE`); a page is either text, or one
display formula.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pymupdf

from gravityocr_models.formulas import ACCENTS, SIGNS
from gravityocr_models.train.dialect import Piece, spelled, written
from gravityocr_models.train.pages import (
    PIXELS_PER_POINT,
    TEXT_FLAGS,
    Box,
    PageLine,
    Painted,
    TextPage,
    Word,
    grey_pixels,
    read_word,
)

SOURCE = "source-1.json"  # count on when the numbering or the spelling of formulas changes: older sheets are refused
FORMULA = "formula"
BASE = 16  # colours have three channels of 0..15 in 255: lighter than black by less than any printer
MOST_PIECES = BASE**3 - 1
_FOLDED = str.maketrans({"-": "", "…": "..."})  # hyphens at line ends come and go; many fonts paint three full stops
LEFT_OVERHANG, RIGHT_OVERHANG = 0.08, 0.22  # of maths beyond its advance, in heights
_ACCENTED = re.compile(r"(\\[a-z]+)\{(.+)\}\Z")
ACCENT_LEAD = 0.2  # points that an accent is said to stand before its letter
_DOTTED = {r"\ldots": ".", r"\cdots": "⋅"}  # three glyphs of one name
LEFT_JUMP = 3.0  # points to the left of what came before: a new line


@dataclass(frozen=True)
class Paragraph:
    """look: how it is typeset, or FORMULA. parts: prose (may be "") and formulas in turn, prose first."""

    look: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Unit:
    """What holds no blank and no line break of its own: a word of prose, which is one piece, or a formula.

    space: what stands before it: nothing, a blank, or in listings a line break and the indent.
    """

    pieces: tuple[Piece, ...]
    space: str
    formula: bool


def units(paragraph: Paragraph) -> Iterator[Unit]:
    """The units of a paragraph, in order. Raises UnknownSpelling."""
    space = ""
    for number, part in enumerate(paragraph.parts):
        if number % 2:
            yield Unit(spelled(part), space, formula=True)
            space = ""
            continue
        for blanks, word in re.findall(r"(\s*)(\S+)", part):
            yield Unit((Piece(word, inked=True),), space or blanks, formula=False)
            space = ""
        space = re.findall(r"\s*\Z", part)[0] if part else space


def numbered(paragraphs: Sequence[Paragraph]) -> Iterator[tuple[int, int, Unit]]:
    """Each unit of a page with the number of its paragraph and that of its first inked piece, which count from 1."""
    number = 1
    for block, paragraph in enumerate(paragraphs):
        for unit in units(paragraph):
            yield block, number, unit
            number += sum(piece.inked for piece in unit.pieces)


def colour_of(number: int) -> str:
    """Red, green and blue in 0..1, as PDF writes them."""
    return " ".join(
        f"{channel / 255:.3f}".lstrip("0") for channel in (number // BASE**2, number // BASE % BASE, number % BASE)
    )


def number_of(red: int, green: int, blue: int) -> int:
    """The number of a colour of 0..255; 0 for a colour that is not one of ours."""
    return (red * BASE + green) * BASE + blue if max(red, green, blue) < BASE else 0


def sources_of(document: pymupdf.Document) -> list[tuple[Paragraph, ...]]:
    """The paragraphs of each page; none where LaTeX stumbled over the page."""
    pages = json.loads(document.embfile_get(SOURCE))
    return [tuple(Paragraph(look, tuple(parts)) for look, parts in page) for page in pages]


def read_sheet(page: pymupdf.Page, paragraphs: Sequence[Paragraph], scale: float) -> TextPage:
    """Pixels of a sheet's page at `scale` times 144 dpi, and its lines. A display formula is one line with one word."""
    zoom = PIXELS_PER_POINT * scale
    glyphs, rules = _painted(page)
    lines: list[PageLine] = []
    rows: list[list[Word]] = []
    latest, end = -1, 0.0
    for block, first, unit in numbered(paragraphs):
        if block != latest:
            lines += [PageLine(tuple(row), latest) for row in rows]
            rows, latest = [], block
        numbers = range(first, first + sum(piece.inked for piece in unit.pieces))
        inked = [_Ink(glyphs[number], rules[number]) for number in numbers]
        display = paragraphs[block].look == FORMULA
        words = [_formula(unit.pieces, inked, display)] if unit.formula else _prose(unit, inked[0].glyphs)
        for part, word in enumerate(words):
            start = min((box[0] for box in word.boxes), default=end)
            if not rows or part or start < end - LEFT_JUMP or "\n" in unit.space:
                rows.append([word])
            elif unit.space:
                rows[-1].append(word)
            else:
                rows[-1][-1] = _joined(rows[-1][-1], word)
            end = max((box[2] for box in word.boxes), default=end)
    lines += [PageLine(tuple(row), latest) for row in rows]
    return TextPage(grey_pixels(page, zoom), zoom, tuple(lines), "latex")


@dataclass(frozen=True)
class _Ink:
    """What is painted in one colour: glyphs, and boxes in which glyphs and rules may have ink."""

    glyphs: list[Painted]
    rules: list[Box]


def _painted(page: pymupdf.Page) -> tuple[defaultdict[int, list[Painted]], defaultdict[int, list[Box]]]:
    """Glyphs, and where ink of glyphs and rules may be, by the number of their colour; boxes in points, as painted."""
    glyphs: defaultdict[int, list[Painted]] = defaultdict(list)
    rules: defaultdict[int, list[Box]] = defaultdict(list)
    for block in page.get_text("rawdict", flags=TEXT_FLAGS)["blocks"]:
        for line in block.get("lines", ()):
            for span in line["spans"]:
                colour = span["color"]
                number = number_of(colour >> 16, colour >> 8 & 255, colour & 255)
                chars = [char for char in span["chars"] if not char["c"].isspace()]
                glyphs[number] += [(char["c"], char["bbox"]) for char in chars]
                rules[number] += [_with_overhang(char["bbox"], span["size"]) for char in chars]
    for drawing in page.get_cdrawings():
        rules[_number_of_rule(drawing)].append(_box_of_rule(drawing))
    return glyphs, rules


def _with_overhang(box: Box, size: float) -> Box:
    """Where a glyph's ink may be: MuPDF's boxes are as wide as the advance, and italics lean out of it."""
    x0, y0, x1, y1 = box
    return (x0 - LEFT_OVERHANG * size, y0, x1 + RIGHT_OVERHANG * max(size, y1 - y0), y1)


def _number_of_rule(drawing: dict[str, Any]) -> int:
    red, green, blue = (round(255 * channel) for channel in drawing.get("fill") or drawing.get("color") or (1, 1, 1))
    return number_of(red, green, blue)


def _box_of_rule(drawing: dict[str, Any]) -> Box:
    """MuPDF takes a thin filled rule for a stroke along its middle."""
    half = (drawing.get("width") or 0) / 2 if drawing["type"] == "s" else 0
    x0, y0, x1, y1 = drawing["rect"]
    return (x0 - half, y0 - half, x1 + half, y1 + half)


def _prose(unit: Unit, painted: list[Painted]) -> list[Word]:
    """A word of prose, or its parts where it is hyphenated over a line's end."""
    text = unit.pieces[0].text
    if not painted:
        return [Word(tuple(text), (None,) * len(text), sound=False)]
    breaks = [n for n in range(1, len(painted)) if painted[n][1][0] < painted[n - 1][1][0] - LEFT_JUMP]
    runs = [painted[a:b] for a, b in pairwise([0, *breaks, len(painted)])]
    words = [read_word([char for char, _ in run], [box for _, box in run], sound=True) for run in runs]
    shown = "".join("".join(word.letters) for word in words)
    sound = shown.translate(_FOLDED) == text.translate(_FOLDED)
    return [Word(word.letters, word.glyphs, word.sound and sound) for word in words]


def _formula(pieces: Sequence[Piece], inked: Sequence[_Ink], display: bool) -> Word:
    """A formula as a word of LaTeX, between dollars where it stands in a line."""
    glyphs: list[Painted | None] = []
    left = iter(inked)
    text = written(pieces)
    at = 0
    for piece in pieces:
        start = text.index(piece.text, at)
        glyphs += [None] * (start - at)  # a blank after a command
        glyphs += _spelling(piece.text, next(left).glyphs) if piece.inked else [None] * len(piece.text)
        at = start + len(piece.text)
    if not display:
        text, glyphs = f"${text}$", [None, *glyphs, None]
    rules = tuple(box for ink in inked for box in ink.rules)
    return Word(tuple(text), tuple(glyphs), sound=all(ink.rules for ink in inked), rules=rules)


def _spelling(piece: str, painted: Sequence[Painted]) -> list[Painted | None]:
    """For each letter of a piece the glyph that it spells: the letters are shared out among what is painted.

    What a sign shows is known from the piece: fonts of maths seldom say it.
    """
    shown = [glyph for glyph in painted if glyph[1][2] > glyph[1][0]]  # the bar of \\mapsto has no width
    if not shown:
        return [None] * len(piece)
    if accented := _ACCENTED.match(piece):
        accent, letter = ACCENTS.get(accented[1]), _sign(accented[2])
        if accent and letter and len(shown) == 2:
            x0, *rest = shown[1][1]
            shown = [(accent, (x0 - ACCENT_LEAD, *rest)), (letter, shown[1][1])]
    bare = piece.rstrip("'")
    primes = len(piece) - len(bare)
    sign = _sign(re.sub(r"\A\\(?:left|right)", "", bare))
    if sign and (len(shown) in (1, 1 + primes) or bare in _DOTTED):
        signs = [sign] * max(1, len(shown) - primes) + ["′"] * primes
        shown = [(char, box) for char, (_, box) in zip(signs, shown, strict=False)]
    return [shown[number * len(shown) // len(piece)] for number in range(len(piece))]


def _sign(piece: str) -> str | None:
    """The character of a piece that is one sign."""
    if piece in _DOTTED:
        return _DOTTED[piece]
    bare = re.sub(r"\A\\[A-Za-z]+\{(.*)\}\Z", r"\1", piece).removeprefix("\\")
    return SIGNS.get(piece) or SIGNS.get(f"\\{bare}") or (bare if len(bare) == 1 else None)


def _joined(left: Word, right: Word) -> Word:
    return Word(
        left.letters + right.letters, left.glyphs + right.glyphs, left.sound and right.sound, left.rules + right.rules
    )
