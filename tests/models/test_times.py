"""What the decoder is told of the encoder's reading stands where the answer will stand, in training as in serving."""

from pathlib import Path

import numpy as np
import pymupdf
import pytest
import torch
from torch import Tensor

from gravityocr_models import weights
from gravityocr_models.engine import Engine
from gravityocr_models.glyphs import Named, Tag
from gravityocr_models.ocr import OcrModel, sequence_positions
from gravityocr_models.records import Crop, LayerUse, Task
from gravityocr_models.times import NOWHERE, places_of, read_at, shown_on, told_positions
from gravityocr_models.train import telling
from gravityocr_models.train.batch import collate
from gravityocr_models.train.losses import joint_losses
from gravityocr_models.train.placing import placed
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.telling import Teller
from gravityocr_models.train.vocabulary import END


def row_of(signs: str) -> list[Named]:
    return [Named(sign, Tag(0), 1, column) for column, sign in enumerate(signs)]


def test_equal_letters_are_told_apart_by_their_order() -> None:
    spans = [(0, 2), (2, 3), (3, 5), (5, 7)]
    assert places_of("abb ac?", spans, row_of("abbac"), 10) == [10, 12, 13, 14]


def test_commands_stand_for_their_signs_and_markup_nowhere() -> None:
    text = r"\frac{\alpha}{x}"
    glyphs = [Named("α", Tag.UPPER, 0, 4), Named("x", Tag.LOWER, 2, 4)]
    spans = [(0, 6), (6, 12), (12, 14), (14, 15), (15, 16)]
    assert places_of(text, spans, glyphs, 10) == [NOWHERE, 4, NOWHERE, 24, NOWHERE]


def test_the_nearest_of_equal_signs_is_meant() -> None:
    """Numerator, then denominator: from the left would take the x on the right first."""
    glyphs = [Named("x", Tag(0), 2, 1), Named("x", Tag(0), 0, 6), Named("y", Tag(0), 0, 5)]
    assert places_of("yxx", [(0, 1), (1, 2), (2, 3)], glyphs, 10) == [5, 6, 21]


def test_what_began_to_the_left_is_still_being_read() -> None:
    assert read_at([1, NOWHERE, 7], (2, 4)).tolist() == [0, 0, 0, 2, 0, 0, 0, 2]
    assert read_at([0, 2, 2], (1, 4)).tolist() == [0, 0, 1, 1]
    assert read_at([NOWHERE], (1, 3)).tolist() == [-1, -1, -1]


def test_an_image_token_that_shows_nothing_is_left_out() -> None:
    assert shown_on(torch.tensor([9.0, -1.0, 8.0, 2.0])).tolist() == [1, 3]
    assert shown_on(torch.tensor([9.0, 7.0])).tolist() == [1]
    both = torch.tensor([[9.0, -1.0, 8.0], [-1.0, -1.0, 9.0]])
    assert shown_on(both).tolist() == [[1, 2], [0, 1]]


def test_without_a_reading_positions_are_those_of_the_family() -> None:
    shown, times = torch.arange(6), torch.full((6,), -1)
    assert torch.equal(told_positions(2, (2, 3), shown, 0, 3, times), sequence_positions(2, (2, 3), 3))


def test_a_reading_stands_where_the_answer_will() -> None:
    shown, times = torch.tensor([[1, 3], [0, 5]]), torch.tensor([[0, 0, 1, 2, 2, 2], [-1] * 6])
    positions = told_positions(1, (2, 3), shown, 2, 2, times)
    plain = sequence_positions(1, (2, 3), 2)
    first = int(plain[0, -1]) + 1  # of the answer's tokens
    assert positions.shape == (3, 2, 1 + 2 + 2 + 2)
    assert positions[:, 0, 3:5].tolist() == [[first, first + 1]] * 3
    assert positions[0, 0, 1:3].tolist() == [first, first + 2]
    assert torch.equal(positions[1:, 0, 1:3], plain[1:, [2, 4]])
    assert torch.equal(positions[:, 1, 1:3], plain[:, [1, 6]])
    assert torch.equal(positions[:, 0, 5:], plain[:, 7:])


def shown_line() -> np.ndarray:
    """A line of text, grey uint8 [H, W], 144 dpi."""
    with pymupdf.open() as document:
        page = document.new_page(width=260, height=16)
        page.insert_text((6, 12), "No reading is missing, and 12 differ.", fontsize=10, fontname="tiro")
        image = page.get_pixmap(dpi=144, colorspace=pymupdf.csGRAY)
    return np.frombuffer(image.samples, np.uint8).reshape(image.height, image.width)


def test_training_sees_what_serving_sees(monkeypatch: pytest.MonkeyPatch) -> None:
    """The prompt of a batch of one: the same states, at the same positions."""
    engine = Engine.load(device="cpu", dtype="float32")
    checkpoint, pixels = engine.checkpoint, shown_line()
    (prompt,) = engine.prompts([Crop(np.repeat(pixels[:, :, None], 3, axis=2))], LayerUse.OFF)
    assert prompt.reading is not None
    tokenizer, config, draft = checkpoint.tokenizer, checkpoint.model.config, checkpoint.draft
    assert draft is not None
    seen: list[tuple[Tensor, Tensor]] = []
    decode = OcrModel.decode

    def spy(model: OcrModel, embeds: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        seen.append((embeds, positions))
        return decode(model, embeds, positions, mask)

    monkeypatch.setattr(OcrModel, "decode", spy)
    monkeypatch.setattr(telling, "UNREAD", 0.0)
    tell = Teller(tokenizer, Path(weights.NANO), config.vision.token_px)
    sample = placed(Sample(pixels, "No reading", Task.TEXT, (), "test"), config.vision.token_px)
    batch = collate([sample], tokenizer, config, draft, tokenizer.special(END), np.random.default_rng(0))
    with torch.no_grad():
        joint_losses(checkpoint.model, batch, draft, tell)
    ((embeds, positions),) = seen
    count = len(prompt.embeds)
    assert torch.equal(positions[:, 0, :count], prompt.positions)
    torch.testing.assert_close(embeds[0, :count], prompt.embeds)
    answer = positions[:, 0, count : count + int(batch.lengths[0])]
    assert answer[0].tolist() == list(range(int(prompt.positions[0, -1]) + 1, int(answer[0, -1]) + 1))


def test_what_the_reading_has_right_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer's tokens point to the same ones in the reading, and to none where the reading has lost them."""
    engine = Engine.load(device="cpu", dtype="float32")
    checkpoint, pixels = engine.checkpoint, shown_line()
    assert checkpoint.draft is not None
    monkeypatch.setattr(telling, "UNREAD", 0.0)
    monkeypatch.setattr(telling, "spelled", lambda *_: ("No reading missing", row_of("Noreadingmissing"), None))
    tell = Teller(checkpoint.tokenizer, Path(weights.NANO), 16)
    sample = placed(Sample(pixels, "No reading is missing", Task.TEXT, (), "test"), 16)
    end = checkpoint.tokenizer.special(END)
    batch = collate(
        [sample], checkpoint.tokenizer, checkpoint.model.config, checkpoint.draft, end, np.random.default_rng(0)
    )
    told = tell(batch, checkpoint.model.name_glyphs(checkpoint.model.see(batch.pixels)))
    read, answer = told.ids[0].tolist(), batch.answers[0].tolist()
    assert read[-1] == end
    lost = len(checkpoint.tokenizer.encode(" is"))
    found = [(place, number) for number, place in enumerate(told.alike[0].tolist()) if place != NOWHERE]
    assert all(read[place] == answer[number] for place, number in found)
    assert len(found) == len(answer) - lost
