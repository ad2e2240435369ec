"""Candidates: what is offered, and where it stops."""

from gravityocr_models.drafters import follow, own_predictions, recur, until_end


def test_follow_goes_on_where_the_source_matches() -> None:
    source = [1, 2, 3, 4, 5, 6, 7, 8]
    assert follow(source, [9, 9, 3, 4, 5], 2) == [6, 7]
    assert follow(source, [3, 4, 5], 99) == [6, 7, 8]
    assert follow(source, [3, 4, 9], 9) == []
    assert follow(source, [6, 7, 8], 9) == []
    assert follow([], [1, 2, 3], 9) == []


def test_follow_takes_the_occurrence_nearest_to_the_place_reached() -> None:
    source = [1, 2, 3, 10, 0, 0, 0, 1, 2, 3, 20]
    assert follow(source, [1, 2, 3], 1) == [10]
    assert follow(source, [5, 5, 5, 5, 5, 5, 1, 2, 3], 1) == [20]


def test_what_repeats_goes_on_repeating() -> None:
    assert recur([7, 1, 2, 3, 4, 1, 2, 3], 3) == [4, 1, 2]
    assert recur([5, 5, 5, 5, 5], 4) == [5, 5, 5, 5]
    assert recur([1, 2, 1, 2, 1, 2], 5) == [1, 2, 1, 2, 1]
    assert recur([1, 2, 3, 4], 5) == []
    assert recur([], 5) == []


def test_own_predictions_start_behind_the_committed_token() -> None:
    assert own_predictions([10, 11, 12, 13, 14], accepted=1, most=2) == [12, 13]
    assert own_predictions([10, 11, 12], accepted=2, most=5) == []


def test_nothing_is_offered_behind_an_end() -> None:
    assert until_end([1, 2, 0, 3, 0], frozenset({0})) == [1, 2, 0]
    assert until_end([1, 2], frozenset({0})) == [1, 2]
