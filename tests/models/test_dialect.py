"""One spelling of a formula, whatever its author typed."""

import pytest

from gravityocr_models.latex import tokens
from gravityocr_models.train.dialect import UnknownSpelling, normal_latex, spelled, written

CASES = [
    (r"\alpha x \, + \, \beta", r"\alpha x+\beta"),
    (r"a_1 % note", "a_{1}"),
    (r"x \label{eq} \quad y\%", r"xy\%"),
    (r"{a+b \over c}", r"\frac{a+b}{c}"),
    (r"\frac ab^2", r"\frac{a}{b}^{2}"),
    (r"x^2_1 + x_1^2", "x_{1}^{2}+x_{1}^{2}"),
    (r"x_i' + x^{\prime}_i + x'^2", r"x'_{i}+x'_{i}+x^{\prime2}"),
    (r"{\cal L} + {\bf x y} + {\rm d}", r"\mathcal{L}+\mathbf{xy}+\mathrm{d}"),
    (r"\hat N_3 \le \sum\sp f_{j=1}", r"\hat{N}_{3}\leq\sum_{j=1}^{f}"),
    (r"{{\tilde { \phi }} Q _ { c }}", r"\tilde{\phi}Q_{c}"),
    (r"T^{\mu}{}_{\nu}", r"T^{\mu}{}_{\nu}"),
    (r"(x + y)^2 {(a b)}^2", r"(x+y)^{2}{(ab)}^{2}"),
    (r"\left( \begin{array}{c@{}c}{a}&{0}\\ {0}&1\\ \end{array}\right)^2",
     r"\left(\begin{array}{cc}a&0\\0&1\end{array}\right)^{2}"),
    (r"\begin{align*} a&=b\\ &=c\label{x}\end{align*}", r"\begin{aligned}a&=b\\&=c\end{aligned}"),
    (r"\begin{equation}a\end{equation}", "a"),
    (r"\begin{pmatrix}a\\ b\end{pmatrix}", r"\left(\begin{array}{c}a\\b\end{array}\right)"),
    (r"\begin{cases}a&b\end{cases}", r"\left\{\begin{array}{ll}a&b\end{array}\right."),
    (r"\sqrt[3]{x}^2 \operatorname { s i n h } y", r"\sqrt[3]{x}^{2}\sinh y"),
    (r"\text{Hom}(X) \mbox{or} \operatorname{Spec}", r"\mathrm{Hom}(X)\mathrm{or}\mathrm{Spec}"),
]  # fmt: skip


@pytest.mark.parametrize(("latex", "normal"), CASES)
def test_spelling(latex: str, normal: str) -> None:
    assert normal_latex(latex) == normal
    assert normal_latex(normal) == normal  # spelling what is spelled changes nothing


@pytest.mark.parametrize(
    "latex", [r"\unheard x", "a}", r"\frac{a}", "x_a_b", r"\quad", r"\left( x", r"\begin{tikzcd}a"]
)
def test_what_is_unknown_or_torn_is_refused(latex: str) -> None:
    with pytest.raises(UnknownSpelling):
        normal_latex(latex)


@pytest.mark.parametrize(
    "latex",
    [r"x^{\prime\prime} + y''", r"\dfrac{a}{b} \le \bigl( {\bf x} \bigr)", r"a ^ 2 _ 1 \to \mathrm { d } x", "n!"],
)
def test_spelling_is_the_same_formula_to_the_metric(latex: str) -> None:
    assert tokens(normal_latex(latex)) == tokens(latex.replace(r"\bf x", r"\mathbf{x}"))


def test_marks_stand_before_signs_and_inside_operators_that_have_limits() -> None:
    pieces = spelled(r"\hat{x}_i = \sum^n \frac12")
    assert written(pieces, lambda n: f"<{n}>") == (r"<0>\hat{x}_{<1>i}<2>=\mathop{<3>\sum}^{<4>n}\frac{<5>1}{<6>2}")
    assert [piece.text for piece in pieces if piece.inked] == [r"\hat{x}", "i", "=", r"\sum", "n", "1", "2"]
