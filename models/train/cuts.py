"""Crops cut from a page: exactly these words, and pixels that bear them out.

A crop is kept only when every glyph of its answer has ink, and ink that belongs to no glyph of the answer stays a
sliver at the edge. So hidden text, stray rules and neighbours drop out.
"""

import numpy as np
from numpy.typing import NDArray

from gravityocr_models.records import Task
from gravityocr_models.train.curriculum import Stage
from gravityocr_models.train.pages import Boxes, PageLine, TextPage, Word
from gravityocr_models.train.sample import Glyph, Grey, Sample
from gravityocr_models.train.scanlook import paper

Rng = np.random.Generator

CROPS_OF_A_PAGE = 36
TRIES_OF_A_CROP = 6
INK = 40  # grey levels away from the paper
SLIVER_PX = 3  # ink of neighbours may reach this far into a crop


def crops_of_page(page: TextPage, rng: Rng, stage: Stage) -> list[Sample]:
    """Up to CROPS_OF_A_PAGE crops in the stage's proportions, in no order; fewer where the page holds little."""
    if not page.lines:
        return []
    crops: list[Sample] = []
    weights = np.array([min(len(line.words), 8) for line in page.lines], np.float64)
    wanted = min(CROPS_OF_A_PAGE, 1 + sum(len(line.words) for line in page.lines) // 6)
    for kind in rng.choice(3, size=wanted, p=(stage.words, stage.lines, stage.paragraphs)):
        for start in rng.choice(len(page.lines), size=TRIES_OF_A_CROP, p=weights / weights.sum()).tolist():
            rows = _chosen(page.lines, start, int(kind), rng, stage)
            sample = cut(page, rows, rng) if rows else None
            if sample:
                crops.append(sample)
                break
    return crops


def _chosen(lines: tuple[PageLine, ...], start: int, kind: int, rng: Rng, stage: Stage) -> list[tuple[Word, ...]]:
    """Words to be cut at a line: a piece (kind 0), the line (1), or a paragraph from it on (2); none where unsound."""
    if kind == 0:
        first, count = rng.integers(len(lines[start].words)), rng.integers(1, stage.max_words + 1)
        words = lines[start].words[first : first + count]
        return [words] if all(word.sound for word in words) else []
    if kind == 1:
        return [lines[start].words] if lines[start].sound else []
    return _paragraph(lines, start, int(rng.integers(2, stage.max_lines + 1)))


def _paragraph(lines: tuple[PageLine, ...], start: int, most: int) -> list[tuple[Word, ...]]:
    """Two to `most` sound lines of one block from `start` on, each below the last."""
    rows: list[tuple[Word, ...]] = []
    for line in lines[start : start + most]:
        if line.block != lines[start].block or not line.sound:
            break
        if rows and not _below(line.words, rows[-1]):
            break
        rows.append(line.words)
    return rows if len(rows) > 1 else []


def _below(words: tuple[Word, ...], above: tuple[Word, ...]) -> bool:
    """Whether words start under most of the line above: not so for a subscript that MuPDF made a line."""
    top = min(box[1] for word in words for box in word.boxes)
    height = max(box[3] for word in words for box in word.boxes) - top
    return top > max(box[3] for word in above for box in word.boxes) - 0.4 * height


def cut(page: TextPage, rows: list[tuple[Word, ...]], rng: Rng) -> Sample | None:
    """The crop that shows exactly these words with 2 to 10 pixels of paper around, or None where the pixels differ."""
    words = [word for row in rows for word in row]
    boxes = np.array([box for word in words for box in word.boxes]) * page.zoom
    rules = np.array([box for word in words for box in word.rules]).reshape(-1, 4) * page.zoom
    inked = np.concatenate([boxes, rules])
    height, width = page.pixels.shape
    left, top = np.floor(inked[:, :2].min(axis=0)).astype(int)
    right, bottom = np.ceil(inked[:, 2:].max(axis=0)).astype(int)
    if left < 0 or top < 0 or right > width or bottom > height or right - left < 3 or bottom - top < 3:
        return None
    margins = rng.integers((2, 2, 1, 1), (9, 9, 7, 7))  # about what crops.py leaves: a line then fits two token rows
    shade = paper(page.pixels[top:bottom, left:right])
    blank_x = _blanks(page.pixels[top:bottom].T, left, right, shade)
    blank_y = _blanks(page.pixels[:, left:right], top, bottom, shade)
    x0, x1 = left - min(margins[0], blank_x[0]), right + min(margins[1], blank_x[1])
    y0, y1 = top - min(margins[2], blank_y[0]), bottom + min(margins[3], blank_y[1])
    pixels, corner = page.pixels[y0:y1, x0:x1], (x0, y0, x0, y0)
    if _glyphs_within(page.boxes, x0, y0, x1, y1) != len(boxes):
        return None
    if not _shows(pixels, shade, boxes - corner, rules - corner):
        return None
    (pad_left, pad_right, pad_top, pad_bottom) = (margins - (left - x0, x1 - right, top - y0, y1 - bottom)).tolist()
    return Sample(
        pixels=np.pad(pixels, ((pad_top, pad_bottom), (pad_left, pad_right)), constant_values=shade),
        text="\n".join(" ".join("".join(word.letters) for word in row) for row in rows),
        task=Task.TEXT,
        glyphs=_glyphs_of(words, page.zoom, pad_left - int(x0), pad_top - int(y0)),
        source=page.source,
    )


def _glyphs_of(words: list[Word], zoom: float, right: int, down: int) -> tuple[Glyph | None, ...]:
    """What each non-blank letter spells, in pixels of the crop; right, down: from the page to there."""
    return tuple(
        glyph
        and (glyph[0], (glyph[1][0] + glyph[1][2]) / 2 * zoom + right, (glyph[1][1] + glyph[1][3]) / 2 * zoom + down)
        for word in words
        for letter, glyph in zip(word.letters, word.glyphs, strict=True)
        if not letter.isspace()
    )


def _blanks(strip: Grey, low: int, high: int, shade: int) -> tuple[int, int]:
    """How many blank rows of the strip lie before row `low` and from row `high` on, up to 10."""
    counts = []
    for rows in (strip[max(0, low - 10) : low][::-1], strip[high : high + 10]):
        ink = (np.abs(rows.astype(np.int16) - shade) > INK).any(axis=1)
        counts.append(int(ink.argmax()) if ink.any() else len(rows))
    return counts[0], counts[1]


def _glyphs_within(boxes: Boxes, x0: int, y0: int, x1: int, y1: int) -> int:
    """How many glyphs show more than a third of their height and width in the window."""
    low, high = boxes[:, :2], boxes[:, 2:]
    seen = np.minimum(high, (x1, y1)) - np.maximum(low, (x0, y0))
    return int((seen > 0.34 * (high - low)).all(axis=1).sum())


def _shows(pixels: Grey, shade: int, boxes: Boxes, rules: Boxes) -> bool:
    """Whether every box holds ink, and ink outside all boxes and rules stays within a sliver of the edges."""
    ink = np.abs(pixels.astype(np.int16) - shade) > INK
    total = np.zeros((ink.shape[0] + 1, ink.shape[1] + 1), np.int32)
    np.cumsum(np.cumsum(ink, axis=0, dtype=np.int32), axis=1, out=total[1:, 1:])
    x0, y0, x1, y1 = _whole(boxes, ink.shape)
    if not (total[y1, x1] - total[y0, x1] - total[y1, x0] + total[y0, x0] > 0).all():
        return False
    for a, b, c, d in _whole(np.concatenate([boxes, rules]), ink.shape).T.tolist():
        ink[max(0, b - 1) : d + 1, max(0, a - 1) : c + 1] = False
    return int(ink[SLIVER_PX:-SLIVER_PX].sum()) < 4


def _whole(boxes: Boxes, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """The boxes in whole pixels of an image of this shape: x0, y0, x1, y1, each [n]."""
    low, high = np.floor(boxes[:, :2]).clip(0), np.ceil(boxes[:, 2:]).clip(0, shape[::-1])
    return np.concatenate([low, high], axis=1).astype(np.int64).T
