"""Clean-up of answers, kind by kind."""

import re
from dataclasses import replace

import pytest

from gravityocr_cli.blocks import block_of, clean, lost_block
from gravityocr_cli.document import Kind, Line, Region, Span, Style
from gravityocr_models.signs import Box


def region(kind: Kind, *lines: Line) -> Region:
    return Region(1, 0, kind, Box(0, 0, 400, 400), lines)


def mono(text: str, column: int, row: int) -> Line:
    x0, y0 = 72 + 6.6 * column, 100 + 13.2 * row
    return Line(Box(x0, y0, x0 + 6.6 * len(text), y0 + 12), text, 11.0, mono=True)


def content(kind: Kind, answer: str, *lines: Line) -> str:
    return block_of(region(kind, *lines), answer).text


def test_clean() -> None:
    assert clean("e\u0301ﬃcient\x00 \x1bcafe\u0301\ufeff\r\nnext\u2028last\x85") == "éfficient café\nnext\nlast\n"
    assert clean("soft\u00adware ends soft\u00ad\nly") == "software ends soft\u00ad\nly"
    assert clean("\ud800a\ufffe") == "a"
    assert clean("👩‍🔬 漢字") == "👩‍🔬 漢字"  # the joiner in the emoji stays


def test_text_keeps_painted_lines_and_paragraphs() -> None:
    assert content(Kind.TEXT, "  one\ttwo  \nthree\n \n\n\nfour ") == "one two\nthree\n\nfour"
    assert content(Kind.TEXT, "so $ \\alpha_1 $ costs 5 $ and 6 $ more") == "so $\\alpha_1$ costs 5 $ and 6 $ more"


def test_headings_lose_a_model_s_hashes_only() -> None:
    line = Line(Box(0, 0, 9, 9), "# of items", 12)
    assert content(Kind.HEADING, "## Results\n") == "Results"
    assert content(Kind.HEADING, "# of items", line) == "# of items"


PYTHON = ["import sys", "def f(x):", "if x:", "return {", "'a': 1,", "}", "return None", "if __name__:", "f(1)"]
COLUMNS = [0, 0, 4, 8, 12, 8, 4, 0, 4]


def test_case_11_indents_come_from_the_page() -> None:
    lines = [mono(text, column, row) for row, (text, column) in enumerate(zip(PYTHON, COLUMNS, strict=True))]
    expected = "\n".join(" " * column + text for text, column in zip(PYTHON, COLUMNS, strict=True))
    assert content(Kind.CODE, "\n".join(PYTHON), *lines) == expected


def test_blank_code_lines_come_from_the_page_too() -> None:
    lines = [mono("a = 1", 0, 0), mono("b = 2", 0, 1), mono("c = 3", 0, 3)]
    assert content(Kind.CODE, "a = 1\nb = 2\nc = 3", *lines) == "a = 1\nb = 2\n\nc = 3"


def test_blanks_within_code_are_as_many_as_were_set() -> None:
    lines = [
        replace(mono(re.sub(" +", " ", text), 0, row), spans=(Span(text, Style(code=True)),))
        for row, text in enumerate(["a    = 1", "long = 2"])
    ]
    assert content(Kind.CODE, "a = 1\nlong = 2", *lines) == "a    = 1\nlong = 2"


def test_code_that_a_model_read_keeps_its_own_indents() -> None:
    lines = [mono("a = 1", 0, 0), mono("b = 2", 4, 1)]
    assert content(Kind.CODE, "```python\nif a:\n\tb = 3\n```", *lines) == "if a:\n    b = 3"
    assert content(Kind.CODE, "\n\n  x\n y \n") == "  x\n y"


def test_bulleted_text_is_a_list() -> None:
    block = block_of(region(Kind.TEXT), "• one\n\n  • two")
    assert block.region.kind is Kind.LIST
    assert block.text == "• one\n  • two"


@pytest.mark.parametrize(
    ("answer", "latex"),
    [
        ("$$ x^2 $$", "x^2"),
        ("\\[\nx\n\n+ y\n\\]", "x\n+ y"),
        ("$x$", "x"),
        ("\\begin{equation}\nE = mc^2\n\\end{equation}", "E = mc^2"),
        ("$$\\begin{align*} a &= b \\\\ c &= d \\end{align*}$$", "\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}"),
        ("E = mc^{2} \\quad (3)", "E = mc^{2} \\tag{3}"),
        ("E = m \\qquad \\text{(A.3)}", "E = m \\tag{A.3}"),
        ("a + b = c^2 (12a)", "a + b = c^2 \\tag{12a}"),
        ("y = f (3)", "y = f (3)"),
        ("y = f(3)", "y = f(3)"),
        ("y = \\Gamma (3)", "y = \\Gamma (3)"),
        ("x \\tag{1} (2)", "x (2) \\tag{1}"),
        ("$$$$", ""),
    ],
)
def test_formulas(answer: str, latex: str) -> None:
    assert content(Kind.FORMULA, answer) == latex


