"""Tables: torn markup mended, nothing but cells kept."""

from gravityocr_cli import tables
from gravityocr_cli.tables import continued, rows_from_html, rows_from_pipes, to_html, width_of


def cleaned(text: str) -> str:
    return to_html(rows_from_html(text))


def texts(rows: tables.Rows) -> list[list[str]]:
    return [[cell.content for cell in row] for row in rows]


def test_spans_stay_and_everything_else_goes() -> None:
    text = (
        "Here: <table border=1 onclick='x()'><thead><tr><th colspan='3' style=a>A</th><th rowspan=2>B</th></tr></thead>"
        "<tbody><tr><td><b>1</b></td><td>x &lt; y & z</td><td><script>2</script></td></tr></tbody></table> after"
    )
    assert cleaned(text) == (
        '<table>\n<tr><th colspan="3">A</th><th rowspan="2">B</th></tr>\n'
        "<tr><td>1</td><td>x &lt; y &amp; z</td><td>2</td></tr>\n</table>"
    )
    assert tables.text_around(text) == "Here: after"


def test_header_spans_of_case_26() -> None:
    text = (
        '<table><tr><td rowspan="3">Site</td><td colspan="3">Year</td></tr><tr><td rowspan="2">1</td><td>2</td>'
        "<td>3</td></tr><tr><td>a</td><td>b</td></tr><tr><td>N</td><td>1</td><td>2</td><td>3</td></tr></table>"
    )
    rows = rows_from_html(text)
    assert [[(cell.columns, cell.rows) for cell in row] for row in rows] == [
        [(1, 3), (3, 1)],
        [(1, 2), (1, 1), (1, 1)],
        [(1, 1), (1, 1)],
        [(1, 1)] * 4,
    ]
    assert width_of(rows) == 4


def test_torn_markup_is_closed() -> None:
    assert cleaned("<table><tr><td>a<td>b<tr><td>c") == (
        "<table>\n<tr><td>a</td><td>b</td></tr>\n<tr><td>c</td></tr>\n</table>"
    )
    assert cleaned("<tr><td>H<sub>2</td></tr>") == "<table>\n<tr><td>H<sub>2</sub></td></tr>\n</table>"
    assert cleaned("<table><tr><td>a<br/>\n\n b<br></td></tr>") == "<table>\n<tr><td>a<br>b</td></tr>\n</table>"


def test_stray_text_is_not_lost() -> None:
    assert texts(rows_from_html("<table><tr>stray<td>a</td></tr></table>")) == [["stray", "a"]]


def test_spans_are_bounded() -> None:
    rows = rows_from_html('<table><tr><td colspan="999999" rowspan="50">a</td><td colspan="x">b</td></tr></table>')
    assert [(cell.columns, cell.rows) for cell in rows[0]] == [(1000, 1), (1, 1)]


def test_empty_table_is_nothing() -> None:
    assert cleaned("<table><tr><td></td><td> </td></tr></table>") == ""


def test_pipe_tables() -> None:
    rows = rows_from_pipes("| a | b\\|c |\n|---|:-:|\n| 1 | <2> |")
    assert texts(rows) == [["a", "b|c"], ["1", "&lt;2&gt;"]]
    assert [cell.header for cell in rows[0] + rows[1]] == [True, True, False, False]


def test_continued_table_keeps_one_header_and_every_row() -> None:
    first = "<table><tr><th>k</th><th>v</th></tr><tr><td>a</td><td>1</td></tr></table>"
    again = "<table><tr><th>K</th><th>v</th></tr><tr><td>b</td><td>2</td></tr></table>"
    plain = "<table><tr><td>c</td><td>3</td></tr></table>"
    whole = continued(first, again, same_place=True)
    assert whole is not None
    assert texts(rows_from_html(whole)) == [["k", "v"], ["a", "1"], ["b", "2"]]
    whole = continued(whole, plain, same_place=False)
    assert whole is not None
    assert texts(rows_from_html(whole))[-1] == ["c", "3"]


def test_continued_table_that_lost_its_empty_last_column() -> None:
    first = "<table><tr><td>a</td><td>1</td><td>x</td></tr></table>"
    second = "<table><tr><td>b</td><td>2</td></tr></table>"
    assert continued(first, second, same_place=False) is None
    whole = continued(first, second, same_place=True)
    assert whole is not None
    assert texts(rows_from_html(whole)) == [["a", "1", "x"], ["b", "2", ""]]


def test_has_table() -> None:
    assert tables.has_table("<TABLE border>")
    assert not tables.has_table("a < tr")
