"""Markdown syntax, checked by reading it back with a CommonMark parser."""

import random
from collections.abc import Sequence

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from gravityocr_cli.blocks import block_of, lost_block
from gravityocr_cli.document import Block, Kind, Line, Region
from gravityocr_cli.markdown import _alt, escape, write_markdown
from gravityocr_models.signs import Box

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def block(kind: Kind, text: str, order: int = 0, page: int = 1) -> Block:
    return block_of(Region(page, order, kind, Box(72, 72 + 40 * order, 400, 100 + 40 * order)), text)


def written(*blocks: Block) -> str:
    return "".join(write_markdown([(1, blocks)]))


def literal(tokens: Sequence[Token]) -> str:
    """The literal text of a document that is one paragraph and nothing else; "?" where it is more than text."""
    if [token.type for token in tokens] != ["paragraph_open", "inline", "paragraph_close"]:
        return "? " + " ".join(token.type for token in tokens)
    children = tokens[1].children or []
    if any(child.type != "text" for child in children):
        return "? " + " ".join(child.type for child in children)
    return "".join(child.content for child in children)


@pytest.mark.parametrize(
    "text",
    [
        "# not a heading", "#", "####### seven", "> not a quote", "- not a list", "+ nor this", "* nor that", "-",
        "1. no", "12) no", "| a | b |", "---", "* * *", "___", "~~~ tilde", "``` fence", "[x] task", "[id]: http://x.y",
        "a *b* c", "**bold**", "a_b_c", "_a_", "a * b * c", "2*3*4", "`code`", "one ` alone", "<b>bold</b>",
        "a < b > c", "<http://a.b>", "<!-- x -->", "&amp; &copy; &#65; & co", "[link](url)", "![image](url)",
        "[1], [2]", "~~struck~~", "~5 and ~6", "back\\slash \\* \\\\", "ends in \\", "===", "1986. A great year",
        "C:\\dir\\[x](y)", "x](y)", "!",
    ],
)  # fmt: skip
def test_literal_text_stays_literal(text: str) -> None:
    assert literal(PARSER.parse(escape(text))) == text


@pytest.mark.parametrize(
    "text",
    [
        "a snake_case name", "5 * 3 = 15", "f(x) < 3", "see [12] and [13]", "AT&T", "3 > 2 - 1", "one $ alone", "C#",
        "a|b", "p* is one star", "tilde ~5", "10-20", "path\\to", "1.5 mg", "-5 degrees", "#hashtag", "it's `one",
    ],
)  # fmt: skip
def test_nothing_is_escaped_for_nothing(text: str) -> None:
    assert escape(text) == text


@pytest.mark.parametrize("seed", range(4))
def test_random_text_comes_back(seed: int) -> None:
    chance = random.Random(seed)
    pieces = [
        *"*_`<>[]()!#+-=|~&;:\\.\"'/ab1 Zéß中。“”…€",
        "  ",
        "http://",
        "&lt;",
        "1.",
        "- ",
        "**",
        "](",
        "<a",
        "\u00a0",
    ]
    for _ in range(300):
        text = "".join(chance.choices(pieces, k=chance.randint(1, 14)))
        source = " ".join(text.split())
        if source:
            assert literal(PARSER.parse(escape(text))) == source, repr(text)


@pytest.mark.parametrize("kind", [Kind.TITLE, Kind.FOOTNOTE, Kind.LIST, Kind.PICTURE])
def test_random_text_comes_back_from_every_block(kind: Kind) -> None:
    chance = random.Random(7)
    pieces = [*"*_`<>[]()!#+-=|~&\\.a1 Z", " ", "1.", "# ", "**", "](", "word"]
    painted = (Line(Box(0, 0, 99, 9), "a text layer", 10),)  # so that no hash is taken for a model's
    for _ in range(150):
        text = " ".join("".join(chance.choices(pieces, k=8)).split()) + chance.choice(["", "x", "#", "\\"])
        if kind is Kind.PICTURE:
            blocks = [block(kind, "a.png"), block(Kind.CAPTION, text, 1)]
        else:
            region = Region(1, 0, kind, Box(0, 0, 99, 9), painted)
            blocks = [block_of(region, f"• a{text}\n• {text}\n• end" if kind is Kind.LIST else text)]
        inline = [token for token in PARSER.parse(written(*blocks)) if token.type == "inline"]
        got = ["".join(child.content for child in token.children or []) for token in inline]
        if kind is Kind.LIST and text.strip():
            assert got == [f"a{text}".rstrip(), text.strip(), "end"]
        elif kind is Kind.PICTURE and text.strip():
            image = (inline[0].children or [])[0]
            assert [child.type for child in inline[0].children or []] == ["image"]
            assert "".join(child.content for child in image.children or []) == text.strip()
            assert got[1] == text.strip()
        elif text.strip():
            assert got == [text.strip()]


def test_case_28_prices_are_prices() -> None:
    assert escape("$973.75/mt and a $3.50/mt") == "\\$973.75/mt and a \\$3.50/mt"
    for text in (
        "US$5 and A$6",
        "$5 or $x",
        "costs $10-$20.",
        "$HOME/foo_bar:$PATH",
        "for (; $i++) { ($x, $y)",
        "$20,000 and USD$30,000",
        "5$ to 6$",
    ):
        assert literal(PARSER.parse(escape(text))) == text
        assert "$" not in escape(text).replace("\\$", "")


