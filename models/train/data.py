"""Training samples for nano: crops of 144 dpi pages with their text and where each glyph stands.

A page (of a real PDF, or typeset on the spot from a corpus) is rendered once and read through its text layer with
exact glyph outlines; many crops are cut from it. A crop is kept only when the pixels bear the text out: every glyph has
ink, and ink that belongs to no glyph of the answer stays a sliver at the edge. So hidden text, rules and neighbours
drop out.

    for sample in samples(load_corpora(Path("data")), seed=1, stage=stage_at(0)): ...
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pymupdf
from numpy.typing import NDArray

from gravityocr_models.records import Task
from gravityocr_models.train.corpora import Corpora, Split, of_split
from gravityocr_models.train.scanlook import MAX_SKEW_DEGREES, paper, scan_look, skewed_point, toned
from gravityocr_models.train.typeset import draw_formula, story_pdf

Rng = np.random.Generator
Glyph = tuple[str, float, float]
Box = tuple[float, ...]
Boxes = NDArray[np.float64]

PIXELS_PER_POINT = 2.0  # 144 dpi
OPEN_PAGES = 12
CROPS_OF_A_PAGE = 36
TRIES_OF_A_CROP = 6
TONED = 0.12  # share of samples that are not black on white
MAX_PAGE_PIXELS = 6_000_000
INK = 40  # grey levels away from the paper
SLIVER_PX = 3  # ink of neighbours may reach this far into a crop

_MATH_FONT = re.compile(
    r"CMMI|CMSY|CMEX|CMBSY|MSBM|MSAM|EUSM|EUFM|EUF|stmary|wasy|rsfs|txsy|txmi|txex|pxsy|pxmi|rtxmi|math|symbol|dingbat|dsrom"
    r"|CSC|SFCC|caps|grmn|^F\d+$|^Fo\d|bbm|lasy|MnSymbol|esint|type3|^$",
    re.IGNORECASE,
)
_LIGATURES = "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06\u00ad\u2010\u2011\u00b5"
_LETTERS = dict(zip(_LIGATURES, "ff fi fl ffi ffl st st - - - μ".split(), strict=True))
_COMBINING = "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
_ACCENTS = dict(zip("`´ˆ˜¯˘˙¨˚˝ˇ¸", _COMBINING, strict=True))
ALPHABET = frozenset(
    {chr(code) for block in ((0x21, 0x7F), (0xA1, 0x180), (0x386, 0x3CF)) for code in range(*block)}
    - set("\u00a8\u00ad\u00af\u00b4\u00b5\u00b8\u0149\u017f")
    | set("\u0218\u0219\u021a\u021b“”‘’„‚–—…•†‡‹›€™−≤≥≠≈→←∞")
)
"""Characters that an answer may hold, blank and line break apart."""


@dataclass(frozen=True)
class Sample:
    """One crop and its answer.

    pixels: grey uint8 [H, W], 144 dpi, ink dark on light (mostly). text: as painted, lines parted by a line break.
    glyphs: (character, x, y), the centre of each non-blank character in pixels of this crop; empty where unknown.
    """

    pixels: NDArray[np.uint8]
    text: str
    task: Task
    glyphs: tuple[Glyph, ...]
    source: str


@dataclass(frozen=True)
class Stage:
    """What a stretch of training is made of.

    words, lines, paragraphs: shares of text crops, adding up to 1. max_words: longest piece of a line.
    max_lines: longest paragraph. formulas, scan, papers: shares of formula crops, of scan look, of real papers.
    """

    words: float
    lines: float
    paragraphs: float
    max_words: int = 4
    max_lines: int = 6
    formulas: float = 0.0
    scan: float = 0.0
    papers: float = 0.4

    def __post_init__(self) -> None:
        if abs(self.words + self.lines + self.paragraphs - 1) > 1e-6:
            raise ValueError("shares of words, lines and paragraphs must add up to 1")
        if self.max_words < 1 or self.max_lines < 2:
            raise ValueError("max_words must be at least 1 and max_lines at least 2")


READING_FIRST = 20_000
"""Samples on which the image encoder alone learns to name glyphs: a decoder has nothing to copy from until it can."""
_CURRICULUM = (
    (READING_FIRST, Stage(words=0.3, lines=0.7, paragraphs=0.0, max_words=6, scan=0.15)),
    (26_000, Stage(words=1.0, lines=0.0, paragraphs=0.0, max_words=4, scan=0.15)),
    (100_000, Stage(words=0.5, lines=0.5, paragraphs=0.0, max_words=6, scan=0.15)),
    (160_000, Stage(words=0.2, lines=0.6, paragraphs=0.2, max_words=8, max_lines=3, formulas=0.02, scan=0.2)),
    (None, Stage(words=0.15, lines=0.35, paragraphs=0.5, max_words=8, max_lines=6, formulas=0.05, scan=0.3)),
)


def stage_at(samples_seen: int) -> Stage:
    """The curriculum: glyphs of lines, then words, lines and short paragraphs to read out."""
    return next(stage for until, stage in _CURRICULUM if until is None or samples_seen < until)


@dataclass(frozen=True)
class Word:
    """A word of the text layer: its letters, the box of each in points, and whether it can be trusted."""

    letters: tuple[str, ...]
    boxes: tuple[Box, ...]
    sound: bool


@dataclass(frozen=True)
class PageLine:
    """A painted line; block: number of its paragraph on the page."""

    words: tuple[Word, ...]
    block: int

    @property
    def sound(self) -> bool:
        return all(word.sound for word in self.words)


@dataclass(frozen=True)
class TextPage:
    """Grey pixels [H, W] of a page, pixels to a point, and the lines of its text layer."""

    pixels: NDArray[np.uint8]
    zoom: float
    lines: tuple[PageLine, ...]
    source: str

    @cached_property
    def boxes(self) -> Boxes:
        """All glyphs, [n, 4] in pixels."""
        return np.array([box for line in self.lines for word in line.words for box in word.boxes]) * self.zoom


def samples(corpora: Corpora, seed: int, stage: Stage, split: Split = "train") -> Iterator[Sample]:
    """Endless samples, the same for the same seed. Raises ValueError when the split holds nothing to cut."""
    mine = of_split(corpora, split)
    rng = np.random.default_rng(seed)
    decks: list[list[Sample]] = [[] for _ in range(OPEN_PAGES)]
    while True:
        if (mine.formulas or mine.latex) and rng.random() < stage.formulas:
            sample = _formula(mine, rng)
        else:
            deck = decks[rng.integers(OPEN_PAGES)]
            if not deck:
                deck.extend(_fresh_crops(mine, rng, stage))
            sample = deck.pop()
        if rng.random() < TONED:
            sample = replace(sample, pixels=toned(sample.pixels, rng))
        yield scanned(sample, rng) if rng.random() < stage.scan else sample


def scanned(sample: Sample, rng: Rng) -> Sample:
    """The sample with a scan look; a third are skewed, on a crop made higher where the turn needs it."""
    degrees = rng.uniform(-MAX_SKEW_DEGREES, MAX_SKEW_DEGREES) if rng.random() < 0.35 else 0.0
    lift = round(abs(np.sin(np.radians(degrees))) * sample.pixels.shape[1] / 2)
    pixels = np.pad(sample.pixels, ((lift, lift), (0, 0)), constant_values=paper(sample.pixels))
    glyphs = ((char, *skewed_point(x, y + lift, degrees, pixels.shape)) for char, x, y in sample.glyphs)
    return replace(sample, pixels=scan_look(pixels, rng, degrees), glyphs=tuple(glyphs))


def _fresh_crops(corpora: Corpora, rng: Rng, stage: Stage) -> list[Sample]:
    """Shuffled crops of the next page that yields any."""
    for _ in range(200):
        if corpora.papers and (not corpora.prose or rng.random() < stage.papers):
            with pymupdf.open(corpora.papers[rng.integers(len(corpora.papers))]) as document:
                page = read_page(document[int(rng.integers(len(document)))], _jitter(rng), "docbank")
        elif corpora.prose:
            with pymupdf.open("pdf", story_pdf(corpora, rng)) as document:
                page = read_page(document[0], _jitter(rng), "story")
        else:
            break
        crops = crops_of_page(page, rng, stage)
        if crops:
            return crops
    raise ValueError("no crops to be had from these corpora")


def _jitter(rng: Rng) -> float:
    return float(rng.uniform(0.85, 1.2)) if rng.random() < 0.4 else 1.0


def read_page(page: pymupdf.Page, scale: float, source: str) -> TextPage:
    """Pixels of a page at `scale` times 144 dpi and the lines of its text layer; none for turned or huge pages."""
    zoom = PIXELS_PER_POINT * scale
    if page.rotation or page.rect.width * page.rect.height * zoom * zoom > MAX_PAGE_PIXELS:
        return TextPage(np.full((1, 1), 255, np.uint8), zoom, (), source)
    pixmap = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), colorspace=pymupdf.csGRAY)
    pixels = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)[:, : pixmap.width]
    flags = pymupdf.TEXT_PRESERVE_LIGATURES | pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_ACCURATE_BBOXES
    lines: list[PageLine] = []
    for number, block in enumerate(page.get_text("rawdict", flags=flags)["blocks"]):
        rows: list[list[dict[str, Any]]] = []
        for line in block.get("lines", ()):
            if line["dir"] == (1.0, 0.0):
                spans = [span for span in line["spans"] if span["chars"]]
                if rows and spans and _continues(rows[-1][-1], spans[0]):
                    rows[-1].extend(spans)
                elif spans:
                    rows.append(spans)
        lines.extend(PageLine(words, number) for row in rows if (words := _words(row)))
    return TextPage(pixels, zoom, tuple(lines), source)


def _continues(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Whether the right span goes on in the same painted line: MuPDF breaks lines at wide gaps."""
    end, start, size = left["chars"][-1], right["chars"][0], left["size"]
    level = abs(end["origin"][1] - start["origin"][1]) < 0.15 * size
    return bool(level and 0 <= start["bbox"][0] - end["bbox"][2] < 2 * size)


