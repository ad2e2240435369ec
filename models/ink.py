"""Ink on a crop: its connected pieces, and how they are cut."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from gravityocr_models.signs import Box, hull_of

FAINT = 0.25  # of the darkest ink: what hairlines still are at 144 dpi, and the white between letters no longer
SPECK_PX = 3
DARKEST = 99.5  # percentile
BAR_PX = 8  # least width of a root's rule
DOT_PX, ARROW_PX = 4, 5  # at least a wider accent's width, an arrow's height
HAT_PX, TILDE_PX = 0.58, 0.4  # how far the ink of an accent that is no bar rises


@dataclass(frozen=True, eq=False)
class Ink:
    """Connected ink. box: in whole pixels of the crop. depth: float32 [H, W] of the box, how dark its own ink is."""

    box: Box
    depth: NDArray[np.float32]


def pieces_of(pixels: NDArray[np.uint8]) -> list[Ink]:
    """The pieces of ink of a crop [H, W] or [H, W, 3], specks left out."""
    grey = pixels.astype(np.float32) if pixels.ndim == 2 else pixels.mean(axis=2, dtype=np.float32)
    contrast = np.abs(grey - np.median(grey))
    labels, _ = ndimage.label(contrast > FAINT * np.percentile(contrast, DARKEST), np.ones((3, 3)))
    pieces = []
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), 1):
        own = labels[rows, columns] == number
        if own.sum() >= SPECK_PX:
            box = Box(columns.start, rows.start, columns.stop, rows.stop)
            pieces.append(Ink(box, contrast[rows, columns] * own))
    return pieces


def cut_near(ink: Ink, x: float, reach: float) -> tuple[Ink, Ink] | None:
    """The ink left and right of its thinnest column near `x`; None where there is none to choose from."""
    middle, width = x - ink.box.x0, ink.depth.shape[1]
    columns = range(max(1, int(middle - reach)), min(width, int(middle + reach) + 2))
    if not columns:
        return None
    inked = np.count_nonzero(ink.depth, axis=0)
    at = min(columns, key=lambda column: inked[column] + 0.05 * abs(column - middle))
    left, right = _tight(ink, slice(0, at)), _tight(ink, slice(at, width))
    return (left, right) if left and right else None


def without_rule(ink: Ink) -> tuple[Ink, Box] | None:
    """The sign of a root and the rule over what it is taken of, where both are one piece of ink."""
    height, width = ink.depth.shape
    thick = max(3, height // 6)
    if height < BAR_PX or width <= BAR_PX:
        return None
    inked = ink.depth > 0
    used = np.flatnonzero(~inked[:thick].any(axis=0) | inked[thick:].any(axis=0))
    start = int(used[-1]) + 1 if len(used) else 0
    sign = _tight(ink, slice(0, start))
    if width - start < BAR_PX or sign is None:
        return None
    rows = np.flatnonzero(inked[:, start:].any(axis=1))
    top = ink.box.y0 + int(rows[0])
    return sign, Box(ink.box.x0 + start, top, ink.box.x1, ink.box.y0 + int(rows[-1]) + 1)


def accent_of(ink: Ink) -> str:
    """The combining character of the accent that ink over a letter looks like: dot, hat, check, arrow, tilde or bar."""
    height, width = ink.depth.shape
    if width < DOT_PX or width < 1.2 * height:
        return "\u0307"
    heights = np.arange(height)[:, None] + np.zeros(ink.depth.shape)
    middles = np.average(heights, axis=0, weights=ink.depth + 1e-6)
    first, second, third, fourth = (float(part.mean()) for part in np.array_split(middles, 4))
    rise = (first + fourth - second - third) / 2
    if abs(rise) > HAT_PX:
        return "\u0302" if rise > 0 else "\u030c"
    if height >= ARROW_PX:
        return "\u20d7"
    return "\u0303" if third - second > TILDE_PX else "\u0304"


def joined(pieces: Sequence[Ink]) -> Ink:
    """Pieces of ink as one."""
    hull = hull_of(piece.box for piece in pieces)
    depth = np.zeros((int(hull.height), int(hull.width)), np.float32)
    for piece in pieces:
        top, left = int(piece.box.y0 - hull.y0), int(piece.box.x0 - hull.x0)
        height, width = piece.depth.shape
        depth[top : top + height, left : left + width] += piece.depth
    return Ink(hull, depth)


def _tight(ink: Ink, columns: slice) -> Ink | None:
    """What is inked in some of the columns, its box without blank rows and columns."""
    depth = ink.depth[:, columns]
    rows, used = np.flatnonzero(depth.any(axis=1)), np.flatnonzero(depth.any(axis=0))
    if not len(rows):
        return None
    top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(used[0]), int(used[-1]) + 1
    x, y = ink.box.x0 + columns.start, ink.box.y0
    return Ink(Box(x + left, y + top, x + right, y + bottom), depth[top:bottom, left:right])
