"""The painted text of a page as lines, and the draft that a region gets from them.

Reads the plain dictionaries that PyMuPDF's `get_text("dict")` returns, so that nothing here needs PyMuPDF. Decides
what a reader can see, never whether it is true: a wrong ToUnicode table is the verifying model's to catch. What cannot
be text (control bytes, private-use or unknown characters) is marked with U+FFFD, and lines with such a mark give no
draft.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gravityocr_cli.document import Box, Line

UNSOUND = "\ufffd"
_PAINTED = 16 | 8 | 32  # filled, stroked or clipped: the bits of a span's `char_flags` that leave marks on the page
_BOLD, _MONO = 16, 8  # bits of a span's `flags`
_BOLD_NAME = re.compile(r"bold|black|heavy|cmbx|cmssbx|-bd|demi", re.IGNORECASE)
CONTRAST = 24  # grey levels between a glyph and its ground; less is not readable (white on white, covered text)


def lines_of(raw: dict[str, Any], page: Box, pixels: NDArray[np.uint8], dpi: float, hidden: bool) -> tuple[Line, ...]:
    """The visible lines of a page.

    raw: `get_text("dict")` in the page's displayed frame, points. pixels: uint8 [H, W, 3] of the same page at `dpi`.
    hidden: keep text that is not painted (the OCR layer of a scan, whose picture shows what it says).
    """
    lines = []
    for block in raw["blocks"]:
        for raw_line in block.get("lines", ()):
            line = _line_of(raw_line["spans"], hidden)
            if line is not None and _inside(line.box, page) and _has_contrast(line.box, pixels, dpi):
                lines.append(line)
    return tuple(lines)


def draft_of(lines: Sequence[Line]) -> str | None:
    """The text of a region's lines, one painted row a line; None without text or where any of it is unsound."""
    text = "\n".join(" ".join(line.text for line in row) for row in rows_of(lines))
    return None if not text or UNSOUND in text else text


def rows_of(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines grouped into painted rows, top to bottom, each from left to right."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda each: (each.box.y0 + each.box.y1, each.box.x0)):
        middle = (line.box.y0 + line.box.y1) / 2
        if rows and not _stacked(rows[-1], line) and middle < min(each.box.y1 for each in rows[-1]):
            rows[-1].append(line)
        else:
            rows.append([line])
    return [sorted(row, key=lambda each: each.box.x0) for row in rows]


def is_upright(line: Line) -> bool:
    """False for text that runs up or down the page."""
    return len(line.text) < 3 or line.box.height < 1.5 * line.box.width


def _stacked(row: list[Line], line: Line) -> bool:
    """Whether the line stands over or under a part of the row: a fraction, limits, not one row of text."""
    return any(min(each.box.x1, line.box.x1) - max(each.box.x0, line.box.x0) > line.size / 2 for each in row)


def _line_of(spans: list[dict[str, Any]], hidden: bool) -> Line | None:
    seen = [span for span in spans if hidden or (span["alpha"] > 0 and span["char_flags"] & _PAINTED)]
    text = _clean("".join(span["text"] for span in seen))
    marked = [span for span in seen if span["text"].strip()]
    if not text or not marked:
        return None
    box = Box(
        min(span["bbox"][0] for span in marked),
        min(span["bbox"][1] for span in marked),
        max(span["bbox"][2] for span in marked),
        max(span["bbox"][3] for span in marked),
    )
    sizes, bold, mono = Counter[float](), 0, 0
    for span in marked:
        weight = len(span["text"].strip())
        sizes[round(span["size"], 1)] += weight
        bold += weight * bool(span["flags"] & _BOLD or _BOLD_NAME.search(span["font"]))
        mono += weight * bool(span["flags"] & _MONO)
    size, _ = sizes.most_common(1)[0]
    return Line(box, text, size, 2 * bold > sizes.total(), 2 * mono > sizes.total())


def _clean(text: str) -> str:
    """NFC, one blank for white space, soft hyphens resolved, everything that is not text turned into U+FFFD."""
    text = re.sub(r"\s+", " ", text).strip()
    text = re.sub("\u00ad$", "-", text).replace("\u00ad", "")
    text = "".join(UNSOUND if unicodedata.category(each) in ("Cc", "Co", "Cn", "Cs") else each for each in text)
    text = re.sub("[\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]", "", text)
    return unicodedata.normalize("NFC", text)


def _inside(box: Box, page: Box) -> bool:
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return page.x0 <= x <= page.x1 and page.y0 <= y <= page.y1


def _has_contrast(box: Box, pixels: NDArray[np.uint8], dpi: float) -> bool:
    """Whether the page shows anything where the line stands. Catches white on white and text under a later box."""
    height, width, _ = pixels.shape
    scale = dpi / 72
    inset = box.height * 0.15  # neighbours' ascenders and rules under the line are not this line's ink
    x0, x1 = max(0, int(box.x0 * scale)), min(width, int(box.x1 * scale) + 1)
    y0, y1 = max(0, int((box.y0 + inset) * scale)), min(height, int((box.y1 - inset) * scale) + 1)
    patch = pixels[y0:y1, x0:x1]
    return patch.size > 0 and int(np.max(np.ptp(patch.reshape(-1, 3), axis=0))) >= CONTRAST
