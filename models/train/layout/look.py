"""A clean page and its regions -> what the detector is shown: moved, scaled, turned, cropped, often as if scanned."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gravityocr_models.train.layout.labels import Labelled, Rect, area, common
from gravityocr_models.train.scanlook import paper, scan_look, toned

MAX_DEGREES = 3.0
LEAST_SEEN = 0.3  # a region of which less is in the picture is not asked for


@dataclass(frozen=True)
class Shown:
    """A page as the network takes it. grey: uint8 [H, W]. regions: boxes in its pixels."""

    grey: NDArray[np.uint8]
    regions: tuple[Labelled, ...]


@dataclass(frozen=True)
class Placing:
    """Where a page's pixels go: x' = scale * (x cos + y sin) + left, y' = scale * (y cos - x sin) + top."""

    scale: float
    degrees: float
    left: float
    top: float

    def box(self, box: Rect) -> Rect:
        """The upright hull of a box's four moved corners."""
        corners = [self._point(x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return min(xs), min(ys), max(xs), max(ys)

    def pixels(self, grey: NDArray[np.uint8], shape: tuple[int, int]) -> NDArray[np.uint8]:
        """The page moved onto a sheet of shape [H, W], in its own paper's colour."""
        cos, sin = math.cos(math.radians(self.degrees)) / self.scale, math.sin(math.radians(self.degrees)) / self.scale
        back = (cos, -sin, sin * self.top - cos * self.left, sin, cos, -sin * self.left - cos * self.top)
        moved = Image.fromarray(grey).transform(
            (shape[1], shape[0]), Image.Transform.AFFINE, back, Image.Resampling.BILINEAR, fillcolor=paper(grey)
        )
        return np.array(moved)

    def _point(self, x: float, y: float) -> tuple[float, float]:
        cos, sin = math.cos(math.radians(self.degrees)), math.sin(math.radians(self.degrees))
        return self.scale * (x * cos + y * sin) + self.left, self.scale * (y * cos - x * sin) + self.top


def shown(page: Shown, shape: tuple[int, int], rng: np.random.Generator) -> Shown:
    """The page as a sample of shape [H, W]."""
    placing = _placing(page.grey.shape, shape, rng)
    grey = placing.pixels(page.grey, shape)
    if rng.random() < 0.15:
        grey = toned(grey, rng)
    if rng.random() < 0.6:
        grey = scan_look(grey, rng)
    return Shown(grey, tuple(_seen([Labelled(each.label, placing.box(each.box)) for each in page.regions], shape)))


def _placing(page: Sequence[int], shape: tuple[int, int], rng: np.random.Generator) -> Placing:
    """A whole page, or as often a part of one: letters as large as where pages are read, for fewer pixels."""
    degrees = float(rng.uniform(-MAX_DEGREES, MAX_DEGREES)) if rng.random() < 0.3 else 0.0
    fit = min(shape[0] / page[0], shape[1] / page[1])
    scale = fit * float(rng.uniform(0.8, 1.4))
    room = [side - scale * length for side, length in zip(shape, page, strict=True)]
    top, left = (float(rng.uniform(min(0.0, free), max(0.0, free))) for free in room)
    half_x, half_y = page[1] / 2, page[0] / 2  # turned about its middle
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    left += scale * (half_x - half_x * cos - half_y * sin)
    top += scale * (half_y - half_y * cos + half_x * sin)
    return Placing(scale, degrees, left, top)


def _seen(regions: Sequence[Labelled], shape: tuple[int, int]) -> list[Labelled]:
    frame = (0.0, 0.0, float(shape[1]), float(shape[0]))
    kept = []
    for region in regions:
        x0, y0, x1, y1 = region.box
        clipped = (max(x0, 0.0), max(y0, 0.0), min(x1, frame[2]), min(y1, frame[3]))
        if common(region.box, frame) >= LEAST_SEEN * area(region.box) and area(clipped) > 4:
            kept.append(Labelled(region.label, clipped))
    return kept
