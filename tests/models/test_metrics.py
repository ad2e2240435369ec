"""Every metric against values worked out by hand."""

import time

import pytest

from gravityocr_models.latex import to_unicode, tokens
from gravityocr_models.metrics import (
    bag_f1,
    best_pairs,
    fold_text,
    formula_score,
    formula_similarity,
    formulas_of,
    heading_f1,
    headings_of,
    table_score,
    tables_of,
    teds,
    text_similarity,
)


@pytest.mark.parametrize(
    ("given", "folded"),
    [
        ("", ""),
        ("# A *b* **c** ~~d~~ `e`", "A b c d e"),
        ("snake_case and _stress_ and __more__", "snake_case and stress and more"),
        ("> quoted\n> twice", "quoted twice"),
        ("- one\n* two\n+ three\n- [x] done", "one two three done"),
        ("1. one\n2. two", "1. one 2. two"),
        ("-5 - 3\n-", "-5 - 3 -"),
        ("above\n\n---\n\nbelow", "above below"),
        ("```python\nx = 1\n```", "x = 1"),
        ("see [the site](https://a.b/c_(d)) now", "see the site now"),
        ("![a plot](images/p1.png)\nFigure 1", "Figure 1"),
        ("<https://a.b/c>", "https://a.b/c"),
        ("word[^1]\n\n[^1]: note", "word 1 1 note"),
        ("a<!-- gravityocr: page 3 -->b", "a b"),
        ("CO<sub>2</sub><br>and <b class='x'>bold</b>", "CO2 and bold"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a b"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a b 1 2"),
        ("| a |\n|---|\n| 1 |", "a 1"),
        ("x &lt; y &amp; z &#233;", "x < y & z é"),
        ("1 < 2 and 3 > 2, <node> stays", "1 < 2 and 3 > 2, <node> stays"),
        (r"\# 5\. \* \$3 and \$4", "5. $3 and $4"),
        ("ﬁne ½ ｆｕｌｌ x²", "fine 1⁄2 full x2"),
        ("“a” ‘b’ «c» ''d''", '"a" \'b\' "c" "d"'),
        ("1–2 — 3 −4 5---6", "1-2 - 3 -4 5-6"),
        ("• one\n◦ two", "one two"),
        ("Chapter 1 ........ 7\nChapter 2 . . . . . 9", "Chapter 1 7 Chapter 2 9"),
        ("wait...", "wait..."),
        ("algo-\nrithms, well-known, a-1", "algorithms, wellknown, a-1"),
        ("soft\u00adhyphen zero\u200bwidth \uf0b7", "softhyphen zerowidth"),
        ("  a \t b\r\nc\u00a0d ", "a b c d"),
        ("系统 初始化\n使用 Debian 系统", "系统初始化使用Debian系统"),
        ("近期（的） Debian，\n和", "近期(的)Debian,和"),
        ("한국어 문장", "한국어 문장"),
        ("before\n$$x = 1$$\nafter", "before after"),
        ("before \\[x\\] after \\begin{align*}a&=b\\end{align*} end", "before after end"),
        (r"so $\alpha_i \le x^2$ and \(\beta\)", "so αi ≤ x2 and β"),
        ("costs $5 and $10 today", "costs $5 and $10 today"),
        ("$17,992\n$22,401–$29,992", "$17,992 $22,401-$29,992"),
    ],
)
def test_fold_text(given: str, folded: str) -> None:
    assert fold_text(given) == folded


def test_folding_twice_changes_nothing_in_plain_text() -> None:
    once = fold_text("# “Title”\n\nA well-\nknown fact • 系统 x²")
    assert fold_text(once) == once


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


def test_best_pairs_takes_the_best_sum_and_no_column_twice() -> None:
    assert best_pairs([[0.9, 0.8], [0.8, 0.1]]) == [0.8, 0.8]
    assert best_pairs([[0.5], [0.7]]) == [0.0, 0.7]
    assert best_pairs([[], []]) == [0.0, 0.0]
    assert best_pairs([]) == []


