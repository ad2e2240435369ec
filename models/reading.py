"""The encoder's own reading of a line, beside the decoder.

The glyph head names what stands on each image token. In order, these names are a reading of the crop that costs one
matrix product: no language, but most of the letters. It serves twice. The token that it goes on with is given a bonus
among the decoder's logits, as CTC and attention are joined in speech recognition (Watanabe et al. 2017): a decoder that
has lost its place on the line is led back. And its rest is a draft, which that same sum then verifies.

What it goes on with depends on the tokens written so far and on nothing else, so the answer is the same however it is
decoded.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gravityocr_models.tokenizer import Tokenizer

BONUS = 10.0  # nats; chosen on held-out lines (docs/journal.md)
STRAY = 0.1  # share of a line's glyphs that may stand outside its two rows of tokens
WORD = 32  # characters that the next token is looked for in


def spell(logits: Tensor, grid: tuple[int, int], letters: Sequence[str]) -> str:
    """What the glyph head's logits [rows * columns, 2, glyphs + 2] spell, "" where it is more than one line.

    letters: the glyphs' characters in the order of their numbers, from 1 on.
    """
    scores, names = (each.view(*grid, -1).cpu().numpy() for each in logits[:, :, :-1].log_softmax(-1).max(-1))
    blanks = (logits[:, :, -1] > 0).view(*grid, -1).cpu().numpy()
    names = _told_once(names, scores)
    by_row = (names > 0).sum(axis=(1, 2))
    in_two = by_row + np.append(by_row[1:], 0)
    if in_two.max() < (1 - STRAY) * by_row.sum():
        return ""
    across = np.transpose(names > 0, (1, 2, 0)).nonzero()  # column by column, in it slot by slot
    parts = [
        letters[names[row, column, slot] - 1] + " " * bool(blanks[row, column, slot])
        for column, slot, row in zip(*across, strict=True)
    ]
    return "".join(parts).rstrip()


def _told_once(names: NDArray[np.int64], scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Names [rows, columns, 2] without the less certain of two equal ones, one above the other: a glyph on the border.

    On a level line equal glyphs stand equally high, so two of them are in one row.
    """
    names = names.copy()
    for row in range(len(names) - 1):
        for upper in range(names.shape[2]):
            for lower in range(names.shape[2]):
                above, below = names[row, :, upper], names[row + 1, :, lower]
                same = (above == below) & (above > 0)
                surer = scores[row, :, upper] >= scores[row + 1, :, lower]
                below[same & surer], above[same & ~surer] = 0, 0
    return names


class Place:
    """Where in a source one stands after some text: at the end of the prefix of the source that is nearest to it."""

    def __init__(self, source: NDArray[np.int64], edits: NDArray[np.int64], length: int) -> None:
        self._source, self._edits, self._length = source, edits, length  # edits: from the text to each prefix

    @classmethod
    def start(cls, source: str) -> "Place":
        return cls(np.array([ord(char) for char in source], np.int64), np.arange(len(source) + 1), 0)

    def after(self, text: str) -> "Place":
        """The place when this text has been read as well."""
        edits, columns = self._edits, np.arange(len(self._edits))
        for char in text:
            kept = np.append(edits[0] + 1, edits[:-1] + (self._source != ord(char)))
            kept[1:] = np.minimum(kept[1:], edits[1:] + 1)
            edits = np.minimum.accumulate(kept - columns) + columns
        return Place(self._source, edits, self._length + len(text))

    @property
    def at(self) -> int:
        """Length of the nearest prefix; of equally near ones, of the one that is as long as the text."""
        nearest = np.flatnonzero(self._edits == self._edits.min())
        return int(nearest[np.abs(nearest - self._length).argmin()])


class Reading:
    """A line read by the encoder, followed while an answer is written. Asked with ever more ids of one answer."""

    def __init__(self, line: str, tokenizer: Tokenizer, end: int) -> None:
        self.line, self._tokenizer, self._end = line, tokenizer, end
        self._start = self._place = Place.start(line)
        self._known = 0

    def draft(self, committed: Sequence[int]) -> list[int]:
        """Ids of all that follows."""
        return [*self._tokenizer.encode(self.line[self._reached(committed).at :]), self._end]

    def hints(self, committed: Sequence[int], candidates: Sequence[int]) -> list[int]:
        """The next id: after what is committed, then after each of the candidates that may follow."""
        place = self._reached(committed)
        hints = [self._next(place)]
        for token in candidates:
            place = self._after(place, token)
            hints.append(self._next(place))
        return hints

    def _reached(self, committed: Sequence[int]) -> Place:
        if len(committed) < self._known:  # another answer begins
            self._place, self._known = self._start, 0
        for token in committed[self._known :]:
            self._place = self._after(self._place, token)
        self._known = len(committed)
        return self._place

    def _after(self, place: Place, token: int) -> Place:
        return place.after(self._tokenizer.decode([token]))

    def _next(self, place: Place) -> int:
        at = place.at
        return (self._tokenizer.encode(self.line[at : at + WORD]) or [self._end])[0]


def with_hints(logits: Tensor, hints: Tensor) -> Tensor:
    """Logits [..., vocab], with the bonus on the hinted ids int64 [...]; -1: none."""
    bonus = torch.where(hints >= 0, BONUS, 0.0).to(logits.dtype)
    return logits.scatter_add(-1, hints.clamp(min=0)[..., None], bonus[..., None])
