"""The curriculum: what a stretch of training is made of, and when it gives way to the next."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """What a stretch of training is made of.

    words, lines, paragraphs: shares of text crops, adding up to 1. max_words: longest piece of a line. max_lines:
    longest paragraph. formulas, tables: shares of all crops. max_cells: largest table. scan: share of scan look.
    screens: share of crops of text that are as small as on screens, before some of them are scanned.
    papers, sheets: shares of real papers and of pages typeset by LaTeX among the pages that text is cut from; the rest
    is typeset on the spot.
    """

    words: float
    lines: float
    paragraphs: float
    max_words: int = 4
    max_lines: int = 6
    formulas: float = 0.0
    tables: float = 0.0
    max_cells: int = 80
    scan: float = 0.0
    screens: float = 0.0
    papers: float = 0.35
    sheets: float = 0.3

    def __post_init__(self) -> None:
        if abs(self.words + self.lines + self.paragraphs - 1) > 1e-6:
            raise ValueError("shares of words, lines and paragraphs must add up to 1")
        if self.max_words < 1 or self.max_lines < 2 or self.max_cells < 4:
            raise ValueError("max_words must be at least 1, max_lines at least 2 and max_cells at least 4")
        if self.formulas + self.tables > 1 or self.papers + self.sheets > 1:
            raise ValueError("formulas and tables, and papers and sheets, must not exceed 1 together")


READING_FIRST = 371_216
"""Samples on which the image encoder alone learns to name glyphs: a decoder has nothing to copy from until it can."""
_CURRICULUM = (
    (200_000, Stage(words=0.25, lines=0.75, paragraphs=0.0, formulas=0.25, scan=0.35)),
    (280_000, Stage(words=0.25, lines=0.75, paragraphs=0.0, formulas=0.5, scan=0.3)),
    (READING_FIRST, Stage(words=0.25, lines=0.75, paragraphs=0.0, formulas=0.65, scan=0.3)),
    (
        READING_FIRST + 300_000,
        Stage(words=0.2, lines=0.8, paragraphs=0.0, max_words=6, formulas=0.45, scan=0.3, screens=0.3),
    ),
    (
        None,
        Stage(
            words=0.1, lines=0.5, paragraphs=0.4, max_words=8, formulas=0.2, tables=0.12, scan=0.3,
            screens=0.2,
        ),
    ),
)  # fmt: skip


def stage_at(samples_seen: int) -> Stage:
    """Glyphs first, then words, lines and formulas to write, then paragraphs and tables too."""
    return next(stage for until, stage in _CURRICULUM if until is None or samples_seen < until)
