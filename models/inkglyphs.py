"""Which ink is which glyph: what the encoder names, set on the pieces of ink that a formula is printed with.

Signs and ink are matched (`inkmatch.py`), for each look at the formula, and the looks averaged by piece of ink. What is
left over is settled: letters that touch are cut, dots go to their letters, ink without a name gets the likeliest, flat
ink is a rule or an accent.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import log
from statistics import mean

import numpy as np

from gravityocr_models.glyphs import Slot
from gravityocr_models.ink import Ink, accent_of, cut_near, joined, without_rule
from gravityocr_models.inkmatch import SIZES, Seen, is_flat, matched, misshapen, off, size_of, told_scale
from gravityocr_models.mathsigns import identity_of
from gravityocr_models.signs import Box, hull_of
from gravityocr_models.signshapes import FLAT, GROWING, IN_PARTS, shape_of

_OUTLINED = frozenset("\u0302\u0303\u0304\u030c\u20d7")  # accents that ink tells better than the encoder
BAR_WIDTH = 0.46  # of the size: a wider one is a line over something
ANY_NAME_PX, SAME_NAME_PX = 5.0, 9.0  # how far apart looks put one glyph: they know its place to half a token
NOTHING = -0.2  # log-probability from which readings agree that nothing is there
UNSAID = -5.0  # log-probability of a sign that a reading doesn't name


def seen_in(readings: Sequence[Sequence[Slot]], pieces: Sequence[Ink]) -> tuple[list[Seen], list[Box], float]:
    """The signs of a formula, its rules, and the size of its font in pixels.

    readings: what the encoder says of the crop, and perhaps of the same crop shifted on its tokens.
    """
    readings = [[slot for slot in slots if slot.choices] for slots in readings]
    pieces, rules = _parted_roots(readings[0], pieces)
    size = size_of(readings[0], pieces)
    slots = _agreed(readings, pieces, size) if len(readings) > 1 else readings[0]
    seen, pieces = matched(slots, pieces, size)
    seen = _shared(slots, seen, size)
    seen, pieces = _completed(seen, pieces, size)
    seen, lines = _with_outlines(seen, size)
    rules += lines
    for ink in pieces:
        if found := _accent(ink, seen, size):
            seen.append(found)
        elif is_flat(ink, size) and ink.box.width >= 0.25 * size:
            rules.append(ink.box)
        elif found := _missed(ink, slots, seen, size):
            seen.append(found)
    return seen, rules, size


def _parted_roots(slots: Sequence[Slot], pieces: Sequence[Ink]) -> tuple[list[Ink], list[Box]]:
    """The pieces, the signs of roots without their rules, and these rules."""
    roots = [slot for slot in slots if any(sign == "√" for sign, _ in slot.choices)]
    out, rules = [], []
    for ink in pieces:
        named = any(
            ink.box.x0 - 12 < root.x < ink.box.x0 + 24 and ink.box.y0 - 12 < root.y < ink.box.y1 + 12 for root in roots
        )
        sign, rule = (named and without_rule(ink)) or (ink, None)
        out.append(sign)
        rules += [rule] if rule else []
    return out, rules


def _agreed(readings: Sequence[Sequence[Slot]], pieces: Sequence[Ink], size: float) -> list[Slot]:
    """One reading of several: what they say of a piece of ink is averaged.

    A glyph on the border of two tokens is named badly, and on another reading's tokens it is on none.
    """
    said: dict[int, list[list[Slot]]] = {}
    left: list[list[Slot]] = []
    for slots in readings:
        seen, _ = matched(slots, pieces, size)
        used = {id(glyph.slot) for glyph in seen}
        for glyph in seen:
            _add(glyph.slot, said.setdefault(id(glyph.ink), []))
        for slot in slots:
            if id(slot) not in used:
                _add(slot, left)
    merged: list[Slot] = []
    for groups in said.values():  # letters that touch are one piece of ink, and each look may name another of them
        most, *others = sorted(groups, key=len, reverse=True)
        merged.append(_averaged(most, len(readings)))
        for group in others:
            for slot in group:
                _add(slot, left)
    merged += [_averaged(group, len(group)) for group in left if len(group) > 1]
    there = [slot for slot in merged if slot.empty < NOTHING]
    return sorted(there, key=lambda slot: (slot.x, slot.place))


def _add(slot: Slot, groups: list[list[Slot]]) -> None:
    """Put a slot to those that may well be the same glyph."""
    for group in groups:
        names = {name for other in group for name, _ in other.choices}
        if abs(slot.x - group[0].x) <= (ANY_NAME_PX if slot.choices[0][0] not in names else SAME_NAME_PX):
            group.append(slot)
            return
    groups.append([slot])


def _averaged(slots: Sequence[Slot], readings: int) -> Slot:
    """What slots for one glyph say on average; readings that have none say that nothing is there."""
    scores: dict[str, list[float]] = {}
    for slot in slots:
        for sign, score in slot.choices:
            scores.setdefault(sign, []).append(score)
    count = len(slots)
    average = {sign: (sum(each) + UNSAID * (count - len(each))) / count for sign, each in scores.items()}
    told = np.mean([slot.told for slot in slots], axis=0)
    return replace(
        slots[0],
        signs=tuple(sorted(average.items(), key=lambda item: -item[1])),
        empty=sum(slot.empty for slot in slots) / readings,
        told=tuple(told.tolist()),
        x=mean(slot.x for slot in slots),
        y=mean(slot.y for slot in slots),
    )


def _shared(slots: Sequence[Slot], seen: Sequence[Seen], size: float) -> list[Seen]:
    """The signs; those that are sure but found no ink of their own get a part of what is too wide for one."""
    out = list(seen)
    used = {id(glyph.slot) for glyph in seen}
    for slot in slots:
        if id(slot) in used or slot.empty > log(0.4):
            continue
        hosts = [glyph for glyph in out if _may_share(slot, glyph, size)]
        if not hosts:
            continue
        host = min(hosts, key=lambda glyph: abs(glyph.slot.x - slot.x))
        sign, alphabet = identity_of(slot.choices[0][0])
        after = (host.slot.x, host.slot.place) < (slot.x, slot.place)
        own, other = (shape_of(name).width * told_scale(each) for name, each in ((sign, slot), (host.sign, host.slot)))
        share = (other if after else own) / (own + other)
        parts = cut_near(host.ink, host.ink.box.x0 + share * host.ink.box.width, 0.12 * size)
        if parts:
            kept, given = parts if after else parts[::-1]
            out[out.index(host)] = replace(host, ink=kept)
            out.append(Seen(slot, sign, alphabet, given))
    return out


def _may_share(slot: Slot, glyph: Seen, size: float) -> bool:
    """Whether a glyph's ink, too wide for it, reaches to where the slot is."""
    box, scale = glyph.ink.box, told_scale(glyph.slot)
    there = box.x0 - 3 <= slot.x <= box.x1 + 3 and box.y0 - 8 <= slot.y <= box.y1 + 8
    shape = shape_of(glyph.sign)
    grown = glyph.sign in GROWING and box.height > 1.3 * shape.height * scale * size
    return there and not grown and box.width > 1.35 * shape.width * scale * size


