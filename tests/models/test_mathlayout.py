"""Painted signs -> LaTeX, on signs set by hand as TeX sets them, and on a PDF."""

from collections.abc import Iterable

import pymupdf
import pytest

from gravityocr_cli.painted import formula_paint
from gravityocr_models.mathlayout import latex_of
from gravityocr_models.mathsigns import sign_of
from gravityocr_models.signs import Box, Sign

Signs = list[Sign]
LINE = 100.0  # the baseline
HEIGHTS = {"-": (0.29, -0.21), "=": (0.37, -0.13), ".": (0.1, 0.0), ",": (0.1, 0.2), "→": (0.5, 0.0)}


def sign(text: str, x: float, y: float = LINE, size: float = 10, alphabet: str = "", width: float = 0.5) -> Sign:
    """One sign from x on, as high as a letter unless it is known to be lower."""
    height, depth = HEIGHTS.get(text, (0.68, 0.0))
    return Sign(text, Box(x, y - height * size, x + width * size, y + depth * size), (x, y), size, alphabet)


def row(text: str, x: float, y: float = LINE, size: float = 10, alphabet: str = "") -> Signs:
    """Signs side by side, half a size wide, with a white of a tenth; a blank is a white of 0.7."""
    return [
        sign(each, x + at * 0.6 * size, y, size, alphabet) for at, each in enumerate(text) if not each.isspace()
    ]  # fmt: skip


def tall(text: str, x: float, top: float, bottom: float) -> Sign:
    """A delimiter or a large operator, which hangs from its baseline."""
    return Sign(text, Box(x, top, x + 5, bottom), (x, top + 0.4), 10)


def latex(*parts: Sign | Signs, bars: Iterable[Box] = ()) -> str:
    return latex_of([each for part in parts for each in (part if isinstance(part, list) else [part])], [*bars])


def test_scripts_stand_on_both_sides_of_their_letter() -> None:
    assert latex(row("x", 0), row("i", 6, 102, 7), row("2", 6, 96, 7), row("+y", 12)) == "x_{i}^{2}+y"


def test_scripts_of_which_one_follows_the_other() -> None:
    assert latex(row("F", 0), row("i", 6, 96, 7), row("j", 10.5, 102, 7)) == "F^{i}{}_{j}"
    assert latex(row("f", 0), row("IJ", 6, 102, 7), row("K", 15, 96, 7)) == "f_{IJ}{}^{K}"


def test_scripts_that_cannot_be_smaller() -> None:
    assert latex(row("k", 0, size=5), row("2", 3, 98.4, 5)) == "k^{2}"
    assert latex(row("i", 0, size=5), row("0", 3, 101, 5)) == "i_{0}"
    assert latex(row("B", 0, size=5), row("′", 3, 98.4, 5)) == "B'"


def test_an_integral_in_a_script() -> None:
    integral = Sign("∫", Box(15, 88, 20, 99), (15, 88.4), 10)
    assert latex(row("e", 0), row("-i", 6, 96, 7), integral, row("dt", 21, 96, 7)) == r"e^{-i\int dt}"


def test_a_scripts_script_stays_with_its_script() -> None:
    low = [*row("f", 6, 102, 7), *row("-1", 11, 99.6, 5), *row("O", 18, 102, 7)]  # raised to the line's own baseline
    assert latex(row("x", 0), low) == "x_{f^{-1}O}"


def test_scripts_of_a_raised_script_stay_together_over_a_sunk_one() -> None:
    high = [*row("n", 6, 94, 7), *row("(1)", 11, 95.4, 5)]
    assert latex(row("a", 0), high, row("(1)", 6, 102.5, 7), row("b", 24)) == "a_{(1)}^{n_{(1)}}b"


def test_primes() -> None:
    assert latex(row("f", 0), row("′′", 6, 96.4, 7), row("k", 18)) == "f''k"
    assert latex(row("f", 0), row("′2", 6, 96.4, 7)) == r"f^{\prime2}"


def test_a_rule_parts_a_fraction() -> None:
    bar = Box(0, 97.3, 20, 97.7)
    assert latex(row("a+b", 1, 93.2), row("cd", 5, 106.9), row("=1", 25), bars=[bar]) == r"\frac{a+b}{cd}=1"


def test_fractions_in_a_fraction() -> None:
    inner, outer = Box(5, 88.3, 10, 88.6), Box(0, 97.3, 15, 97.7)
    small = [*row("1", 5.5, 86.5, 7), *row("2", 5.5, 95.0, 7)]
    assert latex(small, row("x", 5, 106.9), bars=[outer, inner]) == r"\frac{\frac{1}{2}}{x}"


