"""Where training says that glyphs stand: on the rows of tokens that decoding will show them on."""

from collections import defaultdict
from dataclasses import replace
from itertools import accumulate, pairwise

import numpy as np

from gravityocr_models.glyphs import STRUCTURE
from gravityocr_models.image import levelled
from gravityocr_models.records import Task
from gravityocr_models.train.sample import Glyph, Sample
from gravityocr_models.train.tags import char_tags, glyph_at

TILTED_PX = 100  # a shorter row's slope would be that of its letters: an l stands higher than an a
APART_PX = 12  # further from the middle of its row a glyph stands for itself, as in a matrix


def placed(sample: Sample, token_px: int) -> Sample:
    """The sample, levelled as the engine levels crops, its glyphs drawn up or down to the middle of their row.

    The letters of a line, of a numerator or of a script then stand in one row of tokens, or where it is tilted in as
    few as can be.
    """
    if sample.task is Task.TABLE:
        return sample
    pixels = levelled(sample.pixels, token_px)
    down = len(pixels) - len(sample.pixels)
    lowered = replace(
        sample, pixels=pixels, glyphs=tuple(glyph and (*glyph[:2], glyph[2] + down) for glyph in sample.glyphs)
    )
    middles = _middles(lowered) if sample.glyphs else {}
    return replace(lowered, glyphs=tuple(glyph and (*glyph[:2], middles[glyph]) for glyph in lowered.glyphs))


def _middles(sample: Sample) -> dict[Glyph, float]:
    """The height of each glyph: of the middle of its row, there."""
    rows: defaultdict[tuple[int, int], list[Glyph]] = defaultdict(list)
    in_formula = sample.task is Task.FORMULA
    tags = [tag & STRUCTURE if in_formula else 0 for tag in char_tags(sample)]
    parts = [0, *accumulate(int(a != b) for a, b in pairwise(tags))]
    ends = r"\\" if in_formula else "\n"
    lines = [0, *accumulate(int(sample.text.startswith(ends, at)) for at in range(len(sample.text)))]
    for at, glyph in glyph_at(sample).items():
        if glyph:
            rows[lines[at], parts[at] if tags[at] else -1].append(glyph)
    return {glyph: middle for row in rows.values() for glyph, middle in _drawn(row).items()}


def _drawn(row: list[Glyph]) -> dict[Glyph, float]:
    across, height = np.array([glyph[1:] for glyph in row]).T
    slope = np.polyfit(across, height, 1)[0] if np.ptp(across) > TILTED_PX else 0.0
    middles = slope * across + np.median(height - slope * across)
    return {
        glyph: float(middle) if abs(glyph[2] - middle) < APART_PX else glyph[2]
        for glyph, middle in zip(row, middles, strict=True)
    }
