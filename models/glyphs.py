"""What the glyph head says: which glyphs stand on the image tokens, and what each of them is part of."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntFlag, auto
from functools import cached_property
from math import exp
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # what prepares pages needs the names here, and starts two seconds sooner without PyTorch
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
_RIGHT = Tag.RIGHT.bit_length() - 1
BLANK = 5.0  # nats by which nothing is likelier than any glyph on a token that shows nothing
SURELY_BLANK = 10.0  # the same of one that no slot is made of: 560 signs together are then below the odds of SURE


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
    the left. x, y: about where the glyph is, in pixels of the crop, not shifted.
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


def emptiness(logits: "Tensor") -> "Tensor":
    """By how much nothing is likelier than the likeliest glyph on each image token, in nats: [..., tokens].

    logits: the head's, [..., tokens, 3, 1 + glyphs + tags].
    """
    return (logits[..., 0] - logits[..., 1 : -len(Tag)].amax(-1)).amin(-1)


def clarity(slots: Sequence[Slot]) -> float | None:
    """The share of the glyphs named that is right, as the encoder itself expects; None where it names none."""
    chances = [exp(slot.signs[0][1]) for slot in slots if slot.signs[0][0]]
    return sum(chances) / len(chances) if chances else None


def named(slots: Sequence[Slot]) -> list[Named]:
    """The glyphs that are likeliest, from the left."""
    firsts = ((slot.signs[0][0], slot) for slot in slots)
    return [Named(sign, slot.tags, slot.row, slot.column) for sign, slot in firsts if sign]


def slots(
    logits: "Tensor", grid: tuple[int, int], signs: Sequence[str], token_px: int = 1, right: int = 0, wide: float = 1.0
) -> list[Slot]:
    """The places that hold a glyph, or may hold one, by the head's logits [rows * columns, 3, 1 + glyphs + tags].

    From the left. signs: the glyphs' names in the order of their numbers, from 1 on. wide, right: how many times wider
    than the crop it is what the head has seen, and by how many pixels it is then shifted.
    """
    rows, columns, tags_at = *grid, -len(Tag)
    logits = logits.float()  # numpy knows no bfloat16
    shown = (emptiness(logits) < SURELY_BLANK).nonzero()[:, 0]
    scores = logits[shown, :, :tags_at].log_softmax(-1)
    likeliest = scores.topk(GLYPHS_TRIED)

    def spread(values: "Tensor") -> NDArray[Any]:
        """Values of what is shown [shown, 3, ...] -> of all tokens, [rows, columns, 3, ...]."""
        known = values.cpu().numpy()
        every = np.zeros((rows * columns, *known.shape[1:]), known.dtype)
        every[shown.cpu().numpy()] = known
        return every.reshape(rows, columns, *known.shape[1:])

    empty, best, numbers = spread(scores[..., 0]), spread(likeliest.values), spread(likeliest.indices)
    told = spread(logits[shown, :, tags_at:])
    tags = (told > 0) @ np.array([int(tag) for tag in Tag])
    kept = _told_once(numbers[..., 0], tags & int(STRUCTURE), best[..., 0])
    doubtful = (numbers[..., 0] == 0) & (best[..., 0] < SURE)
    row_of, column_of, places = ((kept > 0) | doubtful).nonzero()
    order = np.lexsort((row_of, places, tags[row_of, column_of, places] & int(Tag.RIGHT), column_of))
    at = row_of[order], column_of[order], places[order]
    facts = (each.tolist() for each in (*at, numbers[at], best[at], empty[at], told[at]))
    found = []
    for row, column, place, ids, chances, nothing, odds in zip(*facts, strict=True):
        tried = [(signs[ids[0] - 1] if ids[0] else "", chances[0])]
        for number, score in zip(ids[1:], chances[1:], strict=True):
            if score > LEAST:
                tried.append((signs[number - 1] if number else "", score))
        x = ((column + (0.75 if odds[_RIGHT] > 0 else 0.25)) * token_px - right) / wide
        own = max(0, int(x // token_px))
        found.append(Slot(tuple(tried), nothing, tuple(odds), row, own, place, x, (row + 0.5) * token_px))
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
