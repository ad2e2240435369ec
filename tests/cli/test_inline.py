"""Styles of painted lines on joined text."""

import pytest

from gravityocr_cli.document import Line, Span, Style
from gravityocr_cli.inline import Run, joined_runs, of_heading, outside, runs_of
from gravityocr_models.signs import Box

BOLD, ITALIC, RAISED = Style(bold=True), Style(italic=True), Style(script=1)


def line(y: float, *spans: tuple[str, Style]) -> Line:
    text = "".join(text for text, _ in spans)
    return Line(Box(0, y, 6 * len(text), y + 10), text, 10, spans=tuple(Span(*span) for span in spans))


def shown(text: str, runs: tuple[Run, ...]) -> list[tuple[str, Style]]:
    return [(text[run.start : run.end], run.style) for run in runs]


def test_a_style_over_a_line_break_is_one_run() -> None:
    lines = (line(0, ("see ", Style()), ("the well", BOLD)), line(12, ("known", BOLD), (" case", Style())))
    text = "see the well known case"
    assert shown(text, runs_of([text], lines)[0]) == [("the well known", BOLD)]


def test_a_joined_hyphen_and_a_marker_taken_off_do_no_harm() -> None:
    lines = (
        line(
            0,
            ("1. an algo-", Style()),
        ),
        line(12, ("rithm of ", Style()), ("size", ITALIC)),
    )
    text = "an algorithm of size"
    assert shown(text, runs_of([text], lines)[0]) == [("size", ITALIC)]


def test_several_texts_of_one_region_share_its_lines() -> None:
    lines = (line(0, ("one ", Style()), ("two", BOLD)), line(12, ("three", ITALIC), (" four", Style())))
    first, second = runs_of(["one two", "three four"], lines)
    assert shown("one two", first) == [("two", BOLD)]
    assert shown("three four", second) == [("three", ITALIC)]


def test_a_layer_that_says_something_else_has_no_styles() -> None:
    lines = (line(0, ("xkcd qwrt", BOLD)),)
    assert runs_of(["what the pixels say"], lines) == [()]


def test_a_page_of_typewriter_is_not_code() -> None:
    lines = (line(0, ("a typed letter", Style(code=True))),)
    assert runs_of(["a typed letter"], lines) == [()]


def test_the_face_of_a_whole_paragraph_is_no_emphasis() -> None:
    words = "every word of this long theorem is set in italics and so none of them says anything by it at all"
    assert runs_of([words], (line(0, (words, ITALIC)),)) == [()]
    assert shown("Theorem 1.", runs_of(["Theorem 1."], (line(0, ("Theorem 1.", BOLD)),))[0]) == [("Theorem 1.", BOLD)]


def test_what_a_style_says_nothing_about_has_none() -> None:
    lines = (line(0, ("the score (", BOLD), ("srs", Style()), (") [", BOLD), ("?", BOLD), ("] of f", Style())),)
    text = "the score (srs) [?] of f"
    assert shown(text, runs_of([text], lines)[0]) == [("the score", BOLD)]
    lines = (line(0, ("f of x", Style()), ("\u2032", RAISED), (" and ", Style()), ("2", RAISED)),)
    text = "f of x\u2032 and 2"
    assert shown(text, runs_of([text], lines)[0]) == [("2", RAISED)]


def test_an_accent_of_its_own_does_not_part_from_its_letter() -> None:
    lines = (line(0, ("x", Style()), ("0", Style(script=-1)), ("\u0338", Style()), ("= 1", Style())),)
    text = "x0\u0338= 1"
    assert shown(text, runs_of([text], lines)[0]) == [("0\u0338", Style(script=-1))]


@pytest.mark.parametrize(
    ("whole", "expected"),
    [("an algorithm", [("algorithm", BOLD)]), ("an algo-rithm", [("algo-rithm", BOLD)])],
)
def test_runs_follow_a_join(whole: str, expected: list[tuple[str, Style]]) -> None:
    joined = joined_runs(whole, (Run(3, 8, BOLD),), (Run(0, 5, BOLD),), 5)
    assert shown(whole, joined) == expected


def test_a_heading_is_not_bold_and_not_all_slanted() -> None:
    both = Style(bold=True, italic=True)
    assert of_heading("all of it", (Run(0, 9, both),)) == ()
    assert of_heading("of E. coli in water", (Run(0, 2, BOLD), Run(3, 10, both))) == (Run(3, 10, ITALIC),)


def test_runs_in_mathematics_are_left_out() -> None:
    assert outside([(4, 9)], (Run(0, 4, BOLD), Run(5, 6, BOLD), Run(9, 12, BOLD))) == (
        Run(0, 4, BOLD),
        Run(9, 12, BOLD),
    )
