"""Doubtful glyphs and blanks, settled by the letters around them."""

from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from gravityocr_models.glyphs import Slot, Tag
from gravityocr_models.letters import ORDER, UNKNOWN, Letters, _grown, _key, all_hashed, settled
from gravityocr_models.train.letters import counted

SURE = 0.999


@pytest.fixture(scope="module")
def letters() -> Letters:
    return counted(["the first verse of the tale", "the first time that it was erased", "a verse of the first"] * 3)


def slots(text: str, doubtful: dict[int, str] | None = None, blanks: dict[int, float] | None = None) -> list[Slot]:
    """Places for the letters of a text; some with a second choice ("" for none) that is a little less likely."""
    found: list[Slot] = []
    for at, char in enumerate(text):
        if char == " ":
            continue
        signs = [(char, float(np.log(0.55 if at in (doubtful or {}) else SURE)))]
        if at in (doubtful or {}):
            signs.append(((doubtful or {})[at], float(np.log(0.45))))
        blank = (blanks or {}).get(at, float(text[at + 1 : at + 2] in (" ", "")))
        odds = {1.0: 9.0, 0.0: -9.0}.get(blank) or float(np.log(blank / (1 - blank)))
        found.append(Slot(tuple(signs), -9.0, (odds, *[-9.0] * (len(Tag) - 1)), 0, at))
    return found


def read(some: list[Slot], letters: Letters) -> str:
    return "".join(each.sign + " " * (Tag.BLANK in each.tags) for each in settled(some, letters)).strip()


def test_what_is_usual_settles_what_is_doubtful(letters: Letters) -> None:
    assert read(slots("the firtt verse", {7: "s"}), letters) == "the first verse"
    assert read(slots("the fi1st verse", {6: "r"}), letters) == "the first verse"


def test_letters_that_are_seen_twice_go(letters: Letters) -> None:
    assert read(slots("the firrst", {7: ""}), letters) == "the first"


def test_blanks_are_told_by_the_letters_too(letters: Letters) -> None:
    assert read(slots("thefirst", blanks={2: 0.4}), letters) == "the first"
    assert read(slots("the fi rst", blanks={5: 0.6}), letters) == "the first"


def test_what_is_sure_stays(letters: Letters) -> None:
    assert read(slots("xqz firtt"), letters) == "xqz firtt"


def test_maths_is_left_alone(letters: Letters) -> None:
    some = [replace(slot, told=(slot.told[0], 9.0, *slot.told[2:])) for slot in slots("firtt", {3: "s"})]
    assert read(some, letters) == "firtt"


def test_scores(letters: Letters, tmp_path: Path) -> None:
    assert letters.score("the fir", "s") > letters.score("the fir", "t") > letters.score("the fir", "\u4e00")
    assert letters.score("", "\u4e00") == UNKNOWN
    assert letters.score("x" * 50 + "the f", "i") == letters.score("the f"[1 - ORDER :], "i")
    letters.save(tmp_path / "letters.npz")
    again = Letters.load(tmp_path / "letters.npz")
    assert again.score("the fir", "s") == letters.score("the fir", "s")


def test_keys_of_a_text_are_those_of_its_n_grams() -> None:
    codes = [5, 0, 500, 3, 3, 7]
    keys = all_hashed(np.array(codes, np.uint64), 4)
    assert keys.tolist() == [_key(reduce(_grown, codes[at : at + 4], 0), 4) for at in range(3)]
    assert len(all_hashed(np.array([1], np.uint64), 4)) == 0
