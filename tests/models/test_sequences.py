"""Likeness of sequences and partners, by hand-computed values."""

import math

import pytest

from gravityocr_models.sequences import assignment, best_pairs, bleu4, f1, order_distance, similarity


def test_similarity() -> None:
    assert similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)
    assert similarity((1, 2, 3), (1, 3)) == pytest.approx(2 / 3)
    assert (similarity("", ""), similarity("", "a")) == (1, 0)


@pytest.mark.parametrize(
    ("found", "truth", "distance"),
    [
        ([1, 2, 3, 4], [1, 2, 3, 4], 0),
        ([2, 1, 3, 4], [1, 2, 3, 4], 2 / 4),  # neighbours swapped: two replaced
        ([3, 4, 1, 2], [1, 2, 3, 4], 4 / 4),  # right column first: two taken away, two put in
        ([4, 1, 2, 3], [1, 2, 3, 4], 2 / 4),  # one block moved: taken away and put in
        ([1, 3, 4], [1, 2, 3, 4], 1 / 4),  # one not found
        ([], [1, 2], 1),
    ],
)
def test_order_distance(found: list[int], truth: list[int], distance: float) -> None:
    assert order_distance(found, truth) == pytest.approx(distance)


def test_f1() -> None:
    assert f1(2, 3, 5) == pytest.approx(2 * (2 / 3) * (2 / 5) / (2 / 3 + 2 / 5))
    assert (f1(0, 0, 0), f1(0, 1, 0)) == (1, 0)


def test_best_pairs_takes_the_best_sum_and_no_column_twice() -> None:
    assert best_pairs([[0.9, 0.8], [0.8, 0.1]]) == [0.8, 0.8]
    assert best_pairs([[0.5], [0.7]]) == [0.0, 0.7]
    assert best_pairs([[], []]) == [0.0, 0.0]
    assert best_pairs([]) == []


def test_assignment() -> None:
    assert assignment([[0.1, 0.9, 0.2]]) == [(0, 1)]
    assert assignment([[], []]) == []


def test_bleu4() -> None:
    same = tuple("abcde")
    assert bleu4([(same, same)]) == 1
    # the the the the the the the: "the" is clipped to the two that the reference has, and no longer n-gram fits
    assert bleu4([(("the",) * 7, tuple("the cat is on the mat".split()))]) == 0
    # abcdX against abcde: 4/5 words, 3/4 pairs, 2/3 triples, 1/2 fours; of one length
    assert bleu4([(tuple("abcdX"), same)]) == pytest.approx((4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    # abcd against abcde: every n-gram fits, one token too short
    assert bleu4([(tuple("abcd"), same)]) == pytest.approx(math.exp(1 - 5 / 4))
    # a longer candidate has no brevity penalty: 5/6, 4/5, 3/4, 2/3
    assert bleu4([(tuple("abcdeX"), same)]) == pytest.approx((5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** 0.25)
    # counts are summed over the corpus before the ratio is taken: 9/10, 7/8, 5/6, 3/4
    assert bleu4([(same, same), (tuple("abcdX"), same)]) == pytest.approx((9 / 10 * 7 / 8 * 5 / 6 * 3 / 4) ** 0.25)
    assert bleu4([((), same)]) == 0
