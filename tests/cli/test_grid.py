"""Cells from where painted lines stand."""

from gravityocr_cli.document import Line, Span, Style
from gravityocr_cli.grid import rows_from_lines
from gravityocr_cli.tables import Rows, width_of
from gravityocr_models.signs import Box


def line(text: str, x0: float, y0: float, width: float | None = None, bold: bool = False) -> Line:
    return Line(Box(x0, y0, x0 + (5.0 * len(text) if width is None else width), y0 + 10), text, 10.0, bold)


def texts(rows: Rows) -> list[list[str]]:
    return [[cell.content for cell in row] for row in rows]


def test_no_lines_no_rows() -> None:
    assert rows_from_lines(()) == ()


def test_rows_and_columns_from_painted_lines() -> None:
    lines = [
        line("Name", 10, 0, bold=True), line("Count", 100, 0, bold=True), line("Share", 200, 0, bold=True),
        line("alpha", 10, 20), line("1", 118, 20), line("2 %", 200, 21),
        line("beta", 10, 40), line("30", 112, 40),
    ]  # fmt: skip
    rows = rows_from_lines(lines)
    assert texts(rows) == [["Name", "Count", "Share"], ["alpha", "1", "2 %"], ["beta", "30", ""]]
    assert all(cell.header for cell in rows[0])
    assert not any(cell.header for cell in rows[1])


def test_a_cell_over_two_columns_spans_them() -> None:
    lines = [
        line("over both", 100, 0, width=140),
        line("x", 10, 20), line("left", 100, 20), line("right", 210, 20),
        line("y", 10, 40), line("1", 100, 40), line("2", 210, 40),
    ]  # fmt: skip
    rows = rows_from_lines(lines)
    assert texts(rows)[0] == ["", "over both"]
    assert rows[0][1].columns == 2
    assert {width_of((row,)) for row in rows} == {3}


def test_wrapped_cells_are_one_row() -> None:
    lines = [
        line("a", 10, 0), line("first half", 100, 0),
        line("second half", 100, 11),
        line("b", 10, 30), line("one", 100, 30),
        line("c", 10, 60), line("two", 100, 60),
        line("d", 10, 90), line("six", 100, 90),
    ]  # fmt: skip
    assert texts(rows_from_lines(lines)) == [["a", "first half second half"], ["b", "one"], ["c", "two"], ["d", "six"]]


def test_sixty_cells_in_a_row() -> None:
    rows = rows_from_lines([line("7", 12.0 * index, 0) for index in range(60)])
    assert texts(rows) == [["7"] * 60]


def test_a_header_centred_over_two_columns_spans_them() -> None:
    lines = [
        line("2007", 118, 0, bold=True), line("2006", 218, 0, bold=True),
        line("Country", 10, 6, bold=True),
        line("N", 102, 12, bold=True), line("% Pos", 140, 12, bold=True),
        line("N", 202, 12, bold=True), line("% Pos", 240, 12, bold=True),
        line("Austria", 10, 30), line("109", 100, 30), line("0.9", 144, 30), line("93", 200, 30), line("1.1", 244, 30),
        line("Total", 10, 50, bold=True), line("-", 105, 50, bold=True),
    ]  # fmt: skip
    rows = rows_from_lines(lines)
    assert texts(rows) == [
        ["Country", "2007", "2006"],
        ["N", "% Pos", "N", "% Pos"],
        ["Austria", "109", "0.9", "93", "1.1"],
        ["Total", "-", "", "", ""],
    ]
    assert [(cell.columns, cell.rows) for cell in rows[0]] == [(1, 2), (2, 1), (2, 1)]
    assert [row[0].header for row in rows] == [True, True, False, False]


def test_a_header_that_touches_one_of_its_two_columns_still_spans_both() -> None:
    lines = [
        line("2007", 122, 0), line("2006", 222, 0),
        line("a", 10, 20), line("109", 100, 20), line("0.9", 140, 20), line("93", 200, 20), line("1.1", 240, 20),
    ]  # fmt: skip
    assert [(cell.content, cell.columns) for cell in rows_from_lines(lines)[0]] == [("", 1), ("2007", 2), ("2006", 2)]


def test_an_entry_of_a_column_that_the_fullest_row_leaves_out() -> None:
    lines = [line("a", 10, 0), line("1", 100, 0), line("b", 10, 20), line("2", 200, 20)]
    assert texts(rows_from_lines(lines)) == [["a", "1", ""], ["b", "", "2"]]


def test_a_wrapped_label_with_its_values_centred_on_it_is_one_row() -> None:
    lines = [
        line("Halons", 10, 0), line("1", 100, 0), line("-", 200, 0),
        line("Chlorine and", 10, 20), line("10", 100, 26), line("-", 200, 26), line("inorganic", 10, 32),
        line("CFC", 10, 52), line("1", 100, 52), line("2", 200, 52),
    ]  # fmt: skip
    assert texts(rows_from_lines(lines))[1] == ["Chlorine and inorganic", "10", "-"]


def test_labels_that_go_on_below_their_values() -> None:
    lines = [
        line("Number of", 10, 0), line("21", 100, 0), line("8", 200, 0), line("states", 10, 11),
        line("Number of", 10, 22.4), line("11", 100, 22.4), line("3", 200, 22.4), line("members", 10, 33.4),
    ]  # fmt: skip
    assert texts(rows_from_lines(lines)) == [["Number of states", "21", "8"], ["Number of members", "11", "3"]]


