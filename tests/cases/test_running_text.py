"""Cases 11, 17, 18, 28 and 29: code, hyphens, items, dollars, superscripts."""

from typing import Any

import pymupdf
from cases.conftest import LOREM, Convert, new_page, paragraphs, raw_pdf


def text_block(page: Any, lines: list[str], top: float = 100, left: float = 72, size: float = 11) -> None:
    for index, line in enumerate(lines):
        page.insert_text((left, top + 14 * index), line, fontsize=size)


def test_case_11_code_keeps_its_indents(converted: Convert) -> None:
    code = [
        "def total(values):", "    result = 0", "    for value in values:", "        if value > 0:",
        "            result += value", "        else:", "            result -= value", "    return result",
        "print(total([1, -2]))",
    ]  # fmt: skip
    shown = b" ".join(b"(%s) Tj T*" % line.replace("(", "\\(").replace(")", "\\)").encode() for line in code)
    font = "<</Type/Font/Subtype/Type1/BaseFont/Courier>>"
    markdown = converted(raw_pdf(b"BT /F1 11 Tf 13 TL 72 700 Td " + shown + b" ET", font))
    assert markdown.strip() == "```\n" + "\n".join(code) + "\n```"


def test_case_17_hyphens_at_line_ends(converted: Convert) -> None:
    document, page = new_page()
    text_block(page, [
        "We prepared a sample of the long chained substance n-",
        "tridecanal, and then ran both of the well known algo-",
        "rithms on what we know about the habits of the blood-",
        "feeding insects; every blood-feeding insect of the mid-",
        "to late season was counted, as the algorithms require.",
    ])  # fmt: skip
    markdown = converted(document)
    for word in ("n-tridecanal", "known algorithms on", "blood-feeding insects", "mid- to late"):
        assert word in markdown


def test_case_18_an_item_broken_at_a_hyphen_stays_one(converted: Convert) -> None:
    document, page = new_page()
    text_block(page, [
        "1. The first item is long enough to be broken in two where a hy-",
        "    phen stands at the end of its line.",
        "2. The second item is short.",
        "3. The third item is short too.",
    ])  # fmt: skip
    lines = converted(document).strip().split("\n")
    assert [line[:2] for line in lines] == ["1.", "2.", "3."]
    assert "where a hyphen stands" in lines[0]


def test_case_28_prices_are_no_formulas(converted: Convert) -> None:
    document, page = new_page()
    text_block(page, ["The price rose to $973.75/mt and a $3.50/mt premium was", "paid on top of that in the spring."])
    assert r"\$973.75/mt and a \$3.50/mt premium" in converted(document)


def test_case_29_raised_figures_and_note_marks(converted: Convert) -> None:
    document, page = new_page()
    text_block(page, [LOREM[:80], "", LOREM[80:160], LOREM[:80]])
    x = 72.0
    for text, size in (("The rate is near 10", 11), ("-6", 7), (" in most of the places we know", 11), ("1", 7)):
        page.insert_text((x, 114 if size == 11 else 110), text, fontsize=size)
        x += pymupdf.get_text_length(text, fontsize=size)
    page.insert_text((72, 700), "1", fontsize=6)
    page.insert_text((76, 703), "As far as anybody has counted.", fontsize=8)
    markdown = converted(document)
    assert "10<sup>-6</sup>" in markdown
    assert "know[^1]" in markdown
    assert paragraphs(markdown)[-1] == "[^1]: As far as anybody has counted."


def test_case_29_bullets_on_two_levels(converted: Convert) -> None:
    document, page = new_page()
    outer, inner = "\u2022", "\u2013"
    for index, (left, text) in enumerate(
        [(72, f"{outer} Fruit of the season"), (90, f"{inner} apples"), (90, f"{inner} pears"),
         (72, f"{outer} Bread of the day")]
    ):  # fmt: skip
        page.insert_text((left, 100 + 15 * index), text, fontsize=11, fontname="helv", encoding=0)
    markdown = converted(document)
    assert markdown.strip().split("\n") == ["- Fruit of the season", "  - apples", "  - pears", "- Bread of the day"]
