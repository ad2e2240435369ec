"""The encoder's own reading of a crop, beside the decoder.

The glyph head names what stands on each image token. In order, these names are a reading of the crop that costs one
matrix product: no language, but most of the letters. It serves twice. The token that it goes on with is given a bonus
among the decoder's logits, as CTC and attention are joined in speech recognition (Watanabe et al. 2017): a decoder that
has lost its place on the line is led back. And its rest is a draft, which that same sum then verifies.

What it goes on with depends on the tokens written so far and on nothing else, so the answer is the same however it is
decoded.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gravityocr_models.formulas import latex
from gravityocr_models.glyphs import STRUCTURE, Named, Slot, Tag, clarity, named
from gravityocr_models.inkformula import seen_latex
from gravityocr_models.letters import Letters, settled
from gravityocr_models.looks import agreed
from gravityocr_models.records import Task
from gravityocr_models.signs import UNSOUND
from gravityocr_models.tokenizer import Tokenizer

BONUS = 20.0  # nats; chosen on held-out lines (docs/journal.md)
STRAY = 0.1  # share of a line's glyphs that may stand outside its two rows of tokens
STACKED = 0.2  # share of a sloping line's columns that may have glyphs in several rows
MOST_PIECES = 4  # bytes of a character
WORD = 32  # characters that the next token is looked for in


def spell_line(glyphs: Sequence[Named]) -> str:
    """What glyphs spell as a line of text, formulas between dollars; "" where they are more than one line."""
    if not _is_line(glyphs):
        return ""
    parts: list[str] = []
    runs = [[*run] for _, run in groupby(glyphs, key=lambda glyph: Tag.MATH in glyph.tags)]
    for before, run, after in zip([[], *runs], runs, [*runs[1:], []], strict=False):
        if Tag.MATH in run[0].tags and _is_formula(run, _is_one_word(before, run) or _is_one_word(run, after)):
            apart = " " if parts and parts[-1][-1].isalnum() else ""  # behind a letter no dollar opens a formula
            parts.append(f"{apart}${latex(run)}$" + " " * (Tag.BLANK in run[-1].tags))
        else:
            parts += [glyph.sign + " " * (Tag.BLANK in glyph.tags) for glyph in run]
    return "".join(parts).rstrip()


def _is_line(glyphs: Sequence[Named]) -> bool:
    """Whether glyphs stand in two rows of tokens at most, or on a slope: in hardly any column in several rows."""
    by_row = Counter(glyph.row for glyph in glyphs)
    in_two = max((by_row[row] + by_row[row + 1] for row in by_row), default=0)
    by_column = Counter(column for column, _ in {(glyph.column, glyph.row) for glyph in glyphs})
    several = sum(rows > 1 for rows in by_column.values())
    return in_two >= (1 - STRAY) * len(glyphs) or several <= STACKED * len(by_column)


def _is_formula(run: Sequence[Named], in_word: bool) -> bool:
    """Whether glyphs tagged as a formula make one: numbers don't, nor do plain letters of a word."""
    if any(glyph.tags & STRUCTURE or not glyph.sign.isascii() for glyph in run):
        return True
    return not in_word and any(glyph.sign.isalpha() for glyph in run)


def _is_one_word(left: Sequence[Named], right: Sequence[Named]) -> bool:
    """Whether the last glyph and the first are letters with no blank between."""
    pair = [*left[-1:], *right[:1]]
    return len(pair) == 2 and all(glyph.sign.isalpha() for glyph in pair) and Tag.BLANK not in pair[0].tags


def spelled(
    task: Task, looks: Sequence[Sequence[Slot]], pixels: NDArray[np.uint8], letters: Letters | None
) -> tuple[str, list[Named], float | None]:
    """What the encoder makes of a crop ("" for more than a line, or nothing), of which glyphs, and how clear they are.

    looks: the glyphs that it names, in pixels of the crop, at one or more looks.
    """
    if task is Task.FORMULA:
        return seen_latex(looks, pixels), named(looks[0]), clarity(looks[0])
    slots = agreed(looks) if len(looks) > 1 else looks[0]
    glyphs = settled(slots, letters) if letters else named(slots)
    return spell_line(glyphs), glyphs, clarity(slots)


