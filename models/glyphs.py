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
    BOLD = auto()  # of a formula; prose says nothing of its weight
    LINED = auto()  # under a line that runs over it


ALL_TAGS = Tag((1 << len(Tag)) - 1)
STRUCTURE = ALL_TAGS & ~(Tag.BLANK | Tag.MATH | Tag.RIGHT | Tag.BOLD | Tag.LINED)


GLYPHS_TRIED = 4  # of a place, the likeliest
SURE, LEAST = float(np.log(0.97)), float(np.log(0.01))  # that a place is empty; that a sign is what stands there


@dataclass(frozen=True)
class Named:
    """A glyph that the encoder has named: its sign, tags, and the row and column of its image token."""

    sign: str
    tags: Tag
    row: int
    column: int


@dataclass(frozen=True)
class Slot:
    """A place for a glyph on an image token, and what the encoder takes it for.

    signs: numbers of the signs that it may be (0: none) with their log-probabilities, the likeliest first. blank: the
    probability that a blank is behind it.
    """

    signs: tuple[tuple[int, float], ...]
    tags: Tag
    blank: float
    row: int
    column: int


def named(logits: Tensor, grid: tuple[int, int], signs: Sequence[str]) -> list[Named]:
    """The glyphs that the head's logits [rows * columns, 3, 1 + glyphs + tags] name, from the left.

    signs: the glyphs' names in the order of their numbers, from 1 on.
    """
    firsts = ((slot.signs[0][0], slot) for slot in slots(logits, grid))
    return [Named(signs[number - 1], slot.tags, slot.row, slot.column) for number, slot in firsts if number]


def slots(logits: Tensor, grid: tuple[int, int]) -> list[Slot]:
    """The places of the head's logits that hold a glyph, or may hold one, from the left."""
    best, numbers = (
        each.view(*grid, -1, GLYPHS_TRIED).cpu().numpy()
        for each in logits[..., : -len(Tag)].log_softmax(-1).topk(GLYPHS_TRIED)
    )
    told = logits[..., -len(Tag) :].view(*grid, -1, len(Tag)).float()
    tags = (told > 0).cpu().numpy() @ np.array([int(tag) for tag in Tag])
    blanks = told[..., list(Tag).index(Tag.BLANK)].sigmoid().cpu().numpy()
    firsts = numbers[..., 0]
    kept = _told_once(firsts, tags & int(STRUCTURE), best[..., 0])
    doubtful = (firsts == 0) & (best[..., 0] < SURE)
    rows, columns, places = ((kept > 0) | doubtful).nonzero()
    order = np.lexsort((rows, places, tags[rows, columns, places] & int(Tag.RIGHT), columns))
    found = []
    for row, column, place in zip(rows[order].tolist(), columns[order].tolist(), places[order].tolist(), strict=True):
        at = row, column, place
        pairs = zip(numbers[at].tolist(), best[at].tolist(), strict=True)
        signs = tuple(pair for number, pair in enumerate(pairs) if not number or pair[1] > LEAST)
        found.append(Slot(signs, Tag(int(tags[at])), float(blanks[at]), row, column))
    return found


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
