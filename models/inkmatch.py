"""Signs and ink that belong together: what the encoder names is set on pieces of ink at the least cost.

The encoder says which sign stands where within half a token; the ink says exactly where and how large. The cost of a
pair is how far apart they are, how unlikely the name is, and how unlike the sign's shape the ink is; the pairs of a
formula are chosen together (Hungarian method).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from statistics import median

import numpy as np
from numpy.typing import NDArray

from gravityocr_models.glyphs import Slot, Tag
from gravityocr_models.ink import Ink
from gravityocr_models.mathsigns import identity_of
from gravityocr_models.sequences import assignment
from gravityocr_models.signshapes import FLAT, GROWING, IN_PARTS, shape_of, shapes_of

SIZES = (1.0, 0.7, 0.5)  # of signs, scripts and scripts of scripts
LEAST_SIZE, MOST_SIZE = 8.0, 60.0  # pixels
ACROSS_PX, DOWN_PX = 5.0, 9.0  # what a sign may be off its place, at the cost of 1
REACH_PX = 20.0  # further off it is another one
NAME, SHAPE = 0.7, 0.5  # weights of what the encoder says and of the ink's shape
_DROPPED, _UNNAMED, _SPECK, _SMALL_RULE, _RULE = 5.0, 4.0, 2.0, 2.5, 0.8  # costs of slots and ink without a partner


@dataclass(frozen=True, eq=False)
class Seen:
    """A sign of a formula that has been seen. sign, alphabet: as in `signs.Sign`."""

    slot: Slot
    sign: str
    alphabet: str
    ink: Ink


def size_of(slots: Sequence[Slot], pieces: Sequence[Ink]) -> float:
    """The size of the formula's font in pixels, by the height of signs that are certain and stand alone."""
    sizes = []
    for slot in slots:
        name, likelihood = slot.signs[0]
        sign = identity_of(name)[0] if name else "-"
        if likelihood > -0.3 and script_odds(slot) < -1 and sign not in GROWING | FLAT | IN_PARTS:
            near = [ink for ink in pieces if abs(ink.box.x - slot.x) < 8 and ink.box.y0 - 4 < slot.y < ink.box.y1 + 4]
            if len(near) == 1:
                sizes.append(near[0].box.height / shape_of(sign).height)
    return min(max(median(sizes or [20.0]), LEAST_SIZE), MOST_SIZE)


def matched(slots: Sequence[Slot], pieces: Sequence[Ink], size: float) -> tuple[list[Seen], list[Ink]]:
    """Slots and pieces that belong together at the least cost, and the pieces that are left."""
    alone = [_unnamed_cost(ink, size) for ink in pieces]
    dropped = [min(_DROPPED, -NAME * slot.empty) for slot in slots]
    away = _distances(slots, pieces)
    saved = np.zeros_like(away)  # by making a pair, over leaving both without a partner
    signs: dict[tuple[int, int], tuple[str, str]] = {}
    for at, place in zip(*(near.tolist() for near in np.isfinite(away).nonzero()), strict=True):
        fit, signs[at, place] = min(_fits(slots[place], pieces[at], size))
        saved[at, place] = max(0.0, alone[at] + dropped[place] - away[at, place] - fit)
    pairs = [(at, place) for at, place in assignment(saved) if saved[at, place] > 0]
    named = {at for at, _ in pairs}
    seen = [Seen(slots[place], *signs[at, place], pieces[at]) for at, place in pairs]
    return seen, [ink for at, ink in enumerate(pieces) if at not in named]


def script_odds(slot: Slot) -> float:
    """Log-odds that a sign is a script."""
    return max(slot.odds(Tag.RAISED), slot.odds(Tag.SUNK))


def told_scale(slot: Slot) -> float:
    """The scale that the tags tell: of a sign on the line, or of a script."""
    return SIZES[script_odds(slot) > 0]


def is_flat(ink: Ink, size: float) -> bool:
    return ink.box.height <= max(4, 0.14 * size)


def _distances(slots: Sequence[Slot], pieces: Sequence[Ink]) -> NDArray[np.float64]:
    """The cost of each sign standing where each piece of ink is, [pieces, slots]; infinite where that is far off."""
    boxes = [ink.box for ink in pieces]
    x0, y0, x1, y1 = np.array([(box.x0, box.y0, box.x1, box.y1) for box in boxes]).reshape(-1, 4).T[:, :, None]
    x, y = (np.array([slot.x for slot in slots]), np.array([slot.y for slot in slots]))
    growing = np.array([slot.choices[0][0] in GROWING for slot in slots], bool)
    across = np.maximum(0.0, np.abs((x0 + x1) / 2 - x) - 2)
    down = np.maximum(0.0, np.maximum(y0 - y, y - y1))
    large = (x0 < x) & (x < x1) & growing
    away = (across / ACROSS_PX) ** 2 + (down / DOWN_PX) ** 2
    return np.where(((across <= REACH_PX) | large) & (away < 16), away, np.inf)


def _unnamed_cost(ink: Ink, size: float) -> float:
    if is_flat(ink, size) and ink.box.width >= 0.5 * size:
        return _SMALL_RULE if ink.box.width < size else _RULE
    return _SPECK if ink.box.width * ink.box.height < 0.05 * size**2 else _UNNAMED


def _fits(slot: Slot, ink: Ink, size: float) -> Iterator[tuple[float, tuple[str, str]]]:
    """For each sign that a slot may be the cost of the ink being it."""
    script, inner = script_odds(slot), slot.odds(Tag.INNER)
    unlikely = (0.3 * max(0.0, script), 0.6 * (script <= 0), 0.3 if inner > 0 else 1.2)
    for name, likelihood in slot.choices:
        sign, alphabet = identity_of(name)
        unlike = misshapen(sign, ink.box.width, ink.box.height, size)
        shape = min(min(square, 8) + prior for square, prior in zip(unlike, unlikely, strict=True))
        yield SHAPE * shape - NAME * likelihood, (sign, alphabet)


@lru_cache(1 << 16)  # every look at a formula asks for the same
def misshapen(sign: str, width: float, height: float, size: float) -> tuple[float, float, float]:
    """How unlike a sign, in each of SIZES of a font of this size, ink of so many pixels is: squares of deviations."""
    full, script, inner = (_misshapen(sign, width, height, size * scale) for scale in SIZES)
    return full, script, inner


def _misshapen(sign: str, width: float, height: float, size: float) -> float:
    shape = shape_of(sign)
    if sign == "/":
        return 0.0
    if sign in GROWING:
        return off(height, size * max(shape.height, 1), 0.8) if height > 0.9 * size else 6.0
    if sign in FLAT or shape.height < 0.2:
        return ((height - shape.height * size) / 3) ** 2 + off(width, shape.width * size, 0.6)
    if sign in IN_PARTS:
        return min(off(height, shape.height * size, 0.2), 2) + off(width, shape.width * size, 0.5)
    return min(off(height, each.height * size, 0.13) for each in shapes_of(sign)) + off(width, shape.width * size, 0.35)


def off(found: float, expected: float, spread: float) -> float:
    """A ratio's logarithm in units of its spread, squared."""
    return (log(found / expected) / spread) ** 2