@pytest.mark.parametrize(
    "text",
    [
        "let $x$ be", "$x_1$, $x_2$", "$\\alpha$-stable", "the $n$th", "$10^{-6}$", "$E = mc^2$.", "设$x_i$为",
        "$\\text{if } x$", "$a*b*c$ with $d$", "$$x^2$$", "$f(x)$", "$CRC_{u}(M(x), v)$", "$\\{1, \\dots, n\\}$",
    ],
)  # fmt: skip
def test_inline_mathematics_survives(text: str) -> None:
    assert escape(text) == text


def test_mathematics_among_money() -> None:
    assert escape("pay $5 for $x_1$ and $6") == "pay \\$5 for $x_1$ and \\$6"
    assert escape("$a<b$") == "$a< b$"


def test_headings() -> None:
    assert written(block(Kind.TITLE, "On C# #"), block(Kind.HEADING, "1. *Start*", 1)) == (
        "# On C# \\#\n\n## 1. \\*Start\\*\n"
    )


def test_nested_list_reads_back_as_nested() -> None:
    text = "1. one\n2. two\n   • in\n   • in too\n3. three\n   4. four"
    tokens = PARSER.parse(written(block(Kind.LIST, text)))
    depth, items = 0, []
    for token in tokens:
        depth += {"list_item_open": 1, "list_item_close": -1}.get(token.type, 0)
        if token.type == "inline":
            items.append((depth, token.content))
    assert items == [(1, "one"), (1, "two"), (2, "in"), (2, "in too"), (1, "three"), (2, "four")]
    assert [token.attrs for token in tokens if token.type == "ordered_list_open"] == [{}, {"start": 4}]


def test_one_bullet() -> None:
    out = written(block(Kind.LIST, "• a\n• # b\n• [ ] c"))
    assert out == "- a\n- \\# b\n- [ ] c\n"


def test_number_after_bullet_starts_its_own_list() -> None:
    tokens = PARSER.parse(written(block(Kind.LIST, "- a\n3. b")))
    assert [token.content for token in tokens if token.type == "inline"] == ["a", "b"]


def test_code_fence_outgrows_its_content() -> None:
    out = written(block(Kind.CODE, "  a\n````\n\nb"))
    assert out == "`````\n  a\n````\n\nb\n`````\n"
    assert PARSER.parse(out)[0].content == "  a\n````\n\nb\n"


def test_formula() -> None:
    out = written(block(Kind.FORMULA, "$$ - a\n+ b<c \\quad (3) $$"))
    assert out == "$$\n-a + b< c \\tag{3}\n$$\n"


def test_table_is_one_html_block_after_its_caption() -> None:
    out = written(block(Kind.TABLE, "<table><tr><td>*a*</table>", 0), block(Kind.CAPTION, "Table 1: *All*", 1))
    assert out == "Table 1: \\*All\\*\n\n<table>\n<tr><td>*a*</td></tr>\n</table>\n"
    assert [token.type for token in PARSER.parse(out)][-1] == "html_block"


def test_figure_before_its_caption() -> None:
    caption = "Fig. 1. A [b] *c* " + "long " * 40
    out = written(block(Kind.CAPTION, caption, 0), block(Kind.PICTURE, "x_images/a (1).png", 1))
    tokens = PARSER.parse(out)
    image = (tokens[1].children or [])[0]
    assert image.type == "image"
    assert image.attrs["src"] == "x_images/a%20%281%29.png"
    assert image.content.replace("\\", "").startswith("Fig. 1. A [b] *c* long")
    assert len(image.content) < 140
    assert "".join(child.content for child in tokens[4].children or []) == caption.strip()


def test_an_image_path_is_not_normalised() -> None:
    assert written(block(Kind.PICTURE, "cafe\u0301/a.png")) == "![](cafe%CC%81/a.png)\n"


def test_lost_parts_are_named() -> None:
    region = Region(3, 4, Kind.TEXT, Box(0, 0, 1, 1))
    out = "".join(write_markdown([(3, [lost_block(region, "time -- limit --> x")])]))
    assert out == "<!-- gravityocr: page 3, region 4: not read (time - - limit - - x) -->\n"
    assert [token.type for token in PARSER.parse(out)] == ["html_block"]


def test_output_is_clean() -> None:
    out = written(block(Kind.TEXT, "e\u0301ﬁn\x07 lone soft\u00ad"), block(Kind.TEXT, "Next.", 1))
    assert out == "éfin lone soft\n\nNext.\n"
    out.encode("utf-8")


def test_case_34_every_script() -> None:
    assert written(block(Kind.TEXT, "漢字と\n仮名 😀")) == "漢字と仮名 😀\n"


def test_page_breaks() -> None:
    pages = [(number, [block(Kind.TEXT, f"Page {number}.", page=number)]) for number in (3, 5)]
    assert "".join(write_markdown(pages, "<!-- page {page} -->")) == "Page 3.\n\n<!-- page 5 -->\n\nPage 5.\n"
    assert "".join(write_markdown(pages)) == "Page 3.\n\nPage 5.\n"


def test_nothing_is_nothing() -> None:
    assert "".join(write_markdown([])) == ""
    assert written(block(Kind.TEXT, ""), block(Kind.PICTURE, ""), block(Kind.TABLE, "")) == ""


def test_maths_of_a_caption_is_plain_in_alternative_text() -> None:
    assert _alt(r"Figure 1: $\mathbf{E}\cdot\nu$ at $N = 3$, for $5") == "Figure 1: E⋅ν at N = 3, for $5"
