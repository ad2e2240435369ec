"""Pixels of a crop -> what the vision encoder takes.

A crop is padded, never scaled: at the dpi a model was trained for, a glyph keeps its size. Widths are padded to a step
of a few tokens, so that crops of one shape can share a batch; the padding depends on the crop alone, so that its answer
does not depend on its company.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gravityocr_models.config import VisionConfig

COLUMN_STEP = 4  # tokens


def grid_of(shape: Sequence[int], token_px: int) -> tuple[int, int]:
    """Rows and columns of tokens that a crop of shape [H, W, ...] pixels becomes."""
    height, width = shape[:2]
    rows = max(1, -(-height // token_px))
    columns = max(1, -(-width // (token_px * COLUMN_STEP))) * COLUMN_STEP
    return rows, columns


def normalise(pixels: NDArray[np.uint8], config: VisionConfig) -> NDArray[np.float32]:
    """uint8 [H, W, 3] or grey [H, W] -> float32 [C, H', W'] in -1..1, padded to the token grid with the border's shade.

    Models of one channel see grey: Rec. 601 luma.
    """
    grey = pixels.ndim == 2
    if config.in_channels == 1 and not grey:
        pixels = (pixels @ np.array([0.299, 0.587, 0.114], np.float32)).round().astype(np.uint8)
    planes = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    if planes.shape[0] != config.in_channels:
        planes = np.broadcast_to(planes, (config.in_channels, *planes.shape[1:]))
    height, width = planes.shape[1:]
    rows, columns = grid_of((height, width), config.token_px)
    border = np.concatenate(
        [planes[:, [0, -1], :].reshape(len(planes), -1), planes[:, :, [0, -1]].reshape(len(planes), -1)], 1
    )
    shade = np.median(border, axis=1).astype(np.float32)
    out = np.empty((len(planes), rows * config.token_px, columns * config.token_px), np.float32)
    out[:] = shade[:, None, None]
    out[:, :height, :width] = planes
    return out / 127.5 - 1


def stack(images: Sequence[NDArray[np.float32]], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Images of one shape -> [B, C, H, W]."""
    return torch.from_numpy(np.stack(images)).to(device=device, dtype=dtype)
