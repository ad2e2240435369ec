"""Which true text is which predicted one, where either side may have cut a paragraph in pieces or joined several.

First what is surely the same, then what fits into one another piece by piece, then the best of the rest; and after each
step a pair takes in those neighbours that make it more complete. In the spirit of OmniDocBench's adjacency search.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Levenshtein
from rapidfuzz.fuzz import partial_ratio

from gravityocr_models.sequences import assignment, similarity

SURE = 0.25  # relative edit distance below which two texts are partners at once
LOOSE = 0.7  # and above which they never are
INSIDE = 65.0  # how well (0..100) a text must fit into another to be a part of it
BELONGS = 0.5  # share of a neighbour's letters that must fit for it to join a pair


@dataclass(frozen=True)
class Pair:
    """Places in the lists of true and of predicted texts. An empty `pred`: nothing on the page is this text."""

    truth: tuple[int, ...]
    pred: tuple[int, ...]


def partners(truth: Sequence[str], pred: Sequence[str], unscored: frozenset[int] = frozenset()) -> list[Pair]:
    """For every true text (none is empty) its partner among the predicted ones (none is empty).

    Several true or several predicted texts stand together where one is cut up. unscored: true texts that may take a
    prediction which is clearly theirs away, and are left out of the answer.
    """
    sure = _sure(truth, pred)
    theirs = {p for t, p in sure if t in unscored}
    true_left = [t for t in range(len(truth)) if t not in unscored]
    pred_left = [p for p in range(len(pred)) if p not in theirs]
    pairs: list[Pair] = []

    def take(found: Sequence[tuple[int, int]]) -> None:
        """Makes pairs of those that are both still left, one after the other, each with the neighbours it claims."""
        for t, p in found:
            if t in true_left and p in pred_left:
                true_left.remove(t)
                pred_left.remove(p)
                pairs.append(_grown(Pair((t,), (p,)), truth, true_left, pred, pred_left))

    take(sure)
    take(_inside(truth, true_left, pred, pred_left))
    scores = [[similarity(truth[t], pred[p]) for p in pred_left] for t in true_left]
    take([(true_left[t], pred_left[p]) for t, p in assignment(scores) if scores[t][p] >= 1 - LOOSE])
    alike = [pair for pair in pairs if _is_alike(pair, truth, pred)]
    alone = set(true_left).union(*(pair.truth for pair in pairs if pair not in alike))
    return alike + [Pair((t,), ()) for t in sorted(alone)]


def _sure(truth: Sequence[str], pred: Sequence[str]) -> list[tuple[int, int]]:
    scores = [[similarity(a, b) for b in pred] for a in truth]
    # What is not sure must not push a sure pair apart for the sake of the sum.
    sure = [[score if score > 1 - SURE else 0.0 for score in row] for row in scores]
    return [(t, p) for t, p in assignment(sure) if sure[t][p]]


def _grown(pair: Pair, truth: Sequence[str], true_left: list[int], pred: Sequence[str], pred_left: list[int]) -> Pair:
    """The pair with the neighbours on either side that belong to it, which are taken out of what is left.

    A neighbour belongs to it when it fits into the other side, and at least half of its letters find their like there:
    a true one is no longer missing then, a predicted one fills a gap.
    """
    while True:
        ours, theirs = "".join(pred[p] for p in pair.pred), "".join(truth[t] for t in pair.truth)
        now = Levenshtein.distance(ours, theirs)
        wider: list[tuple[float, Pair]] = []
        for t in {pair.truth[0] - 1, pair.truth[-1] + 1}.intersection(true_left):
            if _fit(truth[t], ours):
                grown = Pair(tuple(sorted((*pair.truth, t))), pair.pred)
                wider.append(((now + len(truth[t]) - _edits(grown, truth, pred)) / len(truth[t]), grown))
        for p in {pair.pred[0] - 1, pair.pred[-1] + 1}.intersection(pred_left):
            if _fit(pred[p], theirs):
                grown = Pair(pair.truth, tuple(sorted((*pair.pred, p))))
                wider.append(((now - _edits(grown, truth, pred)) / len(pred[p]), grown))
        gain, grown = max(wider, key=lambda each: each[0], default=(0.0, pair))
        if gain < BELONGS:
            return pair
        pair = grown
        true_left[:] = [t for t in true_left if t not in pair.truth]
        pred_left[:] = [p for p in pred_left if p not in pair.pred]


def _is_alike(pair: Pair, truth: Sequence[str], pred: Sequence[str]) -> bool:
    longer = max(sum(len(truth[t]) for t in pair.truth), sum(len(pred[p]) for p in pair.pred))
    return _edits(pair, truth, pred) <= LOOSE * longer


def _edits(pair: Pair, truth: Sequence[str], pred: Sequence[str]) -> int:
    return Levenshtein.distance("".join(pred[p] for p in pair.pred), "".join(truth[t] for t in pair.truth))


def _inside(
    truth: Sequence[str], true_left: Sequence[int], pred: Sequence[str], pred_left: Sequence[int]
) -> list[tuple[int, int]]:
    """Texts of which one fits into the other, the most letters first: the longer, the less it fits by chance.

    Of texts that the page repeats, those at like places are taken for partners.
    """
    found = []
    for t in true_left:
        for p in pred_left:
            letters = _fit(truth[t], pred[p]) * min(len(truth[t]), len(pred[p]))
            found.append((-letters, abs(t / len(truth) - p / len(pred)), t, p))
    return [(t, p) for letters, _, t, p in sorted(found) if letters]


def _fit(one: str, other: str) -> float:
    """How well (0..100) the shorter text fits somewhere into the longer one; 0 where it is no part of it."""
    return float(partial_ratio(one, other, score_cutoff=INSIDE))
