"""Training samples for nano: crops of 144 dpi pages with their answer and where each glyph stands.

Text is cut from pages: of real PDFs, typeset by LaTeX ahead of time, or typeset on the spot from a corpus. A page is
rendered once, and many crops are cut from it. Formulas come from sheets of LaTeX, from images, or are drawn; tables are
painted.

    for sample in samples(load_corpora(Path("data")), seed=1, stage=stage_at(0)): ...
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pymupdf

from gravityocr_models.records import Task
from gravityocr_models.train.corpora import Corpora, Split, of_split
from gravityocr_models.train.curriculum import Stage
from gravityocr_models.train.cuts import crops_of_page, cut
from gravityocr_models.train.pages import PIXELS_PER_POINT, TextPage, read_page
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.scanlook import MAX_SKEW_DEGREES, paper, scan_look, screened, skewed_point, toned
from gravityocr_models.train.sheets import FORMULA, read_sheet, sources_of
from gravityocr_models.train.tablepaint import draw_table
from gravityocr_models.train.typeset import draw_formula, pick, story_pdf

Rng = np.random.Generator
Maker = Callable[[Corpora, Rng, Stage], list[Sample]]

OPEN_PAGES = 12
OPEN_SHEETS = 4
FORMULAS_OF_A_SHEET = 16
SHEET_FORMULAS = 0.8  # of formulas, where there are sheets; the rest are images, which come from other renderers
SMALLEST_TYPE = 0.7  # of what type on screens is set in
TONED = 0.12  # share of samples that are not black on white


def samples(corpora: Corpora, seed: int, stage: Stage, split: Split = "train") -> Iterator[Sample]:
    """Endless samples, the same for the same seed. Raises ValueError when the split holds nothing to cut."""
    mine = of_split(corpora, split)
    rng = np.random.default_rng(seed)
    texts: list[list[Sample]] = [[] for _ in range(OPEN_PAGES)]
    formulas: list[list[Sample]] = [[] for _ in range(OPEN_SHEETS)]
    has_formulas = bool(mine.formulas or mine.latex or mine.sheets)
    while True:
        kind = rng.random()
        if kind < stage.tables and mine.prose:
            sample = draw_table(mine, rng, stage.max_cells, _jitter(rng))
        elif kind > 1 - stage.formulas and has_formulas:
            sample = _dealt(formulas, _fresh_formulas, mine, rng, stage)
        else:
            sample = _dealt(texts, _fresh_crops, mine, rng, stage)
        if rng.random() < TONED:
            sample = replace(sample, pixels=toned(sample.pixels, rng))
        if sample.task is Task.TEXT and rng.random() < stage.screens:
            sample = on_screen(sample, rng)
        yield scanned(sample, rng) if rng.random() < stage.scan else sample


def _dealt(decks: list[list[Sample]], fresh: Maker, corpora: Corpora, rng: Rng, stage: Stage) -> Sample:
    """The next sample of one of the decks, which is filled anew where it is empty."""
    deck = decks[rng.integers(len(decks))]
    if not deck:
        deck.extend(fresh(corpora, rng, stage))
    return deck.pop()


def on_screen(sample: Sample, rng: Rng) -> Sample:
    """The sample as small as on a screen, its type as set or down to seven tenths of it."""
    scale = rng.uniform(SMALLEST_TYPE, 1.0)
    glyphs = (glyph and (glyph[0], glyph[1] * scale, glyph[2] * scale) for glyph in sample.glyphs)
    return replace(sample, pixels=screened(sample.pixels, scale, rng), glyphs=tuple(glyphs))


def scanned(sample: Sample, rng: Rng) -> Sample:
    """The sample with a scan look; a third are skewed, on a crop made higher where the turn needs it."""
    degrees = rng.uniform(-MAX_SKEW_DEGREES, MAX_SKEW_DEGREES) if rng.random() < 0.35 else 0.0
    lift = round(abs(np.sin(np.radians(degrees))) * sample.pixels.shape[1] / 2)
    pixels = np.pad(sample.pixels, ((lift, lift), (0, 0)), constant_values=paper(sample.pixels))
    glyphs = (
        glyph and (glyph[0], *skewed_point(glyph[1], glyph[2] + lift, degrees, pixels.shape)) for glyph in sample.glyphs
    )
    return replace(sample, pixels=scan_look(pixels, rng, degrees), glyphs=tuple(glyphs))


def _fresh_crops(corpora: Corpora, rng: Rng, stage: Stage) -> list[Sample]:
    """Shuffled text crops of the next page that yields any."""
    for _ in range(200):
        kind = rng.random()
        if corpora.papers and (kind < stage.papers or not (corpora.prose or corpora.sheets)):
            with pymupdf.open(pick(corpora.papers, rng)) as document:
                page = read_page(document[int(rng.integers(len(document)))], _jitter(rng), "docbank")
        elif corpora.sheets and (kind > 1 - stage.sheets or not corpora.prose):
            page = next(_sheet_pages(pick(corpora.sheets, rng), rng, formulas=False, most=1), _NO_PAGE)
        elif corpora.prose:
            with pymupdf.open("pdf", story_pdf(corpora, rng)) as document:
                page = read_page(document[0], _jitter(rng), "story")
        else:
            break
        if crops := crops_of_page(page, rng, stage):
            return crops
    raise ValueError("no crops to be had from these corpora")


_NO_PAGE = TextPage(np.full((1, 1), 255, np.uint8), PIXELS_PER_POINT, (), "none")


def _sheet_pages(path: Path, rng: Rng, formulas: bool, most: int) -> Iterator[TextPage]:
    """Up to `most` random pages of a sheet: of one display formula each, or of text."""
    with pymupdf.open(path) as document:
        sources = sources_of(document)
        fitting = [n for n, page in enumerate(sources) if page and (page[0].look == FORMULA) is formulas]
        for number in rng.permutation(fitting)[:most].tolist():
            yield read_sheet(document[number], sources[number], _jitter(rng))


def _fresh_formulas(corpora: Corpora, rng: Rng, stage: Stage) -> list[Sample]:
    """Formulas with 2 to 10 pixels of paper around: of a sheet, or a single one from elsewhere."""
    if corpora.sheets and (rng.random() < SHEET_FORMULAS or not (corpora.formulas or corpora.latex)):
        pages = _sheet_pages(pick(corpora.sheets, rng), rng, formulas=True, most=FORMULAS_OF_A_SHEET)
        crops = [cut(page, [page.lines[0].words], rng) for page in pages if page.lines[0].sound]
        if found := [replace(crop, task=Task.FORMULA) for crop in crops if crop]:
            return found
    pixels, latex = draw_formula(corpora, rng, 72 * PIXELS_PER_POINT * _jitter(rng))
    margins = rng.integers(2, 11, (2, 2)).tolist()
    return [Sample(np.pad(pixels, margins, constant_values=255), latex, Task.FORMULA, (), "formula")]


def _jitter(rng: Rng) -> float:
    return float(rng.uniform(0.85, 1.2)) if rng.random() < 0.4 else 1.0
