"""Makes clean crops look scanned: pure functions on grey uint8 [H, W], each keeping shape and dtype.

Every function takes the pixels and, where it rolls dice, a numpy Generator. `scan_look` composes a random choice of
them in the order of the physical chain: sheet, lamp, optics, sensor, file.
"""

import io
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

Grey = NDArray[np.uint8]

MAX_SKEW_DEGREES = 2.0
# How renderers shade the pixels of small type, and how MuPDF and others enlarge pictures.
_DOWN = Image.Resampling.BOX, Image.Resampling.HAMMING, Image.Resampling.BILINEAR
_UP = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC


def scan_look(pixels: Grey, rng: np.random.Generator, degrees: float = 0.0) -> Grey:
    """Pixels as if printed, turned by `degrees` (see `skew`), scanned and stored; the same shape."""
    if rng.random() < 0.2:
        pixels = bleed_through(pixels, rng.uniform(0.04, 0.14))
    pixels = skew(pixels, degrees)
    fax = rng.random() < 0.12
    if not fax and rng.random() < 0.4:
        pixels = uneven_light(pixels, rng)
    if rng.random() < 0.5:
        pixels = blur(pixels, rng.uniform(0.3, 0.9))
    if rng.random() < 0.5:
        pixels = resampled(pixels, rng.uniform(0.45, 1.4))
    if rng.random() < 0.5:
        pixels = noise(pixels, rng, rng.uniform(2.0, 14.0))
    if fax:
        return threshold(pixels, rng.uniform(0.45, 0.65))
    if rng.random() < 0.5:
        pixels = jpeg(pixels, int(rng.integers(30, 90)))
    return pixels


def skew(pixels: Grey, degrees: float) -> Grey:
    """Turned about the centre, counter-clockwise, the corners filled with paper."""
    if degrees == 0.0:
        return pixels
    turned = Image.fromarray(pixels).rotate(degrees, Image.Resampling.BICUBIC, fillcolor=paper(pixels))
    return np.asarray(turned)


def skewed_point(x: float, y: float, degrees: float, shape: tuple[int, int]) -> tuple[float, float]:
    """Where `skew` moves a point of an image of shape [H, W]."""
    angle, half_x, half_y = math.radians(degrees), shape[1] / 2, shape[0] / 2
    dx, dy = x - half_x, y - half_y
    return half_x + dx * math.cos(angle) + dy * math.sin(angle), half_y - dx * math.sin(angle) + dy * math.cos(angle)


def paper(pixels: Grey) -> int:
    """The commonest grey level: the colour of the sheet."""
    return int(np.bincount(pixels.ravel(), minlength=256).argmax())


def toned(pixels: Grey, rng: np.random.Generator) -> Grey:
    """Black on white mapped to other levels: grey print, tinted boxes, one time in five light on dark."""
    ink, sheet = int(rng.integers(0, 110)), int(rng.integers(205, 256))
    if rng.random() < 0.2:
        ink, sheet = sheet, ink
    return np.linspace(ink, sheet, 256).round().astype(np.uint8)[pixels]


def bleed_through(pixels: Grey, strength: float) -> Grey:
    """The back of the sheet shines through: its own mirror image, faint and soft."""
    back = np.asarray(Image.fromarray(pixels[:, ::-1]).filter(ImageFilter.GaussianBlur(1.2)), np.float32)
    return _clipped(pixels - strength * np.roll(255.0 - back, pixels.shape[0] // 3, axis=0))


def uneven_light(pixels: Grey, rng: np.random.Generator) -> Grey:
    """A linear fall of light over the crop and a sheet that is not quite white."""
    height, width = pixels.shape
    top, left = rng.uniform(-0.12, 0.12, 2)
    fall = np.linspace(-top, top, height, dtype=np.float32)[:, None] + np.linspace(-left, left, width, dtype=np.float32)
    return _clipped(pixels * (rng.uniform(0.82, 1.0) + fall))


def blur(pixels: Grey, sigma: float) -> Grey:
    """Soft optics; sigma in pixels."""
    return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(sigma)))


def resampled(pixels: Grey, factor: float) -> Grey:
    """Scanned at `factor` times the resolution, then brought back: 0.5 of 144 dpi is what a screen shows."""
    height, width = pixels.shape
    image = Image.fromarray(pixels)
    small = image.resize((max(1, round(width * factor)), max(1, round(height * factor))), Image.Resampling.BILINEAR)
    return np.asarray(small.resize((width, height), Image.Resampling.BICUBIC))


def screened(pixels: Grey, scale: float, rng: np.random.Generator) -> Grey:
    """Made for a screen, with half the pixels to an inch or a little more or less, and brought back: clean and soft.

    scale: what its type is smaller by, and the crop with it.
    """
    height, width = (max(1, round(side * scale)) for side in pixels.shape)
    factor = 0.5 if rng.random() < 0.5 else rng.uniform(0.42, 0.65)
    down, up = rng.integers(len(_DOWN)), rng.integers(len(_UP))
    small = Image.fromarray(pixels).resize((max(1, round(width * factor)), max(1, round(height * factor))), _DOWN[down])
    return np.asarray(small.resize((width, height), _UP[up]))


def noise(pixels: Grey, rng: np.random.Generator, sigma: float) -> Grey:
    """Grain of the sensor; sigma in grey levels."""
    grain = rng.standard_normal(pixels.shape, dtype=np.float32)
    return _clipped(pixels + np.float32(sigma) * grain)


def threshold(pixels: Grey, level: float) -> Grey:
    """Black and white, as from a fax; level 0..1 between the darkest and the lightest pixel."""
    low, high = int(pixels.min()), int(pixels.max())
    return np.where(pixels > low + level * (high - low), 255, 0).astype(np.uint8)


def jpeg(pixels: Grey, quality: int) -> Grey:
    """Stored as JPEG and read back."""
    stored = io.BytesIO()
    Image.fromarray(pixels).save(stored, "jpeg", quality=quality)
    return np.asarray(Image.open(stored))


def _clipped(values: NDArray[np.floating[Any]]) -> Grey:
    clipped: Grey = np.clip(values, 0, 255).astype(np.uint8)
    return clipped
