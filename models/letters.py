"""Which letters follow which: what the encoder isn't sure of is settled by what is usual in text.

The glyph head's second or third choice is the right one for most of what its first gets wrong. A language model of
letters, n-grams with stupid backoff (Brants et al. 2007), chooses among them by beam search, as a language model is
joined to CTC in speech recognition. It looks at the letters read so far and at nothing else.
"""

from array import array
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gravityocr_models.glyphs import Named, Slot, Tag

ORDER = 6  # letters of the longest n-grams
BACKOFF = float(np.log(0.4))
UNKNOWN = -12.0  # log-probability of what was never seen
STEPS = 16  # stored probabilities: sixteenths of a nat
WEIGHT, LETTER = 0.2, 1.2  # of the letters' log-probabilities, and nats for every letter: else short texts are likelier
BEAMS = 8
BEHIND = 5.0  # nats from which a way of reading is given up; of 300 lines none is read otherwise for it
DOUBTFUL_BLANK = 2.94  # log-odds of a blank, either way, up to which both ways are tried
MOST_KNOWN = 200_000  # answers that are kept
_FACTOR, _SPREAD, _WORD = 1_000_003, 0x9E3779B97F4A7C15, (1 << 64) - 1


@dataclass(frozen=True)
class Letters:
    """keys: hashes of n-grams, uint32, ascending. scores: minus their log-probabilities, in STEPS of a nat, uint8.

    chars: the characters that it knows, the blank first.
    """

    keys: NDArray[np.uint32]
    scores: NDArray[np.uint8]
    chars: str
    _known: dict[tuple[str, str], float] = field(default_factory=dict, repr=False)
    _ends: dict[str, list[int]] = field(default_factory=dict, repr=False)

    @cached_property
    def _sorted(self) -> "array[int]":
        """The keys as the standard library keeps them: a search there takes a third of the time for single keys."""
        return array("I", self.keys.astype(np.uint32).tobytes())

    @classmethod
    def load(cls, path: Path) -> "Letters":
        """Raises OSError or ValueError where the file cannot be read."""
        with np.load(path, allow_pickle=False) as arrays:
            return cls(arrays["keys"], arrays["scores"], str(arrays["chars"]))

    def save(self, path: Path) -> None:
        np.savez_compressed(path, keys=self.keys, scores=self.scores, chars=np.array(self.chars))

    def score(self, before: str, char: str) -> float:
        """The log-probability of a character behind others, of which the last ORDER - 1 count."""
        key = before[1 - ORDER :], char
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = self._looked_up(*key)
        return known

    def score_of(self, text: str, before: str) -> float:
        """The log-probability of a text behind another."""
        return sum(self.score(before + text[:at], char) for at, char in enumerate(text))

    def _looked_up(self, before: str, char: str) -> float:
        code = self.chars.find(char)
        if code < 0:
            return UNKNOWN
        values = self._suffixes(before)
        for dropped, value in enumerate(values):
            key = _key(_grown(value, code), len(values) - dropped)
            at = bisect_left(self._sorted, key)
            if at < len(self._sorted) and self._sorted[at] == key:
                return BACKOFF * dropped - float(self.scores[at]) / STEPS
        return UNKNOWN + BACKOFF * len(values)

    def _suffixes(self, before: str) -> list[int]:
        """All ends of a text folded by `_grown`, the whole one first, the empty one last; kept for every text."""
        values = self._ends.get(before)
        if values is None:
            if len(self._ends) >= MOST_KNOWN:
                self._ends.clear()
            codes = [max(0, self.chars.find(each)) for each in before]
            values = [reduce(_grown, codes[start:], 0) for start in range(len(codes) + 1)]
            self._ends[before] = values
        return values


def _grown(value: int, code: int) -> int:
    return (value * _FACTOR + code + 1) & _WORD


def _key(value: int, count: int) -> int:
    """The key of an n-gram of so many characters; value: their numbers folded by `_grown`, from 0."""
    return ((value * 8 + count) * _SPREAD & _WORD) >> 32


def all_hashed(codes: NDArray[np.uint64], count: int) -> NDArray[np.uint32]:
    """The keys of all n-grams of this length in a text, in order."""
    values = np.zeros(max(0, len(codes) - count + 1), np.uint64)
    for at in range(count):
        values = values * np.uint64(_FACTOR) + codes[at : at + len(values)] + np.uint64(1)
    return ((values * np.uint64(8) + np.uint64(count)) * np.uint64(_SPREAD) >> np.uint64(32)).astype(np.uint32)


@dataclass(frozen=True)
class _Choice:
    """What a slot may be: its glyph, if it is one, how that is spelled, and what the encoder thinks of it in nats."""

    glyph: Named | None
    text: str
    score: float


@dataclass(frozen=True)
class _Beam:
    """A way of reading: its score, the letters that it ends with, and the glyphs, the last first."""

    score: float
    context: str
    glyph: Named | None = None
    before: "_Beam | None" = None


def settled(slots: Sequence[Slot], letters: Letters) -> list[Named]:
    """The glyphs of a line of text, the doubtful ones and the blanks chosen by the letters around them.

    Maths is left as the encoder names it.
    """
    beams = [_Beam(0.0, " ")]
    for slot in slots:
        choices = _choices(slot)
        judged = Tag.MATH not in slot.tags and max(len(beams), len(choices)) > 1  # else nothing competes
        grown: dict[str, _Beam] = {}
        for beam in beams:
            for choice in choices:
                score = beam.score + choice.score
                if judged and choice.text:
                    score += LETTER + WEIGHT * letters.score_of(choice.text, beam.context)
                context = (beam.context + choice.text)[1 - ORDER :]
                if context not in grown or grown[context].score < score:
                    grown[context] = _Beam(score, context, choice.glyph, beam)
        best_first = sorted(grown.values(), key=lambda beam: -beam.score)[:BEAMS]
        beams = [beam for beam in best_first if beam.score > best_first[0].score - BEHIND]
    best: _Beam | None = beams[0]
    glyphs = []
    while best is not None:
        if best.glyph:
            glyphs.append(best.glyph)
        best = best.before
    return glyphs[::-1]


def _choices(slot: Slot) -> list[_Choice]:
    """The likeliest signs of a slot, with and without a blank behind where that is doubtful; of maths the first."""
    maths, odds, tags = Tag.MATH in slot.tags, slot.odds(Tag.BLANK), slot.tags & ~Tag.BLANK
    doubtful = abs(odds) < DOUBTFUL_BLANK and not maths
    found = []
    for sign, likelihood in slot.signs[:1] if maths else slot.signs:
        if not sign:
            found.append(_Choice(None, "", likelihood))
            continue
        for blank in (True, False) if doubtful else (odds > 0,):
            glyph = Named(sign, tags | Tag.BLANK * blank, slot.row, slot.column)
            told = -float(np.logaddexp(0, -odds if blank else odds)) if doubtful else 0.0
            found.append(_Choice(glyph, sign + " " * blank, likelihood + told))
    return found