def test_a_numerator_ends_where_another_row_begins() -> None:
    above, below = Box(0, 86, 40, 86.4), Box(12, 101, 28, 101.4)
    upper = [*row("abcdef", 2, 84), *row("l", 18, 95.0)]
    assert latex(upper, row("k", 18, 100.6), row("m", 18, 110), bars=[above, below]).count(r"\frac") == 2


def test_a_root_covers_what_its_rule_covers() -> None:
    radical = Sign("√", Box(0, 91, 8, 102), (0, 91.4), 10)
    bar = Box(8, 90.8, 20, 91.2)
    assert latex(radical, row("ab", 8.5), row("c", 24), bars=[bar]) == r"\sqrt{ab}c"
    assert latex(radical, row("3", 2, 95, 5), row("ab", 8.5), bars=[bar]) == r"\sqrt[3]{ab}"
    left = [*row("x", -12), *row("l", -6, 96, 7)]  # an index before a root is no degree
    assert latex(left, radical, row("ab", 8.5), bars=[bar]) == r"x^{l}\sqrt{ab}"


def test_a_roots_size_is_what_it_covers() -> None:
    radical, bar = Sign("√", Box(11, 88, 16, 97), (11, 88.4), 10), Box(16, 87.8, 21, 88.2)
    assert latex(row("e", 0), row("-", 6, 96, 7), radical, row("a", 16.5, 96, 7), bars=[bar]) == r"e^{-\sqrt{a}}"


def test_raised_signs_in_a_denominator_begin_no_row() -> None:
    bar = Box(0, 97.3, 20, 97.7)
    below = [*row("mt", 1, 107.5), *row("2", 7, 102, 7)]
    assert latex(row("1", 7, 93), below, bars=[bar]) == r"\frac{1}{m^{2}t}"


def test_an_overline_is_no_fraction_of_the_line_above() -> None:
    bar = Box(30, 91.6, 35, 92)
    found = latex(row("a=b+c", 0, 86.5), row("d+e=Z", 6), bars=[bar])
    assert found == r"\begin{aligned}a=b+c\\d+e=\overline{Z}\end{aligned}"


def test_limits_of_neighbouring_operators() -> None:
    sums = [tall("∑", 0, 90, 104), tall("∑", 17, 90, 104)]
    limits = [*row("x=1", -2.6, 112, 7), *row("a=1", 14.4, 112, 7), *row("N", 1, 88, 7), *row("2", 18, 88, 7)]
    assert latex(sums, limits, row("R", 32)) == r"\sum_{x=1}^{N}\sum_{a=1}^{2}R"


def test_limits_beside_an_operator_that_stands_alone() -> None:
    """Their size is not the line's, though no letter says so."""
    beside = [tall("⋃", 0, 90, 104), *row("m", 7, 93, 7), *row("j=1", 7, 103, 7)]
    assert latex(beside) == r"\bigcup_{j=1}^{m}"


def test_an_integrals_limits_follow_its_slant() -> None:
    beside = [tall("∮", 0, 90, 112), *row("C", -3, 119, 7)]
    assert latex(beside, row("dk", 8)) == r"\oint_{C}dk"


def test_a_comma_among_limits() -> None:
    """Its ink begins far below the letters that it stands between."""
    comma = Sign(",", Box(3, 115.4, 4, 117), (2.6, 116), 7)
    assert latex([tall("∑", 0, 90, 107), *row("r", -1.5, 116, 7), comma, *row("s", 5, 116, 7)], row("x", 12)) == (
        r"\sum_{r,s}x"
    )


def test_a_small_prime_high_over_the_line_is_no_script_of_an_index() -> None:
    assert latex(row("J", 0), row("j", 6, 102, 7), sign("′", 8, 93.5, 5)) == "J'_{j}"


def test_no_accent_stands_on_a_prime() -> None:
    arrow = Sign("⃗", Box(0.5, 91.6, 6.5, 93), (0, 100), 10)
    assert latex(row("r", 0), sign("′", 5.6, 96.5, 7), arrow) == r"\vec{r}'"


def test_limits_of_a_word() -> None:
    word = row("lim", 0, alphabet=r"\mathrm")
    assert latex(word, row("n→0", 1.5, 108, 7), row("x", 22)) == r"\lim_{n\rightarrow0}x"
    two = [*word, *row("sup", 19.2, alphabet=r"\mathrm")]
    assert latex(two, row("n", 17, 108, 7), row("x", 40)) == r"\limsup_{n}x"


def test_text_within_a_formula() -> None:
    upright = r"\mathrm"
    assert latex(row("x", 0), row("for all", 8.4, alphabet=upright), row("y", 53.4)) == r"x\text{ for all }y"
    assert latex(row("sin", 0, alphabet=upright), row("x", 19)) == r"\sin x"
    assert latex(row("d", 0, alphabet=upright), row("x", 6)) == r"\mathrm{d}x"


