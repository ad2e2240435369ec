"""The encoder's reading: glyphs in order with their blanks, and a place kept in it whatever is read instead."""

import pytest
import torch
from torch import Tensor

from gravityocr_models.reading import BONUS, Place, Reading, spell, with_hints
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.weights import NANO

LETTERS = "abcdefgh"
END = 7


def named(rows: list[list[str]]) -> Tensor:
    """Logits of a grid whose cells hold up to two letters, each with a blank behind it or not."""
    logits = torch.zeros(len(rows) * len(rows[0]), 2, len(LETTERS) + 2)
    logits[..., 0], logits[..., -1] = 1.0, -1.0
    for place, cell in enumerate(cell for row in rows for cell in row):
        for slot, char in enumerate(cell.replace(" ", "")):
            logits[place, slot, LETTERS.index(char) + 1] = 2.0
            logits[place, slot, -1] = 1.0 if char + " " in cell else -1.0
    return logits


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([["ab", "", "c "], ["", "", "d"]], "abc d"),
        ([["a b", "c "]], "a bc"),
        ([["ab", "c"], ["b", "d"]], "abcd"),
        ([["aa", "b"], ["", ""]], "aab"),
        ([["", ""], ["", "h"]], "h"),
        ([["", ""]], ""),
        ([["ab", "cd"], ["", ""], ["ef", "gh"]], ""),
    ],
)
def test_glyphs_in_order(rows: list[list[str]], line: str) -> None:
    assert spell(named(rows), (len(rows), len(rows[0])), LETTERS) == line


@pytest.mark.parametrize(
    ("read", "rest"),
    [
        ("the quick", " brown fox"),
        ("the quiet", " brown fox"),
        ("the quck", " brown fox"),
        ("the quicker brown", " fox"),
        ("", "the quick brown fox"),
        ("the quick brown fox", ""),
        ("the quick brown foxes", ""),
    ],
)
def test_a_place_is_kept_over_wrong_missing_and_surplus_letters(read: str, rest: str) -> None:
    source = "the quick brown fox"
    for cut in (0, 1, len(read) // 2, len(read)):
        assert source[Place.start(source).after(read[:cut]).after(read[cut:]).at :] == rest


def test_a_reading_goes_on_behind_what_was_committed() -> None:
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    reading = Reading("the quiek brown fox", tokenizer, END)
    assert reading.draft([]) == [*tokenizer.encode("the quiek brown fox"), END]
    committed = tokenizer.encode("the quick")
    assert reading.draft(committed) == [*tokenizer.encode(" brown fox"), END]
    further = tokenizer.encode(" brown fox")
    assert reading.hints(committed, further) == [*further, END]
    assert reading.draft([*committed, *further]) == [END]
    assert reading.draft([])[0] == tokenizer.encode("the")[0]  # another answer


def test_hints_depend_on_the_ids_before_them_alone() -> None:
    """However an answer is cut into committed tokens and candidates."""
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    line, ids = "Gödel’s 2nd theorem — naïve", tokenizer.encode("Gödels 3nd theorems — naive")
    whole = Reading(line, tokenizer, END).hints([], ids)
    for cut in range(len(ids) + 1):
        assert Reading(line, tokenizer, END).hints(ids[:cut], ids[cut:]) == whole[cut:]


def test_a_hint_is_a_bonus_and_none_is_none() -> None:
    logits = torch.tensor([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    assert (with_hints(logits, torch.tensor([0, -1])) - logits).tolist() == [[BONUS, 0, 0], [0, 0, 0]]
