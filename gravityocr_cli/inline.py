"""Styles inside running text: where on the joined text the bold, raised or linked stretches of its painted lines lie.

Text is joined over lines, columns and pages as plain strings; its styles travel beside it as runs of offsets. The model
may have read a text that differs from the layer whose fonts are known, so both are aligned letter by letter.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rapidfuzz.distance import Levenshtein

from gravityocr_cli.document import PLAIN, Line, Span, Style
from gravityocr_cli.textlayer import rows_of

_MOST_PAIRS = 400_000_000  # letters against letters: what aligning two long texts may cost
_LONG, _MOST = 15, 0.8  # words of a paragraph that has a face of its own, and the share of its letters in it
_WORD = re.compile(r"[^\W\d_]{2,}")
_OPENING, _CLOSING, _PRIMES = ("(", "[", "{"), (")", "]", "}"), frozenset("\u2032\u2033\u2034")
_ALIKE = 0.8  # share of letters that layer and text must have in common for the layer's fonts to mean anything


@dataclass(frozen=True)
class Run:
    """A styled stretch of a text: offsets [start, end) in characters."""

    start: int
    end: int
    style: Style


Runs = tuple[Run, ...]


def runs_of(texts: Sequence[str], lines: Sequence[Line]) -> list[Runs]:
    """The runs of each text, where the texts, one after the other, are what the painted lines say.

    Markers that a list took off its items, and whatever else is missing or added, have no say in it.
    """
    plain: list[Runs] = [() for _ in texts]
    if not any(line.spans for line in lines):
        return plain
    spans = [span for row in rows_of(lines) for line in row for span in line.spans or (Span(line.text),)]
    source = [(letter, span.style) for span in spans for letter in span.text if not letter.isspace()]
    target = [(at, index) for at, text in enumerate(texts) for index, each in enumerate(text) if not each.isspace()]
    if all(style.code for _, style in source):  # a typewriter's page, not code in prose
        source = [(letter, replace(style, code=False)) for letter, style in source]
    written = "".join(texts[at][index] for at, index in target)
    painted = "".join(letter for letter, _ in source)
    if painted != written and len(painted) * len(written) > _MOST_PAIRS:
        return plain
    styles: list[dict[int, Style]] = [{} for _ in texts]
    shared = 0
    for block in Levenshtein.opcodes(painted, written).as_matching_blocks():
        shared += block.size
        for step in range(block.size):
            at, index = target[block.b + step]
            styles[at][index] = source[block.a + step][1]
    if shared < _ALIKE * len(written):
        return plain
    return [
        tuple(run for each in _grouped(text, _calmed(text, style)) for run in _trimmed(text, each))
        for text, style in zip(texts, styles, strict=True)
    ]


def _calmed(text: str, styles: dict[int, Style]) -> dict[int, Style]:
    """The styles without weight and slant that a whole paragraph has (an abstract's or a theorem's face, no emphasis;
    what is short keeps it: it may be a heading that runs in, or a term) and without those of raised and lowered parts.
    """
    styles = {at: replace(s, bold=False, italic=False) if s.script else s for at, s in styles.items()}
    words = [match.span() for match in _WORD.finditer(text)]
    letters = [at for start, end in words for at in range(start, end)]
    if len(words) < _LONG:
        return styles
    bold, italic = (
        sum(getattr(styles.get(at, PLAIN), face) for at in letters) >= _MOST * len(letters)
        for face in ("bold", "italic")
    )
    return {
        at: replace(style, bold=style.bold and not bold, italic=style.italic and not italic)
        for at, style in styles.items()
    }


def _trimmed(text: str, run: Run) -> Iterator[Run]:
    """The run without what its style says nothing about: a bracket whose partner stands outside, points in bold, the
    height of a prime."""
    shown, style = text[run.start : run.end], run.style
    if style.bold or style.italic:
        if shown[-1] in _OPENING:
            shown = shown[:-1].rstrip()
        if shown[:1] in _CLOSING:
            run, shown = replace(run, start=run.start + 1), shown[1:]
        if not any(each.isalnum() for each in shown):
            style, shown = replace(style, bold=False, italic=False), text[run.start : run.end]
    if set(shown) <= _PRIMES:
        style = replace(style, script=0)
    if style != PLAIN and shown:
        yield Run(run.start, run.start + len(shown), style)


def _grouped(text: str, styles: dict[int, Style]) -> Iterator[Run]:
    """Neighbours in one style as one run, blanks between them included."""
    run: Run | None = None
    for index, letter in enumerate(text):
        if letter.isspace():
            continue
        style = styles.get(index, PLAIN)
        if run is not None and unicodedata.combining(letter):
            style = run.style  # a mark on a letter never stands apart from it
        if run is not None and style == run.style:
            run = replace(run, end=index + 1)
            continue
        if run is not None and run.style != PLAIN:
            yield run
        run = Run(index, index + 1, style)
    if run is not None and run.style != PLAIN:
        yield run


def joined_runs(whole: str, left: Runs, right: Runs, right_length: int) -> Runs:
    """The runs of a text that two were joined to: the second kept all its characters, the first may have lost some."""
    seam = len(whole) - right_length
    kept = [replace(run, end=min(run.end, seam)) for run in left if run.start < seam]
    added = [Run(run.start + seam, run.end + seam, run.style) for run in right]
    if kept and added and kept[-1].style == added[0].style and not whole[kept[-1].end : added[0].start].strip():
        kept[-1:] = [replace(kept[-1], end=added.pop(0).end)]
    return (*kept, *added)


def of_heading(text: str, runs: Runs) -> Runs:
    """A heading's runs without its weight, and without a slant that all of it has: both say only that it is one."""
    slanted = sum(run.end - run.start for run in runs if run.style.italic) >= 0.8 * len(text)
    bare = [replace(run, style=replace(run.style, bold=False, italic=run.style.italic and not slanted)) for run in runs]
    return tuple(run for run in bare if run.style != PLAIN)


def outside(spans: Sequence[tuple[int, int]], runs: Runs) -> Runs:
    """The runs that touch none of the spans [start, end)."""
    return tuple(run for run in runs if not any(run.start < end and start < run.end for start, end in spans))
