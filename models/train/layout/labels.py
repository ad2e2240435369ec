"""What is known of a born-digital page -> its true regions: pure functions over boxes in points.

PyMuPDF's layout analysis draws the boxes; it sees the painted text, so that its edges are sharp and it misses little.
DocBank's classes, where there are any, overrule its labels; monospaced fonts tell code, which it does not know. Pages
on which much ink stays outside are for the caller to leave out (`unlabelled_ink`).
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Rect = tuple[float, float, float, float]

_ANALYSIS = {
    "title": "title",
    "section-header": "heading",
    "text": "text",
    "list-item": "list",
    "caption": "caption",
    "footnote": "footnote",
    "table": "table",
    "formula": "formula",
    "picture": "picture",
    "page-header": "header",
    "page-footer": "footer",
}
# DocBank's classes that decide: the rest (paragraph, abstract, author, footer ...) is what black or any text may be.
_SURE = {
    "title": "title",
    "section": "heading",
    "caption": "caption",
    "table": "table",
    "list": "list",
    "reference": "list",
    "equation": "formula",
}
_MAY_BE_CODE = ("text", "list", "table", "formula", "heading")
# Where painted lines may widen a box. Not in formulas: the signs of a TeX font are said to be higher than they are.
_SURE_LINES = ("title", "heading", "text", "list", "caption", "footnote", "code", "table", "header", "footer")
DARK = 160


@dataclass(frozen=True)
class Labelled:
    """One true region: a label of layout.LABELS and left, top, right, bottom."""

    label: str
    box: Rect


@dataclass(frozen=True)
class Painted:
    """One painted line. mono: wholly in a monospaced font."""

    box: Rect
    mono: bool


def true_regions(
    analysis: Sequence[tuple[Rect, str]],
    lines: Sequence[Painted],
    images: Sequence[Rect] = (),
    runs: Sequence[tuple[Rect, str | None]] = (),
) -> tuple[Labelled, ...]:
    """The regions of a page; none where listings and prose are not told apart.

    analysis: PyMuPDF's boxes with its own labels. images: where the page paints images. runs: DocBank's stretches of
    lines with their classes.
    """
    regions = [Labelled(_ANALYSIS.get(label, "text"), box) for box, label in analysis if area(box) > 0]
    regions = [_told_by_runs(region, runs) for region in regions]
    if any(0.25 < _mono(region, lines) < 0.8 and region.label in _MAY_BE_CODE for region in regions):
        return ()
    regions = [_told_by_font(region, lines) for region in regions]
    figures = [box for box, name in runs if name == "figure"] + list(images)
    for figure in figures:
        if area(figure) > 400 and all(_share(figure, other.box) < 0.3 for other in regions):
            regions.append(Labelled("picture", figure))
    regions = _grown(regions, [line.box for line in lines], _SURE_LINES, 0.5)
    regions = _grown(regions, [box for box, name in runs if name == "table"], ("table",), 0.0)
    for label in ("table", "code", "picture", "caption"):
        regions = _joined(regions, label, _follows)
    regions = _joined(regions, "formula", _beside)
    return tuple(each for each in _without_parts(regions) if not _is_crumb(each))


def unlabelled_ink(grey: NDArray[np.uint8], regions: Sequence[Labelled], scale: float) -> float:
    """The share of a page's dark pixels outside all regions. grey: [H, W]. scale: pixels a point."""
    dark = grey < DARK
    total = int(dark.sum())
    for region in regions:
        x0, y0, x1, y1 = (round(edge * scale) for edge in region.box)
        dark[max(0, y0 - 2) : y1 + 3, max(0, x0 - 2) : x1 + 3] = False
    return int(dark.sum()) / max(total, 1)


