"""Which fonts are a typewriter's."""

from typing import Any

import pymupdf
import pytest

from gravityocr_cli.typewriter import is_mono, with_typewriters


def page_in(font: str, text: str) -> dict[str, Any]:
    """A page of text in a font whose name and flags say nothing."""
    page = pymupdf.open().new_page()
    page.insert_text((72, 72), text, fontname=font)
    raw: dict[str, Any] = page.get_text("rawdict")
    for block in raw["blocks"]:
        for line in block["lines"]:
            for span in line["spans"]:
                span.update(font="Unnamed", flags=4)
    return raw


@pytest.mark.parametrize(
    ("font", "text", "told"),
    [
        ("cour", "while (<OLD>) { print; }", True),
        ("helv", "while (<OLD>) { print; }", False),
        ("helv", "0123456789 - 2468 = 34", False),  # figures are one width in most fonts
        ("cour", "print", False),  # too little to tell
    ],
)
def test_letters_of_one_width_are_a_typewriters(font: str, text: str, told: bool) -> None:
    (block,) = with_typewriters(page_in(font, text))["blocks"]
    assert all(is_mono(span) is told for span in block["lines"][0]["spans"])


@pytest.mark.parametrize(("name", "told"), [("ABCDEF+CMTT10", True), ("t1xtt", True), ("Monotype Corsiva", False)])
def test_names_tell(name: str, told: bool) -> None:
    assert is_mono({"font": name, "flags": 4}) is told
