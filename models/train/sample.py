"""What training is made of: one crop, its answer, and where the answer's glyphs stand."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gravityocr_models.records import Task

Grey = NDArray[np.uint8]
Glyph = tuple[str, float, float]

ALPHABET = frozenset(
    {chr(code) for block in ((0x21, 0x7F), (0xA1, 0x180), (0x386, 0x3CF)) for code in range(*block)}
    - set("\u00a8\u00ad\u00af\u00b4\u00b5\u00b8\u0149\u017f")
    | set("\u0218\u0219\u021a\u021b“”‘’„‚–—…•†‡‹›€™−≤≥≠≈→←∞")
)
"""Characters that an answer may hold, blank and line break apart."""


@dataclass(frozen=True)
class Sample:
    """One crop and its answer.

    pixels: grey uint8 [H, W], 144 dpi, ink dark on light (mostly). text: as painted, lines parted by a line break;
    LaTeX for a formula, minimal HTML for a table, LaTeX between dollars for a formula in a line. glyphs: for each
    non-blank character of the text the glyph that it spells, (painted character, x, y) with its centre in pixels of
    this crop, or None where it spells none, as markup doesn't; characters that spell one glyph together, as `\\alpha`
    does, repeat it. Empty where nothing is known.
    """

    pixels: Grey
    text: str
    task: Task
    glyphs: tuple[Glyph | None, ...]
    source: str
