"""Several looks at a line of text, shifted on the image tokens against each other, as one.

A glyph on the border of two tokens is named badly, and each look has its borders elsewhere; narrow print is looked at
wider as well. Looks are aligned glyph by glyph at the least cost, as two spellings of a word would be, and what they
say of a glyph is averaged. (Of formulas, whose signs are set on ink, `inkglyphs.py` does the same by pieces of ink.)
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from math import exp, inf, log

import numpy as np

from gravityocr_models.glyphs import LEAST, Slot

DOUBT = 0.05  # share of glyphs expected to be wrong from which more looks are worth it (docs/journal.md)
PITCH_PX, WIDEST = 10.0, 1.25  # from letter to letter as they are read best; times (docs/journal.md)
FAR_PX = 20.0  # how far apart looks put one glyph at most
UNSAID, NEVER = -5.0, -12.0  # log-probabilities: of a sign that a look doesn't name; the least that counts of nothing
_GAP, _EMPTY_GAP = 0.6, 0.45  # cost of a glyph without a partner; by how much less where it may be none
_UNLIKE, _MOST_UNLIKE, _PX = 0.25, 0.8, 0.01  # costs of partners: a nat of unlikeliness, at most, and a pixel between


def is_doubtful(slots: Sequence[Slot]) -> bool:
    """Whether so many glyphs are expected to be wrong that a line should be looked at again."""
    return sum(1 - exp(slot.signs[0][1]) for slot in slots) > DOUBT * len(slots)


def widening(slots: Sequence[Slot]) -> float:
    """How many times wider a line is to be looked at again: where its letters are narrow, four stand on a token."""
    places = [slot.x for slot in slots if slot.signs[0][0]]
    if len(places) < 3:
        return 1.0
    pitch = (max(places) - min(places)) / (len(places) - 1)
    return min(WIDEST, max(1.0, PITCH_PX / max(pitch, 1.0)))


def agreed(looks: Sequence[Sequence[Slot]]) -> list[Slot]:
    """One look of several, in the order of the first."""
    first, *others = looks
    groups = [[slot] for slot in first]
    for look in others:
        groups = _aligned(groups, look)
    return [_averaged(group, len(looks)) for group in groups]


def _aligned(groups: Sequence[list[Slot]], slots: Sequence[Slot]) -> list[list[Slot]]:
    """The groups in order, each with the slot of another look that is the same glyph; slots without a group between."""
    at, to = [_middle(group) for group in groups], [slot.x for slot in slots]
    named, others = [_chances(group) for group in groups], [_chances([slot]) for slot in slots]
    alone, alone_too = [_gap(group) for group in groups], [_gap([slot]) for slot in slots]
    # costs[j]: of the groups so far and the first j slots. Only what lies side by side is tried.
    windows = _windows(at, to)
    first = windows[0][1] if windows else len(to)
    costs = {j: cost for j, cost in enumerate(accumulate(alone_too, initial=0.0)) if j <= first}
    came: list[dict[int, str]] = [dict.fromkeys(costs, "slot")]
    for i, (begin, end) in enumerate(windows):
        row: dict[int, float] = {}
        steps: dict[int, str] = {}
        for j in range(begin, end + 1):
            tried: list[tuple[float, float, str]] = []  # of equal costs, what stands further to the right is last
            if j - 1 in row:
                tried.append((round(row[j - 1] + alone_too[j - 1], 6), -to[j - 1], "slot"))
            if j in costs:
                tried.append((round(costs[j] + alone[i], 6), -at[i], "group"))
            if j - 1 in costs and abs(at[i] - to[j - 1]) <= FAR_PX:
                apart = _UNLIKE * -log(sum(p * others[j - 1].get(sign, 0.0) for sign, p in named[i].items()) + 1e-9)
                cost = min(_MOST_UNLIKE, apart) + _PX * abs(at[i] - to[j - 1])
                tried.append((round(costs[j - 1] + cost, 6), -inf, "both"))
            row[j], _, steps[j] = min(tried)
        costs = row
        came.append(steps)
    found: list[list[Slot]] = []
    i, j = len(groups), len(slots)
    while i or j:
        step = came[i][j]
        i, j = i - (step != "slot"), j - (step != "group")
        found.append([*(groups[i] if step != "slot" else ()), *(slots[j : j + 1] if step != "group" else ())])
    return found[::-1]


def _windows(at: Sequence[float], to: Sequence[float]) -> list[tuple[int, int]]:
    """For each place `at`, from left to right, how many of the places `to` lie before it: at least and at most.

    Neighbours overlap, so that there is a way through.
    """
    reached = list(accumulate(to, max))
    lows = [bisect_left(reached, x - FAR_PX) for x in accumulate(at, max)]
    highs = [bisect_right(reached, x + FAR_PX) for x in accumulate(at, max)]
    return [(low, max(high, after)) for low, high, after in zip(lows, highs, [*lows[1:], len(to)], strict=False)]


def _middle(group: Sequence[Slot]) -> float:
    return sum(slot.x for slot in group) / len(group)


def _chances(group: Sequence[Slot]) -> dict[str, float]:
    """How likely each sign is, by those that name it."""
    chances: dict[str, float] = {}
    for slot in group:
        for sign, score in slot.choices:
            chances[sign] = chances.get(sign, 0.0) + exp(score) / len(group)
    return chances


def _gap(group: Sequence[Slot]) -> float:
    return _GAP - _EMPTY_GAP * exp(sum(slot.empty for slot in group) / len(group))


def _averaged(group: Sequence[Slot], looks: int) -> Slot:
    """What the looks say of a glyph, on average in nats; a look without it says that nothing is there."""
    scores: dict[str, float] = {}
    for slot in group:
        for sign, score in slot.choices:
            scores[sign] = scores.get(sign, UNSAID * looks) + score - UNSAID
    scores[""] = sum(max(slot.empty, NEVER) for slot in group)
    whole = log(sum(exp(score / looks) for score in scores.values()))
    best, *rest = sorted(((sign, score / looks - whole) for sign, score in scores.items()), key=lambda each: -each[1])
    told = np.mean([slot.told for slot in group], axis=0).tolist()
    likely = (best, *(each for each in rest if each[1] > LEAST))
    return replace(group[0], signs=likely, empty=scores[""] / looks - whole, told=tuple(told))
