"""Samples -> batches for the joint loss: crops of one token grid, answers with their labels on both paths.

A batch is `[S | x0 | xt]` (see attention.training_mask): S = image and prompt, x0 = the answer, xt = the answer's slots
as mask tokens. Everything on xt is masked (p = 1), which is the one-shot draft that decoding asks for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from gravityocr_models.config import DraftConfig, OcrConfig
from gravityocr_models.formulas import ACCENTS, SIGNS
from gravityocr_models.glyphs import Tag
from gravityocr_models.image import grid_of, normalise, stack
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.placing import placed
from gravityocr_models.train.sample import ALPHABET, Sample
from gravityocr_models.train.tags import tags_of
from gravityocr_models.vision import GLYPHS_PER_TOKEN

GLYPHS = {
    char: number for number, char in enumerate(sorted({*ALPHABET, *SIGNS.values(), *ACCENTS.values()}), start=1)
}  # 0: no glyph
IGNORE = -100
TRAILING = 8  # mask slots kept after the answer's end: short answers would be mostly padding otherwise


@dataclass(frozen=True)
class Batch:
    """pixels [B, C, H, W]; tasks int64 [B]: prompt tokens; answers int64 [B, L], padded with 0; lengths int64 [B].

    ar_labels int64 [B, 1 + L]: what the last prompt token and each answer token predict. draft_labels int64 [B, M]:
    what the mask token in each slot predicts. delta int64 [B]: phase of the blocks. glyphs int64
    [B, tokens, 3, 1 + tags]: see `glyph_labels`. places int64 [B, L]: the image token under each answer token's first
    glyph, IGNORE where there is none. grid: rows and columns of image tokens.
    """

    pixels: Tensor
    grid: tuple[int, int]
    answers: Tensor
    lengths: Tensor
    ar_labels: Tensor
    draft_labels: Tensor
    delta: Tensor
    glyphs: Tensor
    places: Tensor
    tasks: Tensor


def batches(
    samples: Iterator[Sample],
    tokenizer: Tokenizer,
    config: OcrConfig,
    draft: DraftConfig,
    end: int,
    budget: int,
    seed: int,
) -> Iterator[Batch]:
    """Endless batches of at most `budget` decoder tokens, shuffled; a pool of samples is sorted by token grid."""
    rng = np.random.default_rng(seed)
    pool: dict[tuple[int, int], list[Sample]] = {}
    for sample in (placed(each, config.vision.token_px) for each in samples):
        grid = grid_of(sample.pixels.shape, config.vision.token_px)
        group = pool.setdefault(grid, [])
        group.append(sample)
        cost = grid[0] * grid[1] + 2 * max(len(s.text) for s in group) // 2 + TRAILING
        if len(group) * cost >= budget:
            yield collate(pool.pop(grid), tokenizer, config, draft, end, rng)


def collate(
    samples: Sequence[Sample],
    tokenizer: Tokenizer,
    config: OcrConfig,
    draft: DraftConfig,
    end: int,
    rng: np.random.Generator,
) -> Batch:
    """Samples of one token grid, placed, as a batch."""
    token_px = config.vision.token_px
    grid = grid_of(samples[0].pixels.shape, token_px)
    images = [normalise(sample.pixels, config.vision) for sample in samples]
    answers = [tokenizer.encode(sample.text) for sample in samples]
    delta = rng.integers(0, draft.bd_size, len(samples))
    longest = max(map(len, answers))
    padded = np.zeros((len(samples), longest), np.int64)
    ar_labels = np.full((len(samples), longest + 1), IGNORE, np.int64)
    noised = [_slots(len(ids), int(shift), draft.bd_size) for ids, shift in zip(answers, delta, strict=True)]
    draft_labels = np.full((len(samples), max(noised)), IGNORE, np.int64)
    places = np.full((len(samples), longest), IGNORE, np.int64)
    for row, (ids, sample) in enumerate(zip(answers, samples, strict=True)):
        places[row, : len(ids)] = token_places(sample, tokenizer.spans(sample.text), grid, token_px)
        padded[row, : len(ids)] = ids
        ar_labels[row, : len(ids) + 1] = [*ids, end]
        draft_labels[row, : noised[row]] = (ids[1:] + [end] * noised[row])[: noised[row]]
    glyphs = [glyph_labels(sample, grid, token_px) for sample in samples]
    return Batch(
        pixels=stack(images, torch.device("cpu"), torch.float32),
        grid=grid,
        answers=torch.from_numpy(padded),
        lengths=torch.tensor([len(ids) for ids in answers]),
        ar_labels=torch.from_numpy(ar_labels),
        draft_labels=torch.from_numpy(draft_labels),
        delta=torch.from_numpy(delta),
        glyphs=torch.from_numpy(np.stack(glyphs)),
        places=torch.from_numpy(places),
        tasks=torch.tensor([tokenizer.special(sample.task) for sample in samples]),
    )


def _slots(length: int, delta: int, block: int) -> int:
    """Mask slots of an answer: to the end of the block of its last token, at most TRAILING beyond it."""
    end = ((length - 1 + delta) // block + 1) * block - delta
    return min(end, length + TRAILING)


def glyph_labels(sample: Sample, grid: tuple[int, int], token_px: int) -> np.ndarray:
    """For each image token the first glyphs, left to right, whose centres lie in it: int64 [tokens, 3, 1 + tags].

    The last axis: number of the glyph (0: none), then 0 or 1 for each tag (see glyphs.Tag). IGNORE for signs and tags
    that are not known, and everywhere where the sample doesn't say where its glyphs are.
    """
    rows, columns = grid
    labels = np.full((rows * columns, GLYPHS_PER_TOKEN, 1 + len(Tag)), IGNORE, np.int64)
    if not sample.glyphs:
        return labels
    labels[..., 0] = 0
    for (char, x, y), (tags, known) in sorted(tags_of(sample, token_px).items(), key=lambda item: item[0][1]):
        row, column = int(y // token_px), int(x // token_px)
        if 0 <= row < rows and 0 <= column < columns:
            place = labels[row * columns + column]
            free = np.flatnonzero(place[:, 0] == 0)
            if len(free):
                place[free[0]] = (
                    GLYPHS.get(char, IGNORE),
                    *(int(tag in tags) if tag in known else IGNORE for tag in Tag),
                )
    return labels


def token_places(sample: Sample, spans: Sequence[tuple[int, int]], grid: tuple[int, int], token_px: int) -> list[int]:
    """For each answer token the image token under its first glyph; IGNORE for blanks, markup and unknown glyphs."""
    inked = [number for number, char in enumerate(sample.text) if not char.isspace()]
    if len(inked) != len(sample.glyphs):
        return [IGNORE] * len(spans)
    glyph_of = dict(zip(inked, sample.glyphs, strict=True))
    rows, columns = grid
    found = []
    for start, end in spans:
        glyph = next(filter(None, map(glyph_of.get, range(start, end))), None)
        row, column = (int(glyph[2] // token_px), int(glyph[1] // token_px)) if glyph else (-1, -1)
        found.append(row * columns + column if 0 <= row < rows and 0 <= column < columns else IGNORE)
    return found
