"""The encoder's own reading of a line, as a draft.

The glyph head names what stands on each image token. In order, these names are a reading of the crop that costs one
matrix product: no language, no certainty, but most of the letters. Decoding takes it as candidates. It is followed by
edit distance, so that a letter too few or too many does not throw it off the line.
"""

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor

from gravityocr_models.tokenizer import Tokenizer

STRAY = 0.1  # share of a line's glyphs that may stand outside its two rows of tokens


def spell(logits: Tensor, grid: tuple[int, int], letters: Sequence[str]) -> str:
    """What the glyph head's logits [rows * columns, 2, glyphs + 2] spell, "" where it is more than one line.

    letters: the glyphs' characters in the order of their numbers, from 1 on.
    """
    names = logits[:, :, :-1].argmax(-1).view(*grid, -1).cpu().numpy()
    blanks = (logits[:, :, -1] > 0).view(*grid, -1).cpu().numpy()
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


class Place:
    """Where in a source one stands after other text has been read: the prefix of the source nearest to that text."""

    def __init__(self, source: str) -> None:
        self._source = np.array([ord(char) for char in source], np.int64)
        self._columns = np.arange(len(source) + 1)
        self._edits = self._columns.copy()  # from the text read so far to each prefix of the source
        self._read = 0

    def read(self, text: str) -> int:
        """Read on; the length of the nearest prefix, of equally near ones the one as long as the text read."""
        for char in text:
            kept = np.append(self._edits[0] + 1, self._edits[:-1] + (self._source != ord(char)))
            kept[1:] = np.minimum(kept[1:], self._edits[1:] + 1)
            self._edits = np.minimum.accumulate(kept - self._columns) + self._columns
        self._read += len(text)
        nearest = np.flatnonzero(self._edits == self._edits.min())
        return int(nearest[np.abs(nearest - self._read).argmin()])


def drafter(source: str, tokenizer: Tokenizer, end: int) -> Callable[[Sequence[int]], list[int]]:
    """Committed ids -> what the source goes on with, then the end. To be asked with ever more ids of an answer."""
    place, known = Place(source), 0

    def ask(committed: Sequence[int]) -> list[int]:
        nonlocal place, known
        if not committed:
            place, known = Place(source), 0
        at = place.read(tokenizer.decode(list(committed[known:])))
        known = len(committed)
        return [*tokenizer.encode(source[at:]), end]

    return ask