def _words(spans: list[dict[str, Any]]) -> tuple[Word, ...]:
    """Words of one painted line."""
    main = max(spans, key=lambda span: len(span["chars"]))
    baseline, size = main["chars"][0]["origin"][1], main["size"]
    words: list[Word] = []
    letters: list[str] = []
    boxes: list[Box] = []
    sound = True

    def close() -> None:
        nonlocal letters, boxes, sound
        if letters:
            words.append(read_word(letters, boxes, sound))
        letters, boxes, sound = [], [], True

    for span in spans:
        trusted = not _MATH_FONT.search(span["font"]) and span["size"] > 4
        for char in span["chars"]:
            if char["c"].isspace() or (letters and char["bbox"][0] - boxes[-1][2] > 0.2 * size):
                close()  # MuPDF makes no blank of the gap after some glyphs, such as ligatures
            if char["c"].isspace():
                continue
            letters.append(char["c"])
            boxes.append(char["bbox"])
            sound = sound and trusted and abs(char["origin"][1] - baseline) < 0.08 * size
    close()
    spelled_out = len(words) > 3 and sum(len(word.letters) == 1 for word in words) > 0.6 * len(words)
    return tuple(replace(word, sound=False) for word in words) if spelled_out else tuple(words)


def read_word(letters: list[str], boxes: list[Box], sound: bool) -> Word:
    """Ligatures resolved (their box shared out) and accents set on their letters."""
    out: list[str] = []
    places: list[Box] = []
    for letter, box in zip(letters, boxes, strict=True):
        if (
            out
            and (letter in _ACCENTS or out[-1] in _ACCENTS)
            and (joined := _accented(out[-1], places[-1], letter, box))
        ):
            out[-1] = joined
            places[-1] = (*map(min, places[-1][:2], box[:2]), *map(max, places[-1][2:], box[2:]))
        elif letter in _LETTERS:
            parts = _LETTERS[letter]
            step = (box[2] - box[0]) / len(parts)
            out.extend(parts)
            places.extend((box[0] + i * step, box[1], box[0] + (i + 1) * step, box[3]) for i in range(len(parts)))
        else:
            out.append(letter)
            places.append(box)
    text = unicodedata.normalize("NFC", "".join(out))
    sound = sound and len(text) == len(out) <= 40 and ALPHABET.issuperset(text)
    return Word(tuple(text) if sound else tuple(out), tuple(places), sound)