def test_rows_between_tall_delimiters() -> None:
    cells = [*row("a b", 8, 92), *row("c d", 8, 104)]
    for each in cells:  # columns stand well apart
        assert each.box.width == 5
    wide = [*row("a", 8, 92), *row("b", 24, 92), *row("c", 8, 104), *row("d", 24, 104)]
    fences = [tall("(", 0, 82, 108), tall(")", 32, 82, 108)]
    assert latex(fences, wide) == r"\begin{pmatrix}a&b\\c&d\end{pmatrix}"
    assert latex(tall("{", 0, 82, 108), wide) == r"\begin{cases}a&b\\c&d\end{cases}"
    assert latex(fences, row("n", 16, 92), row("k", 16, 104)) == r"\binom{n}{k}"
    small = [tall("(", 0, 91, 103), tall(")", 14, 91, 103)]
    assert latex(small, row("n", 7, 95, 7), row("k", 7, 102.5, 7)) == r"\binom{n}{k}"


def test_delimiters_in_pieces_and_in_pairs() -> None:
    pieces = [tall("(", 0, 80, 90), tall("(", 0, 90.1, 100), tall("(", 0, 100.1, 110)]
    close = tall(")", 30, 80, 110)
    fraction = [*row("a", 14, 93.2), *row("b", 14, 106.9)]
    assert latex(pieces, fraction, close, bars=[Box(12, 97.3, 21, 97.7)]) == r"\left(\frac{a}{b}\right)"


def test_accents() -> None:
    hat = Sign("ˆ", Box(1, 90.5, 4, 92.5), (1, LINE), 10)
    assert latex(hat, row("x", 0), row("+y", 6)) == r"\hat{x}+y"
    wide = Sign("\u0360", Box(0, 90.5, 11, 92.5), (0, LINE), 10)
    assert latex(wide, row("ab", 0)) == r"\widetilde{ab}"
    vector = Sign("\u20d7", Box(1.5, 90.5, 6.5, 92.5), (1.5, LINE), 10)
    assert latex(vector, row("z=", 0)) == r"\vec{z}="
    above = Sign("¯", Box(1, 87.5, 4, 88.5), (1, 97), 10)
    assert latex(above, hat, row("x", 0)) == r"\bar{\hat{x}}"
    assert latex(hat) == r"\hat{}"


def test_signs_painted_one_over_the_other() -> None:
    assert (
        latex(row("a", 0), Sign("\u0338", Box(8, 92, 12, 102), (8, LINE), 10), sign("=", 7), row("b", 14)) == r"a\neq b"
    )
    slash = Sign("/", Box(7.5, 92, 11, 102), (7.5, LINE), 10)
    assert latex(row("a", 0), sign("∈", 7), slash, row("b", 14)) == r"a\notin b"
    assert latex(row("a", 0), slash, row("b", 14)) == "a/b"
    tilde = Sign("∼", Box(7, 93.5, 12, 95), (7, 98), 10)
    assert latex(row("a", 0), tilde, sign("=", 7), row("b", 14)) == r"a\cong b"
    dots = [sign(".", 0, y, width=0.15) for y in (92, 96, 100)]
    assert latex(dots) == r"\vdots"


def test_arrows() -> None:
    long = [sign("-", 10), sign("→", 14.9, width=0.9)]
    assert latex(row("A", 0), long, row("B", 28)) == r"A\longrightarrow B"
    shaft = [*long, sign("-", 18, width=0.8)]  # hidden under the head
    assert latex(row("A", 0), shaft, row("B", 28)) == r"A\longrightarrow B"
    assert latex(row("A", 0), long, row("f", 15, 93, 7), row("B", 28)) == r"A\xrightarrow{f}B"


def test_a_number_that_ends_one_of_the_rows() -> None:
    rows = [*row("a=b+c+d+e+f", 0, 80), *row("+g,", 40), *row("(2)", 61.5)]
    assert latex(rows) == r"\begin{aligned}a=b+c+d+e+f\\+g,\end{aligned}\tag{2}"
    two = [*row("a=b", 0, 80), *row("(1)", 60, 80), *row("c=d", 0), *row("(2)", 60)]
    assert r"\tag" not in latex(two)


def test_lines_and_the_equations_number() -> None:
    lines = [*row("a=b", 0, 90), *row("c=d", 0, 106)]
    assert latex(lines) == r"\begin{aligned}a=b\\c=d\end{aligned}"
    assert latex(lines, row("(2.1)", 60, 98)) == r"\begin{aligned}a=b\\c=d\end{aligned}\tag{2.1}"
    assert latex(row("x=1", 0), row("(k)", 60)) == r"x=1\quad(k)"