class Place:
    """Where in a source one stands after some text: at the end of the prefix of the source that is nearest to it."""

    def __init__(self, source: str, length: int = 0, edits: NDArray[np.int64] | None = None) -> None:
        self._source, self._length = source, length
        self._edits = edits  # from the text to each prefix; None while the text is a prefix itself

    def after(self, text: str) -> "Place":
        """The place when this text has been read as well."""
        length = self._length + len(text)
        if self._edits is None and self._source.startswith(text, self._length):
            return Place(self._source, length)
        columns = np.arange(len(self._source) + 1)
        edits = abs(columns - self._length) if self._edits is None else self._edits
        source = np.array([ord(char) for char in self._source], np.int64)
        for char in text:
            kept = np.append(edits[0] + 1, edits[:-1] + (source != ord(char)))
            kept[1:] = np.minimum(kept[1:], edits[1:] + 1)
            edits = np.minimum.accumulate(kept - columns) + columns
        return Place(self._source, length, edits)

    @property
    def at(self) -> int:
        """Length of the nearest prefix; of equally near ones, of the one that is as long as the text."""
        if self._edits is None:
            return self._length
        nearest = np.flatnonzero(self._edits == self._edits.min())
        return int(nearest[np.abs(nearest - self._length).argmin()])


@dataclass(frozen=True)
class _Stand:
    """A place, and the pieces behind it of a character that is not whole yet: rare ones are several tokens."""

    place: Place
    begun: tuple[int, ...] = ()


class Reading:
    """A crop read by the encoder, followed while an answer is written. Asked with ever more ids of one answer.

    clarity: the share of its glyphs that is expected to be right, where that is known.
    """

    def __init__(self, line: str, tokenizer: Tokenizer, end: int, clarity: float | None = None) -> None:
        self.line, self.clarity, self._tokenizer, self._end = line, clarity, tokenizer, end
        self._start = self._stand = _Stand(Place(line))
        self._known = 0

    def draft(self, committed: Sequence[int]) -> list[int]:
        """Ids of all that follows."""
        return self._from(self._reached(committed))

    def hints(self, committed: Sequence[int], candidates: Sequence[int], masks: int = 0) -> list[int]:
        """The next id: after what is committed, after each of the candidates that may follow, and after masks.

        What stands behind a mask is told apart from the other masks by its place alone, so its hint is what the reading
        has there.
        """
        stand = self._reached(committed)
        hints = [self._from(stand, WORD)[0]]
        for token in candidates:
            stand = self._after(stand, token)
            hints.append(self._from(stand, WORD)[0])
        return hints + (self._from(stand)[1 : 1 + masks] if masks else [])

    def _reached(self, committed: Sequence[int]) -> "_Stand":
        if len(committed) < self._known:  # another answer begins
            self._stand, self._known = self._start, 0
        for token in committed[self._known :]:
            self._stand = self._after(self._stand, token)
        self._known = len(committed)
        return self._stand

    def _after(self, stand: "_Stand", token: int) -> "_Stand":
        begun = (*stand.begun, token)
        text = self._tokenizer.decode(begun)
        if text.endswith(UNSOUND) and len(begun) < MOST_PIECES:
            return _Stand(stand.place, begun)
        return _Stand(stand.place.after(text))

    def _from(self, stand: "_Stand", most: int | None = None) -> list[int]:
        """Ids of what follows, of so many characters of it at most, and an end."""
        at, begun = stand.place.at, list(stand.begun)
        ids = [*self._tokenizer.encode(self.line[at : None if most is None else at + most]), self._end]
        return ids[len(begun) :] if ids[: len(begun)] == begun else ids


def with_hints(logits: Tensor, hints: Tensor) -> Tensor:
    """Logits [..., vocab], with the bonus on the hinted ids int64 [...]; -1: none."""
    bonus = torch.where(hints >= 0, BONUS, 0.0).to(logits.dtype)
    return logits.scatter_add(-1, hints.clamp(min=0)[..., None], bonus[..., None])
