"""A formula as it is seen -> LaTeX: sizes and baselines from its ink, structure as if painted (`mathlayout.py`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log
from statistics import median

import numpy as np
from numpy.typing import NDArray

from gravityocr_models.glyphs import Slot, Tag
from gravityocr_models.ink import pieces_of
from gravityocr_models.inkglyphs import seen_in
from gravityocr_models.inkmatch import SIZES, Seen, script_odds
from gravityocr_models.latex import FUNCTIONS
from gravityocr_models.mathatoms import AXIS, WORD_GAP
from gravityocr_models.mathlayout import latex_of
from gravityocr_models.signs import Box, Sign
from gravityocr_models.signshapes import FLAT, GROWING, IN_PARTS, shape_of, shapes_of

MOST_PIECES = 500  # of ink: more is a halftone, and matching takes their cube
POINTS = 10.0  # what a formula's font is taken to be: `mathlayout.py` works in points
SURE = 4.0  # most that the odds of a tag count
ON_LINE = 0.16  # of the size: baselines that are one
BESIDE = 1.2  # of the size: most white between scripts of one line
LEVELS_WEIGHT = 4.0  # nats at most: what a line of full signs says against a script on it
INNER = 0.3  # weight of the tag of scripts of scripts, which is told worse than a size
BESIDE_COST = 2.0  # nats that scripts beside a sign count for it being as large


@dataclass(frozen=True, eq=False)
class _Placed:
    """A sign with its scale, one of SIZES, and its baseline in pixels."""

    seen: Seen
    scale: float
    baseline: float

    @property
    def box(self) -> Box:
        return self.seen.ink.box


def seen_latex(readings: Sequence[Sequence[Slot]], pixels: NDArray[np.uint8]) -> str:
    """The displayed formula on a crop; "" where it makes none.

    readings: the glyphs that the encoder names on it, in pixels of the crop, of one or more looks at it.
    """
    pieces = pieces_of(pixels)
    if not 0 < len(pieces) <= MOST_PIECES or not any(readings):
        return ""
    seen, rules, size = seen_in(readings, pieces)
    placed = _levelled(_scaled(seen, size), size)
    rules += [rule for root in placed if (rule := _missing_rule(root, placed, rules, size))]
    unit = POINTS / size
    upright = _upright(placed, size)
    signs = [
        Sign(
            each.seen.sign,
            _times(each.box, unit),
            (each.box.x0 * unit, each.baseline * unit),
            each.scale * POINTS,
            r"\mathrm" if each in upright else _alphabet(each.seen),
        )
        for each in placed
    ]
    return latex_of(signs, [_times(rule, unit) for rule in rules])


def _times(box: Box, unit: float) -> Box:
    return Box(box.x0 * unit, box.y0 * unit, box.x1 * unit, box.y1 * unit)


def _alphabet(seen: Seen) -> str:
    bold = seen.slot.odds(Tag.BOLD) > 0 and seen.sign.isalnum()
    return seen.alphabet or (r"\mathbf" if bold else "")


def _scaled(seen: Sequence[Seen], size: float) -> list[_Placed]:
    """The signs from left to right, each with its likeliest scale: by its height, its tags, and on which line it is."""
    ordered = sorted(seen, key=lambda each: each.ink.box.x0)
    placed = [_at_scale(each, min(SIZES, key=_costs(each, size).__getitem__), size) for each in ordered]
    for _ in range(2):
        lines = _lines(placed, size)
        placed = [
            each if each.seen.sign in GROWING or not lines else _at_scale(each.seen, _on_lines(each, lines, size), size)
            for each in placed
        ]
    return [_beside_scripts(each, placed, size) for each in placed]


def _at_scale(seen: Seen, scale: float, size: float) -> _Placed:
    return _Placed(seen, scale, _baseline(seen, scale * size))


def _baseline(seen: Seen, size: float) -> float:
    box = seen.ink.box
    shape = min(shapes_of(seen.sign), key=lambda each: abs(box.height - each.height * size))
    grown = seen.sign in GROWING and (box.height > 1.15 * size * shape.height or seen.sign in "∑∏∫√")
    return seen.ink.box.y + size * (AXIS if grown else (shape.above - shape.below) / 2)


def _costs(seen: Seen, size: float) -> dict[float, float]:
    """How unlikely a sign is at each scale, from its ink and its tags: nats, about."""
    script, inner = script_odds(seen.slot), seen.slot.odds(Tag.INNER)
    small = 0.5 * max(0.0, -script)
    told = (max(0.0, script), small, small + INNER * max(0.0, -inner) + 0.5)
    return {
        scale: min(_misfit(seen, scale * size), 9) / 2 + min(odds, SURE)
        for scale, odds in zip(SIZES, told, strict=True)
    }


def _misfit(seen: Seen, size: float) -> float:
    """How far off the measures of the sign at this size are: a square."""
    shape, box = shape_of(seen.sign), seen.ink.box
    if seen.sign in GROWING:
        return 0.0
    if seen.sign in FLAT or shape.height < 0.2:
        return min((log(box.width / (shape.width * size)) / 0.4) ** 2, 4) if shape.width > 0.3 else 0.0
    spread = 0.11 if seen.sign.isalnum() and seen.sign not in IN_PARTS else 0.2
    return min((log(box.height / (each.height * size)) / spread) ** 2 for each in shapes_of(seen.sign))


def _lines(placed: Sequence[_Placed], size: float) -> list[float]:
    """The baselines that two full signs stand on at least."""
    lines: list[list[float]] = []
    for each in placed:
        if each.scale == 1 and each.seen.sign not in GROWING:
            line = next((line for line in lines if abs(median(line) - each.baseline) < ON_LINE * size), None)
            if line is None:
                lines.append([each.baseline])
            else:
                line.append(each.baseline)
    return [median(line) for line in lines if len(line) > 1]


def _on_lines(each: _Placed, lines: Sequence[float], size: float) -> float:
    """The likeliest scale of a sign, given the lines that full signs stand on: a script is on none of them."""
    costs = _costs(each.seen, size)
    for scale in SIZES:
        baseline = _baseline(each.seen, scale * size)
        off = min(abs(baseline - line) for line in lines) / size
        if scale == 1:
            costs[scale] += min((off / 0.08) ** 2 / 2, LEVELS_WEIGHT)
        elif off < 0.07:
            costs[scale] += 0.7 * LEVELS_WEIGHT
    return min(SIZES, key=costs.__getitem__)


def _beside_scripts(each: _Placed, placed: Sequence[_Placed], size: float) -> _Placed:
    """A sign that was taken for a script's script, as large as scripts beside it on its line."""
    if each.scale != SIZES[2] or each.seen.sign in GROWING or each.seen.slot.odds(Tag.INNER) > 2:
        return each
    near = any(
        abs(other.baseline - each.baseline) < 0.09 * size
        and min(abs(other.box.x0 - each.box.x1), abs(each.box.x0 - other.box.x1)) < 0.4 * size
        for other in placed
        if other.scale == SIZES[1]
    )
    costs = _costs(each.seen, size)
    near = near and costs[SIZES[1]] < costs[SIZES[2]] + BESIDE_COST
    return _at_scale(each.seen, SIZES[1], size) if near else each


