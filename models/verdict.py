"""Whether text layers tell what the page shows, told from as few of their lines as do.

A layer lies by font, each of which has its own table from glyphs to letters, or where something covers it. So a line of
every region and a few of every font stand for a page. Where they don't clearly agree more are read, at last all.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gravityocr_models.records import Crop, Task

DOUBT = 0.45
CLEAR = 0.3  # share of some lines' tokens from which the others need no reading (benchmarks/layer_verdict.py)
ENOUGH = 8  # tokens; fewer say nothing of others
LINES = 3  # of a font that are read at least
TELLING = 20  # characters of a line that says enough
CLEARLY, HALF_CLEAR, MOST_UNSEEN = 0.8, 0.25, 0.95  # what a reading of clarity 0.5 would write is worth no more
GLIMPSE = 28  # of a line of text that are read first
BEYOND_PX = 24  # how much more is shown than these should take: letters are not equally wide
INKED = 0.25  # of the darkest ink: what a column with ink has


@dataclass(frozen=True)
class Verdict:
    """How many of a layer's tokens the model would have written itself, given the pixels.

    unseen: how many of them say nothing, because the pixels are not clear to it.
    """

    agreed: int
    tokens: int
    unseen: float = 0.0

    @property
    def share(self) -> float:
        return self.agreed / self.tokens

    def holds(self, keep_above: float) -> bool:
        """Whether the layer is kept: by the share agreed with, the benefit of the doubt where there are few tokens.

        This is the likelihood ratio of true against lying layers: linear in both counts, `keep_above` where the two are
        equally likely, DOUBT the odds that a sound-looking layer is true, told in tokens.
        """
        return self.agreed + DOUBT >= keep_above * (self.tokens - self.unseen)


def unseen(tokens: int, clarity: float | None) -> float:
    """How many of a layer's tokens a reading of this clarity (see `glyphs.clarity`) says nothing of."""
    return 0.0 if clarity is None else tokens * min(MOST_UNSEEN, max(0.0, (CLEARLY - clarity) / HALF_CLEAR))


def glimpse(crop: Crop) -> Crop:
    """The beginning of a line of text, where that is less of it and says enough; else the crop.

    Where it ends is told by the ink: as large a share of the inked columns as of the characters.
    """
    draft = crop.draft or ""
    end = draft.find(" ", GLIMPSE)
    if crop.task is not Task.TEXT or not 0 < end <= 0.75 * len(draft) or "$" in draft or "\n" in draft:
        return crop
    dark = crop.pixels.min(axis=2)
    contrast = np.abs(dark.astype(np.int16) - int(np.median(dark))).max(axis=0)
    inked = np.cumsum(contrast > INKED * contrast.max())
    columns = int(np.searchsorted(inked, inked[-1] * end / len(draft))) + BEYOND_PX
    return replace(crop, pixels=crop.pixels[:, :columns], draft=draft[:end])


def judge(
    crops: Sequence[Crop],
    places: Sequence[int],
    keep_above: float,
    read: Callable[[list[int]], Mapping[int, Verdict]],
) -> dict[int, Verdict]:
    """The verdict on the region of each of the places, which are those of crops with a draft.

    keep_above: what is less than that is never clear. read: judges the crops of some places.
    """
    found: dict[int, Verdict] = {}
    while more := _wanted(crops, places, max(CLEAR, keep_above), found):
        found |= read(more)
    verdicts = {place: _pooled(region, found) for region in regions_of(crops, places) for place in region}
    return {place: verdict for place, verdict in verdicts.items() if verdict.tokens}


def regions_of(crops: Sequence[Crop], places: Iterable[int]) -> list[list[int]]:
    """The places grouped by region; a crop without one is alone."""
    return grouped(places, lambda place: crops[place].region or place)


def grouped(places: Iterable[int], key: Callable[[int], Hashable]) -> list[list[int]]:
    """The places with equal keys together."""
    groups: dict[Hashable, list[int]] = {}
    for place in places:
        groups.setdefault(key(place), []).append(place)
    return list(groups.values())


def _wanted(crops: Sequence[Crop], places: Sequence[int], clear: float, found: Mapping[int, Verdict]) -> list[int]:
    """The places to read next: of each region in doubt twice as many as were, and what is missing of each font."""
    fonts = grouped(places, lambda place: crops[place].font or place)
    unclear = {place for same in fonts if not _is_clear(same, clear, found) for place in same}
    more: set[int] = set()
    for region in regions_of(crops, places):
        unread = sorted((place for place in region if place not in found), key=lambda place: _cost(crops[place]))
        if not _is_clear(region, clear, found) or unclear.intersection(region):
            more.update(unread[: max(1, 2 * (len(region) - len(unread)))])
        more.update(place for place in unread if crops[place].font is None)
    for same in fonts:
        unread = [place for place in same if place not in found and place not in more]
        missing = min(LINES - len(same) + len(unread), len(unread))
        more.update(unread[(2 * turn + 1) * len(unread) // (2 * missing)] for turn in range(missing))
    return sorted(more)


def _is_clear(places: Sequence[int], clear: float, found: Mapping[int, Verdict]) -> bool:
    """Whether what was read of the places says enough of the rest."""
    verdict = _pooled(places, found)
    enough = verdict.tokens >= ENOUGH or all(place in found for place in places)
    return enough and verdict.agreed >= clear * verdict.tokens


def _pooled(places: Iterable[int], found: Mapping[int, Verdict]) -> Verdict:
    """The verdict on what was read of the places, as one."""
    read = [found[place] for place in places if place in found]
    agreed, tokens = sum(each.agreed for each in read), sum(each.tokens for each in read)
    return Verdict(agreed, tokens, sum(each.unseen for each in read))


def _cost(crop: Crop) -> tuple[bool, int]:
    """Lines that say enough come first, of these the small ones, which are read sooner."""
    return len(crop.draft or "") < TELLING, crop.pixels.size