def test_tables() -> None:
    block = block_of(region(Kind.TABLE), "Sure: <table><tr><td>a")
    assert block.text == "<table>\n<tr><td>a</td></tr>\n</table>"
    assert block.warnings == ("text around the table left out",)
    cells = (Line(Box(0, 0, 20, 10), "k", 10), Line(Box(90, 0, 110, 10), "v", 10))
    assert content(Kind.TABLE, "k v", *cells) == "<table>\n<tr><td>k</td><td>v</td></tr>\n</table>"
    assert (
        content(Kind.TABLE, "k  v\n1  2")
        == "<table>\n<tr><td>k</td><td>v</td></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>"
    )
    assert content(Kind.TABLE, "|a|b|\n|--|--|\n|1|2|").count("<th>") == 2
    assert content(Kind.TABLE, "") == ""


def test_pictures_keep_their_path() -> None:
    path = "a_images/p1 cafe\u0301.png"
    assert content(Kind.PICTURE, path) == path


def test_lost() -> None:
    block = lost_block(region(Kind.TABLE), " too\nlong ")
    assert (block.text, block.lost) == ("", "too long")
    assert lost_block(region(Kind.TEXT), "").lost == "unknown reason"


def test_indented_rows_start_paragraphs() -> None:
    texts = [
        "It ends here",
        "in this row.",
        "A new one starts",
        "and goes on. Then",
        "The capital is no",
        "start at the edge.",
    ]
    edges = [50, 50, 62, 50, 50, 50]
    rows = tuple(
        Line(Box(x, 100 + 12 * n, 300, 110 + 12 * n), text, 10)
        for n, (x, text) in enumerate(zip(edges, texts, strict=True))
    )
    made = block_of(Region(1, 0, Kind.TEXT, Box(50, 100, 300, 180), rows), "\n".join(texts))
    assert [part.split("\n")[0] for part in made.text.split("\n\n")] == ["It ends here", "A new one starts"]


def test_rows_under_more_white_start_paragraphs() -> None:
    def row(y: float, right: float = 380) -> Line:
        return Line(Box(72, y, right, y + 10), "x", 10)

    text = "We prove the following\nTheorem 1. It holds\nfor all of them."
    assert content(Kind.TEXT, text, row(0, 200), row(19), row(31)).count("\n\n") == 1
    assert content(Kind.TEXT, text, row(0), row(19), row(31)).count("\n\n") == 0  # a full row that ends no sentence
    assert content(Kind.TEXT, text, row(0, 200), row(13), row(26)).count("\n\n") == 0


@pytest.mark.parametrize(
    ("texts", "edges", "parts"),
    [
        (["Copy the files.", "Then run the program", "on a system of this kind"], [50, 50, 50], 2),
        (["Words that fill a row", "And go on with another", "long row of text"], [50, 50, 50], 1),
        (["A short row", "incomprehensibly goes on", "and says something"], [50, 50, 50], 1),
        (["Short.", "Incomprehensibilities come", "and go as they like it"], [50, 50, 50], 1),  # had no room
        (["Centred", "Lines of a Title Page", "By Somebody"], [92, 55, 80], 1),
    ],
)
def test_a_row_whose_first_word_had_room_above_starts_a_paragraph(
    texts: list[str], edges: list[float], parts: int
) -> None:
    rows = [
        Line(Box(x, 100 + 12 * n, x + 6 * len(text), 110 + 12 * n), text, 10)
        for n, (text, x) in enumerate(zip(texts, edges, strict=True))
    ]
    assert len(content(Kind.TEXT, "\n".join(texts), *rows).split("\n\n")) == parts


@pytest.mark.parametrize(("bold", "rest", "parts"), [("Lemma 3.1.", " It is so.", 2), ("Bold", " words go on", 1)])
def test_a_bold_head_after_a_sentence_starts_a_paragraph(bold: str, rest: str, parts: int) -> None:
    head = (Span(bold, Style(bold=True)), Span(rest))
    texts = ["We have the following.", bold + rest, "and then some more of it"]
    lines = [Line(Box(50, 100 + 12 * n, 300, 110 + 12 * n), text, 10) for n, text in enumerate(texts)]
    lines[1] = replace(lines[1], spans=head)
    assert len(content(Kind.TEXT, "\n".join(texts), *lines).split("\n\n")) == parts
