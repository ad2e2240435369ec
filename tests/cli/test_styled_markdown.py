"""Styles in Markdown, read back by a CommonMark parser."""

import random
import re

import pytest
from markdown_it import MarkdownIt

from gravityocr_cli.blocks import block_of
from gravityocr_cli.document import Block, Kind, Line, Region, Span, Style
from gravityocr_cli.inline import Run
from gravityocr_cli.markdown import escape, write_markdown
from gravityocr_cli.settings import Math, Tables
from gravityocr_models.signs import Box

PARSER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
BOLD, ITALIC, CODE, RAISED, LOWERED = (
    Style(bold=True),
    Style(italic=True),
    Style(code=True),
    Style(script=1),
    Style(script=-1),
)
BOTH, LINK = Style(bold=True, italic=True), Style(link="https://a.b/c (d)")


def spread(*spans: tuple[str, Style]) -> tuple[str, tuple[Run, ...]]:
    text, runs = "", []
    for part, style in spans:
        if style != Style():
            runs.append(Run(len(text), len(text) + len(part), style))
        text += part
    return text, tuple(runs)


def shown(*spans: tuple[str, Style]) -> str:
    text, runs = spread(*spans)
    return escape(text, runs=runs)


PLAIN = Style()


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([("a ", PLAIN), ("b c", BOLD), (" d", PLAIN)], "a **b c** d"),
        ([("a ", PLAIN), ("b", ITALIC), (", d", PLAIN)], "a *b*, d"),
        ([("b", BOTH)], "***b***"),
        ([("10", PLAIN), ("-6", RAISED), (" m", PLAIN)], "10<sup>-6</sup> m"),
        ([("H", PLAIN), ("2", LOWERED), ("O", PLAIN)], "H<sub>2</sub>O"),
        ([("un", PLAIN), ("believ", ITALIC), ("able", PLAIN)], "un<i>believ</i>able"),
        ([("call ", PLAIN), ("f(*x)", CODE), (" now", PLAIN)], "call `f(*x)` now"),
        ([("with ", PLAIN), ("a`b", CODE)], "with ``a`b``"),
        ([("see ", PLAIN), ("here [1]", LINK)], "see [here \\[1\\]](https://a.b/c%20%28d%29)"),
        ([("2 * 3 is ", PLAIN), ("six", ITALIC)], "2 \\* 3 is *six*"),
        ([("said", PLAIN), ("1", Style(note="1")), (".", PLAIN)], "said[^1]."),
        ([("so $x", BOLD), ("_1$ is", PLAIN)], "so $x_1$ is"),
    ],
)
def test_styles(spans: list[tuple[str, Style]], expected: str) -> None:
    assert shown(*spans) == expected


@pytest.mark.parametrize("seed", range(8))
def test_random_styles_never_change_the_text(seed: int) -> None:
    chance = random.Random(seed)
    words = [
        "a",
        "Bc",
        "*",
        "**",
        "_x_",
        "(",
        ")",
        ".",
        "[1]",
        "`",
        "é",
        "<b",
        "2",
        "~",
        "\\",
        "!",
        "](",
        " ",
        " ",
        " - ",
    ]
    styles = [PLAIN, PLAIN, BOLD, ITALIC, BOTH, RAISED, LOWERED, LINK, CODE]
    for _ in range(500):
        spans = [("".join(chance.choices(words, k=chance.randint(1, 4))).strip() or "x", chance.choice(styles))
                 for _ in range(chance.randint(1, 5))]  # fmt: skip
        spans = [each for pair in spans for each in (pair, (chance.choice(["", " "]), PLAIN))]
        text, runs = spread(*spans)
        if " ".join(text.split()) != text:
            continue
        written = escape(text, runs=tuple(run for run in runs if run.start < run.end))
        html = PARSER.renderInline("." + written)[1:]
        bare = re.sub(r"</?(?:b|i|em|strong|sup|sub|code|a)(?: [^>]*)?>", "", html)
        plain = bare.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
        assert plain == text, (spans, written)


def block(kind: Kind, text: str, lines: tuple[Line, ...] = ()) -> Block:
    return block_of(Region(1, 0, kind, Box(72, 72, 400, 100), lines), text)


def test_forms_of_tables_and_mathematics() -> None:
    table = block(Kind.TABLE, "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>")
    formula, text = block(Kind.FORMULA, "x^2"), block(Kind.TEXT, "so $x_1$ holds")
    written = "".join(write_markdown([(1, [table, formula, text])], tables=Tables.AUTO, math=Math.BRACKET))
    assert written == "| a | b |\n| --- | --- |\n| 1 | 2 |\n\n\\[\nx^2\n\\]\n\nso \\(x_1\\) holds\n"


def test_the_outline_of_the_pdf_makes_headings() -> None:
    pages = [(1, [block(Kind.TEXT, "3 Deep Down"), block(Kind.TEXT, "Some text.")])]
    written = "".join(write_markdown(pages, contents=[(2, "Deep Down", 1), (1, "Some text.", 2)]))
    assert written == "### 3 Deep Down\n\nSome text.\n"


def test_an_italic_heading_is_only_a_heading() -> None:
    line = Line(Box(72, 72, 200, 82), "A. Aims", 10, spans=(Span("A. Aims", ITALIC),))
    assert "".join(write_markdown([(1, [block(Kind.HEADING, "A. Aims", (line,))])])) == "## A. Aims\n"


def test_a_caption_keeps_its_styles() -> None:
    line = Line(Box(72, 172, 300, 182), "Table 1. Rate", 10, spans=(Span("Table 1.", BOLD), Span(" Rate", PLAIN)))
    caption = block_of(Region(1, 1, Kind.CAPTION, Box(72, 172, 300, 182), (line,)), "Table 1. Rate")
    table = block(Kind.TABLE, "<table><tr><td>1</td></tr></table>")
    written = "".join(write_markdown([(1, [table, caption])]))
    assert written == "**Table 1.** Rate\n\n<table>\n<tr><td>1</td></tr>\n</table>\n"


def test_what_is_encoded_in_an_address_stays_so() -> None:
    assert shown(("here", Style(link="https://a.b/%C3%86 (x)"))) == "[here](https://a.b/%C3%86%20%28x%29)"
