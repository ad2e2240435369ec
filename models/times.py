"""What a decoder is told of its encoder's own reading, and when.

The reading's ids stand in the prompt, each at the rotary position of the answer token that it suggests: what is to be
written next is one step ahead, for a clean token and for a mask token alike, and a decoder learns to correct where else
it would have to learn to read (compare Mask-CTC, Higuchi et al. 2020). GLM-OCR's positions have three axes, time, row
and column, and all tokens of an image share one time; here each has the time of the answer token that is read from it.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gravityocr_models.formulas import ACCENTS, SIGNS
from gravityocr_models.glyphs import BLANK, Named
from gravityocr_models.ocr import sequence_positions
from gravityocr_models.tokenizer import Tokenizer

NOWHERE = -100  # place of an answer token that shows nothing: a blank, markup
_SIGN = re.compile(r"\\math(?:bb|cal)\{[A-Z]\}|\\[A-Za-z]+|\\.|\S", re.DOTALL)


def told_by(
    line: str, glyphs: Sequence[Named], grid: tuple[int, int], tokenizer: Tokenizer, end: int
) -> tuple[list[int], NDArray[np.int64]]:
    """The ids of a reading, with an end, and when each image token is read: see `read_at`. "": no ids, nothing is read.

    glyphs: what the line was spelled from. grid: rows and columns of image tokens.
    """
    ids = [*tokenizer.encode(line), end] if line else []
    return ids, read_at(places_of(line, tokenizer.spans(line), glyphs, grid[1]), grid)


def places_of(text: str, spans: Sequence[tuple[int, int]], glyphs: Sequence[Named], columns: int) -> list[int]:
    """For each token of a reading the image token that its first glyph stands on, NOWHERE where it has none.

    spans: the tokens' characters in the text, [start, end). glyphs: what the text was spelled from. columns: of the
    crop's image tokens. Of several equal glyphs the nearest one is meant.
    """
    left: defaultdict[str, list[Named]] = defaultdict(list)
    for glyph in glyphs:
        left[glyph.sign].append(glyph)
    place = [NOWHERE] * len(text)
    row = column = 0
    for found in _SIGN.finditer(text):
        spelled = found[0]
        sign = SIGNS.get(spelled) or ACCENTS.get(spelled) or spelled[-1]
        if equal := left[sign]:
            nearest = min(equal, key=lambda each: abs(each.column - column) + abs(each.row - row))
            equal.remove(nearest)
            row, column = nearest.row, nearest.column
            place[found.start()] = row * columns + column
    return [next((each for each in place[start:end] if each != NOWHERE), NOWHERE) for start, end in spans]


def read_at(places: Sequence[int], grid: tuple[int, int]) -> NDArray[np.int64]:
    """For each image token the number of the answer token that is read there: int64 [rows * columns].

    places: of each answer token, NOWHERE for those that have none. Where nothing begins, what began to the left is
    still being read. -1 throughout where no token has a place.
    """
    table = np.full(grid, -1, np.int64)
    for number, place in reversed([*enumerate(places)]):  # of several that begin on one, the first counts
        if place != NOWHERE:
            table.flat[place] = number
    if (table >= 0).any():
        reached = 0
        for column in table.T:
            begun = column[column >= 0]
            reached = begun.min() if len(begun) else reached
            column[column < 0] = reached
    return table.ravel()


def shown_on(emptiness: Tensor) -> Tensor:
    """The image tokens that show something, int64 [..., K], by `glyphs.emptiness` [..., tokens]; at least one.

    Of several images the emptier ones have as many as the fullest.
    """
    count = max(1, int((emptiness < BLANK).sum(dim=-1).max()))
    return emptiness.topk(count, largest=False).indices.sort(dim=-1).values


def told_positions(before: int, grid: tuple[int, int], shown: Tensor, told: int, after: int, times: Tensor) -> Tensor:
    """Rotary positions int64 [3, ..., n] of a prompt: tokens, an image, the ids of its reading, tokens.

    Each id of the reading stands where the answer token stands that it suggests, and so does, in time, the image token
    that it was read from. shown int64 [..., K]: the image tokens that the prompt holds. times: of `read_at`, of all of
    them, int64 [..., rows * columns]; negative: nobody has read it.
    """
    plain = sequence_positions(before, grid, after)
    behind = before + grid[0] * grid[1]
    start = plain[0, -1] + 1
    image = plain[:, before + shown]
    clock = times.gather(-1, shown)
    image[0] = (start + clock).where(clock >= 0, image[0])
    suggested = (start + torch.arange(told)).expand(3, -1)
    around = (each.view(3, *(1,) * (shown.ndim - 1), -1) for each in (plain[:, :before], suggested, plain[:, behind:]))
    head, *tail = (each.expand(3, *shown.shape[:-1], -1) for each in around)
    return torch.cat([head, image, *tail], dim=-1)
