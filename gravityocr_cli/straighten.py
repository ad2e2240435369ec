"""Scans that lie on their side, on their head or askew -> upright pages.

Lines of text make the sharpest profile when ink is summed along them: that tells how askew a page is, and whether its
lines run across or down. Which way is up, Latin letters tell: far more of them rise above the small ones (b d f h k l
t, capitals, dots) than hang below them (g j p q y). Where that is not clear (Chinese, Cyrillic, Arabic, capitals,
little text), a page stays as it is, for a page turned wrongly is worse than one left alone.
"""

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage

from gravityocr_cli.document import Page
from gravityocr_cli.ink import Mask
from gravityocr_cli.inkcut import runs, text_mask

MOST_SKEW = 7.0  # degrees
LEAST_SKEW = 0.25  # degrees; less costs more sharpness than it mends
_HEAVY = (0.04, 0.12)  # of a line's ink: a line whose heavier side has less or more has no vote
_EVEN = 1.6  # times the mean row of the small letters' band: a fuller row is no edge of letters but a stroke along them
_SURE = 2.5  # standard deviations of votes cast at random
_SHARE = 0.4  # of the lines: fewer votes for one side speak of a script that this doesn't work for
_RUN = 0.6  # of a line's height: white that joins letters to lines
_SHARPER = 1.2  # times: how much sharper lines across must be than lines down, to be worth a turn


def straightened(page: Page) -> Page:
    """The page as a reader would hold it: its pixels, width and height. For pages without painted text alone."""
    mask, _ = text_mask(page.ink, page.dpi)
    across, down = sharpest(mask), sharpest(mask.T)
    turn = 0
    if down[1] > _SHARPER * across[1]:
        # Lines that run up the page read upright after a quarter turn clockwise, those that run down, after three.
        side = up_or_down(np.rot90(page.ink, -1), page.dpi, -down[0])
        turn = 0 if side == 0 else 90 if side > 0 else 270
        skew = -down[0] if turn else across[0]
    else:
        turn, skew = (180 if up_or_down(page.ink, page.dpi, across[0]) < 0 else 0), across[0]
    return _straight(_turned_page(page, turn), skew)


def sharpest(mask: Mask) -> tuple[float, float]:
    """The angle in degrees by which the lines of a mask fall to the right, and how sharp their profile is there."""
    ys, xs = np.nonzero(mask)
    if len(ys) < 50:
        return 0.0, 0.0
    xs = xs - mask.shape[1] / 2
    reach = int(np.abs(xs).max() * math.tan(math.radians(MOST_SKEW))) + 2

    def sharpness(angle: float) -> float:
        rows = np.rint(ys - xs * math.tan(math.radians(angle))).astype(np.int64) + reach
        profile = np.bincount(rows, minlength=mask.shape[0] + 2 * reach)
        return float(np.square(np.diff(profile)).sum()) / len(ys)

    best = max(np.arange(-MOST_SKEW, MOST_SKEW + 0.01, 0.5), key=sharpness)
    best = max(np.arange(best - 0.4, best + 0.41, 0.1), key=sharpness)
    return round(float(best), 2), sharpness(best)


def up_or_down(ink: Mask, dpi: float, skew: float) -> int:
    """1 for text that stands upright, -1 for text on its head, 0 where it can't be told. skew: see `sharpest`.

    Every line of text has a vote.
    """
    mask = ink if abs(skew) < LEAST_SKEW else np.asarray(Image.fromarray(ink).rotate(skew))
    votes = [_vote(mask[place].sum(axis=1)) for place in _line_places(mask, dpi)]
    total, cast = sum(votes), sum(map(abs, votes))
    sure = abs(total) >= max(_SURE * math.sqrt(cast), _SHARE * len(votes), 1)
    return 0 if not sure else 1 if total > 0 else -1


def _vote(profile: NDArray[np.int64]) -> int:
    """1 where much more of a line's ink stands above its small letters than hangs below them, -1 the other way round.

    Latin lines have 4 to 8 % above and 1 to 3 % below. Other shares would not do for other scripts: Russian has 2.4 and
    2.8, its sign changing from line to line, Greek 4.4 and 3.7, Korean and upright Hebrew more above, as Latin has.
    Arabic hangs far below, as Latin does on its head; but its letters are joined by a stroke along the baseline.
    """
    full = np.sort(profile)[-max(1, len(profile) // 5)]
    start, end = max(runs(profile > 0.3 * full), key=lambda run: int(profile[run[0] : run[1]].sum()))
    band = profile[start:end]
    if band.max() > _EVEN * band.mean():
        return 0
    above, below = (float(part.sum() / profile.sum()) for part in (profile[:start], profile[end:]))
    if not _HEAVY[0] <= max(above, below) <= _HEAVY[1] or min(above, below) > 0.6 * max(above, below):
        return 0
    return 1 if above > below else -1


def _line_places(mask: Mask, dpi: float) -> list[tuple[slice, slice]]:
    """Where lines of text stand in a straight mask: low and long pieces of ink, letters joined to their neighbours."""
    usual = 10 * dpi / 72
    joined = ndimage.maximum_filter1d(mask.view(np.uint8), 2 * int(_RUN * usual) + 1, axis=1)
    labels, _ = ndimage.label(joined)
    places = []
    for found in ndimage.find_objects(labels):
        rows, columns = found
        high, wide = rows.stop - rows.start, columns.stop - columns.start
        if 0.5 * usual < high < 4 * usual and wide > 8 * high:
            places.append((rows, columns))
    return places


def _turned(pixels: NDArray[np.uint8], turn: int) -> NDArray[np.uint8]:
    """The pixels turned clockwise by 0, 90, 180 or 270 degrees."""
    return np.ascontiguousarray(np.rot90(pixels, -turn // 90))


def _turned_page(page: Page, turn: int) -> Page:
    if turn == 0:
        return page
    width, height = (page.width, page.height) if turn == 180 else (page.height, page.width)
    return replace(page, width=width, height=height, pixels=_turned(page.pixels, turn))


def _straight(page: Page, skew: float) -> Page:
    """The page turned about its centre by a few degrees; what comes in at its corners has the colour of its ground."""
    return page if abs(skew) < LEAST_SKEW else replace(page, pixels=_rotated(page.pixels, skew))


def _rotated(pixels: NDArray[np.uint8], skew: float) -> NDArray[np.uint8]:
    if abs(skew) < LEAST_SKEW:
        return pixels
    planes = [Image.fromarray(pixels[..., channel]) for channel in range(1 if _is_grey(pixels) else 3)]
    turned = (
        plane.rotate(skew, Image.Resampling.BICUBIC, fillcolor=int(np.argmax(plane.histogram()))) for plane in planes
    )
    return np.stack([np.asarray(plane) for plane in turned] * (3 // len(planes)), axis=2)


def _is_grey(pixels: NDArray[np.uint8]) -> bool:
    red, green, blue = (pixels[..., channel] for channel in range(3))
    return np.array_equal(red, green) and np.array_equal(red, blue)
