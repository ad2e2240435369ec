"""Footnotes: the notes of a page, and the marks in its text that refer to them.

A note is linked only where its mark is found in the text of its page; else it stays a paragraph with its mark as
printed, for a link that leads nowhere is worse than none.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from gravityocr_cli.document import Style
from gravityocr_cli.elements import Aside, Element, Heading, ItemList, Note, Paragraph
from gravityocr_cli.inline import Run, Runs

_NOTE_START = re.compile(r"(?:([0-9]{1,3})[.)]?\s*|\[([0-9]{1,3})\]\s*|([*†‡§¶‖∥⋆∗¹²³⁴-⁹]+)\s*)(?=\S)")
_SUPERIORS = str.maketrans("¹²³⁴⁵⁶⁷⁸⁹⁰∗", "1234567890*")
_MARKED = re.compile(  # marks that show in the text itself: daggers, superior figures, what a model writes for them
    r"(?<=\S)(?:[†‡§¶‖∥⋆]+|[¹²³⁴⁵⁶⁷⁸⁹⁰]+|\$\s*\{?\s*\}?\^\s*\{?\s*(?:[0-9]{1,3}|\\dagger|\\ddagger|\*)\s*\}?\s*\$|<sup>[^<]{1,3}</sup>)"
)
_EACH_MARK = re.compile(r"[^\s,;]+")  # authors may have several
_WORD_BEFORE = re.compile(r"(?:(?:^|\s)[^\W\d_]{2}|[^\W\d_]{3}|[.,;:!?”\"’')\]]|[\u3000-\u9fff])$")
_PROSE = 200  # letters: what is longer is no line of authors


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
        found = [(prose, -at) for at, each in enumerate(linked) for prose, _, _ in _places(each, mark)] if mark else []
        if not found:
            ends.append(note)
            continue
        at = -max(found)[1]
        label = labels.take(mark, page)
        linked[at] = _referring(linked[at], mark, label)
        start = _NOTE_START.match(note.text)
        cut = start.end() if start else 0
        runs = tuple(Run(max(run.start - cut, 0), run.end - cut, run.style) for run in note.runs if run.end > cut)
        ends.append(Note(label, note.text[cut:], runs))
    return linked + ends


_Place = tuple[bool, int, int]  # whether it stands in prose; start, end


def _places(element: Element, mark: str) -> list[_Place]:
    """Where the element's text has the mark as a reference."""
    if isinstance(element, ItemList):
        return [place for item in element.items for place in _marks(item.text, item.runs, mark)]
    return _marks(element.text, element.runs, mark) if isinstance(element, Paragraph | Heading) else []


def _marks(text: str, runs: Runs, mark: str) -> list[_Place]:
    raised = [
        (run.start + each.start(), run.start + each.end())
        for run in runs
        if run.style.script == 1 and not run.style.note and run.start > 0
        for each in _EACH_MARK.finditer(text[run.start : run.end])
        if each[0].translate(_SUPERIORS) == mark
        and (not mark.isdecimal() or not text[: run.start].rstrip()[-1:].isdecimal())  # 10 with a raised 6 is a power
    ]
    shown = [match.span() for match in _MARKED.finditer(text) if _shown_mark(match[0]) == mark]
    taken = {run.start for run in runs if run.style.note}
    places = raised or [place for place in shown if place[0] not in taken]
    # A number hangs on a word or on what ends a clause; on a symbol it is a power. Under a title it is an affiliation.
    hangs = [place for place in places if not mark.isdecimal() or _WORD_BEFORE.search(text[: place[0]].rstrip())]
    return [(len(text) > _PROSE, start, end) for start, end in hangs]


def _shown_mark(text: str) -> str:
    text = text.replace("\\ddagger", "‡").replace("\\dagger", "†")
    return re.sub(r"</?sup>|[\s${}^]", "", text).translate(_SUPERIORS)


def _referring(element: Element, mark: str, label: str) -> Element:
    """The element with its likeliest such mark made a reference."""
    if isinstance(element, ItemList):
        items = list(element.items)
        found = [(place[0], -at) for at, item in enumerate(items) for place in _marks(item.text, item.runs, mark)]
        at = -max(found)[1]
        items[at] = replace(items[at], runs=_with_note(items[at].text, items[at].runs, mark, label))
        return replace(element, items=tuple(items))
    if isinstance(element, Paragraph | Heading):
        return replace(element, runs=_with_note(element.text, element.runs, mark, label))
    return element


def _with_note(text: str, runs: Runs, mark: str, label: str) -> Runs:
    _, start, end = max(_marks(text, runs, mark), key=lambda place: (place[0], -place[1]))
    kept: list[Run] = []
    for run in runs:
        if run.end <= start or run.start >= end:
            kept.append(run)
        else:  # the reference cuts the run in two
            kept += [Run(run.start, start, run.style)] if run.start < start else []
            kept += [Run(end, run.end, run.style)] if run.end > end else []
    return tuple(sorted([*kept, Run(start, end, Style(note=label))], key=lambda run: run.start))
