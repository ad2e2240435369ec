"""The encoder's reading: glyphs in order with their blanks, and a place kept in it whatever is read instead."""

import pytest
import torch
from torch import Tensor

from gravityocr_models.reading import Place, drafter, spell
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.weights import NANO

LETTERS = "abcdefgh"


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
        place = Place(source)
        place.read(read[:cut])
        assert source[place.read(read[cut:]) :] == rest


def test_candidates_go_on_behind_what_was_committed() -> None:
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    ask = drafter("the quiek brown fox", tokenizer, 7)
    assert ask([]) == [*tokenizer.encode("the quiek brown fox"), 7]
    committed = tokenizer.encode("the quick")
    assert ask(committed) == [*tokenizer.encode(" brown fox"), 7]
    assert ask([])[0] == tokenizer.encode("the")[0]
    committed += tokenizer.encode(" brown")
    assert ask(committed) == [*tokenizer.encode(" fox"), 7]
