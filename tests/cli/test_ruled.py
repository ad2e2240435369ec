"""Cells from the lines between them."""

import numpy as np

from gravityocr_cli.document import Line
from gravityocr_cli.ruled import rows_from_rules, rules_in
from gravityocr_cli.tables import Rows
from gravityocr_models.signs import Box

Place = tuple[float, float, float, float]


def rules(*cells: Place) -> tuple[Box, ...]:
    """The four sides of each cell (left, top, right, bottom), half a point thick."""
    found = []
    for x0, y0, x1, y1 in cells:
        found += [Box(x0, y, x1, y + 0.5) for y in (y0, y1)] + [Box(x, y0, x + 0.5, y1) for x in (x0, x1)]
    return tuple(found)


def text(words: str, x: float, y: float) -> Line:
    return Line(Box(x, y, x + 5 * len(words), y + 10), words, 10)


def shown(rows: Rows) -> list[list[tuple[str, int, int]]]:
    return [[(cell.content, cell.columns, cell.rows) for cell in row] for row in rows]


def test_spans_are_where_no_line_is() -> None:  # case 26
    cells = [(0, 0, 60, 40), (60, 0, 180, 20), (60, 20, 120, 40), (120, 20, 180, 40)]
    lines = [text("Place", 10, 15), text("Harvest", 100, 5), text("2020", 70, 25), text("2021", 130, 25)]
    assert shown(rows_from_rules(lines, rules(*cells))) == [
        [("Place", 1, 2), ("Harvest", 2, 1)],
        [("2020", 1, 1), ("2021", 1, 1)],
    ]


def test_an_empty_place_is_a_cell_and_wrapped_text_is_one() -> None:
    cells = [(x, y, x + 60, y + 30) for x in (0, 60) for y in (0, 30)]
    lines = [text("a long", 5, 3), text("name", 5, 15), text("b", 5, 40), text("c", 65, 40)]
    assert shown(rows_from_rules(lines, rules(*cells))) == [
        [("a long name", 1, 1), ("", 1, 1)],
        [("b", 1, 1), ("c", 1, 1)],
    ]


def test_a_table_open_at_its_sides() -> None:
    inner = (Box(60, 0, 60.5, 60), Box(0, 20, 120, 20.5), Box(0, 40, 120, 40.5))
    lines = [text(word, x, y) for word, x, y in (("a", 5, 5), ("b", 65, 5), ("c", 5, 25), ("d", 65, 25), ("e", 5, 45))]
    assert [[cell.content for cell in row] for row in rows_from_rules(lines, inner)] == [
        ["a", "b"],
        ["c", "d"],
        ["e", ""],
    ]


def test_what_is_not_wholly_ruled_is_left_alone() -> None:
    columns = [(0, 0, 60, 20), (60, 0, 120, 20), (0, 20, 60, 100), (60, 20, 120, 100)]  # rows are not parted
    lines = [text(str(n), x, 22 + 15 * n) for n in range(5) for x in (5, 65)] + [text("h", 5, 5), text("i", 65, 5)]
    assert rows_from_rules(lines, rules(*columns)) == ()
    rows = [(0, y, 60, y + 20) for y in (0, 20, 40)] + [(60, y, 200, y + 20) for y in (0, 20, 40)]  # columns are not
    lines = [text("1", x, y + 5) for x in (5, 65, 110, 160) for y in (0, 20, 40)]
    assert rows_from_rules(lines, rules(*rows)) == ()
    bands = [(x, y, x + 60, y + 40) for x in (0, 60) for y in (0, 40, 80)]  # one has two rows
    lines = [text(f"{word}{x}", x + 5, y) for word, y in (("h", 10), ("a", 50), ("b", 65), ("c", 90)) for x in (0,)]
    lines += [text(figure, 65, y) for figure, y in (("1.5", 10), ("2.5", 50), ("3.5", 65), ("4.5", 90))]
    assert rows_from_rules(lines, rules(*bands)) == ()
    misread = [("1.022, 490", 10), ("2,568", 50), ("3.5", 65), ("12.9", 80), ("4,9]", 95), ("7", 110)]
    bands = [(x, y, x + 60, end) for x in (0, 60) for y, end in ((0, 40), (40, 130), (130, 150))]
    lines = [text(words, x, y) for words, y in (*misread, ("n", 135)) for x in (5, 65)]
    assert rows_from_rules(lines, rules(*bands)) == ()
    over = rules((0, 0, 60, 20), (60, 0, 120, 20), (0, 20, 60, 40), (60, 20, 120, 40))
    assert rows_from_rules([text("reaches over the line", 5, 5)], over) == ()
    assert rows_from_rules([text("a", 5, 5)], ()) == ()
    assert rows_from_rules([], over) == ()


def test_rules_are_long_and_thin() -> None:
    page = np.full((400, 400, 3), 255, np.uint8)  # 144 dpi: two pixels a point
    page[100:102, 40:300] = 0  # a rule
    page[100:300, 200:201] = 0  # another
    page[150:180, 40:120] = 0  # an area
    page[210:212, 60:70] = 0  # a dash
    level, upright = rules_in(page, 144, Box(10, 40, 180, 160))
    assert (level.x0, level.y0, level.x1, level.y1) == (20, 50, 150, 51)
    assert (upright.x0, upright.y0, upright.x1, upright.y1) == (100, 50, 100.5, 150)


def test_justified_words_in_a_cell_are_no_columns() -> None:
    cells = [(0, 0, 150, 60), (150, 0, 300, 60), (0, 60, 150, 80), (150, 60, 300, 80)]
    wide = [("apart", 5, 5), ("of", 130, 5), ("all", 5, 20), ("the", 60, 20), ("words", 90, 20), ("between", 35, 35)]
    lines = [text(word, x + left, y) for left in (0, 150) for word, x, y in wide]
    lines += [text("a", 5, 65), text("b", 155, 65)]
    assert shown(rows_from_rules(lines, rules(*cells)))[1] == [("a", 1, 1), ("b", 1, 1)]


def test_text_that_starts_on_the_last_rule_is_in_no_column_beyond() -> None:
    cells = [(0, 0, 60, 20), (60, 0, 120, 20), (0, 20, 60, 40), (60, 20, 120, 40)]
    lines = [text("a", 5, 5), Line(Box(118.5, 5, 121.5, 13), "|", 10)]
    assert shown(rows_from_rules(lines, rules(*cells)))[0] == [("a", 1, 1), ("|", 1, 1)]


def test_letters_that_run_together_and_areas_are_no_rules() -> None:
    page = np.full((200, 400, 3), 255, np.uint8)
    page[40:70, 20:380] = 230  # a band
    page[50:52, 100:200] = 0  # a stroke through letters
    for left in range(100, 200, 10):
        page[44:64, left : left + 5] = 0
    page[120:122, 20:380] = 0
    page[120:122, 100:380:30] = 255  # broken
    (rule,) = rules_in(page, 144, Box(5, 5, 195, 95))
    assert (rule.x0, rule.y0, rule.x1) == (10, 60, 190)