def area(box: Rect) -> float:
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def _told_by_runs(region: Labelled, runs: Sequence[tuple[Rect, str | None]]) -> Labelled:
    shares: defaultdict[str, float] = defaultdict(float)
    for box, name in runs:
        shares[name or "unknown"] += common(region.box, box)
    total = sum(shares.values())
    if not total or region.label in ("header", "footer", "picture"):
        return region
    name, most = max(shares.items(), key=lambda item: item[1])
    if name == "footer" and region.label in ("text", "list"):
        return replace(region, label="footnote")
    if most < 0.6 * total or name not in _SURE:
        return region
    return replace(region, label=_SURE[name])


def _mono(region: Labelled, lines: Sequence[Painted]) -> float:
    """The share of the region's text, by area, that is monospaced."""
    inside = [line for line in lines if _share(line.box, region.box) > 0.5]
    return sum(area(line.box) for line in inside if line.mono) / max(sum(area(line.box) for line in inside), 1e-6)


def _told_by_font(region: Labelled, lines: Sequence[Painted]) -> Labelled:
    if region.label in _MAY_BE_CODE and _mono(region, lines) >= 0.8:
        return replace(region, label="code")
    return region


def _grown(regions: list[Labelled], parts: Sequence[Rect], labels: Sequence[str], least: float) -> list[Labelled]:
    """The regions of these labels, large enough for parts of which more than `least` is theirs and no one else's."""
    grown = []
    for region in regions:
        box = region.box
        for part in parts if region.label in labels else ():
            rivals = [each for each in regions if each is not region and _share(part, each.box) > 0.3]
            if _share(part, region.box) > least and not rivals:
                box = hull(box, part)
        grown.append(replace(region, box=box))
    return grown


def _joined(regions: list[Labelled], label: str, belong: Callable[[Rect, Rect], bool]) -> list[Labelled]:
    """Regions of one label that belong together as one, unless others stand between them."""
    rest = [region for region in regions if region.label != label]
    whole: list[Labelled] = []
    for region in sorted(
        (each for each in regions if each.label == label), key=lambda each: (each.box[1], each.box[0])
    ):
        for other in [each for each in whole if belong(each.box, region.box)]:
            box = hull(other.box, region.box)
            if not any(_share(each.box, box) > 0.5 for each in rest):
                whole.remove(other)
                region = replace(region, box=box)
        whole.append(region)
    return rest + whole


def _follows(a: Rect, b: Rect) -> bool:
    """Whether one stands right below the other: parts of a table, listing or picture; a table's number and title."""
    gap = max(a[1], b[1]) - min(a[3], b[3])
    shared = min(a[2], b[2]) - max(a[0], b[0])
    return gap < 8 and shared > 0.5 * min(a[2] - a[0], b[2] - b[0])


def _beside(a: Rect, b: Rect) -> bool:
    """Whether one is small and at the height of the other: a formula's number."""
    small = min(a[2] - a[0], b[2] - b[0]) < 40
    return small and min(a[3], b[3]) - max(a[1], b[1]) > 0.6 * min(a[3] - a[1], b[3] - b[1])


def _is_crumb(region: Labelled) -> bool:
    """A sign of a few points that the analysis left over, a footnote mark or the end of a proof."""
    x0, y0, x1, y1 = region.box
    return region.label in ("text", "formula") and x1 - x0 < 9 and y1 - y0 < 14


def _without_parts(regions: list[Labelled]) -> list[Labelled]:
    """Boxes that lie in another go: a table's or a picture's own text, and doubles."""
    kept: list[Labelled] = []
    for region in sorted(regions, key=lambda each: area(each.box), reverse=True):
        if all(_share(region.box, other.box) < 0.8 for other in kept):
            kept.append(region)
    return kept


def hull(a: Rect, b: Rect) -> Rect:
    return min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])


def common(a: Rect, b: Rect) -> float:
    """The area that two boxes share."""
    return area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))


def _share(part: Rect, whole: Rect) -> float:
    """How much of `part` lies in `whole`, 0..1."""
    return common(part, whole) / max(area(part), 1e-6)
