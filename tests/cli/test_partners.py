"""Partners of cut-up, joined, swapped and lost paragraphs."""

from gravityocr_cli.partners import Pair, partners


def test_partners() -> None:
    assert partners(["abcdef", "ghijkl"], ["ghijkl", "abcdeX"]) == [Pair((0,), (1,)), Pair((1,), (0,))]
    assert partners(["abcdef"], []) == [Pair((0,), ())]
    assert partners([], ["abcdef"]) == []
    # nothing alike: no partner
    assert partners(["abcdef"], ["uvwxyz"]) == [Pair((0,), ())]
    # one paragraph written as three, and two written as one
    assert partners(["abcdefghijkl"], ["abcd", "efgh", "ijkl"]) == [Pair((0,), (0, 1, 2))]
    assert partners(["abcdefgh", "ijklmnop"], ["abcdefghijklmnop"]) == [Pair((0, 1), (0,))]
    # half a paragraph found is half right
    assert partners(["abcdefghijkl"], ["abcdefXYZ"]) == [Pair((0,), (0,))]


def test_a_short_text_joins_the_long_one_that_is_its_neighbour() -> None:
    long, short = "abcdefghijklmnopqrstuvwxyz", "0123"
    # 4 of 30 letters differ: the long ones are surely partners, and the short one is in there too
    assert partners([long, short], [long + short]) == [Pair((0, 1), (0,))]
    assert partners([long + short], [long, short]) == [Pair((0,), (0, 1))]
    # what is not in there stays out
    assert partners([long, "ABCD"], [long]) == [Pair((0,), (0,)), Pair((1,), ())]
    assert partners([long], [long, "ABCD"]) == [Pair((0,), (0,))]


def test_texts_that_do_not_count_keep_what_is_theirs_and_nothing_else() -> None:
    assert partners(["abcdef", "ghijkl"], ["abcdef", "ghijkl"], frozenset({0})) == [Pair((1,), (1,))]
    assert partners(["abcdef", "ghijkl"], ["abcXYZ"], frozenset({0})) == [Pair((1,), ())]


def test_a_short_text_is_not_the_partner_of_a_long_one_that_happens_to_hold_it() -> None:
    assert partners(["abcdef"], ["0123456789" * 3 + "abcdef"]) == [Pair((0,), ())]


def test_of_repeated_texts_those_at_like_places_are_partners() -> None:
    one, two, same = "abcdefghij", "klmnopqrst", "0123456789"
    truth = [one + same, two + same]
    pairs = partners(truth, [one, same, two, same])
    assert sorted(pairs, key=lambda pair: pair.truth) == [Pair((0,), (0, 1)), Pair((1,), (2, 3))]


def test_a_paragraph_may_be_in_any_number_of_pieces() -> None:
    letters = "".join(chr(0x4E00 + number) for number in range(300))
    assert partners([letters], list(letters)) == [Pair((0,), tuple(range(300)))]