def test_dots_and_alphabets() -> None:
    assert latex(row("x,...", 0)) == r"x,\ldots "
    assert latex(row("R", 0, alphabet=r"\mathbb"), row("n", 6, 96, 7)) == r"\mathbb{R}^{n}"


def test_what_is_unknown_gives_nothing() -> None:
    assert latex(row("a\ufffdb", 0)) == ""
    assert latex_of([], []) == ""


def test_strokes_over_strokes() -> None:
    stroke, slash = (Sign(text, Box(1, 92, 4, 102), (1, LINE), 10) for text in "\u0338/")
    assert latex(stroke, stroke, slash, sign("=", 0)) == r"\neq\not /"


def test_lines_that_run_into_each_other() -> None:
    heights = (90, 99.4, 99.4, 100, 109.4, 109.6)
    assert latex([sign("x", 6 * at, y) for at, y in enumerate(heights)]).count("x") == len(heights)


def test_what_no_formula_is_gives_nothing_soon() -> None:
    assert latex(row("x" * 4000, 0)) == ""
    deep = [sign("x", 6 * at, LINE - 40 * at, 10 * 0.8**at) for at in range(60)]
    assert latex(deep).count("^") <= 60
    assert latex(row("x", 0), bars=[Box(0, at, 5, at + 0.2) for at in range(4000)]) == ""


@pytest.mark.parametrize(
    ("text", "name", "font", "expected"),
    [
        ("\ufffd", "parenleftBigg", "CMEX10", ("(", "")),
        ("\ufffd", "summationdisplay.1", "txexs", ("∑", "")),
        ("\ufffd", "Ocal", "MathDesign", ("O", r"\mathcal")),
        ("\ufffd", "nobody", "CMEX10", ("\ufffd", "")),
        ("\ufffd", "parenlefttpA", "txexs", ("(", "")),
        ("O", "O.kali", "Iwona-Italic", ("O", r"\mathcal")),
        ("R", "R", "txsyb", ("R", r"\mathbb")),
        ("φ", "phi", "Fourier-Math-Letters", ("ϕ", "")),
        ("ϕ", "phi1", "Fourier-Math-Letters", ("φ", "")),
        ("\U0001d719", "u1D719", "NewTXMI", ("ϕ", "")),
        ("H", "H", "CMSY10", ("H", r"\mathcal")),
        ("R", "R", "MSBM10", ("R", r"\mathbb")),
        ("x", "x", "CMMI10", ("x", "")),
        ("x", "x", "CMR10", ("x", r"\mathrm")),
        ("2", "two", "CMBX10", ("2", r"\mathbf")),
        ("\U0001d465", "u1D465", "CambriaMath", ("x", "")),
        ("\U0001d431", "u1D431", "CambriaMath", ("x", r"\mathbf")),
        ("ℎ", "u210E", "CambriaMath", ("h", "")),
        ("ℓ", "lscript", "CMMI10", ("ℓ", "")),
    ],
)
def test_what_a_glyph_is(text: str, name: str, font: str, expected: tuple[str, str]) -> None:
    found = sign_of(text, name, font, 0, 10, Box(0, 0, 1, 1), (0, 1))
    assert (found.text, found.alphabet) == expected


def test_paint_of_a_pdf() -> None:
    """Boxes are of the ink, from the embedded font; what is outside the boxes, invisible or turned is not there."""
    with pymupdf.open() as document:
        page = document.new_page(width=200, height=200)
        page.insert_font("slant", fontbuffer=pymupdf.Font("tiit").buffer)
        page.insert_text((20, 93.2), "a", fontname="slant", fontsize=10)
        page.insert_text((20, 107), "b", fontname="slant", fontsize=10)
        page.draw_line((18, 97.5), (27, 97.5), width=0.4)
        page.insert_text((30, 100), "x", fontname="slant", fontsize=10)
        page.insert_text((35, 96), "2", fontname="slant", fontsize=7)
        page.insert_text((40, 100), "n", fontname="slant", fontsize=10, render_mode=3)
        page.insert_text((50, 100), "t", fontname="slant", fontsize=10, rotate=90)
        page.insert_text((20, 150), "q", fontname="slant", fontsize=10)
        reread = pymupdf.open("pdf", document.tobytes())
    signs, bars = formula_paint(reread[0], [Box(15, 85, 60, 112)])
    assert [each.text for each in signs] == ["a", "b", "x", "2"]
    assert 4 < signs[0].box.height < 5.5  # of the a's ink, not of its line
    assert latex_of(signs, bars) == r"\frac{a}{b}x^{2}"
    assert formula_paint(reread[0], []) == ((), ())
