"""A table that nobody painted as text, as its pixels show it: its rules, and its pieces of text, each of one line.

An engine that reads a line at a time cannot read a table whole. It reads these pieces instead, and where they stand
gives the grid (`ruled.py`, `grid.py`), as the lines of a text layer do elsewhere. Lengths are in pixels, or in heights:
a height is that of capitals and figures.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage, sparse

from gravityocr_cli.document import Line, Page
from gravityocr_cli.ink import Mask, ink_of
from gravityocr_cli.inkcut import Bounds
from gravityocr_models.signs import Box

_MOST = 20_000  # letters of a table; more are the dots of a picture
_EM = 1.4  # heights of a font size
_GAP = 0.8  # heights of white between letters or words of one piece at most
_SMALL = 0.5  # heights: dots, accents and dashes are less high
_SPECK = 0.3  # heights: smaller ink that is near no letter says nothing
_TALL = 1.75  # heights: a letter of a line is less high, two lines that touch are not
_PITCH = 1.35  # heights from line to line where lines touch
_ASCENT, _DESCENT = 1.05, 0.3  # heights over and under the baseline
_LONG, _THICK = 10.0, 3.5  # points: what is shorter is a stroke of a letter, what is thicker an area
_THIN = 1.5  # points: small letters that run together are thicker
_LONG_LEVEL, _LONG_UPRIGHT = 3.0, 1.8  # heights: likewise, where letters are large
_BROKEN = 1.5  # points that a rule may be interrupted for
_DRAWN, _BESIDE = 0.9, 0.35  # of a rule: how much of it is there, and how much of what lies beside it is ink
_UP_TO_1, _UP_TO_3 = np.ones((3, 1), np.bool_), np.ones((7, 1), np.bool_)
_STRIP = (1.0, 10.0)  # points, height and width: what is filled shows such a strip over or under its text
_AREA = 6.0  # points: a filled area is higher
_SAME_GREY, _CONTRAST = 20, 48  # grey levels: within an area at most, and from what stands on it at least
Bounded = NDArray[np.int_]  # [N, 4]: left, top, right, bottom


def pieces_of(page: Page, box: Box) -> tuple[Line, ...]:
    """The pieces of text in a box, without their text, in points, top to bottom; size: about the font's.

    Each is as high as its line: what stands on one line has one height, whether it is a name, a dash or an asterisk.
    """
    scale = page.dpi / 72
    left, top = max(0, int(box.x0 * scale)), max(0, int(box.y0 * scale))
    ink = ink_on_grounds(page.pixels[top : int(np.ceil(box.y1 * scale)), left : int(np.ceil(box.x1 * scale))], scale)
    for x0, y0, x1, y1 in rules_of(ink, scale):
        ink[max(0, y0 - 1) : y1 + 1, max(0, x0 - 1) : x1 + 1] = False
    height = _letter_height(ink)
    if not height:
        return ()
    letters = _letters(ink, height)
    if not 0 < len(letters) <= _MOST:
        return ()
    bounds = _line_high(_groups(_with_marks(letters, height), height), height)
    return tuple(
        Line(Box((x0 + left) / scale, max(0, y0 + top) / scale, (x1 + left) / scale, (y1 + top) / scale), "", size)
        for size in [_EM * height / scale]
        for x0, y0, x1, y1 in sorted(bounds, key=lambda each: (each[1], each[0]))
    )


def ink_on_grounds(pixels: NDArray[np.uint8], scale: float) -> Mask:
    """uint8 [H, W, 3] -> bool [H, W]: what stands out from the ground, or in filled areas of a table from theirs.

    scale: pixels of a point.
    """
    grey = pixels.mean(axis=2, dtype=np.float32)
    levels = _levels(grey)
    if len(levels) < 2:
        return ink_of(pixels)
    smooth = ndimage.uniform_filter(grey, 3)
    ground = np.full(grey.shape, -1.0, np.float32)
    for level in levels:
        flat = np.minimum(np.abs(grey - level), np.abs(smooth - level)) < _SAME_GREY
        for axis, side in enumerate(_STRIP):
            flat = _opened(flat, max(2, round(side * scale)), axis, beyond=True)
        labels, _ = ndimage.label(flat)
        for label, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
            if rows.stop - rows.start > _AREA * scale:  # else a rule
                ground[rows, columns][labels[rows, columns] == label] = level
    if len(np.unique(ground[ground >= 0])) < 2:
        return ink_of(pixels)
    nearest = ndimage.distance_transform_edt(ground < 0, return_distances=False, return_indices=True)
    return np.asarray(np.abs(grey - ground[tuple(nearest)]) > _CONTRAST)


def _levels(grey: NDArray[np.float32]) -> list[int]:
    """The few most frequent greys, each apart from the others."""
    counts = np.bincount(grey.round().astype(np.int64).ravel(), minlength=256)
    counts = np.convolve(counts, np.ones(5, np.int64), "same")
    levels: list[int] = []
    while len(levels) < 4 and counts.max() > 0.02 * grey.size:
        levels.append(int(counts.argmax()))
        counts[max(0, levels[-1] - 24) : levels[-1] + 25] = 0
    return levels


def _opened(mask: Mask, long: int, axis: int, beyond: bool) -> Mask:
    """What lies in stretches of true that are so long along an axis. beyond: they may go on over the edges."""
    margins = [(0, 0), (0, 0)]
    margins[axis] = (long, long)
    padded = np.pad(mask.view(np.uint8), margins, mode="edge" if beyond else "constant")
    least = ndimage.minimum_filter1d(padded, long, axis)
    opened = ndimage.maximum_filter1d(least, long, axis, origin=long % 2 - 1)
    return np.asarray(opened.take(range(long, long + mask.shape[axis]), axis), np.bool_)


def rules_of(ink: Mask, scale: float) -> list[Bounds]:
    """The level and upright rules, bounds in pixels; tilted ones too. scale: pixels of a point."""
    height = _letter_height(ink)
    level = _strokes(ink, max(_LONG * scale, _LONG_LEVEL * height), scale)
    upright = _strokes(ink.T, max(_LONG * scale, _LONG_UPRIGHT * height), scale)
    return level + [(x0, y0, x1, y1) for y0, x0, y1, x1 in upright]


def _strokes(ink: Mask, long: float, scale: float) -> list[Bounds]:
    """Thin strokes along the second axis, white along both sides, which text that runs together is not."""
    whole = ~_opened(~ink, 1 + round(_BROKEN * scale), 1, beyond=True)
    labels, _ = ndimage.label(_opened(whole, round(long), 1, beyond=False), structure=np.ones((3, 3), np.int8))
    ink = np.pad(ink, ((3, 3), (0, 0)))
    strokes: list[Bounds] = []
    for label, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        own = np.pad(labels[rows, columns] == label, ((3, 3), (0, 0)))
        around = ink[rows.start : rows.stop + 6, columns]
        if own.sum() <= _THICK * scale * own.shape[1] and around[own].mean() > _DRAWN and _is_rule(own & around, scale):
            beside = ndimage.binary_dilation(own, _UP_TO_3) & ~ndimage.binary_dilation(own, _UP_TO_1)
            if around[beside].mean() < _BESIDE:
                strokes.append((columns.start, rows.start, columns.stop, rows.stop))
    return strokes


def _is_rule(stroke: Mask, scale: float) -> bool:
    """Whether a stroke is thin, or as thick everywhere, which small letters that run together are not."""
    thick = stroke.sum(axis=0)
    usual = np.median(thick)
    return bool(usual <= _THIN * scale or (np.abs(thick - usual) <= 1).mean() > _DRAWN)


def _letter_height(ink: Mask) -> float:
    """The height of capitals and figures: of the connected ink that is as high as letters are."""
    sizes = [(r.stop - r.start, c.stop - c.start) for r, c in ndimage.find_objects(ndimage.label(ink)[0])]
    heights = [high for high, wide in sizes if 5 <= high <= 60 and wide <= 12 * high]
    return float(np.percentile(heights, 75)) if heights else 0.0


def _letters(ink: Mask, height: float) -> Bounded:
    """The bounds of letters, or of what runs together on a line; those of two lines that touch are cut apart."""
    labels, _ = ndimage.label(ink)
    letters: list[Bounds] = []
    for label, (rows, columns) in enumerate(ndimage.find_objects(labels), start=1):
        high = rows.stop - rows.start
        starts = [0]
        if high > _TALL * height:
            starts = _line_starts((labels[rows, columns] == label).sum(axis=1), height)
        for a, b in zip(starts, [*starts[1:], high], strict=True):
            letters.append((columns.start, rows.start + a, columns.stop, rows.start + b))
    return np.array(letters)


def _line_starts(profile: NDArray[np.int_], height: float) -> list[int]:
    """Where the lines of a piece of ink start, from how much of it stands in each row of pixels."""
    lines = max(2, 1 + round((len(profile) / height - _ASCENT - _DESCENT) / _PITCH))
    starts = [0]
    for number in range(1, lines):
        middle, reach = round(number * len(profile) / lines), max(2, round(0.4 * height))
        first = max(middle - reach, starts[-1] + 1)
        rows = np.arange(first, middle + reach)
        starts.append(first + int((profile[rows] + abs(rows - middle) / len(profile)).argmin()))
    return starts


def _with_marks(letters: Bounded, height: float) -> Bounded:
    """The letters, each with the dots and accents over and under it; what is over none stays by itself."""
    small = letters[:, 3] - letters[:, 1] < _SMALL * height
    large, rest = letters[~small], list[Bounds]()
    for x0, y0, x1, y1 in letters[small].tolist():
        a, b, c, d = large.T
        # what stands between two lines is rather over a letter of the lower one
        far = np.where(np.minimum(x1, c) > np.maximum(x0, a), np.where(b > y0, b - y1, y0 - d + height / 4), np.inf)
        if len(far) and far.min() < _SMALL * height:
            at = int(far.argmin())
            large[at] = min(x0, a[at]), min(y0, b[at]), max(x1, c[at]), max(y1, d[at])
        else:
            rest.append((x0, y0, x1, y1))
    return np.array([*large.tolist(), *rest])


def _groups(letters: Bounded, height: float) -> list[Bounded]:
    """Letters by the piece that they belong to: of one line, and apart by no more than words are."""
    letters = letters[np.argsort(letters[:, 0], kind="stable")]
    x0, y0, x1, y1 = letters.T
    count = len(letters)
    reach = np.searchsorted(x0, x1 + _GAP * height, "right") - np.arange(count) - 1  # letters to the right, near enough
    left = np.repeat(np.arange(count), reach)
    right = left + 1 + np.arange(len(left)) - np.repeat(np.cumsum(reach) - reach, reach)
    shared = np.minimum(y1[left], y1[right]) - np.maximum(y0[left], y0[right])
    one = shared > 0.25 * np.minimum((y1 - y0)[left], (y1 - y0)[right])
    linked = sparse.coo_array((np.ones(one.sum(), np.bool_), (left[one], right[one])), shape=(count, count))
    _, of = sparse.csgraph.connected_components(linked, directed=False)
    order = np.argsort(of, kind="stable")
    groups = np.split(letters[order], np.flatnonzero(np.diff(of[order])) + 1)
    return [
        each for each in groups if np.ptp(each[:, ::2]) >= _SPECK * height or np.ptp(each[:, 1::2]) >= _SMALL * height
    ]


def _bounds(group: Bounded) -> Bounds:
    return int(group[:, 0].min()), int(group[:, 1].min()), int(group[:, 2].max()), int(group[:, 3].max())


def _line_high(groups: Sequence[Bounded], height: float) -> list[Bounds]:
    """The bounds of groups, each from over its line's capitals to under its descenders.

    Marks without a letter stand on the line of the nearest letters beside them.
    """
    large = [group[group[:, 3] - group[:, 1] >= _SMALL * height] for group in groups]
    bases = np.array([np.percentile(each[:, 3], 40) if len(each) else np.nan for each in large])
    bounds = np.array([_bounds(group) for group in groups])
    high: list[Bounds] = []
    for (x0, y0, x1, y1), base in zip(bounds.tolist(), bases.tolist(), strict=True):
        if np.isnan(base):
            middle = (y0 + y1) / 2
            apart = np.maximum(bounds[:, 0] - x1, x0 - bounds[:, 2]).astype(np.float64)
            apart[~((bases - _ASCENT * height <= middle) & (middle <= bases + _DESCENT * height))] = np.inf
            base = bases[apart.argmin()] if np.isfinite(apart.min()) else middle + height / 2
        high.append((x0, min(y0, round(base - _ASCENT * height)), x1, max(y1, round(base + _DESCENT * height))))
    return high
