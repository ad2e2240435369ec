"""Pixels of a crop -> what the vision encoder takes.

Two ways, as the checkpoint's preprocessor says. nano's crops are padded, never scaled: at the dpi that it was trained
for, a glyph keeps its size. The GLM-OCR family's are scaled to whole tokens, to the size and the bit that transformers'
Glm46VImageProcessor gives. Either way the result depends on the crop alone, not on its company.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from gravityocr_models.config import ConfigError, VisionConfig

COLUMN_STEP = 4  # tokens; padded widths are multiples of it, so that crops of one shape can share a batch
FAINT = 60  # grey levels away from the paper that make ink
MOST_ELONGATED = 200  # longer side through shorter side that scaling keeps within the pixel bounds


@dataclass(frozen=True)
class ImageRules:
    """How a checkpoint wants its images.

    mean, std: of each channel, for values in 0..1. bounds: least and most pixels of a scaled image; None = padded.
    """

    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.5,)
    bounds: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or any(value <= 0 for value in self.std):
            raise ConfigError("image_mean and image_std must have one value a channel, and image_std be positive")
        if self.bounds and not 0 < self.bounds[0] <= self.bounds[1]:
            raise ConfigError(f"the bounds on an image's pixels are inside out: {self.bounds}")


PADDED = ImageRules()


def grid_of(shape: Sequence[int], token_px: int, rules: ImageRules = PADDED) -> tuple[int, int]:
    """Rows and columns of tokens that a crop of shape [H, W, ...] pixels becomes."""
    height, width = shape[:2]
    if rules.bounds:
        return _scaled_grid(*_bulked(height, width), token_px, *rules.bounds)
    rows = max(1, -(-height // token_px))
    columns = max(1, -(-width // (token_px * COLUMN_STEP))) * COLUMN_STEP
    return rows, columns


def normalise(pixels: NDArray[np.uint8], config: VisionConfig, rules: ImageRules = PADDED) -> NDArray[np.float32]:
    """uint8 [H, W, 3] or grey [H, W] -> float32 [C, H', W'], whole tokens high and wide.

    Models of one channel see grey: Rec. 601 luma.
    """
    planes = _planes(pixels, config.in_channels)
    rows, columns = grid_of(planes.shape[1:], config.token_px, rules)
    size = rows * config.token_px, columns * config.token_px
    if rules.bounds:
        out = _scaled(_padded(planes, _bulked(*planes.shape[1:])), size).astype(np.float32)
    else:
        out = _padded(planes, size).astype(np.float32)
    mean = np.array(rules.mean, np.float32)[:, None, None] * 255
    return (out - mean) / (np.array(rules.std, np.float32)[:, None, None] * 255)


def levelled(pixels: NDArray[np.uint8], token_px: int) -> NDArray[np.uint8]:
    """A line's crop [H, W, ...], begun so that the middle of its ink is the middle of a row of tokens.

    The letters of a level line then stand in one row, not in two. Blank rows above go where there
    are enough of them, else paper is added. What is higher than three rows, or has no ink, stays as it is.
    """
    grey = pixels if pixels.ndim == 2 else pixels.mean(axis=2)
    shade = np.median(grey)
    inked = (np.abs(grey - shade) > FAINT).sum(axis=1)
    if len(pixels) > 3 * token_px or not inked.any():
        return pixels
    middle = np.average(np.arange(len(pixels)) + 0.5, weights=inked)
    down = round(token_px / 2 - middle) % token_px
    if token_px - down < np.flatnonzero(inked)[0]:
        return pixels[token_px - down :]
    return np.pad(pixels, ((down, 0), *((0, 0),) * (pixels.ndim - 1)), constant_values=int(shade))


def stack(images: Sequence[NDArray[np.float32]], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Images of one shape -> [B, C, H, W]."""
    return torch.from_numpy(np.stack(images)).to(device=device, dtype=dtype)


def _planes(pixels: NDArray[np.uint8], channels: int) -> NDArray[np.uint8]:
    """uint8 [C, H, W]."""
    if channels == 1 and pixels.ndim == 3:
        pixels = (pixels @ np.array([0.299, 0.587, 0.114], np.float32)).round().astype(np.uint8)
    planes = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    return np.broadcast_to(planes, (channels, *planes.shape[1:]))


def _padded(planes: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """The planes with more below and to the right, in the median shade of their border."""
    height, width = planes.shape[1:]
    if (height, width) == size:
        return planes
    edges = planes[:, [0, -1], :].reshape(len(planes), -1), planes[:, :, [0, -1]].reshape(len(planes), -1)
    out = np.empty((len(planes), *size), np.uint8)
    out[:] = np.median(np.concatenate(edges, 1), axis=1)[:, None, None]
    out[:, :height, :width] = planes
    return out


def _scaled(planes: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Bicubic with antialiasing on whole numbers, which is what torchvision does to images."""
    image = torch.from_numpy(np.array(planes, order="C"))[None]
    return F.interpolate(image, size, mode="bicubic", align_corners=False, antialias=True)[0].numpy()


def _bulked(height: int, width: int) -> tuple[int, int]:
    """The size, padded where it is too elongated to scale: transformers refuses such an image, a page may hold one."""
    return max(height, -(-width // MOST_ELONGATED)), max(width, -(-height // MOST_ELONGATED))


def _scaled_grid(height: int, width: int, token_px: int, least: float, most: float) -> tuple[int, int]:
    """The nearest whole tokens, or where those hold too few or too many pixels, the aspect kept at that bound."""
    if min(height, width) < token_px:
        grow = token_px / min(height, width)
        height, width = int(height * grow), int(width * grow)
    rows, columns = round(height / token_px), round(width / token_px)
    pixels = rows * columns * token_px**2
    if pixels > most:
        scale = math.sqrt(height * width / most)
        return max(1, math.floor(height / scale / token_px)), max(1, math.floor(width / scale / token_px))
    if pixels < least:
        scale = math.sqrt(least / (height * width))
        return math.ceil(height * scale / token_px), math.ceil(width * scale / token_px)
    return rows, columns
