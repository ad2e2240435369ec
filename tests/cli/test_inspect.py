"""`gravityocr inspect`: the page, its regions, and its text by forward pass."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli.conftest import FakeEngine

from gravityocr_cli.errors import MissingInput, UsageError
from gravityocr_cli.inspect import coloured, page_of, run
from gravityocr_cli.settings import PageRanges, Settings, TextLayer
from gravityocr_models.records import Decoded

SECOND = Settings(pages=PageRanges(((2, 2),)), text_layer=TextLayer.OFF)


def paint(text: str) -> Callable[[Any], None]:
    return lambda page: page.insert_text((72, 100), text, fontsize=14)


@pytest.mark.usefixtures("no_layout")
def test_a_page_with_its_regions_and_its_tokens(make_pdf: Callable[..., Path]) -> None:
    path = make_pdf(paint("first page"), paint("second page"))
    html = page_of(path, 2, FakeEngine("a <b>"), lambda ids: "a <b>"[: len(ids)], SECOND)
    assert "made.pdf, page 2" in html
    assert html.count("<rect ") == 1
    assert "1: text, model, 6 tokens in 1 forwards, confidence 0.99" in html
    assert '<span style="background:#ffe08a" title="forward 1: 6 tokens">a &lt;b&gt;</span>' in html
    assert html.endswith("</html>\n")


def test_each_forward_has_its_colour_and_no_character_is_cut() -> None:
    text = "xéyz".encode()
    answer = Decoded("xéyz", tuple(range(len(text))), (2, 1, 3), 0.9)  # the first forward ends within the é
    html = coloured(answer, lambda ids: text[: len(ids)].decode("utf-8", "replace"))
    assert [part.split("</span>")[0] for part in html.split('">')[1:]] == ["x", "é", "yz"]
    assert len({part[:7] for part in html.split("background:")[1:]}) == 3


def test_a_kept_layer_has_no_forwards_to_show() -> None:
    kept = Decoded("a & b", (1, 2), (3,), 0.9, 0.9, kept_layer=True)
    assert coloured(kept, lambda ids: "") == '<span title="text layer, kept">a &amp; b</span>'


def test_a_page_that_is_not_there(make_pdf: Callable[..., Path], tmp_path: Path) -> None:
    path = make_pdf(paint("one"))
    for page in (0, 2):
        with pytest.raises(UsageError):
            run(path, page, tmp_path / "out.html")
    with pytest.raises(MissingInput):
        run(tmp_path / "gone.pdf", 1, tmp_path / "out.html")
