"""Boxes on a page -> reading order: a recursive cut that looks for columns first.

Boxes that cross the gutter (a title, a wide table) part the page into bands; within a band one column is read to its
end before the next. Pure geometry, in any unit.
"""

from collections.abc import Sequence

from gravityocr_models.signs import Box

_SLACK = 0.02  # of the width: how far boxes may lean over a gutter and still stand beside it


def reading_order(boxes: Sequence[Box]) -> list[int]:
    """Indices of the boxes in reading order; a permutation of range(len(boxes))."""
    return _ordered(list(range(len(boxes))), boxes)


def _ordered(ids: list[int], boxes: Sequence[Box]) -> list[int]:
    if len(ids) < 2:
        return ids
    gutter = _best_gutter(ids, boxes)
    if gutter is None:
        return sorted(ids, key=lambda i: (boxes[i].y0, boxes[i].x0))
    x, wide = gutter
    wide -= _insets(ids, wide, boxes)
    order: list[int] = []
    rest = [i for i in ids if i not in wide]
    for separator in [*sorted(wide, key=lambda i: boxes[i].y0), None]:
        above = [i for i in rest if separator is None or _middle(boxes[i]) < _middle(boxes[separator])]
        rest = [i for i in rest if i not in above]
        order += _band(above, boxes, x)
        if separator is not None:
            order.append(separator)
    return order


def _band(ids: list[int], boxes: Sequence[Box], x: float) -> list[int]:
    left = [i for i in ids if boxes[i].x0 + boxes[i].x1 < 2 * x or boxes[i].x0 < x - boxes[i].width / 3]
    right = [i for i in ids if i not in left]
    if not left or not right:
        return _ordered(ids, boxes)
    if _are_labels(left, right, boxes):
        return _by_rows(left, right, boxes)
    return _ordered(left, boxes) + _ordered(right, boxes)


def _best_gutter(ids: list[int], boxes: Sequence[Box]) -> tuple[float, set[int]] | None:
    """The cut position that the least height of boxes crosses, with the boxes that cross it; None without columns.

    A gutter counts where boxes stand side by side over more height than cross it.
    """
    x0, x1 = min(boxes[i].x0 for i in ids), max(boxes[i].x1 for i in ids)
    slack = _SLACK * (x1 - x0)
    best: tuple[float, float, set[int]] | None = None
    for x in sorted({boxes[i].x0 - slack / 4 for i in ids} | {boxes[i].x1 + slack / 4 for i in ids}):
        wide = {i for i in ids if boxes[i].x0 < x - slack and boxes[i].x1 > x + slack}
        left = [i for i in ids if i not in wide and boxes[i].x0 + boxes[i].x1 < 2 * x]
        right = [i for i in ids if i not in wide and i not in left]
        beside = _height_beside(left, right, boxes)
        if beside <= 0:
            continue
        gain = beside - sum(boxes[i].height for i in wide) * 0.5
        if gain > 0 and (best is None or gain > best[0] + 1e-6):
            best = (gain, x, wide)
    return None if best is None else (best[1], best[2])


def _insets(ids: list[int], wide: set[int], boxes: Sequence[Box]) -> set[int]:
    """Of the boxes that cross the gutter those beside which the columns go on: a figure set into the text.

    They are read with the left column, and part nothing.
    """
    narrow = _union([i for i in ids if i not in wide], boxes)
    return {i for i in wide if _length(_intersection(_union([i], boxes), narrow)) > 0.5 * max(boxes[i].height, 1e-6)}


def _height_beside(left: list[int], right: list[int], boxes: Sequence[Box]) -> float:
    """The height over which both sides have something."""
    return _length(_intersection(_union(left, boxes), _union(right, boxes)))


def _union(ids: list[int], boxes: Sequence[Box]) -> list[tuple[float, float]]:
    spans: list[tuple[float, float]] = []
    for y0, y1 in sorted((boxes[i].y0, boxes[i].y1) for i in ids):
        if spans and y0 <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], y1))
        else:
            spans.append((y0, y1))
    return spans


def _intersection(a: list[tuple[float, float]], b: list[tuple[float, float]]) -> list[tuple[float, float]]:
    both = [(max(p[0], q[0]), min(p[1], q[1])) for p in a for q in b]
    return [(y0, y1) for y0, y1 in both if y0 < y1]


def _length(spans: list[tuple[float, float]]) -> float:
    return sum(y1 - y0 for y0, y1 in spans)


def _are_labels(left: list[int], right: list[int], boxes: Sequence[Box]) -> bool:
    """Side heads: every box on the left is narrow, starts level with one on the right and is low or hardly higher."""
    narrow = max(boxes[i].width for i in left) < 0.6 * max(boxes[i].width for i in right)
    low = 0.25 * (max(boxes[i].y1 for i in left + right) - min(boxes[i].y0 for i in left + right))
    level = all(any(_heads(boxes[i], boxes[j], low) for j in right) for i in left)
    return narrow and level and len(left) > 1


def _heads(a: Box, b: Box, low: float) -> bool:
    return abs(a.y0 - b.y0) < 0.5 * min(a.height, b.height) and a.height < max(low, 1.2 * b.height)


def _by_rows(left: list[int], right: list[int], boxes: Sequence[Box]) -> list[int]:
    order: list[int] = []
    heads = sorted(left, key=lambda i: boxes[i].y0)
    for head, after in zip(heads, [*heads[1:], None], strict=True):
        end = boxes[after].y0 - 1 if after is not None else float("inf")
        start = boxes[head].y0 - boxes[head].height / 2 if order else float("-inf")
        order.append(head)
        order += _ordered([j for j in right if start <= boxes[j].y0 < end and j not in order], boxes)
    return order + _ordered([j for j in right if j not in order], boxes)


def _middle(box: Box) -> float:
    return (box.y0 + box.y1) / 2
