"""What comes out can be set, by KaTeX itself (in the QuickJS that pykatex brings along)."""

import random

import pykatex  # type: ignore[import-not-found]
import pytest

from gravityocr_cli.blocks import block_of
from gravityocr_cli.document import Kind, Region
from gravityocr_cli.markdown import write_markdown
from gravityocr_cli.settable import settable
from gravityocr_models.signs import Box


def katex(latex: str) -> str:
    """The formula as KaTeX sets it. Raises pykatex's error where it can't."""
    return str(pykatex.renderToString(latex, displayMode=True, throwOnError=True, output="mathml", strict=False))


GOOD = [
    r"E = m c^2",
    r"\frac{a}{b} + \sqrt[3]{x'^2}\,\left\{ \begin{array}{ll} 1 & x > 0 \\ 0 & \text{else} \end{array} \right.",
    r"\left| \psi \right\rangle \rightarrow \leftarrow \sum_{i=1}^{n} x_i^2 \quad \text{for all } i",
    r"\begin{aligned} a &= b \\ &= c \end{aligned}",
    r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}^{-1} \tag{A.1}",
    r"f(x) = \hat{\mathbf{x}} \operatorname{rank} A \bar{x}_a' \\[2pt] y",
]


@pytest.mark.parametrize("latex", GOOD)
def test_a_formula_without_faults_stays_as_it_is(latex: str) -> None:
    katex(latex)
    assert settable(latex) == latex


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\frac{a}{b", r"\frac{a}{b}"),
        (r"a} + b", r"a + b"),
        (r"\left( x", r"\left( x\right."),
        (r"x \right)", r"x )"),
        (r"{ \left( x }", r"{ \left( x \right.}"),
        (r"a \middle| b", r"a | b"),
        (r"x^a^b", r"x^a{}^b"),
        (r"x^{a}'", r"x^{a}{}'"),
        (r"x_", r"x_{}"),
        (r"\hat \mathbf x + \sqrt\frac{1}{2}", r"\hat {\mathbf x} + \sqrt{\frac{1}{2}}"),
        (r"\frac a", r"\frac a{}"),
        (r"a & = b", r"\begin{aligned}a & = b\end{aligned}"),
        (r"\left( a & b \right)", r"\left( a   b \right)"),
        (r"\begin{align*} a &= b \end{align*}", r"\begin{aligned} a &= b \end{aligned}"),
        (r"\begin{equation} a \label{x} \end{equation}", "a"),
        (r"\begin{align} a &= b \tag{1} \\ c &= d \tag{2} \end{align}",
         r"\begin{aligned} a &= b \\ c &= d \end{aligned} \tag{1, 2}"),
        (r"\begin{array}{@{}l@{\quad}r} a & b \end{array}", r"\begin{array}{lr} a & b \end{array}"),
        (r"\begin{array} a & b \end{array}", r"\begin{array}{c} a & b \end{array}"),
        (r"\begin{minipage} a \end{minipage}", r"\begin{aligned} a \end{aligned}"),
        (r"\begin{matrix} a & b", r"\begin{matrix} a & b\end{matrix}"),
        (r"\pmatrix{ a & b \cr c & d }", r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}"),
        (r"\mbox{if $x$}", r"\text{if $x$}"),
        (r"\text{a_b}", r"\text{a\_b}"),
        (r"a \\ [x] = b \\[2 pt] c", r"a \\ {}[x] = b \\[2pt] c"),
        (r"\hspace { 1 c m } x", r"\hspace{1cm} x"),
        (r"50 % of $x$ is #1 \ " + "\\", r"50 \% of x is \#1"),
    ],
)  # fmt: skip
def test_faults_are_mended(latex: str, expected: str) -> None:
    assert settable(latex) == expected.strip()
    katex(settable(latex))


@pytest.mark.parametrize("latex", GOOD)
def test_with_a_token_missing_it_can_still_be_set(latex: str) -> None:
    pieces = [piece for piece in latex.replace("{", " { ").replace("}", " } ").split(" ") if piece]
    for at in range(len(pieces)):
        katex(settable(" ".join(pieces[:at] + pieces[at + 1 :]).replace(r"\begin {", r"\begin{")))
    random.seed(len(latex))
    for _ in range(20):
        katex(settable(" ".join(pieces[: random.randrange(len(pieces))])))


def test_all_mathematics_of_a_page_can_be_set() -> None:
    region = Region(1, 0, Kind.TEXT, Box(0, 0, 100, 50))
    text = block_of(region, r"where $x_1^2^3$ and $ \alpha \mbox{ or } \beta $ cost $5 or $\frac{1}{2$.")
    formula = block_of(Region(1, 1, Kind.FORMULA, Box(0, 60, 100, 90)), r"$$\left( x \label{e} & y \eqno (3)$$")
    markdown = "".join(write_markdown([(1, [text, formula])]))
    assert "$x_1^2{}^3$" in markdown
    assert r"$\alpha \text{ or } \beta$" in markdown
    display = markdown.split("$$")[1]
    assert r"\tag{3}" in display
    katex(display)
