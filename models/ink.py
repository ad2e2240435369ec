"""Ink on a crop: its connected pieces, and how they are cut."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from gravityocr_models.signs import Box

FAINT = 0.25  # of the darkest ink: what hairlines still are at 144 dpi, and the white between letters no longer
SPECK_PX = 3
DARKEST = 99.5  # percentile
BAR_PX = 8  # least width of a root's rule


@dataclass(frozen=True, eq=False)
class Ink:
    """Connected ink. box: in whole pixels of the crop. mask: bool [H, W] of the box, where it is inked."""

    box: Box
    mask: NDArray[np.bool_]

    @property
    def x(self) -> float:
        """The middle of its box."""
        return (self.box.x0 + self.box.x1) / 2

    @property
    def y(self) -> float:
        return (self.box.y0 + self.box.y1) / 2


def pieces_of(pixels: NDArray[np.uint8]) -> list[Ink]:
    """The pieces of ink of a crop [H, W] or [H, W, 3], specks left out."""
    grey = pixels.astype(np.float32) if pixels.ndim == 2 else pixels.mean(axis=2, dtype=np.float32)
    contrast = np.abs(grey - np.median(grey))
    labels, _ = ndimage.label(contrast > FAINT * np.percentile(contrast, DARKEST), np.ones((3, 3)))
    pieces = []
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels), 1):
        mask = labels[rows, columns] == number
        if mask.sum() >= SPECK_PX:
            pieces.append(Ink(Box(columns.start, rows.start, columns.stop, rows.stop), mask))
    return pieces


def cut_near(ink: Ink, x: float, reach: float) -> tuple[Ink, Ink] | None:
    """The ink left and right of its thinnest column near `x`; None where there is none to choose from."""
    middle, width = x - ink.box.x0, ink.mask.shape[1]
    columns = range(max(1, int(middle - reach)), min(width, int(middle + reach) + 2))
    if not columns:
        return None
    inked: list[int] = np.count_nonzero(ink.mask, axis=0).tolist()
    at = min(columns, key=lambda column: inked[column] + 0.05 * abs(column - middle))
    left, right = _tight(ink, slice(0, at)), _tight(ink, slice(at, width))
    return (left, right) if left and right else None


def without_rule(ink: Ink) -> tuple[Ink, Box] | None:
    """The sign of a root and the rule over what it is taken of, where both are one piece of ink."""
    height, width = ink.mask.shape
    thick = max(3, height // 6)
    if height < BAR_PX or width <= BAR_PX:
        return None
    used = np.flatnonzero(~ink.mask[:thick].any(axis=0) | ink.mask[thick:].any(axis=0))
    start = int(used[-1]) + 1 if len(used) else 0
    sign = _tight(ink, slice(0, start))
    if width - start < BAR_PX or sign is None:
        return None
    rows = np.flatnonzero(ink.mask[:, start:].any(axis=1))
    top = ink.box.y0 + int(rows[0])
    return sign, Box(ink.box.x0 + start, top, ink.box.x1, ink.box.y0 + int(rows[-1]) + 1)


def accent_of(ink: Ink) -> str:
    """The combining character of the accent that flat ink over a letter looks like: a bar, a hat or a tilde."""
    rows = np.arange(len(ink.mask))[:, None] + np.zeros(ink.mask.shape)
    middles = np.average(rows, axis=0, weights=ink.mask + 1e-6)
    left, middle, right = (part.mean() for part in np.array_split(middles, 3))
    if len(ink.mask) <= 2 or np.ptp((left, middle, right)) < 0.7:
        return "\u0304"
    return "\u0302" if middle < min(left, right) - 0.6 else "\u0303"


def joined(pieces: Sequence[Ink]) -> Ink:
    """Pieces of ink as one."""
    x0, y0 = (int(min(side)) for side in zip(*((piece.box.x0, piece.box.y0) for piece in pieces), strict=True))
    x1, y1 = (int(max(side)) for side in zip(*((piece.box.x1, piece.box.y1) for piece in pieces), strict=True))
    mask = np.zeros((y1 - y0, x1 - x0), bool)
    for piece in pieces:
        top, left = int(piece.box.y0) - y0, int(piece.box.x0) - x0
        height, width = piece.mask.shape
        mask[top : top + height, left : left + width] |= piece.mask
    return Ink(Box(x0, y0, x1, y1), mask)


def _tight(ink: Ink, columns: slice) -> Ink | None:
    """What is inked in some of the columns, its box without blank rows and columns."""
    mask = ink.mask[:, columns]
    rows, used = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    top, bottom, left, right = int(rows[0]), int(rows[-1]) + 1, int(used[0]), int(used[-1]) + 1
    x, y = ink.box.x0 + columns.start, ink.box.y0
    return Ink(Box(x + left, y + top, x + right, y + bottom), mask[top:bottom, left:right])