def _accented(first: str, first_box: Box, second: str, box: Box) -> str | None:
    """The letter that a letter and an accent on top of it make, as TeX paints ö; None where they stand apart."""
    overlap = min(first_box[2], box[2]) - max(first_box[0], box[0])
    if overlap < 0.5 * min(first_box[2] - first_box[0], box[2] - box[0]):
        return None
    letter, accent = (second, first) if first in _ACCENTS else (first, second)
    joined = unicodedata.normalize("NFC", {"ı": "i", "ȷ": "j"}.get(letter, letter) + _ACCENTS[accent])
    return joined if len(joined) == 1 else None


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
    boxes = np.array([box for row in rows for word in row for box in word.boxes]) * page.zoom
    height, width = page.pixels.shape
    left, top = np.floor(boxes[:, :2].min(axis=0)).astype(int)
    right, bottom = np.ceil(boxes[:, 2:].max(axis=0)).astype(int)
    if left < 0 or top < 0 or right > width or bottom > height or right - left < 3 or bottom - top < 3:
        return None
    margins = rng.integers(2, 11, 4)
    shade = paper(page.pixels[top:bottom, left:right])
    blank_x = _blanks(page.pixels[top:bottom].T, left, right, shade)
    blank_y = _blanks(page.pixels[:, left:right], top, bottom, shade)
    x0, x1 = left - min(margins[0], blank_x[0]), right + min(margins[1], blank_x[1])
    y0, y1 = top - min(margins[2], blank_y[0]), bottom + min(margins[3], blank_y[1])
    pixels = page.pixels[y0:y1, x0:x1]
    if _glyphs_within(page.boxes, x0, y0, x1, y1) != len(boxes) or not _shows(pixels, shade, boxes - (x0, y0, x0, y0)):
        return None
    (pad_left, pad_right, pad_top, pad_bottom) = (margins - (left - x0, x1 - right, top - y0, y1 - bottom)).tolist()
    letters = [letter for row in rows for word in row for letter in word.letters]
    xs = (boxes[:, 0] + boxes[:, 2]) / 2 - x0 + pad_left
    ys = (boxes[:, 1] + boxes[:, 3]) / 2 - y0 + pad_top
    return Sample(
        pixels=np.pad(pixels, ((pad_top, pad_bottom), (pad_left, pad_right)), constant_values=shade),
        text="\n".join(" ".join("".join(word.letters) for word in row) for row in rows),
        task=Task.TEXT,
        glyphs=tuple(zip(letters, xs.tolist(), ys.tolist(), strict=True)),
        source=page.source,
    )


