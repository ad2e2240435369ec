"""A page -> its regions in reading order.

`regions_of` is the whole seam: a list of labelled boxes goes in (from PyMuPDF's layout analysis today, from a trained
detector later), regions that own the page's lines come out. No line is lost: what no box claims makes regions of its
own.
"""

import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gravityocr_cli.document import Kind, Line, Page, Region
from gravityocr_cli.ink import ink_of
from gravityocr_cli.inkcut import cut_by_ink, pictures_outside, rules_across
from gravityocr_cli.kinds import CAPTION_LABEL, by_numbers, in_margin, settled
from gravityocr_cli.listings import whole_listings
from gravityocr_cli.order import reading_order
from gravityocr_cli.textlayer import is_upright, is_vertical
from gravityocr_models.signs import Box, hull_of


@dataclass(frozen=True)
class Found:
    """A labelled box, in points of the page."""

    box: Box
    kind: Kind


def regions_of(page: Page, found: Sequence[Found]) -> tuple[Region, ...]:
    """The page's regions, `order` counted from 0.

    found: what a layout model saw; empty where there is none, and then the ink decides.
    """
    if not found and not page.lines:
        found = [Found(box, kind) for box, kind in cut_by_ink(page.pixels, page.dpi)]
    elif page.lines:
        taken = [each.box for each in found] + [line.box for line in page.lines]
        pictures = [Found(box, Kind.PICTURE) for box in pictures_outside(page.ink, page.dpi, taken)]
        found = [*found, *(each for each in pictures if not _is_backdrop(each, found))]
    half = 0.5 * page.width * page.height
    found = [
        each
        for each in _clipped(found, page)
        if each.kind is not Kind.PICTURE or _area(each.box) < half or not _is_backdrop(each, found)
    ]
    boxes = _without_doubles(found)
    owned, orphans = _assign(page.lines, boxes)
    regions = [_grown(each, lines) for each, lines in zip(boxes, owned, strict=True)]
    regions += _orphan_regions(orphans, page)
    regions = [region for region in regions if not _is_covered(region, regions)]
    regions = [_without_picture_of_text(region, page) for region in regions]
    regions = settled(regions, page)
    return _in_order(_with_caption_labels(regions), page)


def _clipped(found: Sequence[Found], page: Page) -> list[Found]:
    kept = []
    for each in found:
        x0, x1 = (min(max(x, 0.0), page.width) for x in (each.box.x0, each.box.x1))
        y0, y1 = (min(max(y, 0.0), page.height) for y in (each.box.y0, each.box.y1))
        if x0 < x1 and y0 < y1:
            kept.append(Found(Box(x0, y0, x1, y1), each.kind))
    return kept


def _is_backdrop(picture: Found, found: Sequence[Found]) -> bool:
    """Whether other boxes stand on the picture: then it is what they are printed on."""
    others = (other.box for other in found if other is not picture)
    return any(overlap_of(picture.box, other) > 0.8 * _area(other) for other in others)


def _without_doubles(found: list[Found]) -> list[Found]:
    """Boxes that lie in a larger one go; a table keeps its place against the text that it is made of."""
    kept: list[Found] = []
    for each in sorted(found, key=lambda one: one.box.width * one.box.height, reverse=True):
        if all(overlap_of(each.box, other.box) < 0.8 * _area(each.box) for other in kept):
            kept.append(each)
    return kept


def _assign(lines: Sequence[Line], found: Sequence[Found]) -> tuple[list[list[Line]], list[Line]]:
    """Each line to the box that holds most of it; lines that no box holds half of are left over."""
    owned: list[list[Line]] = [[] for _ in found]
    orphans = []
    for line in lines:
        core = _core(line)
        shares = [overlap_of(core, each.box) / max(_area(core), 1e-6) for each in found]
        best = max(range(len(found)), key=lambda i: shares[i], default=None)
        if best is None or shares[best] < 0.5:
            orphans.append(line)
        else:
            owned[best].append(line)
    return owned, orphans


def _core(line: Line) -> Box:
    """The height that letters without ascenders fill: what a font keeps free above and below is not the line's ink."""
    inset = 0.25 * line.box.height if is_upright(line) else 0.0
    return Box(line.box.x0, line.box.y0 + inset, line.box.x1, line.box.y1 - inset)


def _grown(found: Found, lines: list[Line]) -> Region:
    """The region, grown to hold its lines whole."""
    return Region(0, 0, found.kind, hull_of([found.box, *(line.box for line in lines)]), tuple(lines))


def _is_covered(region: Region, regions: Sequence[Region]) -> bool:
    """Whether a region that owns no line only frames the lines of others: they must not be read twice."""
    if region.lines or region.kind in (Kind.PICTURE, Kind.TABLE, Kind.FORMULA):
        return False
    shared = sum(overlap_of(region.box, line.box) for other in regions for line in other.lines)
    return shared > 0.6 * _area(region.box)


