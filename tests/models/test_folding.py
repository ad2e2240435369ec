"""Folding: what is taken for the same text, and what is not."""

import pytest

from gravityocr_models.folding import fold_text, without_code, without_comments


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


def test_code_and_comments_can_be_left_out() -> None:
    assert without_code("a\n```py\n# b\n```\nc\n~~~\nno end") == "a\n\nc\n"
    assert without_comments("a<!-- b\n<!-- c -->d") == "a d"