def _completed(seen: Sequence[Seen], pieces: Sequence[Ink], size: float) -> tuple[list[Seen], list[Ink]]:
    """The signs with the pieces that they lack: dots, second strokes, what a hairline has come off; and the rest."""
    dots = [each for each in seen if each.sign in ".,"]  # of i, j, semicolons, named on their own
    out, rest = list(seen), []
    for dot in dots:
        hosts = [at for at, glyph in enumerate(out) if glyph.sign in "ij;:!?" and _is_stacked(glyph, dot, size)]
        if hosts and dot in out:
            out[hosts[0]] = replace(out[hosts[0]], ink=joined([out[hosts[0]].ink, dot.ink]))
            out.remove(dot)
    for ink in pieces:
        gains = [(gain, at) for at, glyph in enumerate(out) if (gain := _gain(glyph, ink, size)) is not None]
        if gains:
            _, at = min(gains)
            out[at] = replace(out[at], ink=joined([out[at].ink, ink]))
        else:
            rest.append(ink)
    return out, rest


def _is_stacked(glyph: Seen, dot: Seen, size: float) -> bool:
    """Whether a dot lies right over or under a sign that has one, and is the part that it lacks."""
    gain = _gain(glyph, dot.ink, size)
    return gain is not None and abs(glyph.ink.box.x - dot.ink.box.x) < 0.12 * size


