from gravityocr_cli.pipes import to_pipes

PLAIN = "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1 | 2</td><td>x*y &lt; 3</td></tr>\n</table>"
SPANS = '<table>\n<tr><td colspan="2">a</td></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>'


def test_a_simple_table() -> None:
    assert to_pipes(PLAIN, forced=False) == "| a | b |\n| --- | --- |\n| 1 \\| 2 | x\\*y &lt; 3 |"


def test_spans_need_html_unless_forced() -> None:
    assert to_pipes(SPANS, forced=False) is None
    assert to_pipes(SPANS, forced=True) == "| a |  |\n| --- | --- |\n| 1 | 2 |"


def test_a_cell_that_reaches_down_keeps_its_column() -> None:
    markup = '<table><tr><td rowspan="2">a</td><td>b</td></tr><tr><td>c</td></tr></table>'
    assert to_pipes(markup, forced=True) == "| a | b |\n| --- | --- |\n|  | c |"


def test_two_header_rows_need_html() -> None:
    markup = "<table><tr><th>a</th></tr><tr><th>b</th></tr><tr><td>c</td></tr></table>"
    assert to_pipes(markup, forced=False) is None


def test_no_table() -> None:
    assert to_pipes("", forced=True) is None