def rows(*table: str) -> str:
    """'ab|c' -> a row of two cells with the texts ab and c."""
    return "<table>" + "".join("<tr><td>" + row.replace("|", "</td><td>") + "</td></tr>" for row in table) + "</table>"


SQUARE = rows("aa|bb", "cc|dd")  # 1 + 2 + 4 = 7 nodes


@pytest.mark.parametrize(
    ("pred", "truth", "full", "structure"),
    [
        (SQUARE, SQUARE, 1, 1),
        # half of one cell's text
        (rows("aa|bb", "cc|dX"), SQUARE, 1 - 0.5 / 7, 1),
        # a row missing: three nodes
        (rows("aa|bb"), SQUARE, 1 - 3 / 7, 1 - 3 / 7),
        # a cell too many: 8 nodes
        (rows("aa|bb", "cc|dd|ee"), SQUARE, 1 - 1 / 8, 1 - 1 / 8),
        # empty table: six nodes missing
        ("<table></table>", SQUARE, 1 - 6 / 7, 1 - 6 / 7),
        # sections and th do not matter
        (
            "<table><thead><tr><th>aa</th><th>bb</th></tr></thead><tbody><tr><td>cc</td><td>dd</td></tr></tbody></table>",
            SQUARE,
            1,
            1,
        ),
        # markup inside cells does not matter
        (
            "<table><tr><td><b>aa</b></td><td>b<br>b</td></tr><tr><td>$cc$</td><td>dd</td></tr></table>",
            SQUARE,
            1 - (1 / 3) / 7,
            1,
        ),
        # a merged head against two single cells: a wrong span and a surplus cell, of 5 nodes
        ("<table><tr><td colspan=2>a</td></tr><tr><td>c</td></tr></table>", rows("a|b", "c"), 1 - 2 / 6, 1 - 2 / 6),
        # wrong span alone
        ("<table><tr><td rowspan='2'>a</td></tr></table>", rows("a"), 1 - 1 / 3, 1 - 1 / 3),
        # broken span values count as 1
        ("<table><tr><td colspan='x' rowspan='0'>a</td></tr></table>", rows("a"), 1, 1),
        # columns swapped: both texts differ wholly, the shape is right
        (rows("a|b"), rows("b|a"), 1 - 2 / 4, 1),
        # nested table is text of its cell
        ("<table><tr><td>a<table><tr><td>b</td></tr></table></td></tr></table>", rows("a b"), 1, 1),
    ],
)
def test_teds(pred: str, truth: str, full: float, structure: float) -> None:
    assert teds(pred, truth) == pytest.approx(full)
    assert teds(truth, pred) == pytest.approx(full)
    assert teds(pred, truth, structure_only=True) == pytest.approx(structure)


def test_tables_of_finds_html_and_pipes_but_no_code() -> None:
    page = (
        f"text\n\n{SQUARE}\n\n| a | b\\|c |\n| --- | --- |\n| 1 |  |\n\n```\n| x | y |\n|---|---|\n```\n\n"
        "no | table\n\n<table><tr><td>cut off"
    )
    assert tables_of(page) == [
        SQUARE,
        "<table><tr><td>cut off",
        "<table><tr><td>a</td><td>b\\|c</td></tr><tr><td>1</td><td></td></tr></table>",
    ]


def test_pipe_and_html_tables_score_alike() -> None:
    pipes = "| aa | bb |\n|----|----|\n| cc | dd |"
    score = table_score(pipes, [SQUARE])
    assert (score.teds, score.teds_structure, score.surplus) == (1, 1, 0)


def test_missing_surplus_and_swapped_tables() -> None:
    other = rows("x")
    assert table_score("no table here", [SQUARE]).teds == 0
    assert table_score(other + SQUARE, [SQUARE, other]).teds == 1
    missing = table_score(SQUARE, [SQUARE, other])
    assert missing.teds == pytest.approx(1 / 2)
    surplus = table_score(SQUARE + other + other, [SQUARE])
    assert (surplus.teds, surplus.surplus) == (1, 2)


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
