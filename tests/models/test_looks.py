"""Several looks at a line: what one misreads another mends, and none loses or doubles a glyph."""

from collections.abc import Sequence
from itertools import pairwise
from math import exp, log

import pytest

from gravityocr_models.glyphs import Slot, Tag
from gravityocr_models.looks import WIDEST, agreed, is_doubtful, widening

NO_TAGS = (-5.0,) * len(Tag)


def slot(x: float, *signs: tuple[str, float], empty: float = 0.001) -> Slot:
    """signs: with their chances, the likeliest first."""
    return Slot(tuple((sign, log(chance)) for sign, chance in signs), log(empty), NO_TAGS, 0, int(x // 16), x=x)


def look(text: str, step: float = 9.0, off: float = 0.0) -> list[Slot]:
    return [slot(off + step * place, (sign, 0.99)) for place, sign in enumerate(text)]


def said(slots: Sequence[Slot]) -> str:
    return "".join(each.signs[0][0] for each in slots)


def test_one_look_is_outvoted() -> None:
    for wrong in ("lihe", "line", "hne", "lliine", "lie", "xyzw"):
        assert said(agreed([look("line"), look(wrong, off=3), look("line", off=-2)])) == "line"
        assert said(agreed([look(wrong), look("line", off=3), look("line", off=-2)])) == "line"


def test_a_sure_look_counts_more_than_a_doubtful_one() -> None:
    doubtful = [*look("hal"), slot(27, ("i", 0.5), ("l", 0.45))]
    assert said(agreed([doubtful, look("hall")])) == "hall"
    assert said(agreed([look("hall"), doubtful])) == "hall"


def test_looks_that_say_the_same_change_nothing() -> None:
    text = "mississippi"
    found = agreed([look(text), look(text, off=4), look(text, off=-4)])
    assert said(found) == text
    assert [each.x for each in found] == [each.x for each in look(text)]
    assert all(after.x > before.x for before, after in pairwise(found))
    for each in found:
        assert sum(exp(score) for _, score in each.signs) == pytest.approx(1, abs=0.05)


def test_glyphs_far_apart_are_not_one() -> None:
    """What only one look sees, and another sees elsewhere, are two guesses; over a wide gap the looks stay in step."""
    apart = [slot(0, ("a", 0.9)), slot(300, ("b", 0.9))]
    assert said(agreed([apart, [slot(2, ("a", 0.9)), slot(297, ("b", 0.9))]])) == "ab"
    assert said(agreed([[slot(0, ("a", 0.9))], [slot(90, ("a", 0.9))], [slot(1, ("a", 0.9))]])).replace(" ", "") == "a"


@pytest.mark.parametrize(("first", "second"), [("", "abc"), ("abc", ""), ("", "")])
def test_a_look_may_see_nothing(first: str, second: str) -> None:
    assert len(agreed([look(first), look(second)])) == max(len(first), len(second))


def test_doubt_is_a_share_of_the_glyphs() -> None:
    assert not is_doubtful([])
    assert not is_doubtful(look("a sure line"))
    assert is_doubtful([*look("a sure line"), slot(120, ("a", 0.5), ("o", 0.4))])


def test_narrow_letters_are_looked_at_wider() -> None:
    assert widening(look("narrow", step=8)) == pytest.approx(1.25)
    assert widening(look("narrow", step=2)) == WIDEST
    assert widening(look("usual", step=9.5)) == pytest.approx(10 / 9.5)
    assert widening(look("wide", step=14)) == 1.0
    assert widening(look("it", step=4)) == widening([]) == 1.0
