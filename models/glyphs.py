"""What the glyph head says: which glyphs stand on the image tokens, and what each of them is part of."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag, auto
from functools import cached_property

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

    signs: those that it may be ("": none) with their log-probabilities, the likeliest first. empty: the
    log-probability of none. told: log-odds of each tag, in their order. row, column: of its token. place: there, from
    the left. x, y: about where the glyph is, in pixels of the crop.
    """

    signs: tuple[tuple[str, float], ...]
    empty: float
    told: tuple[float, ...]
    row: int
    column: int
    place: int = 0
    x: float = 0.0
    y: float = 0.0

    def odds(self, tag: Tag) -> float:
        """Log-odds of a tag."""
        return self.told[tag.bit_length() - 1]

    @cached_property
    def tags(self) -> Tag:
        """Those that are likelier than not."""
        return Tag(sum(1 << number for number, odds in enumerate(self.told) if odds > 0))

    @cached_property
    def choices(self) -> tuple[tuple[str, float], ...]:
        """The signs that it may be, if it is one."""
        return tuple(pair for pair in self.signs if pair[0])


def named(slots: Sequence[Slot]) -> list[Named]:
    """The glyphs that are likeliest, from the left."""
    firsts = ((slot.signs[0][0], slot) for slot in slots)
    return [Named(sign, slot.tags, slot.row, slot.column) for sign, slot in firsts if sign]


def slots(logits: Tensor, grid: tuple[int, int], signs: Sequence[str], token_px: int = 1) -> list[Slot]:
    """The places that hold a glyph, or may hold one, by the head's logits [rows * columns, 3, 1 + glyphs + tags].

    From the left. signs: the glyphs' names in the order of their numbers, from 1 on.
    """
    scores = logits[..., : -len(Tag)].log_softmax(-1).view(*grid, -1, logits.shape[-1] - len(Tag))
    empty = scores[..., 0].cpu().numpy()
    best, numbers = (each.cpu().numpy() for each in scores.topk(GLYPHS_TRIED))
    told = logits[..., -len(Tag) :].view(*grid, -1, len(Tag)).float().cpu().numpy()
    tags = (told > 0) @ np.array([int(tag) for tag in Tag])
    kept = _told_once(numbers[..., 0], tags & int(STRUCTURE), best[..., 0])
    doubtful = (numbers[..., 0] == 0) & (best[..., 0] < SURE)
    rows, columns, places = ((kept > 0) | doubtful).nonzero()
    order = np.lexsort((rows, places, tags[rows, columns, places] & int(Tag.RIGHT), columns))
    found = []
    for row, column, place in zip(rows[order].tolist(), columns[order].tolist(), places[order].tolist(), strict=True):
        at = row, column, place
        pairs = enumerate(zip(numbers[at].tolist(), best[at].tolist(), strict=True))
        tried = tuple(
            (signs[number - 1] if number else "", score) for rank, (number, score) in pairs if not rank or score > LEAST
        )
        right = told[at][Tag.RIGHT.bit_length() - 1] > 0
        x, y = (column + (0.75 if right else 0.25)) * token_px, (row + 0.5) * token_px
        found.append(Slot(tried, float(empty[at]), tuple(told[at].tolist()), row, column, place, x, y))
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
