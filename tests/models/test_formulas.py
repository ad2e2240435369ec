"""From LaTeX to tagged glyphs, as training labels them, and back."""

from dataclasses import replace

import pytest

from gravityocr_models.formulas import ACCENTS, SIGNS, latex
from gravityocr_models.glyphs import Named, Tag
from gravityocr_models.records import Task
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.tags import char_tags


def glyphs_of(pieces: str) -> list[Named]:
    """Glyphs of a formula whose signs are parted by blanks; what is no sign is structure. One column each."""
    text = pieces.replace(" ", "")
    tags = iter(char_tags(Sample(None, text, Task.FORMULA, (None,) * len(text), "test")))  # type: ignore[arg-type]
    glyphs: list[Named] = []
    for piece in pieces.split():
        tag, *_ = [next(tags) for _ in piece]
        if piece not in ("{", "}", "^", "_", r"\frac", r"\sqrt", r"\overline", r"\mathbf"):
            accent, _, letter = piece.partition("{")
            signs = [ACCENTS[accent], letter.rstrip("}")] if accent in ACCENTS else [SIGNS.get(piece, piece)]
            glyphs += [Named(sign, tag, 2, len(glyphs) + at) for at, sign in enumerate(signs)]
    return glyphs


@pytest.mark.parametrize(
    "pieces",
    [
        r"a + b = c",
        r"x _ { i } ^ { 2 } + y",
        r"\frac { a + b } { c } - 1",
        r"\frac { a ^ { 2 } } { b _ { 0 } }",
        r"\sqrt { x + y } z",
        r"\sqrt { \frac { a } { b } }",
        r"\frac { 1 } { \sqrt { x } }",
        r"x _ { i _ { 1 } } y ^ { 2 ^ { n } }",
        r"e ^ { x _ { 0 } + 1 } = 1",
        r"e ^ { \frac { a } { b } } + 1",
        r"\hat{x} _ { k } + \bar{y}",
        r"\mathcal{O} _ { X } \subset \mathbb{R}",
        r"\alpha \beta a",
        r"\sum _ { i = 0 } ^ { n } i",
        r"\overline { a b } + \overline { c } _ { i }",
        r"\frac { \overline { a } } { b _ { \overline { c } } }",
        r"\mathbf { x } \cdot y + \mathbf { r } _ { \mathbf { k } }",
    ],
)
def test_a_formula_survives_its_tags(pieces: str) -> None:
    spelled = latex(glyphs_of(pieces))
    assert spelled.replace(" ", "") == pieces.replace(" ", "")
    assert r"\betaa" not in spelled


def test_a_script_needs_no_braces() -> None:
    tags = char_tags(Sample(None, "x_i^2", Task.FORMULA, (None,) * 5, "test"))  # type: ignore[arg-type]
    assert [tag & (Tag.SUNK | Tag.RAISED) for tag in tags] == [0, 0, Tag.SUNK, 0, Tag.RAISED]


def test_limits_that_begin_before_their_operator_follow_it() -> None:
    low, high = Tag.MATH | Tag.SUNK, Tag.MATH | Tag.RAISED
    glyphs = [
        Named("a", Tag.MATH, 1, 0), Named("i", low, 2, 3), Named("∑", Tag.MATH, 1, 4), Named("n", high, 0, 4),
        Named("i", Tag.MATH, 1, 6),
    ]  # fmt: skip
    assert latex(glyphs) == r"a\sum_{i}^{n}i"


def test_scripts_beside_an_operator_stay_with_what_they_follow() -> None:
    glyphs = [Named("a", Tag.MATH, 1, 0), Named("2", Tag.MATH | Tag.RAISED, 1, 1), Named("∫", Tag.MATH, 1, 2)]
    assert latex(glyphs) == r"a^{2}\int"


def test_names_of_functions_and_rows_of_dots_are_commands() -> None:
    plain = [Named(sign, Tag.MATH, 0, at) for at, sign in enumerate("sinx+1...n⋅⋅⋅m")]
    assert latex(plain) == r"\sin x+1\ldots n\cdots m"


def test_the_sign_of_a_root_goes_into_the_root() -> None:
    root, two = Named("√", Tag.MATH, 0, 0), Named("2", Tag.MATH, 0, 1)
    assert latex([root, replace(two, tags=Tag.MATH | Tag.ROOTED)]) == r"\sqrt{2}"
    assert latex([root, two, two]) == r"\sqrt{2}2"
    assert latex([root]) == r"\surd"


def test_an_equation_number_stands_off() -> None:
    glyphs = [Named(sign, Tag.MATH, 0, at) for sign, at in zip("a=b(1)", (0, 1, 2, 9, 9, 9), strict=True)]
    assert latex(glyphs) == r"a=b\quad(1)"


def test_half_a_fraction_is_no_fraction() -> None:
    assert latex([Named("a", Tag.MATH | Tag.UPPER, 0, 0), Named("+", Tag.MATH, 1, 1)]) == "a+"