def _gain(glyph: Seen, ink: Ink, size: float) -> float | None:
    """How far off its shape a glyph would be with the piece of ink; None where it would be no better."""
    box, shape = glyph.ink.box, shape_of(glyph.sign)
    across = max(box.x0, ink.box.x0) - min(box.x1, ink.box.x1)
    if glyph.sign in IN_PARTS:
        if across >= 0.12 * size:
            return None
        scale, whole = told_scale(glyph.slot) * size, hull_of([box, ink.box])
        before, after = (abs(log(each.height / (scale * shape.height))) for each in (box, whole))
        better = after < min(before + 0.1, 0.6) and whole.width < 1.7 * shape.width * scale + 3
        return after if better else None
    down = max(box.y0, ink.box.y0) - min(box.y1, ink.box.y1)
    if across > 2 or down > 2 or glyph.sign in FLAT or glyph.sign in GROWING:
        return None
    whole = hull_of([box, ink.box])
    before, after = (
        min(
            off(each.height, scale * size * shape.height, 0.15) + off(each.width, scale * size * shape.width, 0.2)
            for scale in SIZES
        )
        for each in (box, whole)
    )
    return after if after < min(before - 1, 4) else None


def _accent(ink: Ink, seen: Sequence[Seen], size: float) -> Seen | None:
    """The accent that small flat ink is, close over one letter and under nothing."""
    box = ink.box
    if not 0.2 * size <= box.width < 0.62 * size or box.height > max(5, 0.3 * size):
        return None
    if not _touches(ink, seen, 1, 0.3 * size) or _touches(ink, seen, -1, 0.7 * size):
        return None
    under = [
        glyph for glyph in seen
        if min(glyph.ink.box.x1, box.x1) > max(glyph.ink.box.x0, box.x0) and 0 <= glyph.ink.box.y0 - box.y0 < 0.7 * size
    ]  # fmt: skip
    if not under:
        return None
    letter = min(under, key=lambda glyph: abs(glyph.ink.box.x - ink.box.x))
    found = Seen(letter.slot, accent_of(ink), "", ink)
    return None if _is_line(found, size) else found


def _with_outlines(seen: Sequence[Seen], size: float) -> tuple[list[Seen], list[Box]]:
    """The signs with accents as their ink has them, and the rules among them."""
    told = [replace(each, sign=accent_of(each.ink)) if each.sign in _OUTLINED else each for each in seen]
    lines = [each for each in told if _is_line(each, size)]
    return [each for each in told if each not in lines], [each.ink.box for each in lines]


def _is_line(accent: Seen, size: float) -> bool:
    """Whether a bar over letters is too wide for an accent."""
    return accent.sign == "\u0304" and accent.ink.box.width > BAR_WIDTH * told_scale(accent.slot) * size


def _touches(ink: Ink, seen: Sequence[Seen], side: int, gap: float) -> bool:
    """Whether there is a glyph close under (1) or over (-1) the ink."""
    box = ink.box
    for glyph in seen:
        other = glyph.ink.box
        shared = min(other.x1, box.x1) - max(other.x0, box.x0)
        white = other.y0 - box.y1 if side > 0 else box.y0 - other.y1
        if shared > 0.3 * min(other.width, box.width) and -2 < white < gap:
            return True
    return False


def _missed(ink: Ink, slots: Sequence[Slot], seen: Sequence[Seen], size: float) -> Seen | None:
    """What the encoder finds likeliest where there is ink that nothing was named on; None for specks."""
    box = ink.box
    if box.width * box.height < 0.1 * size**2 or box.height < 0.25 * size:
        return None
    found = []
    for slot in _unused(slots, seen):
        if abs(slot.x - ink.box.x) <= 14 and box.y0 - 12 <= slot.y <= box.y1 + 12:
            for name, likelihood in slot.choices:
                sign, alphabet = identity_of(name)
                if sign not in FLAT:
                    shape = 2.0 if sign in GROWING else min(misshapen(sign, box.width, box.height, size))
                    found.append((likelihood - shape / 2, sign, alphabet, slot))
    best = max(found, key=lambda each: each[0], default=None)
    return Seen(best[3], best[1], best[2], ink) if best and best[0] > -4 else None


def _unused(slots: Sequence[Slot], seen: Sequence[Seen]) -> list[Slot]:
    used = {id(glyph.slot) for glyph in seen}
    return [slot for slot in slots if id(slot) not in used]
