"""What an answer is worth: likeness to the truth in the measure of its task, less what is formally wrong with it."""

import re
from collections import Counter

from gravityocr_models.metrics import formula_similarity, similarity, teds
from gravityocr_models.records import Task
from gravityocr_models.teds import read_table

PENALTY = 0.2  # for each fault
REPEATS, LONGEST_PERIOD = 4, 60  # so often the same characters, up to so many, at the end: the answer ran in a circle

_TAG = re.compile(r"<(/?)(table|thead|tbody|tr|th|td|sup|sub)\b[^>]*>", re.IGNORECASE)
_ESCAPED = re.compile(r"\\[\\{}]")
_GROUP = re.compile(r"\\(begin|end)\s*\{([^{}]*)\}|\\(left|right)(?![A-Za-z])|([{}])")
_OPENS = {"begin", "left", "{"}


def quality(task: Task, answer: str, truth: str) -> float:
    """0 to 1: one less the relative edit distance, tree edit similarity of a table, token similarity of a formula."""
    if task is Task.TABLE:
        return teds(answer, truth) if answer.strip() else 0.0
    return formula_similarity(answer, truth) if task is Task.FORMULA else similarity(answer, truth)


def faults(task: Task, answer: str, ended: bool) -> int:
    """How many things are formally wrong, whatever the truth is: no end, going in circles, markup left open, rows of
    different lengths."""
    found = [not ended, circles(answer)]
    if task is Task.TABLE:
        found += [not tags_close(answer), ragged(answer)]
    if task is Task.FORMULA:
        found.append(not groups_close(answer))
    return sum(found)


def reward(task: Task, answer: str, truth: str, ended: bool) -> float:
    """Quality less PENALTY for each fault."""
    return quality(task, answer, truth) - PENALTY * faults(task, answer, ended)


def circles(text: str) -> bool:
    """Whether the text ends in REPEATS times the same characters; leaders and rules (one character) are no circle."""
    for period in range(2, LONGEST_PERIOD + 1):
        tail = text[-period:]
        if len(set(tail)) > 1 and text.endswith(tail * REPEATS):
            return True
    return False


def tags_close(answer: str) -> bool:
    """Whether every table tag is closed in the order in which it was opened."""
    open_tags: list[str] = []
    for slash, name in _TAG.findall(answer):
        if not slash:
            open_tags.append(name.lower())
        elif not open_tags or open_tags.pop() != name.lower():
            return False
    return not open_tags


def groups_close(latex: str) -> bool:
    r"""Whether braces, \left and \right, and environments are closed in the order in which they were opened."""
    expected: list[tuple[str, str]] = []
    closing = {"begin": "end", "left": "right", "{": "}"}
    for kind, name, side, brace in _GROUP.findall(_ESCAPED.sub(" ", latex)):
        word = kind or side or brace
        if word in _OPENS:
            expected.append((closing[word], name))
        elif not expected or expected.pop() != (word, name):
            return False
    return not expected


def ragged(answer: str) -> bool:
    """Whether the rows of the table have different widths, cells that span rows counted in each of them."""
    if not answer.strip():
        return True
    widths: Counter[int] = Counter()
    rows = read_table(answer).rows
    for number, row in enumerate(rows):
        for cell in row:
            for below in range(number, min(number + cell.rows, len(rows))):
                widths[below] += cell.columns
    return len(set(widths.values())) != 1 or len(widths) != len(rows)
