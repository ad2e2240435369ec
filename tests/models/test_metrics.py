"""Every metric of a page against values worked out by hand."""

import time

import pytest

from gravityocr_models.latex import to_unicode, tokens
from gravityocr_models.metrics import (
    bag_f1,
    fold_text,
    formula_score,
    formula_similarity,
    formulas_of,
    heading_f1,
    headings_of,
    signs_alike,
    tables_of,
    text_similarity,
)


def test_text_similarity() -> None:
    assert text_similarity("# Kitten", "kitten") == pytest.approx(5 / 6)  # one letter of six
    assert text_similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert text_similarity("", "anything") == 0
    assert text_similarity("", "") == 1
    assert text_similarity("algorithms", "algo-\nrithms") == 1


def test_swapped_paragraphs_cost_text_but_not_the_bag() -> None:
    pred, truth = "dd ee\n\naa bb cc", "aa bb cc\n\ndd ee"
    assert bag_f1(pred, truth) == 1
    # "dd ee aa bb cc" to "aa bb cc dd ee", 14 characters: deleting "dd ee " and adding " dd ee" costs 12, replacing
    # the ten letters in place costs 10, which is less.
    assert text_similarity(pred, truth) == pytest.approx(1 - 10 / 14)


def test_bag_f1_counts_repeats_and_single_cjk_characters() -> None:
    assert bag_f1("a a b", "a b b c") == pytest.approx(2 * 2 / 7)
    assert bag_f1("系统", "统系") == 1
    assert bag_f1("系统 abc", "系 abc") == pytest.approx(2 * 2 / 5)
    assert bag_f1("", "") == 1
    assert bag_f1("", "a") == 0


def test_headings() -> None:
    page = "# One #\ntext\n## Two *words*\n```\n# code\n```\n<h3>Three</h3>\n#hashtag"
    assert headings_of(page) == ["One", "Two *words*", "Three"]
    assert heading_f1(page, ["One", "Two words"]) == pytest.approx(2 * 2 / 5)
    assert heading_f1("# Introductian", ["Introduction"]) == 1  # 11 of 12 letters
    assert heading_f1("# abcde", ["abcxy"]) == 0  # 60 % alike
    assert heading_f1("# Same\n# Same", ["Same"]) == pytest.approx(2 / 3)
    assert heading_f1("", ["One"]) == 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"a \le b", r"a\leq b"),
        (r"\left( x \right)", "(x)"),
        (r"\left. x \right|", r"x \rvert"),
        (r"\frac{1}{2}", r"\dfrac12"),
        (r"x^{2}", "x^2"),
        (r"\sum^n_{i=1}", r"\sum_{i=1}^{n}"),
        (r"\mathrm{d}x\,\quad y", "dxy"),
        (r"\text{if } x", "ifx"),
        (r"\begin{aligned} a &= b \\ c &= d \end{aligned}", "a = b c = d"),
        ("f'(x)", r"f^{\prime}(x)"),
        (r"x^{a^2_1}_{b}", r"x_b^{a_1^2}"),
        (r"x^", "x^{}"),
        ("α ≤ ∞", r"\alpha \leq \infty"),
        (r"x \label{eq:one}", "x"),
        (r"\bigl[ a \biggr]", "[a]"),
        (r"{\cal Q}", r"\mathcal{Q}"),
        (r"x = {i e \over 2} y \leftarrow z", r"x = \frac{ie}{2} y \leftarrow z"),
        (r"a \over b", r"\frac{a}{b}"),
        (r"\left( n+1 \over 2 \right)", r"\left( \frac{n+1}{2} \right)"),
        (r"{n \choose k}", r"\binom{n}{k}"),
        (r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}", r"\left(\begin{array}{cc} a & b \\ c & d \end{array}\right)"),
        (r"\begin{cases} a \\ b \end{cases}", r"\left\{ \begin{array}{l} a \\ b \end{array} \right."),
        (r"\begin{vmatrix} a \end{vmatrix}", r"| \begin{matrix} a \end{matrix} |"),
    ],
)
def test_spellings_of_one_formula(one: str, other: str) -> None:
    assert tokens(one) == tokens(other)
    assert formula_similarity(one, other) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [("x^2", "x_2"), (r"\mathbf{x}", "x"), (r"\{a\}", "a"), (r"\epsilon", r"\varepsilon"), (r"\tilde x", r"\hat x")],
)
def test_different_formulas_stay_different(one: str, other: str) -> None:
    assert tokens(one) != tokens(other)


def test_signs_of_formulas_are_compared_without_their_structure() -> None:
    assert signs_alike(r"\frac{a+1}{b}=\alpha", r"a+\frac{1}{b}<\alpha") == 1
    assert signs_alike(r"x_{i}^{2}", r"y_{i}^{2}") == pytest.approx(2 / 3)
    assert signs_alike(r"+-", r"\pm") == 0
    assert signs_alike("(a)", "(b)") == 0


def test_formula_similarity_counts_tokens() -> None:
    assert tokens(r"\frac{a}{b}=\alpha_1") == (r"\frac", "a", "b", "=", r"\alpha", "_", "1")
    assert formula_similarity(r"\frac{a}{b}=\beta_1", r"\frac{a}{b}=\alpha_1") == pytest.approx(6 / 7)
    assert formula_similarity("", "x") == 0


def test_formulas_of_and_their_score() -> None:
    page = "a $x_1$ costs $5, or \\(y\\)\n\n$$\nz = 1\n$$\n\n\\[w\\]\n```\n$no$\n```"
    assert formulas_of(page) == ["x_1", "y", "z = 1", "w"]
    assert formula_score(page, ["z=1", "x_2"]) == pytest.approx((1 + 2 / 3) / 2)
    assert formula_score("no formula", ["z=1"]) == 0


@pytest.mark.parametrize(
    ("formula", "plain"),
    [
        (r"x_i^2", "xi2"),
        (r"\frac{a}{b}", "a/b"),
        (r"\frac{\frac{a}{b}}{c}", "a/b/c"),
        (r"\alpha x \times \sin y", "αx × sin y"),
        (r"\mathbf{R}^{n}", "Rn"),
        (r"\left\{ a \right\}", "{ a }"),
        (r"50\%", "50%"),
        (r"\unknown{x}", "x"),
        (r"a \neq \sqrt{2}", "a ≠ √2"),
    ],
)
def test_to_unicode(formula: str, plain: str) -> None:
    assert to_unicode(formula) == plain


@pytest.mark.parametrize(
    "unit", ["$", "![", "<!--", r"\begin{a}", r"\[", "<h1>", "\n", "^{", "{a}^", "<table>", "|-", "- "]
)
def test_a_looping_answer_is_scored_quickly(unit: str) -> None:
    started = time.process_time()
    page = unit * 1000
    fold_text(page), tables_of(page), formulas_of(page), headings_of(page), tokens(page), to_unicode(page)
    assert time.process_time() - started < 2