def _orphan_regions(lines: list[Line], page: Page) -> list[Region]:
    """Lines outside every box, grouped where one follows the other in the same column."""
    groups: list[list[Line]] = []
    for line in sorted(lines, key=lambda each: (each.box.y0, each.box.x0)):
        home = next((group for group in groups if is_upright(line) and _continues(group[-1], line)), None)
        if home is None:
            groups.append([line])
        else:
            home.append(line)
    regions = []
    for group in groups:
        box = hull_of([line.box for line in group])
        kind = Kind.TEXT if is_upright(group[0]) or not in_margin(box, page) else Kind.HEADER
        regions.append(Region(0, 0, kind, box, tuple(group)))
    return regions


def _continues(above: Line, line: Line) -> bool:
    gap = line.box.y0 - above.box.y1
    beside = min(above.box.x1, line.box.x1) - max(above.box.x0, line.box.x0)
    same_size = 0.8 < above.size / max(line.size, 0.1) < 1.25
    follows_on_row = (
        abs(line.box.y0 - above.box.y0) < 0.3 * line.size and 0 <= line.box.x0 - above.box.x1 < 2 * line.size
    )
    return (same_size and -0.5 * line.size < gap < 0.9 * line.size and beside > 0) or follows_on_row


def _with_caption_labels(regions: list[Region]) -> list[Region]:
    """`TABLE IV` on a line of its own, and the title under it, are one caption."""
    merged = list(regions)
    for label in regions:
        if len(label.lines) != 1 or not CAPTION_LABEL.fullmatch(label.lines[0].text):
            continue
        for title in merged:
            gap = title.box.y0 - label.box.y1
            centred = title.box.x0 <= label.box.x <= title.box.x1
            if (
                title.kind in (Kind.TEXT, Kind.CAPTION)
                and title is not label
                and centred
                and -2 < gap < label.box.height
            ):
                box = hull_of([label.box, title.box])
                merged[merged.index(title)] = replace(
                    title, kind=Kind.CAPTION, box=box, lines=label.lines + title.lines
                )
                merged = [region for region in merged if region is not label]
                break
    return merged


def _without_picture_of_text(region: Region, page: Page) -> Region:
    if region.kind is Kind.PICTURE and region.lines and _is_all_text(region, page):
        return replace(region, kind=Kind.TEXT)
    return region


def _is_all_text(region: Region, page: Page) -> bool:
    scale = page.dpi / 72
    ink = ink_of(page.pixels[_pixel_slices(region.box, scale)])
    total = int(ink.sum())
    y0, x0 = int(region.box.y0 * scale), int(region.box.x0 * scale)
    for line in region.lines:
        rows, columns = _pixel_slices(line.box, scale)
        ink[max(0, rows.start - y0) : rows.stop - y0, max(0, columns.start - x0) : columns.stop - x0] = False
    return total > 0 and int(np.count_nonzero(ink)) < 0.1 * total


def _pixel_slices(box: Box, scale: float) -> tuple[slice, slice]:
    rows = slice(max(0, int(box.y0 * scale)), max(0, int(box.y1 * scale) + 1))
    return rows, slice(max(0, int(box.x0 * scale)), max(0, int(box.x1 * scale) + 1))


def _in_order(regions: list[Region], page: Page) -> tuple[Region, ...]:
    """Headers, then the body by columns, then footers: furniture must not part a column from the next."""
    heads = [region for region in regions if region.kind is Kind.HEADER]
    feet = [region for region in regions if region.kind is Kind.FOOTER]
    body = [region for region in regions if region.kind not in (Kind.HEADER, Kind.FOOTER)]
    groups = [heads, *_between_rules(body, page), feet]
    ordered = by_numbers([group[i] for group in groups for i in _order(group)])
    whole = whole_listings(ordered, page)
    return tuple(replace(region, page=page.number, order=order) for order, region in enumerate(whole))


def _order(regions: Sequence[Region]) -> list[int]:
    """Reading order; columns from the right where they are vertical or their script runs that way."""
    boxes = [region.box for region in regions]
    if len(boxes) > 1 and all(is_vertical(region.lines) for region in regions):
        return sorted(range(len(boxes)), key=lambda i: (-boxes[i].x1, boxes[i].y0))
    if _is_right_to_left(regions):
        boxes = [Box(-box.x1, box.y0, -box.x0, box.y1) for box in boxes]
    return reading_order(boxes)


def _is_right_to_left(regions: Sequence[Region]) -> bool:
    letters = "".join(line.text for region in regions for line in region.lines)
    directions = Counter(unicodedata.bidirectional(each) for each in letters)
    return directions["R"] + directions["AL"] > directions["L"]


def _between_rules(body: list[Region], page: Page) -> list[list[Region]]:
    """The regions in bands, cut at lines that run across them all: what is above one is read before what is below."""
    if len(body) < 4:
        return [body]
    hull = hull_of([region.box for region in body])
    bands, rest = [], body
    for y in rules_across(page.ink, page.dpi, hull):
        above = [region for region in rest if region.box.y1 <= y + 1]
        below = [region for region in rest if region.box.y0 >= y - 1]
        if above and below and len(above) + len(below) == len(rest):
            bands.append(above)
            rest = below
    return [*bands, rest]


def _area(box: Box) -> float:
    return box.width * box.height


def overlap_of(a: Box, b: Box) -> float:
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return width * height if width > 0 and height > 0 else 0.0
