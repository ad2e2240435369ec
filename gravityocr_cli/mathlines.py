"""Painted lines as they were set, before maths is looked for in them: as high as their ink, and in one piece.

Works on the lines of PyMuPDF's `get_text("rawdict")`. MuPDF ends a line before and behind a large bracket, and gives
every sign of a font the height of its largest.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from gravityocr_models.signs import Box, Sign

_MATH_FONT = re.compile(
    r"cmmi|cmmib|cmsy|cmbsy|cmex|msam|msbm|eu[fs][mb]\d|lmmath|newtxm|newpxm|txmi|txsy|txex|rsfs|mtmi|mtsy|"
    r"math(?:italic|symbol|extension|design)",
    re.IGNORECASE,
)
SMALL = 0.8  # of a line's size: what stands beside it and is smaller is its scripts
_APART = 0.7  # sizes of white within a line
_BLANK = 0.2  # sizes of white that are a blank
_TALLEST, _TALLEST_MATHS = 2.0, 1.45  # sizes: a font of letters is lower, and one of italic letters for maths
_ABOVE, _BELOW = 0.8, 0.2  # sizes that letters reach over and under their baseline
Lines = list[dict[str, Any]]


def whole_lines(blocks: Sequence[Lines | None], signs: Sequence[Sign]) -> list[Lines | None]:
    """The lines of each block, whole, and as high as their ink. signs: what formulas are painted with."""
    inks = {place_of(sign.origin): sign.box for sign in signs}
    high = [lines and [_as_high_as_its_ink(line, inks) for line in lines] for lines in blocks]
    every = sorted((line for lines in high for line in lines or ()), key=lambda line: float(line["bbox"][0]))
    rows: list[Lines] = []
    for line in every:
        row = next((row for row in reversed(rows) if _goes_on(row[-1], line)), None)
        if row is None:
            rows.append([line])
        else:
            row.append(line)
    whole = {id(row[0]): _in_a_row(row) for row in rows}
    return [lines and [whole[id(line)] for line in lines if id(line) in whole] for lines in high]


def is_maths(span: dict[str, Any]) -> bool:
    """Whether a span is set in a font that only mathematics uses."""
    return _is_math_font(span["font"])


@lru_cache(1024)
def _is_math_font(font: str) -> bool:
    return _MATH_FONT.search(font) is not None


def place_of(origin: Sequence[float]) -> tuple[float, float]:
    """What a sign is known by, whoever tells of it."""
    return round(origin[0], 1), round(origin[1], 1)


def around(parts: Sequence[dict[str, Any]]) -> tuple[float, float, float, float]:
    """The box around lines or spans."""
    x0, y0, x1, y1 = zip(*(part["bbox"] for part in parts), strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def _goes_on(line: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether one line goes on in another, where they meet in maths or at a script."""
    (_, top, right, bottom), (x0, y0, x1, y1) = line["bbox"], after["bbox"]
    if x1 < right or not (top < (y0 + y1) / 2 < bottom or y0 < (top + bottom) / 2 < y1):  # most are elsewhere
        return False
    size, other = (max(float(span["size"]) for span in each["spans"]) for each in (line, after))
    last, first = line["spans"][-1], after["spans"][0]
    scripts = first["size"] < SMALL * other
    near = -(2 if scripts else 1) * size < x0 - right < _APART * size
    maths = is_maths(last) or is_maths(first) or (scripts and last["size"] < SMALL * size)
    upright = min(line["dir"][0], after["dir"][0]) >= 0.99
    return bool(near and maths and upright and SMALL * size < other < size / SMALL)


def _in_a_row(lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Lines one behind the other as one, with the blanks that are seen behind text."""
    spans = list(lines[0]["spans"])
    for line in lines[1:]:
        last, after = spans[-1]["chars"][-1], line["spans"][0]["chars"][0]
        text = not is_maths(spans[-1]) and not last["c"].isspace()
        if text and after["bbox"][0] - last["bbox"][2] > _BLANK * spans[-1]["size"]:
            box = (last["bbox"][2], last["bbox"][1], after["bbox"][0], last["bbox"][3])
            spans.append({**spans[-1], "chars": [{**last, "c": " ", "bbox": box}]})
        spans += line["spans"]
    return {**lines[0], "bbox": around(lines), "spans": spans}


def _as_high_as_its_ink(line: dict[str, Any], inks: Mapping[tuple[float, float], Box]) -> dict[str, Any]:
    """The line with boxes that say where its ink is.

    A font of large signs claims the height of its largest for each: a line with a wide hat would reach into the lines
    over and under it, and be read as one with them.
    """
    if not any(_is_too_high(span) for span in line["spans"]):
        return line
    spans = [_of_ink(span, inks) if _is_too_high(span) else span for span in line["spans"]]
    return {**line, "spans": spans, "bbox": around(spans)}


def _is_too_high(span: dict[str, Any]) -> bool:
    most = _TALLEST_MATHS if is_maths(span) else _TALLEST
    return bool(span["bbox"][3] - span["bbox"][1] > most * span["size"])


def _of_ink(span: dict[str, Any], inks: Mapping[tuple[float, float], Box]) -> dict[str, Any]:
    """The span as high as the ink of its signs; of those that MuPDF has moved it is not known, they are as letters."""
    size = span["size"]
    heights = []
    for char in span["chars"]:
        ink, y = inks.get(place_of(char["origin"])), char["origin"][1]
        heights.append((ink.y0, ink.y1) if ink else (y - _ABOVE * size, y + _BELOW * size))
    tops, bottoms = zip(*heights, strict=True)
    return {**span, "bbox": (span["bbox"][0], min(tops), span["bbox"][2], max(bottoms))}
