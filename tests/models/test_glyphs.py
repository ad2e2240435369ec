"""What the glyph head's logits name."""

import pytest
import torch
from torch import Tensor

from gravityocr_models.glyphs import Named, Tag, named, slots

SIGNS = "abcdefgh"


def logits_of(rows: list[list[str]], tags: dict[str, Tag] | None = None) -> Tensor:
    """Logits of a grid whose cells hold up to three signs, in slots; tags: of signs."""
    logits = torch.zeros(len(rows) * len(rows[0]), 3, 1 + len(SIGNS) + len(Tag))
    logits[..., 0] = 1.0
    logits[..., -len(Tag) :] = -1.0
    for place, cell in enumerate(cell for row in rows for cell in row):
        for slot, sign in enumerate(cell):
            logits[place, slot, SIGNS.index(sign) + 1] = 2.0
            for bit, tag in enumerate(Tag):
                if tag in (tags or {}).get(sign, Tag(0)):
                    logits[place, slot, 1 + len(SIGNS) + bit] = 1.0
    return logits


def signs(rows: list[list[str]]) -> str:
    return "".join(glyph.sign for glyph in named(slots(logits_of(rows), (len(rows), len(rows[0])), SIGNS)))


def test_columns_from_the_left_and_slots_in_them() -> None:
    assert signs([["abc", "", "d"], ["", "", "e"]]) == "abcde"
    assert named(slots(logits_of([["", ""], ["", "h"]]), (2, 2), SIGNS)) == [Named("h", Tag(0), 1, 1)]


def test_each_glyph_has_its_own_tags() -> None:
    tags = {"a": Tag.MATH | Tag.RAISED, "b": Tag.BLANK}
    glyphs = named(slots(logits_of([["ab", "c"]], tags), (1, 2), SIGNS))
    assert [glyph.tags for glyph in glyphs] == [Tag.MATH | Tag.RAISED, Tag.BLANK, Tag(0)]


def test_a_glyph_on_the_border_of_two_rows_is_named_once() -> None:
    assert signs([["ab", "c"], ["b", "d"]]) == "abcd"
    assert signs([["aa", "b"], ["", ""]]) == "aab"


def test_a_fraction_of_equal_signs_keeps_both() -> None:
    logits = logits_of([["a"], ["a"]])
    upper, lower = (1 + len(SIGNS) + list(Tag).index(tag) for tag in (Tag.UPPER, Tag.LOWER))
    logits[0, 0, upper] = logits[1, 0, lower] = 1.0
    assert len(named(slots(logits, (2, 1), SIGNS))) == 2


def test_glyphs_of_two_rows_are_ordered_by_the_half_of_the_token() -> None:
    glyphs = named(slots(logits_of([["a"], ["bc"]], {"a": Tag.RIGHT, "c": Tag.RIGHT}), (2, 1), SIGNS))
    assert [glyph.sign for glyph in glyphs] == ["b", "a", "c"]


def test_a_wider_look_tells_places_of_the_crop() -> None:
    logits = logits_of([["", "a", "b", "c"]], {"b": Tag.RIGHT})
    seen, wider = (
        [slot for slot in slots(logits, (1, 4), SIGNS, 16, right, wide) if slot.signs[0][0]]
        for right, wide in ((0, 1.0), (5, 1.25))
    )
    assert [slot.x for slot in seen] == [20, 44, 52]
    assert [slot.x for slot in wider] == pytest.approx([(x - 5) / 1.25 for x in (20, 44, 52)])
    assert [slot.column for slot in wider] == [0, 1, 2]
