"""Footnotes: the notes of a page, and the marks in its text that refer to them.

A note is linked only where its mark is found in the text of its page; else it stays a paragraph with its mark as
printed, for a link that leads nowhere is worse than none.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from gravityocr_cli.document import Style
from gravityocr_cli.elements import Aside, Element, ItemList, Note, Paragraph
from gravityocr_cli.inline import Run, Runs

_NOTE_START = re.compile(r"(?:([0-9]{1,3})[.)]?\s*|\[([0-9]{1,3})\]\s*|([*†‡§¶∗¹²³⁴-⁹]+)\s*)(?=\S)")
_SUPERIORS = str.maketrans("¹²³⁴⁵⁶⁷⁸⁹⁰∗", "1234567890*")
_MARKED = re.compile(  # marks that show in the text itself: daggers, superior figures, what a model writes for them
    r"(?<=\S)(?:[†‡¶]+|[¹²³⁴⁵⁶⁷⁸⁹⁰]+|\$\s*\{?\s*\}?\^\s*\{?\s*(?:[0-9]{1,3}|\\dagger|\\ddagger|\*)\s*\}?\s*\$|<sup>[^<]{1,3}</sup>)"
)


def notes_in(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The mark ("" without one) and the lines of each footnote, the mark still in front of them.

    A number starts a note only where it follows the number of the note before.
    """
    notes: list[tuple[str, list[str]]] = []
    last: int | None = None
    for line in lines:
        match = _NOTE_START.match(line)
        number = int(match[1] or match[2]) if match and not match[3] else None
        starts = match is not None and (match[3] or last is None or number == last + 1)
        if not notes or (starts and line.strip()):
            notes.append((_mark(match) if starts and match else "", []))
        last = number if starts and number is not None else last
        notes[-1][1].append(line)
    return notes


def _mark(match: re.Match[str]) -> str:
    return (match[1] or match[2] or match[3]).translate(_SUPERIORS)


class Labels:
    """Hands out the labels of a document's notes: the mark itself, with the page where it was used before."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def take(self, mark: str, page: int) -> str:
        label = mark if mark not in self._used else f"{mark}-p{page}"
        self._used.add(label)
        return label


def with_links(
    elements: Sequence[Element], notes: Sequence[tuple[str, Aside]], page: int, labels: Labels
) -> list[Element]:
    """The page's elements and notes, each note whose mark stands in the text linked with it.

    notes: mark and content, the mark still in front of the content.
    """
    linked = list(elements)
    ends: list[Element] = []
    for mark, note in notes:
        label = labels.take(mark, page) if mark and any(_places(each, mark) for each in linked) else ""
        if not label:
            ends.append(note)
            continue
        at = next(index for index, each in enumerate(linked) if _places(each, mark))
        linked[at] = _referring(linked[at], mark, label)
        start = _NOTE_START.match(note.text)
        cut = start.end() if start else 0
        runs = tuple(Run(max(run.start - cut, 0), run.end - cut, run.style) for run in note.runs if run.end > cut)
        ends.append(Note(label, note.text[cut:], runs))
    return linked + ends


def _places(element: Element, mark: str) -> list[tuple[int, int]]:
    """Where the element's text has the mark as a reference."""
    if isinstance(element, ItemList):
        return [place for item in element.items for place in _marks(item.text, item.runs, mark)]
    return _marks(element.text, element.runs, mark) if isinstance(element, Paragraph) else []


def _marks(text: str, runs: Runs, mark: str) -> list[tuple[int, int]]:
    raised = [
        (run.start, run.end)
        for run in runs
        if run.style.script == 1
        and not run.style.note
        and run.start > 0
        and text[run.start : run.end].strip().translate(_SUPERIORS) == mark
        and (not mark.isdecimal() or not text[: run.start].rstrip()[-1:].isdecimal())  # 10 with a raised 6 is a power
    ]
    shown = [match.span() for match in _MARKED.finditer(text) if _shown_mark(match[0]) == mark]
    taken = {run.start for run in runs if run.style.note}
    return raised or [place for place in shown if place[0] not in taken]


def _shown_mark(text: str) -> str:
    text = text.replace("\\ddagger", "‡").replace("\\dagger", "†")
    return re.sub(r"</?sup>|[\s${}^]", "", text).translate(_SUPERIORS)


def _referring(element: Element, mark: str, label: str) -> Element:
    """The element with its first such mark made a reference."""
    if isinstance(element, ItemList):
        items = list(element.items)
        at = next(index for index, item in enumerate(items) if _marks(item.text, item.runs, mark))
        items[at] = replace(items[at], runs=_with_note(items[at].text, items[at].runs, mark, label))
        return replace(element, items=tuple(items))
    if isinstance(element, Paragraph):
        return replace(element, runs=_with_note(element.text, element.runs, mark, label))
    return element


def _with_note(text: str, runs: Runs, mark: str, label: str) -> Runs:
    start, end = _marks(text, runs, mark)[0]
    kept: list[Run] = []
    for run in runs:
        if run.end <= start or run.start >= end:
            kept.append(run)
        else:  # the reference cuts the run in two
            kept += [Run(run.start, start, run.style)] if run.start < start else []
            kept += [Run(end, run.end, run.style)] if run.end > end else []
    return tuple(sorted([*kept, Run(start, end, Style(note=label))], key=lambda run: run.start))