def test_section_labels_at_the_usual_pitch_stay_rows() -> None:
    lines = [line("A", 10, 0), line("1", 100, 0), line("Group", 10, 12), line("B", 10, 24), line("2", 100, 24)]
    assert texts(rows_from_lines(lines)) == [["A", "1"], ["Group", ""], ["B", "2"]]


def test_stretched_word_spaces_are_no_columns() -> None:
    lines = [
        line("Number", 10, 0), line("of", 55, 0), line("states", 80, 0), line("8", 200, 0),
        line("where one or more", 10, 20, width=100), line("9", 200, 20),
        line("of them applied it", 10, 40, width=100), line("7", 200, 40),
    ]  # fmt: skip
    assert texts(rows_from_lines(lines))[0] == ["Number of states", "8"]


def test_numbers_run_together_are_put_apart() -> None:
    lines = [
        line("a", 10, 0), line("1,000", 100, 0), line("2,000", 140, 0),
        line("b", 10, 20), line("3,333,333 4,444", 85, 20, width=80),
    ]  # fmt: skip
    assert texts(rows_from_lines(lines)) == [["a", "1,000", "2,000"], ["b", "3,333,333", "4,444"]]


def test_raised_and_lowered_parts_are_marked() -> None:
    raised, lowered = Style(script=1), Style(script=-1)
    spans = (Span("10"), Span("-9", raised), Span(" & H"), Span("2 ", lowered), Span("O"))
    lines = [
        Line(Box(10, 0, 60, 10), "10-9 & H2 O", 10.0, spans=spans),
        line("note", 100, 0), line("a", 10, 20), line("b", 100, 20),
        line("c", 10, 40), line("d", 100, 40),
    ]  # fmt: skip
    assert texts(rows_from_lines(lines))[0] == ["10<sup>-9</sup> &amp; H<sub>2</sub> O", "note"]


def test_lines_of_a_wrapped_cell_stand_above_and_below_the_rest_of_their_row() -> None:
    lines = [
        line("a", 10, 6), line("first half", 100, 0), line("1.5", 200, 6),
        line("second half", 100, 12),
        line("b", 10, 40), line("one", 100, 40), line("2.5", 200, 40),
        line("c", 10, 66), line("two", 100, 66), line("3.5", 200, 66),
    ]  # fmt: skip
    assert texts(rows_from_lines(lines)) == [
        ["a", "first half second half", "1.5"],
        ["b", "one", "2.5"],
        ["c", "two", "3.5"],
    ]


def test_rows_as_close_as_lines_stay_rows() -> None:
    lines = [line(word, x, 11 * n) for n in range(4) for x, word in ((10, "ab"), (100, "12"), (200, "34"))]
    assert texts(rows_from_lines(lines)) == [["ab", "12", "34"]] * 4


def test_a_column_of_texts_that_start_and_end_apart_is_one() -> None:
    lines = [
        line("left", 100, 0), line("1", 10, 0),
        line("right", 180, 20), line("2", 10, 20),
        line("from the left to the right", 95, 40, 120), line("3", 10, 40),
    ]  # fmt: skip
    assert texts(rows_from_lines(lines)) == [["1", "left"], ["2", "right"], ["3", "from the left to the right"]]


def test_more_lines_alone_than_rows_carry_on_the_rows_above() -> None:
    lines = []
    for row in range(3):
        lines += [line("first", 10, 36 * row), line("5", 150, 36 * row), line("6", 200, 36 * row)]
        lines += [line("more of", 10, 36 * row + 12), line("it", 10, 36 * row + 24)]
    assert texts(rows_from_lines(lines)) == [["first more of it", "5", "6"]] * 3


def test_a_header_spans_the_columns_of_the_rule_that_it_is_centred_on() -> None:
    lines = [
        line("all of them", 132, 0),
        line("x", 10, 20), line("1.5", 100, 20), line("2.5", 150, 20), line("3.5", 200, 20),
        line("y", 10, 40), line("4.5", 100, 40), line("5.5", 150, 40), line("6.5", 200, 40),
    ]  # fmt: skip
    under, over = (Box(97, y, 222, y + 1) for y in (14, -4))
    for rule in (under, over):
        assert [cell.columns for cell in rows_from_lines(lines, (rule,))[0]] == [1, 3]
    assert [cell.columns for cell in rows_from_lines(lines)[0]] != [1, 3]
    aside, far, upright = Box(40, 14, 222, 15), Box(97, 19, 222, 20), Box(159, 5, 160, 60)
    assert rows_from_lines(lines, (aside, far, upright)) == rows_from_lines(lines)


def test_wrapped_headers_are_one_row_however_low_the_rows_are() -> None:
    lines = [
        line("never", 100, 0), line("rather", 150, 0), line("seldom", 200, 0), line("p", 250, 0),
        line("often", 150, 12),
        line("x", 10, 34), line("1.5", 100, 34), line("2.5", 150, 34), line("3.5", 200, 34), line("7", 250, 34),
        line("y", 10, 46), line("4.5", 100, 46), line("5.5", 150, 46), line("6.5", 200, 46), line("8", 250, 46),
        line("z", 10, 58), line("4.5", 100, 58), line("5.5", 150, 58), line("6.5", 200, 58), line("8", 250, 58),
    ]  # fmt: skip
    assert texts(rows_from_lines(lines))[0] == ["", "never", "rather often", "seldom", "p"]


def test_a_row_of_figures_a_little_nearer_to_the_one_above_is_a_row() -> None:
    lines = [
        line(text, x, y)
        for y in (0, 15, 29, 44, 59, 73)
        for x, text in ((10, "DHS"), (100, "0.76"), (200, "0.394"))
        if x > 10 or y in (0, 44)
    ]
    assert len(rows_from_lines(lines)) == 6
