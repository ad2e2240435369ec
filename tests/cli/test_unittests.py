"""Unit tests of pages: each kind passing and failing, by hand-made pages."""

from typing import Any

import pytest

from gravityocr_cli.unittests import UnitTest, failed, places, read_test, share_passed

# Region spans two rows, Year two columns:   Region | Year      | Sum
#                                                   | 2001 2002 |
#                                            North  | 1    2    | 3
TABLE = (
    "<table><tr><th rowspan=2>Region</th><th colspan=2>Year</th><th rowspan=2>Sum</th></tr>"
    "<tr><th>2001</th><th>2002</th></tr><tr><td>North</td><td>1</td><td>2</td><td>3</td></tr></table>"
)
PAGE = f"# Head\n\nThe *quick* brown fox, well-\nknown, jumps.\n\n{TABLE}\n\nEuler: $$e^{{i\\pi}} + 1 = 0$$ Page 7"


def passes(page: str, **test: Any) -> bool:
    return not failed(page, [UnitTest("t", **test)])


@pytest.mark.parametrize(
    ("right", "test"),
    [
        (True, {"type": "present", "text": "quick brown fox, wellknown"}),
        (True, {"type": "present", "text": "**quick** brown fox"}),
        (False, {"type": "present", "text": "quick red fox"}),
        (False, {"type": "present", "text": "Quick brown"}),
        (True, {"type": "present", "text": "Quick brown", "case_sensitive": False}),
        (False, {"type": "present", "text": "quack brown fax", "max_diffs": 1}),
        (True, {"type": "present", "text": "quack brown fax", "max_diffs": 2}),
        (True, {"type": "present", "text": "quickk brown fx", "max_diffs": 2}),
        (True, {"type": "present", "text": "Head", "first_n": 4}),
        (False, {"type": "present", "text": "Head", "last_n": 20}),
        (True, {"type": "absent", "text": "Head", "last_n": 20}),
        (False, {"type": "absent", "text": "7", "last_n": 5}),
        (True, {"type": "present", "text": "Head", "first_n": 4, "last_n": 4}),
        (False, {"type": "absent", "text": "fox"}),
        (True, {"type": "absent", "text": "PLOS"}),
        (True, {"type": "order", "before": "Head", "after": "fox"}),
        (False, {"type": "order", "before": "fox", "after": "Head"}),
        (False, {"type": "order", "before": "Head", "after": "nowhere"}),
        (True, {"type": "table", "cell": "1", "left": "North"}),
        (True, {"type": "table", "cell": "1", "right": "2", "up": "2001"}),
        (False, {"type": "table", "cell": "1", "right": "2", "up": "2002"}),
        (False, {"type": "table", "cell": "1", "right": "3"}),
        (True, {"type": "table", "cell": "2", "top_heading": "Year"}),
        (True, {"type": "table", "cell": "2", "top_heading": "2002"}),
        (False, {"type": "table", "cell": "2", "top_heading": "2001"}),
        (False, {"type": "table", "cell": "2", "top_heading": "Region"}),
        (True, {"type": "table", "cell": "3", "up": "Sum", "left_heading": "North"}),
        (True, {"type": "table", "cell": "Year", "left": "Region", "right": "Sum", "down": "2002"}),
        (True, {"type": "table", "cell": "2001", "left": "Region"}),
        (False, {"type": "table", "cell": "Nort", "right": "1"}),
        (True, {"type": "table", "cell": "Nort", "right": "1", "max_diffs": 1}),
        (True, {"type": "math", "math": r"e^{i \pi}+1=0"}),
        (True, {"type": "math", "math": r"e^{i\pi}"}),
        (False, {"type": "math", "math": r"e^{i \pi}-1=0"}),
    ],
)
def test_each_kind(right: bool, test: dict[str, Any]) -> None:
    assert passes(PAGE, **test) is right


def test_an_empty_page_passes_none_and_the_share_is_counted() -> None:
    tests = [UnitTest("a", "absent", text="x"), UnitTest("b", "present", text="fox")]
    for empty in ("", " \n", "<!-- gravityocr: page 1 -->", "![](images/a.png)"):
        assert share_passed(empty, tests) == 0
    assert share_passed("a dog", tests) == 0.5
    assert [test.id for test in failed("a dog", tests)] == ["b"]


def test_pipe_tables_count_too() -> None:
    page = "| a | b |\n|---|---|\n| 1 | 2 |"
    assert passes(page, type="table", cell="2", up="b", left="1")
    assert not passes("no table", type="table", cell="2", up="b")


def test_places_are_beginnings() -> None:
    assert places("abc", "xabcabc", 0) == [1, 4]
    assert places("abc", "ab", 0) == []
    assert places("abc", "ab", 1) == [0]  # "b" alone would need two letters
    assert places("abc", "xaxbcx", 1) == [1, 2, 3]  # "axbc", "xbc", "bc"
    assert places("", "abc", 1) == []


def test_a_cell_may_claim_any_number_of_columns() -> None:
    page = "<table><tr><td colspan=999999999 rowspan=999999999>a</td><td>b</td></tr></table>"
    assert passes(page, type="table", cell="b", left="a")


def test_broken_records_are_refused() -> None:
    record = {"pdf": "a.pdf", "page": 1, "id": "x", "type": "present", "text": "a", "first_n": None}
    assert read_test(record) == UnitTest("x", "present", text="a")
    with pytest.raises(ValueError, match="unknown type 'baseline'"):
        read_test(record | {"type": "baseline"})
    with pytest.raises(ValueError, match="nothing to look for"):
        read_test(record | {"text": " "})
    with pytest.raises(TypeError):
        read_test({"type": "present", "text": "a"})
