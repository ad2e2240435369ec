"""Formulas told from their ink: painted here in MuPDF's own fonts, named as the encoder would."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pymupdf
import pytest
from numpy.typing import NDArray

from gravityocr_models.glyphs import Slot, Tag
from gravityocr_models.ink import accent_of, cut_near, joined, pieces_of, without_rule
from gravityocr_models.inkformula import seen_latex
from gravityocr_models.signshapes import shape_of

SIZE = 12  # points
TOKEN = 16
SURE = 8.0


@dataclass(frozen=True)
class Glyph:
    """A sign at a point of the page (its origin, points), with its size and the tags that the encoder gives it."""

    sign: str
    x: float
    y: float
    size: float = SIZE
    tags: Tag = Tag.MATH


Rule = tuple[float, float, float]


def row(text: str, x: float, y: float, size: float = SIZE, tags: Tag = Tag.MATH) -> list[Glyph]:
    """The signs of a text side by side."""
    glyphs = []
    for sign in text:
        glyphs.append(Glyph(sign, x, y, size, tags))
        x += size * (0.22 + shape_of(sign).width)
    return glyphs


def font_of(sign: str) -> pymupdf.Font:
    return pymupdf.Font("tiit" if sign.isascii() and sign.isalpha() else "tiro" if sign.isascii() else "symb")


def painted(glyphs: Sequence[Glyph], rules: Sequence[Rule] = ()) -> NDArray[np.uint8]:
    with pymupdf.open() as document:
        page = document.new_page(width=200, height=60)
        for glyph in glyphs:
            writer = pymupdf.TextWriter(page.rect)
            writer.append((glyph.x, glyph.y), glyph.sign, font_of(glyph.sign), glyph.size)
            writer.write_text(page)
        for x0, x1, y in rules:
            page.draw_rect(pymupdf.Rect(x0, y, x1, y + 0.6), color=None, fill=(0, 0, 0))
        pixels = page.get_pixmap(dpi=144, colorspace="gray")
        return np.frombuffer(pixels.samples, np.uint8).reshape(pixels.height, pixels.width)


def slot(sign: str, x: float, y: float, tags: Tag = Tag.MATH) -> Slot:
    """What the encoder says of a point in pixels."""
    told = tuple(SURE if tag in tags else -SURE for tag in Tag)
    row, column = int(y // TOKEN), int(x // TOKEN)
    middle = (column + (0.75 if x % TOKEN >= TOKEN / 2 else 0.25)) * TOKEN, (row + 0.5) * TOKEN
    return Slot(((sign, -0.01),), -6.0, told, row, column, 0, *middle)


def named(glyphs: Sequence[Glyph]) -> list[Slot]:
    """A slot for each glyph, from the left."""
    found = []
    for glyph in glyphs:
        shape = shape_of(glyph.sign)
        x, y = glyph.x + glyph.size * shape.width / 2, glyph.y - glyph.size * (shape.above - shape.below) / 2
        found.append(slot(glyph.sign, 2 * x, 2 * y, glyph.tags))
    return sorted(found, key=lambda each: each.x)


def read(glyphs: Sequence[Glyph], rules: Sequence[Rule] = ()) -> str:
    return seen_latex([named(glyphs)], painted(glyphs, rules))


RAISED, SUNK = Tag.MATH | Tag.RAISED, Tag.MATH | Tag.SUNK
SUM = row("a+b=c", 20, 30)


def test_a_row_of_signs() -> None:
    assert read(SUM) == "a+b=c"


def test_scripts_stand_where_they_are_printed() -> None:
    glyphs = [
        *row("x", 20, 30),
        *row("i", 26.5, 32.5, 8.4, SUNK),
        *row("2", 27.5, 25.5, 8.4, RAISED),
        *row("+y", 36, 30),
    ]
    assert read(glyphs) == "x_{i}^{2}+y"


def test_a_script_that_no_tag_tells_is_one_by_its_size_and_place() -> None:
    unsure = Slot((("n", -0.01),), -6.0, tuple(0.2 if tag in SUNK else -0.2 for tag in Tag), 3, 3, 0, 56.0, 62.0)
    glyphs = [*row("x", 20, 30), *row("n", 26.5, 33, 8.4), *row("+x", 36, 30)]
    slots = [each for each in named(glyphs) if each.signs[0][0] != "n"]
    assert seen_latex([[*slots, unsure]], painted(glyphs)) == "x_{n}+x"


def test_fractions_within_fractions_need_no_tags() -> None:
    glyphs = [*row("a", 30, 14), *row("b", 30, 28), *row("+d", 40, 20), *row("c", 40, 42)]
    assert read(glyphs, [(28, 38, 17.5), (26, 64, 31)]) == r"\frac{\frac{a}{b}+d}{c}"


def test_what_a_root_covers_is_told_by_its_rule() -> None:
    root = Glyph("√", 20, 30)
    top = 30 - 0.92 * SIZE
    glyphs = [root, *row("x+y", 27, 30), *row("-z", 62, 30)]
    assert read(glyphs, [(26.2, 56, top)]) == r"\sqrt{x+y}-z"


def test_a_sign_that_was_named_twice_is_there_once() -> None:
    slots = named(SUM)
    twice = slot("b", slots[2].x + 6, slots[2].y - TOKEN)
    assert seen_latex([sorted([*slots, twice], key=lambda each: each.x)], painted(SUM)) == "a+b=c"


def test_what_was_not_named_gets_the_likeliest_sign() -> None:
    slots = named(SUM)
    doubtful = replace(slots[2], signs=(("", -0.2), ("b", -1.8)), empty=-0.2)
    assert seen_latex([[*slots[:2], doubtful, *slots[3:]]], painted(SUM)) == "a+b=c"
    assert "b" not in seen_latex([[*slots[:2], *slots[3:]]], painted(SUM))


def test_the_shape_settles_which_of_two_signs_it_is() -> None:
    slots = named(SUM)
    doubtful = replace(slots[4], signs=(("(", -0.7), ("c", -1.2)))
    assert seen_latex([[*slots[:4], doubtful]], painted(SUM)) == "a+b=c"


def test_looks_at_other_tokens_outvote_one() -> None:
    slots = named(SUM)
    wrong = [*slots[:2], replace(slots[2], signs=(("h", -0.3), ("b", -1.4))), *slots[3:]]
    lost = [*slots[:1], *slots[2:]]
    assert seen_latex([wrong, slots, lost], painted(SUM)) == "a+b=c"
    assert seen_latex([wrong], painted(SUM)) == "a+h=c"


def test_letters_that_touch_are_cut() -> None:
    touching = [Glyph("a", 20, 30), Glyph("d", 25, 30), *row("=bc+x", 40, 30)]
    assert len(pieces_of(painted(touching[:2]))) == 1
    assert read(touching) == "ad=bc+x"


def test_looks_may_name_each_another_of_two_letters_that_touch() -> None:
    touching = [Glyph("a", 20, 30), Glyph("d", 25, 30), *row("=bc+x", 40, 30)]
    a, d, *others = named(touching)
    assert seen_latex([[a, *others], [a, d, *others], [d, *others]], painted(touching)) == "ad=bc+x"


def test_an_accent_sits_on_its_letter() -> None:
    glyphs = [*row("x", 20, 30), *row("+x", 32, 30)]
    assert read(glyphs, [(20.5, 25, 22.5)]) == r"\bar{x}+x"


def test_names_of_functions_are_upright() -> None:
    sine = [Glyph(sign, x, 30) for sign, x in zip("sin", (20, 25, 28.8), strict=True)]
    assert read([*sine, *row("x", 38, 30)]) == r"\sin x"


def test_rows_between_large_brackets_are_a_matrix() -> None:
    left, right = Glyph("(", 20, 38, 36), Glyph(")", 62, 38, 36)
    glyphs = [left, *row("a", 36, 23), *row("b", 52, 23), *row("c", 36, 38), *row("d", 52, 38), right]
    assert read(glyphs) == r"\begin{pmatrix}a&b\\c&d\end{pmatrix}"


def test_nothing_is_no_formula() -> None:
    assert seen_latex([[]], painted(SUM)) == ""
    assert seen_latex([named(SUM)], np.full((32, 64), 255, np.uint8)) == ""


def test_a_halftone_is_no_formula() -> None:
    dots = np.full((200, 400), 255, np.uint8)
    dots[::6, ::6], dots[1::6, ::6], dots[::6, 1::6], dots[1::6, 1::6] = 0, 0, 0, 0
    assert seen_latex([named(SUM)], dots) == ""


def test_every_shape_has_a_size() -> None:
    for sign in map(chr, range(0x21, 0x2A00)):
        assert shape_of(sign).height > 0
        assert shape_of(sign).width > 0


@pytest.mark.parametrize(
    ("accent", "shape"),
    [
        ("\u0304", ["########", "########"]),
        ("\u0302", ["...##...", "..####..", "##....##"]),
        ("\u0303", ["..##...#", "#####..#", "#..#####", "#...###."]),
    ],
)  # fmt: skip
def test_accents_are_told_by_their_outline(accent: str, shape: list[str]) -> None:
    pixels = np.full((12, 40), 255, np.uint8)
    pixels[4 : 4 + len(shape), 10:18] = [[0 if mark == "#" else 255 for mark in line] for line in shape]
    assert accent_of(joined(pieces_of(pixels))) == accent


def test_ink_is_cut_where_it_is_thinnest() -> None:
    pixels = np.full((20, 40), 255, np.uint8)
    pixels[4:16, 5:14], pixels[4:16, 16:25], pixels[10, 14:16] = 0, 0, 0
    (ink,) = pieces_of(pixels)
    parts = cut_near(ink, 16, 3)
    assert parts
    assert 14 <= parts[0].box.x1 <= 16
    assert parts[1].box.height == 12
    assert cut_near(ink, -50, 3) is None


def test_the_rule_of_a_root_comes_off() -> None:
    pixels = np.full((30, 60), 255, np.uint8)
    pixels[5:25, 10:14], pixels[5:7, 10:40] = 0, 0
    (ink,) = pieces_of(pixels)
    found = without_rule(ink)
    assert found
    assert (found[0].box.x1, found[1].x0, found[1].x1, found[1].height) == (14, 14, 40, 2)
    assert without_rule(found[0]) is None
