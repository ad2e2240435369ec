"""Tables painted in the ways of papers, reports and office programs; the painting says where each glyph stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pymupdf

from gravityocr_models.image import grid_of
from gravityocr_models.records import Task
from gravityocr_models.train.corpora import Corpora, family_of
from gravityocr_models.train.pages import PIXELS_PER_POINT, grey_pixels
from gravityocr_models.train.sample import Glyph, Sample
from gravityocr_models.train.tables import Cell, Table, answer_of, made_up_table, words_of
from gravityocr_models.train.typeset import font_of, pick

Rng = np.random.Generator
Colour = tuple[float, float, float]

MOST_TOKENS = 1000  # of a crop; larger tables are rendered smaller, as the program does
TOKEN_PX = 16
SMALLEST_ZOOM = 1.1  # pixels to a point: below, letters are no longer legible
BLACK, WHITE = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)


@dataclass(frozen=True)
class Style:
    """How a table is painted; lengths in points.

    rules: booktabs, grid, rows or none. stripes, header: grey of every other row and of the header, 1 = white.
    wrap: widest line of words. middle: whether cells are centred in the height of their row.
    """

    regular: pymupdf.Font
    bold: pymupdf.Font
    size: float
    leading: float
    pad_x: float
    pad_y: float
    rules: str
    stripes: float
    header: float
    wrap: float
    middle: bool
    bold_headings: bool

    def font(self, cell: Cell) -> pymupdf.Font:
        return self.bold if cell.heading and self.bold_headings else self.regular


def draw_table(corpora: Corpora, rng: Rng, max_cells: int, scale: float) -> Sample:
    """A table at `scale` times 144 dpi, or less where it is large, with 2 to 10 pixels of paper around."""
    while True:
        style = made_up_style(corpora.fonts, rng)
        table = made_up_table(words_of(pick(corpora.prose, rng).parts, rng), rng, max_cells)
        lines = [wrapped(cell.text, style.font(cell), style) for cell in table.cells]
        xs, ys = edges(table, lines, style)
        zoom = PIXELS_PER_POINT * scale
        rows, columns = grid_of((round(ys[-1] * zoom) + 12, round(xs[-1] * zoom) + 12), TOKEN_PX)
        zoom *= min(1.0, (MOST_TOKENS / (rows * columns)) ** 0.5)
        if zoom > SMALLEST_ZOOM and all(_has_glyphs(style, cell) for cell in table.cells):
            return _painted(table, lines, xs, ys, style, zoom, rng)


def made_up_style(fonts: Sequence[Path], rng: Rng) -> Style:
    face = font_of(fonts, rng, mono=False)
    size = float(rng.uniform(6.5, 11.5))
    dark = rng.random() < 0.1
    return Style(
        regular=_font(face),
        bold=_font(_bold_of(face, fonts)),
        size=size,
        leading=size * float(rng.uniform(1.05, 1.4)),
        pad_x=float(rng.uniform(2.5, 12)),
        pad_y=float(rng.uniform(0.5, 5)),
        rules=pick(("booktabs", "booktabs", "grid", "rows", "none"), rng),
        stripes=float(rng.uniform(0.85, 0.96)) if rng.random() < 0.15 else 1.0,
        header=float(rng.uniform(0.0, 0.3)) if dark else float(rng.uniform(0.8, 0.95)) if rng.random() < 0.2 else 1.0,
        wrap=float(rng.uniform(50, 150)),
        middle=rng.random() < 0.4,
        bold_headings=rng.random() < 0.6,
    )


@lru_cache(maxsize=64)
def _font(path: Path | None) -> pymupdf.Font:
    return pymupdf.Font(fontfile=str(path)) if path else pymupdf.Font("tiro")


def _bold_of(face: Path | None, fonts: Sequence[Path]) -> Path | None:
    """The bold face of the family, or the face itself."""
    if face is None:
        return None
    found = (font for font in fonts if family_of(font) == family_of(face) and font.stem.lower().endswith("bold"))
    return next(found, face)


def _has_glyphs(style: Style, cell: Cell) -> bool:
    font = style.font(cell)
    return all(font.has_glyph(ord(char)) for char in cell.text)


def wrapped(text: str, font: pymupdf.Font, style: Style) -> list[str]:
    """Lines no wider than `style.wrap`, single words apart. A cell that holds digits is not broken."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        fits = any(char.isdigit() for char in text) or font.text_length(longer, style.size) <= style.wrap
        lines[-1:] = [longer] if fits or not lines else [lines[-1], word]
    return lines


