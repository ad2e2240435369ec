"""Page pixels -> ink: what stands out from the paper."""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_CONTRAST = 48  # grey levels from the ground; bleed-through and watermarks stay under it
_TILE, _TILES = 24, 8  # pixels, a multiple of 6, and the least tiles a side
_SHADES = 8  # grey levels around one that count as the same shade
_FLAT = 16  # grey levels: paper that varies less is as light everywhere

Mask = NDArray[np.bool_]


def ink_of(pixels: NDArray[np.uint8]) -> Mask:
    """uint8 [H, W, 3] -> bool [H, W]: what stands out from the most frequent grey, or from paper lit unevenly."""
    grey = ((np.add(pixels[..., 0], pixels[..., 1], dtype=np.uint16) + pixels[..., 2]) // 3).astype(np.uint8)
    ground = _ground(grey)
    light = _uneven_light(grey, ground)
    if light is None:
        return np.asarray((grey > ground + _CONTRAST) | (grey < ground - _CONTRAST))
    return np.asarray(np.abs(grey - light) > _CONTRAST)


def _ground(grey: NDArray[np.uint8]) -> int:
    """The most frequent grey among the most frequent shades: grainy paper spreads over many, black ink has one."""
    if not grey.size:
        return 255
    counts = np.array(Image.fromarray(grey).histogram())
    middle = int(np.convolve(counts, np.ones(2 * _SHADES + 1, np.int64), "same").argmax())
    low = max(0, middle - _SHADES)
    return low + int(counts[low : middle + _SHADES + 1].argmax())


def _uneven_light(grey: NDArray[np.uint8], ground: int) -> NDArray[np.int16] | None:
    """How light the paper is, pixel by pixel; None where it is as light everywhere, or can't be told from the print.

    Under a lamp or along a fold one side of a scan is darker than letters are on the other. Paper is where the medians
    of small tiles lie near a smooth surface; that starts flat at the most frequent grey and tilts from there.
    """
    rows, columns = (length // _TILE for length in grey.shape)
    if min(rows, columns) < _TILES:
        return None
    dots = grey[: rows * _TILE : _TILE // 6, : columns * _TILE : _TILE // 6]
    tiles = np.median(dots.reshape(rows, 6, columns, 6).swapaxes(1, 2).reshape(rows, columns, 36), axis=2)
    y, x = np.meshgrid(np.linspace(-1, 1, rows), np.linspace(-1, 1, columns), indexing="ij")
    terms = np.stack([np.ones_like(x), x, y, x * y, x * x, y * y], axis=2)
    surface = np.full_like(tiles, ground)
    for degree in (3, 3, 3, 6, 6):  # terms: a plane first, for what is bent runs away where no paper holds it
        paper = np.abs(tiles - surface) < _CONTRAST
        if paper.mean() < 0.5:
            return None
        surface = terms[..., :degree] @ np.linalg.lstsq(terms[paper][:, :degree], tiles[paper], rcond=None)[0]
    if np.ptp(surface) < _FLAT:
        return None
    image = Image.fromarray(surface.astype(np.float32)).resize(grey.shape[::-1], Image.Resampling.BILINEAR)
    return np.asarray(image).astype(np.int16)