def _blanks(strip: NDArray[np.uint8], low: int, high: int, shade: int) -> tuple[int, int]:
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


def _shows(pixels: NDArray[np.uint8], shade: int, boxes: Boxes) -> bool:
    """Whether every box holds ink, and ink outside all boxes stays within a sliver of the upper and lower edge."""
    ink = np.abs(pixels.astype(np.int16) - shade) > INK
    total = np.zeros((ink.shape[0] + 1, ink.shape[1] + 1), np.int32)
    np.cumsum(np.cumsum(ink, axis=0, dtype=np.int32), axis=1, out=total[1:, 1:])
    x0, y0 = np.floor(boxes[:, :2]).astype(int).clip(0).T
    x1, y1 = np.ceil(boxes[:, 2:]).astype(int).clip(0, ink.shape[::-1]).T
    if not (total[y1, x1] - total[y0, x1] - total[y1, x0] + total[y0, x0] > 0).all():
        return False
    for a, b, c, d in zip((x0 - 1).clip(0).tolist(), (y0 - 1).clip(0).tolist(), x1.tolist(), y1.tolist(), strict=True):
        ink[b : d + 1, a : c + 1] = False
    return int(ink[SLIVER_PX:-SLIVER_PX].sum()) < 4


def _formula(corpora: Corpora, rng: Rng) -> Sample:
    """A formula at about 144 dpi with 4 to 10 pixels of paper around."""
    pixels, latex = draw_formula(corpora, rng, 72 * PIXELS_PER_POINT * _jitter(rng))
    margins = rng.integers(4, 11, (2, 2)).tolist()
    return Sample(np.pad(pixels, margins, constant_values=255), latex, Task.FORMULA, (), "formula")