def _levelled(placed: Sequence[_Placed], size: float) -> list[_Placed]:
    """The signs; those of one scale that stand on about one baseline stand on it."""
    groups: list[list[_Placed]] = []
    for each in placed:
        if each.seen.sign in GROWING and each.box.height > 1.3 * each.scale * size:
            groups.append([each])
            continue
        for group in groups:
            beside = each.scale == 1 or each.box.x0 - group[-1].box.x1 < BESIDE * size
            if group[0].scale == each.scale and beside and _stands_on(each, group, size):
                group.append(each)
                break
        else:
            groups.append([each])
    lines = {id(each): median(other.baseline for other in group) for group in groups for each in group}
    return [replace(each, baseline=lines[id(each)]) for each in placed]


def _stands_on(each: _Placed, group: Sequence[_Placed], size: float) -> bool:
    """Whether a sign's baseline is about that of others."""
    return abs(median(other.baseline for other in group) - each.baseline) < ON_LINE * each.scale * size


def _missing_rule(root: _Placed, placed: Sequence[_Placed], rules: Sequence[Box], size: float) -> Box | None:
    """The rule of a root that has none, as far as the signs behind it are said to be under one."""
    box, near = root.box, 0.2 * size
    if root.seen.sign != "√" or any(abs(rule.x0 - box.x1) < near and abs(rule.y0 - box.y0) < near for rule in rules):
        return None
    right = [each for each in placed if each.box.x0 > box.x1 - near and box.y0 - 3 < each.seen.ink.box.y < box.y1 + 3]
    end = box.x1
    for number, each in enumerate(right):
        if number and each.seen.slot.odds(Tag.ROOTED) <= 0:
            break
        end = max(end, each.box.x1)
    return Box(box.x1, box.y0, end, box.y0 + 1) if end > box.x1 else None


def _upright(placed: Sequence[_Placed], size: float) -> set[_Placed]:
    """Letters side by side that spell functions."""
    found: set[_Placed] = set()
    for start in range(len(placed)):
        for name_length in range(6, 1, -1):
            run = placed[start : start + name_length]
            if "".join(each.seen.sign for each in run) in FUNCTIONS and _is_word(run, size):
                found.update(run)
    return found


def _is_word(run: Sequence[_Placed], size: float) -> bool:
    return all(
        after.box.x0 - before.box.x1 < WORD_GAP * size
        and after.scale == before.scale
        and abs(after.baseline - before.baseline) < ON_LINE * size
        for before, after in pairwise(run)
    )
