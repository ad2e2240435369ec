"""The encoder's reading: glyphs in order with their blanks, and a place kept in it whatever is read instead."""

from dataclasses import replace

import pytest
import torch

from gravityocr_models.glyphs import Named, Tag
from gravityocr_models.reading import BONUS, Place, Reading, spell_line, with_hints
from gravityocr_models.signs import UNSOUND
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.weights import NANO

END = 7


def line(*words: str, rows: tuple[int, ...] = (0,)) -> list[Named]:
    """Glyphs of words, a blank behind each word, their rows in turn."""
    signs = [(sign, number == len(word) - 1) for word in words for number, sign in enumerate(word)]
    return [Named(sign, Tag(Tag.BLANK * blank), rows[at % len(rows)], at) for at, (sign, blank) in enumerate(signs)]


def test_a_line_is_its_glyphs_with_their_blanks() -> None:
    assert spell_line(line("two", "words")) == "two words"
    assert spell_line(line("tilted", rows=(1, 2))) == "tilted"
    assert spell_line([]) == ""


def test_more_than_a_line_spells_nothing() -> None:
    upper, lower = line("these", "are"), [replace(glyph, row=2) for glyph in line("two", "lines")]
    assert spell_line(sorted([*upper, *lower], key=lambda glyph: glyph.column)) == ""


def test_a_line_may_slope_over_many_rows() -> None:
    sloping = [replace(glyph, row=at // 4) for at, glyph in enumerate(line("a", "sloping", "line"))]
    assert spell_line(sloping) == "a sloping line"


def test_formulas_in_a_line_stand_between_dollars() -> None:
    x = [Named("x", Tag.MATH, 0, 3), Named("2", Tag.MATH | Tag.RAISED | Tag.BLANK, 0, 4)]
    assert spell_line([*line("an"), *x, *line("is", ".")]) == "an $x^{2}$ is ."
    word = [replace(glyph, tags=glyph.tags & ~Tag.BLANK) for glyph in line("CRC")]
    assert spell_line([*word, Named("u", Tag.MATH | Tag.SUNK, 0, 9)]) == "CRC $_{u}$"


def test_numbers_and_letters_of_a_word_are_no_formula() -> None:
    plain = [
        replace(glyph, tags=glyph.tags | Tag.MATH * (at in (1, 2, 7)))
        for at, glyph in enumerate(line("word", "12", "x"))
    ]
    assert spell_line(plain) == "word 12 x"
    assert spell_line([replace(glyph, tags=glyph.tags | Tag.MATH) for glyph in line("x")]) == "$x$"


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
        assert source[Place(source).after(read[:cut]).after(read[cut:]).at :] == rest


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


def test_a_character_of_several_pieces_is_followed_piece_by_piece() -> None:
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    line = "die Menge ℱ und 中"
    ids = tokenizer.encode(line)
    assert any(tokenizer.decode([token]) == UNSOUND for token in ids)
    assert Reading(line, tokenizer, END).hints([], ids) == [*ids, END]
    for cut in range(len(ids) + 1):
        assert Reading(line, tokenizer, END).draft(ids[:cut]) == [*ids[cut:], END]


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
