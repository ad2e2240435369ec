"""The lines of a block of text, from its ink alone; they may touch, as those of tight setting and of bad scans do."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from gravityocr_cli.ink import Mask

_VALLEY = 0.5  # of the ink of the fullest rows on either side: what parts two lines holds less
_CUT = 0.65  # of a line's ink: a cut through more letters parts no lines
_LOW = 0.45  # of the usual height: dots and accents
_SLIVER = 0.6  # of the usual height, at the edge of the block: part of a line above or below it
_TALL = 1.6  # of the usual height: lines that no valley parts
Profile = NDArray[np.float64]
Band = tuple[int, int]


def lines_in(ink: Mask) -> list[Band]:
    """Rows of pixels [first, last) of each line, top to bottom, white shared out; all of the block where it has none.

    What reaches in from a line above or below the block is left out.
    """
    profile = ndimage.uniform_filter1d(ink.sum(axis=1).astype(np.float64), 3)
    edges = _between_letters(_valleys(profile), ink)
    bands = _whole(_inked(edges, profile))
    bands = [part for band in bands for part in _parted(band, bands, profile)]
    if len(bands) > 2:
        usual = _usual(bands)
        bands = [(a, b) for a, b in bands if b - a >= _SLIVER * usual or (a > 0 and b < len(profile))]
    if not bands:
        return [(0, len(profile))]
    cuts = [(above[1] + below[0] + 1) // 2 for above, below in pairwise(bands)]
    first, last = max(0, bands[0][0] - _margin(bands)), min(len(profile), bands[-1][1] + _margin(bands))
    return list(pairwise([first, *cuts, last]))


def _margin(bands: Sequence[Band]) -> int:
    return round(_usual(bands) / 4)


def _usual(bands: Sequence[Band]) -> int:
    return sorted(b - a for a, b in bands)[len(bands) // 2]  # of two, the higher


def _valleys(profile: Profile) -> list[int]:
    """Rows that part lines, both ends included: of all minima of ink those that are deep enough.

    The worst goes first, since a peak that two minima share counts as a whole once one of them is gone.
    """
    inner = np.flatnonzero((profile[1:-1] <= profile[:-2]) & (profile[1:-1] < profile[2:])) + 1
    edges = [0, *inner.tolist(), len(profile)]
    while len(edges) > 2:
        peaks = [profile[a:b].max() for a, b in pairwise(edges)]
        least = np.maximum([min(sides) for sides in pairwise(peaks)], 1e-9)
        depths = profile[edges[1:-1]] / least
        worst = int(np.argmax(depths))
        if depths[worst] <= _VALLEY:
            break
        del edges[worst + 1]
    return edges


def _between_letters(edges: Sequence[int], ink: Mask) -> list[int]:
    """The edges without those that cut through nearly all that stands on one side: there it is one line's tall part."""
    labels, _ = ndimage.label(ink, structure=np.ones((3, 3), np.int8))
    kept = [edges[0]]
    for edge, end in pairwise(edges[1:]):
        across = np.intersect1d(labels[edge - 1], labels[edge])
        across = across[across > 0]
        sides = ((labels[kept[-1] : edge], ink[kept[-1] : edge]), (labels[edge:end], ink[edge:end]))
        if all(np.isin(numbers, across).sum() <= _CUT * own.sum() for numbers, own in sides):
            kept.append(edge)
    return [*kept, edges[-1]]


def _inked(edges: Sequence[int], profile: Profile) -> list[Band]:
    """Between two edges each, from the first row with ink to the last."""
    bands = []
    for a, b in pairwise(edges):
        rows = np.flatnonzero(profile[a:b] > 0.34)  # the filter spreads a row of one pixel over three
        if len(rows):
            bands.append((a + int(rows[0]), a + int(rows[-1]) + 1))
    return bands


def _whole(bands: Sequence[Band]) -> list[Band]:
    """The bands, low ones between others joined with the nearer of these: the dots of an i, an underline."""
    whole = list(bands)
    at = 0
    while at < len(whole) and len(whole) > 1:
        usual = _usual(whole)
        above = whole[at][0] - whole[at - 1][1] if at else usual
        below = whole[at + 1][0] - whole[at][1] if at + 1 < len(whole) else usual
        if whole[at][1] - whole[at][0] >= _LOW * usual or min(above, below) > _LOW * usual:
            at += 1
        else:
            first = at if below <= above else at - 1
            whole[first : first + 2] = [(whole[first][0], whole[first + 1][1])]
            at = max(0, first - 1)
    return whole


def _parted(band: Band, bands: Sequence[Band], profile: Profile) -> list[Band]:
    """The lines of a band that is as high as several, cut where there is least ink about where lines should part."""
    usual = _usual(bands)
    count = round((band[1] - band[0]) / usual) if len(bands) > 2 and band[1] - band[0] > _TALL * usual else 1
    reach = max(1, round(usual / 4))
    cuts = [round(band[0] + (band[1] - band[0]) * part / count) for part in range(1, count)]
    cuts = [cut - reach + int(profile[cut - reach : cut + reach].argmin()) for cut in cuts]
    return list(pairwise([band[0], *cuts, band[1]]))
