"""What the glyph head says: which glyphs stand on the image tokens, and what each of them is part of."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag, auto

import numpy as np
from numpy.typing import NDArray
from torch import Tensor


class Tag(IntFlag):
    """What the glyph head says of a glyph beside its name, in the order of its outputs."""

    BLANK = auto()  # a blank or the end is behind it
    MATH = auto()  # it is part of a formula
    UPPER = auto()  # of a fraction
    LOWER = auto()
    RAISED = auto()
    SUNK = auto()
    INNER = auto()  # in a script of a script on the same side
    ROOTED = auto()
    RIGHT = auto()  # it stands in the right half of its token: order between rows that slots don't tell


ALL_TAGS = Tag((1 << len(Tag)) - 1)
STRUCTURE = ALL_TAGS & ~(Tag.BLANK | Tag.MATH | Tag.RIGHT)


@dataclass(frozen=True)
class Named:
    """A glyph that the encoder has named: its sign, tags, and the row and column of its image token."""

    sign: str
    tags: Tag
    row: int
    column: int


def named(logits: Tensor, grid: tuple[int, int], signs: Sequence[str]) -> list[Named]:
    """The glyphs that the head's logits [rows * columns, 3, 1 + glyphs + tags] name, from the left.

    signs: the glyphs' names in the order of their numbers, from 1 on.
    """
    scores, numbers = (each.view(*grid, -1).cpu().numpy() for each in logits[..., : -len(Tag)].log_softmax(-1).max(-1))
    bits = (logits[..., -len(Tag) :] > 0).cpu().numpy() @ np.array([int(tag) for tag in Tag])
    tags = bits.reshape(*grid, -1)
    numbers = _told_once(numbers, tags & int(STRUCTURE), scores)
    rows, columns, slots = (numbers > 0).nonzero()
    found = tags[rows, columns, slots]
    order = np.lexsort((rows, slots, found & int(Tag.RIGHT), columns))
    return [
        Named(
            signs[numbers[rows[at], columns[at], slots[at]] - 1], Tag(int(found[at])), int(rows[at]), int(columns[at])
        )
        for at in order
    ]


def _told_once(numbers: NDArray[np.int64], parts: NDArray[np.int64], scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """Numbers [rows, columns, 3] without the less certain of two that name one glyph, on the border of two tokens.

    Those are equal, part of the same, and one above the other: on a level line equal glyphs stand equally high, so two
    of them are in one row.
    """
    numbers = numbers.copy()
    for row in range(len(numbers) - 1):
        for upper in range(numbers.shape[2]):
            for lower in range(numbers.shape[2]):
                above, below = numbers[row, :, upper], numbers[row + 1, :, lower]
                same = (above == below) & (above > 0) & (parts[row, :, upper] == parts[row + 1, :, lower])
                surer = scores[row, :, upper] >= scores[row + 1, :, lower]
                below[same & surer], above[same & ~surer] = 0, 0
    return numbers