def edges(table: Table, lines: Sequence[Sequence[str]], style: Style) -> tuple[list[float], list[float]]:
    """Where columns and rows begin and end, in points from the upper left corner."""
    widths, heights = [0.0] * table.columns, [0.0] * table.rows
    by_span = sorted(zip(table.cells, lines, strict=True), key=lambda pair: (pair[0].columns, pair[0].rows))
    for cell, rows in by_span:  # a spanning cell widens the last column that it spans
        font = style.font(cell)
        wide = max((font.text_length(row, style.size) for row in rows), default=0.0) + 2 * style.pad_x
        high = max(1, len(rows)) * style.leading + 2 * style.pad_y
        last_column, last_row = cell.column + cell.columns - 1, cell.row + cell.rows - 1
        widths[last_column] += max(0.0, wide - sum(widths[cell.column : last_column + 1]))
        heights[last_row] += max(0.0, high - sum(heights[cell.row : last_row + 1]))
    return [sum(widths[:n]) for n in range(table.columns + 1)], [sum(heights[:n]) for n in range(table.rows + 1)]


def _painted(
    table: Table, lines: Sequence[Sequence[str]], xs: list[float], ys: list[float], style: Style, zoom: float, rng: Rng
) -> Sample:
    left, top, right, bottom = (int(margin) / zoom for margin in rng.integers(2, 11, 4))
    xs, ys = [left + x for x in xs], [top + y for y in ys]
    glyphs: list[list[Glyph | None]] = []
    with pymupdf.open() as document:
        page = document.new_page(width=xs[-1] + right, height=ys[-1] + bottom)
        _paint_rules(page, table, xs, ys, style)
        writers = {colour: pymupdf.TextWriter(page.rect, color=colour) for colour in (BLACK, WHITE)}
        for cell, rows in zip(table.cells, lines, strict=True):
            dark = cell.row < table.headers and style.header < 0.5
            box = (xs[cell.column], ys[cell.row], xs[cell.column + cell.columns], ys[cell.row + cell.rows])
            glyphs.append(_write_cell(writers[WHITE if dark else BLACK], cell, rows, box, style, zoom))
        for writer in writers.values():
            writer.write_text(page)
        pixels = grey_pixels(page, zoom)
    text, spelled = answer_of(table, glyphs)
    return Sample(pixels, text, Task.TABLE, spelled, "table")


def _write_cell(
    writer: pymupdf.TextWriter,
    cell: Cell,
    lines: Sequence[str],
    box: tuple[float, float, float, float],
    style: Style,
    zoom: float,
) -> list[Glyph | None]:
    """Write the lines of a cell into its box (points); the glyph of each non-blank character, in pixels."""
    font, size = style.font(cell), style.size
    x0, y0, x1, y1 = box
    slack = y1 - y0 - 2 * style.pad_y - len(lines) * style.leading
    baseline = y0 + style.pad_y + (slack / 2 if style.middle else 0) + (style.leading - size) / 2 + 0.8 * size
    glyphs: list[Glyph | None] = []
    for line in lines:
        room = x1 - x0 - 2 * style.pad_x - font.text_length(line, size)
        x = x0 + style.pad_x + room * {"left": 0.0, "center": 0.5, "right": 1.0}[cell.align]
        writer.append((x, baseline), line, font=font, fontsize=size)
        for char in line:
            advance, outline = font.glyph_advance(ord(char)) * size, font.glyph_bbox(ord(char))
            if not char.isspace():
                y = baseline - (outline.y0 + outline.y1) / 2 * size
                glyphs.append((char, (x + advance / 2) * zoom, y * zoom))
            x += advance
        baseline += style.leading
    return glyphs


def _paint_rules(page: pymupdf.Page, table: Table, xs: list[float], ys: list[float], style: Style) -> None:
    """Fills and rules."""

    def rule(y: float, width: float, x0: float = xs[0], x1: float = xs[-1]) -> None:
        page.draw_line((x0, y), (x1, y), width=width)

    body = ys[table.headers]
    if style.header < 1 and table.headers:
        page.draw_rect((xs[0], ys[0], xs[-1], body), color=None, fill=(style.header,) * 3)
    if style.stripes < 1:
        for row in range(table.headers, table.rows, 2):
            page.draw_rect((xs[0], ys[row], xs[-1], ys[row + 1]), color=None, fill=(style.stripes,) * 3)
    if style.rules == "grid":
        for cell in table.cells:
            corners = xs[cell.column], ys[cell.row], xs[cell.column + cell.columns], ys[cell.row + cell.rows]
            page.draw_rect(corners, width=0.5)
    elif style.rules == "rows":
        for y in ys:
            rule(y, 0.4)
    elif style.rules == "booktabs":
        rule(ys[0], 0.9)
        rule(ys[-1], 0.9)
        if table.headers:
            rule(body, 0.5)
        for cell in table.cells:
            if cell.row == 0 < table.headers - 1 and cell.columns > 1:
                rule(ys[1], 0.4, xs[cell.column] + style.pad_x / 2, xs[cell.column + cell.columns] - style.pad_x / 2)
