"""How alike two sequences are, and who is whose partner: what every metric is made of. No markup, no tensors."""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import Levenshtein


def similarity(pred: Sequence[Hashable], truth: Sequence[Hashable]) -> float:
    """1 - Levenshtein distance / longer length; 1 for two empty sequences."""
    return float(Levenshtein.normalized_similarity(pred, truth))


def order_distance(pred: Sequence[Hashable], truth: Sequence[Hashable]) -> float:
    """Reading-order edit distance, 0 (right) to 1: the true ranks in the order found, against the true order.

    A part that was not found is missing from `pred` and costs one edit.
    """
    return float(Levenshtein.normalized_distance(pred, truth))


def f1(common: float, ours: int, theirs: int) -> float:
    """F1 of the hits among `ours` found and `theirs` true; 1 where there is nothing to find and nothing found."""
    return 2 * common / (ours + theirs) if ours + theirs else 1.0


def best_pairs(scores: Sequence[Sequence[float]]) -> list[float]:
    """For each row the score of its partner, one column a row, so that the sum is largest; 0 for a row left alone."""
    found = [0.0] * len(scores)
    for row, column in assignment(scores):
        found[row] = scores[row][column]
    return found


def assignment(scores: Sequence[Sequence[float]] | NDArray[np.float64]) -> list[tuple[int, int]]:
    """Pairs (row, column), each row and column once at most, so that the sum of their scores is largest."""
    from scipy.optimize import linear_sum_assignment  # takes half a second, and plain text never asks

    table = np.asarray(scores, np.float64)
    if not table.size:
        return []
    rows, columns = linear_sum_assignment(table, maximize=True)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True)]


def bleu4(pairs: Iterable[tuple[Sequence[Hashable], Sequence[Hashable]]]) -> float:
    """Corpus BLEU-4 of (candidate, one reference) token sequences, from 0 to 1, without smoothing.

    Geometric mean of the clipped precisions of 1- to 4-grams over the corpus, times the brevity penalty; 0 where no
    n-gram of some length fits.
    """
    fits, found = [0] * 4, [0] * 4
    ours = theirs = 0
    for pred, truth in pairs:
        ours, theirs = ours + len(pred), theirs + len(truth)
        for n in range(4):
            candidate, reference = _ngrams(pred, n + 1), _ngrams(truth, n + 1)
            fits[n] += (candidate & reference).total()
            found[n] += candidate.total()
    if not all(fits):
        return 0.0
    precision = math.exp(sum(math.log(fit / of) for fit, of in zip(fits, found, strict=True)) / 4)
    return precision * math.exp(min(0.0, 1 - theirs / ours))


def _ngrams(tokens: Sequence[Hashable], n: int) -> Counter[tuple[Hashable, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))
