"""The HTML report: self-contained, escaped, the worst pages first."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gravityocr_cli.document import Page
from gravityocr_cli.evalreport import WORST, badness, marked, page_of, picture_of
from gravityocr_cli.report import Method, RegionReport
from gravityocr_cli.scoring import Case, Reading, Result, Scored, Suite

EVIL = "<script>alert('x')</script> & \"q\""
REGION = RegionReport(0, "table", (10.0, 20.0, 30.0, 60.0), Method.MODEL, confidence=0.5)


def result_of(path: Path, name: str, overall: float | None, markdown: str = "read", error: str = "") -> Result:
    truth = (("text", f"true {EVIL}"), ("table", f"<table><tr><td>{EVIL}</td></tr></table>"), ("headings", EVIL))
    case = Case(name, "kind <b>", path, truth, lambda markdown: Scored({}))
    reading = Reading(markdown, (REGION,))
    return Result(case, reading, {"text": overall, "order_edit": 0.25}, overall, {"failed_tests": ["t<1>"]}, 0.0, error)


def suite_of(*results: Result) -> Suite:
    return Suite(
        tuple(result.case for result in results),
        {"text": "text", "order_edit": "order edit"},
        lambda scores: scores.get("text"),
        "a & b",
    )


@pytest.fixture
def page(tmp_path: Path) -> Path:
    Image.new("RGB", (85, 110), "white").save(tmp_path / "page.png")
    return tmp_path / "page.png"


class Checker(HTMLParser):
    """Collects tags, and fails on one that is closed without having been opened."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        if tag not in ("meta", "rect", "image"):
            self.opened.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.opened.pop() == tag


def test_everything_from_a_page_is_escaped_and_nothing_is_loaded(page: Path) -> None:
    markdown = f"read {EVIL} <table><tr><td colspan=100000>{EVIL}</td></tr></table> $a<b$"
    result = result_of(page, "page <1>", 0.5, markdown, error="bad <thing>")
    html = page_of("eval <x>", suite_of(result), [result])
    checked = Checker(html)
    assert checked.opened == []
    assert "script" not in checked.tags
    assert checked.links
    assert all(link.startswith("data:image/jpeg;base64,") for link in checked.links)
    assert "&lt;script&gt;" in html
    assert 'colspan="100"' in html
    assert "bad &lt;thing&gt;" in html
    assert "t&lt;1&gt;" in html


def test_the_worst_pages_come_first_and_only_so_many(page: Path) -> None:
    results = [result_of(page, f"p{number:02}", number / 20) for number in range(20, 0, -1)]
    html = page_of("t", suite_of(*results), results)
    shown = re.findall(r"<h2>(p\d\d)</h2>", html)
    assert shown == [f"p{number:02}" for number in range(1, WORST + 1)]
    assert "<td>kind &lt;b&gt;</td><td>20</td>" in html


def test_without_an_overall_score_the_others_count(page: Path) -> None:
    result = result_of(page, "a", None)
    assert badness(result) == 0.75  # an order edit of 0.25
    assert badness(result_of(page, "a", 0.5)) == 0.5


def test_boxes_stand_in_points_over_the_page() -> None:
    page = Page(1, 612, 792, 96, np.zeros((1056, 816, 3), np.uint8))
    svg = picture_of(page, [REGION])
    assert 'viewBox="0 0 612.0 792.0"' in svg
    assert '<rect x="10.0" y="20.0" width="20.0" height="40.0"' in svg
    assert "1: table, model, confidence 0.50" in svg


def test_a_page_that_cannot_be_shown_is_said(tmp_path: Path) -> None:
    result = result_of(tmp_path / "gone.png", "a", 0.0)
    assert "gone.png: no such file" in page_of("t", suite_of(result), [result])


def test_words_of_one_side_are_marked() -> None:
    assert marked("a b c", "a x c d") == ("a <del>b</del> c", "a <ins>x</ins> c <ins>d</ins>")
    assert marked("", "a <b> c") == ("", "a c")
    assert marked("1 < 2", "") == ("<del>1 &lt; 2</del>", "")
