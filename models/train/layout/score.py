"""How well regions are found: average precision at an overlap of one half, label by label, and lines left outside."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gravityocr_models.layout import Found
from gravityocr_models.train.layout.labels import Labelled, Rect, area, common

Pages = Sequence[tuple[Sequence[Found], Sequence[Labelled]]]


def average_precision(pages: Pages, label: str, overlap: float = 0.5) -> float:
    """The area under precision over recall of one label, 0..1; NaN where no page has it.

    pages: what was found and what is true on each. A true region counts for the surest box that overlaps it by
    `overlap` (intersection over union); the others are false.
    """
    total = sum(each.label == label for _, truth in pages for each in truth)
    if not total:
        return float("nan")
    marks = [mark for found, truth in pages for mark in _matched(found, truth, label, overlap)]
    marks.sort(key=lambda mark: -mark[0])
    right = np.cumsum([hit for _, hit in marks])
    precision = right / np.arange(1, len(marks) + 1)
    envelope: NDArray[np.float64] = np.maximum.accumulate(precision[::-1])[::-1]
    return float(sum(envelope[i] for i, (_, hit) in enumerate(marks) if hit) / total)


def recall(pages: Pages, least: float = 0.5) -> float:
    """The share of true regions of which at least `least` lies in some found box, whatever the labels."""
    shares = [
        max((common(each.box, box.box) for box in found), default=0.0) / area(each.box)
        for found, truth in pages
        for each in truth
    ]
    return float(np.mean([share >= least for share in shares]))


def covered(lines: Sequence[Rect], boxes: Sequence[Rect], least: float = 0.7) -> list[int]:
    """For each line the number of boxes that hold at least `least` of it: 0 is a line lost, 2 a line read twice."""
    return [sum(common(line, box) >= least * area(line) > 0 for box in boxes) for line in lines]


def _matched(found: Sequence[Found], truth: Sequence[Labelled], label: str, overlap: float) -> list[tuple[float, bool]]:
    """Score of every box of the label on one page, and whether it is right."""
    open_ = [each.box for each in truth if each.label == label]
    marks = []
    for each in sorted((one for one in found if one.label == label), key=lambda one: -one.score):
        best = max(range(len(open_)), key=lambda i: overlap_of(each.box, open_[i]), default=None)
        hit = best is not None and overlap_of(each.box, open_[best]) >= overlap
        if best is not None and hit:
            del open_[best]
        marks.append((each.score, hit))
    return marks


def overlap_of(a: Rect, b: Rect) -> float:
    """Intersection over union."""
    shared = common(a, b)
    return shared / max(area(a) + area(b) - shared, 1e-6)
