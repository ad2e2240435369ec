"""Lists: items, numbers, nesting."""

from gravityocr_cli.lists import LEADERS, Item, items_of, looks_like_list, number_of


def items(text: str, *indents: float) -> list[tuple[str, str, int]]:
    edges: list[float | None] = list(indents) or [None] * len(text.splitlines())
    return [(item.number, item.text, item.depth) for item in items_of(text, edges, {}, 7.0)]


def test_a_broken_item_stays_one_item() -> None:  # case 18
    text = "1. the self-\nadjusting algo-\nrithm\n2. second\n3) third"
    assert items(text)[:2] == [("1.", "the self-adjusting algorithm", 0), ("2.", "second", 0)]
    assert items(text)[2][:2] == ("3)", "third")


def test_a_number_out_of_sequence_is_text() -> None:
    assert items("1. born in\n1998. Then\n17. more\n2. died") == [
        ("1.", "born in 1998. Then 17. more", 0),
        ("2.", "died", 0),
    ]


def test_a_number_alone_is_never_lost() -> None:
    assert items("D. Author. 2016. Pages 265–\n283.") == [("", "D. Author. 2016. Pages 265–283.", 0)]
    assert items("12.") == [("", "12.", 0)]


def test_what_is_not_indented_starts_an_item() -> None:
    text = "A. Author. 2016. On large\nsystems. In Proc.\nB. Other. 2017.\nC. Third. 2018. On a\nsmaller one."
    assert [each for _, each, _ in items(text, 72, 82, 72, 72, 82)] == [
        "A. Author. 2016. On large systems. In Proc.",
        "B. Other. 2017.",
        "C. Third. 2018. On a smaller one.",
    ]
    assert len(items(text, 82, 72, 72, 72, 72)) == 1  # the first line of a paragraph is


def test_bullets_on_two_levels() -> None:  # case 29
    text = "• one\n– inner\n– inner two\n• two"
    expected = [("", "one", 0), ("", "inner", 1), ("", "inner two", 1), ("", "two", 0)]
    assert items(text) == expected  # by style
    assert items(text.replace("–", "•"), 72, 90, 90, 72) == expected  # by indent
    assert items("- one\n  - inner\n  - inner two\n- two") == expected  # by blanks


def test_numbers_set_flush_right_are_one_level() -> None:
    assert [depth for _, _, depth in items("9. nine\n10. ten", 77, 72)] == [0, 0]


def test_depth_never_jumps() -> None:
    assert [depth for _, _, depth in items("• a\n• b\n• c\n• d", 72, 120, 96, 120)] == [0, 1, 1, 2]


def test_a_bullet_alone_on_its_line() -> None:
    assert items("•\nfoo\n•\nbar") == [("", "foo", 0), ("", "bar", 0)]


def test_text_before_the_first_marker_is_unmarked() -> None:
    assert items_of("rest of it\n• next", [None, None], {}, 7.0) == (Item("rest of it", marked=False), Item("next"))


def test_references_and_contents() -> None:
    assert items("[1] A. Author,\nTitle.\n[2] B.") == [("", "[1] A. Author, Title.", 0), ("", "[2] B.", 0)]
    assert items("1 Start ........ 3\nIndex . . . . . . 90") == [("", "1 Start ... 3", 0), ("", "Index ... 90", 0)]


def test_what_looks_like_a_list() -> None:
    assert looks_like_list("• one")
    assert looks_like_list("1. one\n2. two")
    assert looks_like_list("- one\n- two")
    assert looks_like_list("[3] A\n[4] B")
    assert looks_like_list("A ..... 1\nB ..... 2")
    assert not looks_like_list("- one dash\nand text")
    assert not looks_like_list("1. one\nand text")
    assert not looks_like_list("1. one\n7. two")
    assert not looks_like_list("")


def test_number_of() -> None:
    assert number_of("  12) twelve") == 12
    assert number_of("1998. no") is None
    assert number_of("3.5 mg") is None


def test_dots_that_lead_nowhere_are_told_at_once() -> None:
    assert LEADERS.search(". " * 60 + "z") is None  # which took longer with every dot, for ever in the end
    assert LEADERS.search("Apples . . . . 12, 17–19, xiv")
    assert not LEADERS.search("Net income . . . . 1,026")  # of a table
