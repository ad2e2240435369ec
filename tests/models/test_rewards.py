"""Rewards: likeness in each task's own measure, and what is formally wrong whatever the truth is."""

import pytest

from gravityocr_models.records import Task
from gravityocr_models.train.rewards import PENALTY, circles, faults, groups_close, quality, ragged, reward, tags_close

TABLE = "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>d</td></tr></table>"


@pytest.mark.parametrize(
    ("task", "answer", "truth", "expected"),
    [
        (Task.TEXT, "abcd", "abcd", 1.0),
        (Task.TEXT, "abxd", "abcd", 3 / 4),
        (Task.TEXT, "", "abcd", 0.0),
        (Task.FORMULA, r"a \le b", r"a\leq b", 1.0),
        (Task.FORMULA, r"a+b", r"a-b", 2 / 3),
        (Task.TABLE, TABLE, TABLE, 1.0),
        (Task.TABLE, TABLE.replace("<td>d</td>", ""), TABLE, 1 - 1 / 7),
        (Task.TABLE, "no table", TABLE, 0.0),
        (Task.TABLE, " ", TABLE, 0.0),
    ],
)
def test_quality_is_likeness_in_the_measure_of_the_task(task: Task, answer: str, truth: str, expected: float) -> None:
    assert quality(task, answer, truth) == pytest.approx(expected)


def test_each_fault_costs_the_same() -> None:
    assert reward(Task.TEXT, "abcd", "abcd", True) == 1.0
    assert reward(Task.TEXT, "abcd", "abcd", False) == pytest.approx(1 - PENALTY)
    assert faults(Task.FORMULA, r"\frac{a}{b", True) == 1
    assert faults(Task.TABLE, "<table><tr><td>a</td>", False) == 2
    assert faults(Task.TEXT, r"\frac{a}{b", True) == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the the the the the ", True),
        ("1,2,1,2,1,2,1,2,", True),
        ("Contents ..........", False),
        ("again, again", False),
    ],
)
def test_circles(text: str, expected: bool) -> None:
    assert circles(text) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (TABLE, True),
        (TABLE.removesuffix("</table>"), False),
        ("<table><tr><td>a</tr></td></table>", False),
        ("<table><tr><td>1 < 2<br>x<sup>2</sup></td></tr></table>", True),
        ("</td>", False),
    ],
)
def test_tags_close(answer: str, expected: bool) -> None:
    assert tags_close(answer) is expected


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\frac{a}{\left(b\right]}", True),
        (r"\{a", True),
        (r"\left\{a\right.", True),
        (r"\leftarrow x", True),
        (r"\frac{a}{b", False),
        (r"{a\left(b}\right)", False),
        (r"\begin{array}{c}a\end{array}", True),
        (r"\begin{array}{c}a\end{matrix}", False),
    ],
)
def test_groups_close(latex: str, expected: bool) -> None:
    assert groups_close(latex) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (TABLE, False),
        (TABLE.replace("<td>d</td>", ""), True),
        ('<table><tr><td rowspan="2">a</td><td>b</td></tr><tr><td>c</td></tr></table>', False),
        ('<table><tr><td colspan="2">a</td></tr><tr><td>c</td></tr></table>', True),
        ("", True),
    ],
)
def test_ragged(answer: str, expected: bool) -> None:
    assert ragged(answer) is expected
