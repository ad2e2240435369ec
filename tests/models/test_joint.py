"""The joint loss teaches what decoding asks for, and a run goes on where it stopped."""

import shutil
from collections.abc import Iterator
from dataclasses import fields, replace
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import torch

from gravityocr_models.config import DraftConfig
from gravityocr_models.engine import Engine
from gravityocr_models.family import nano_conventions
from gravityocr_models.ocr import OcrModel
from gravityocr_models.records import Crop, LayerUse, Rounds, Task
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train import joint, validate
from gravityocr_models.train.batch import Batch, collate
from gravityocr_models.train.corpora import Corpora
from gravityocr_models.train.curriculum import READING_FIRST
from gravityocr_models.train.distributed import Team
from gravityocr_models.train.joint import Exam, Nano, initialise
from gravityocr_models.train.losses import Losses, joint_losses, pointer_targets
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.telling import NOTHING
from gravityocr_models.train.trainer import Trainer
from gravityocr_models.weights import NANO, Checkpoint
from tiny import small_nano


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(NANO / "tokenizer.json")


def samples_of(texts: list[str]) -> list[Sample]:
    rng = np.random.default_rng(0)
    return [Sample(rng.integers(0, 255, (30, 120)).astype(np.uint8), text, Task.TEXT, (), "test") for text in texts]


def test_overfitted_model_drafts_and_verifies(tokenizer: Tokenizer) -> None:
    """Trained on two crops until it knows them, the model reads them, and its drafts are accepted.

    Wrong masks, positions, shifts or mask ids in training pass every identity test: they show as rejected drafts only.
    """
    torch.manual_seed(0)
    texts = [
        "speculative decoding changes nothing but the time it takes",
        "two crops: 3.14 and 2.72 (both known)",
    ]
    draft = DraftConfig(16, tokenizer.special("<|mask|>"), 1.0)
    model = OcrModel(small_nano(tokenizer))
    initialise(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rng = np.random.default_rng(0)
    end = tokenizer.special("<|end|>")
    for _ in range(120):
        batch = collate(samples_of(texts), tokenizer, model.config, draft, end, rng)
        losses = joint_losses(model, batch, draft)
        optimizer.zero_grad()
        (losses.ar + losses.draft).backward()
        optimizer.step()
    engine = Engine(
        Checkpoint(model.eval().requires_grad_(False), tokenizer, draft), nano_conventions(model.config, tokenizer)
    )
    crops = [Crop(np.repeat(sample.pixels[:, :, None], 3, axis=2)) for sample in samples_of(texts)]
    read = {rounds: engine.read(crops, rounds=rounds, layer=LayerUse.OFF, block=16) for rounds in Rounds}
    for answers in read.values():
        assert [answer.text for answer in answers] == texts
    for plain, two, fused, _ in zip(*read.values(), strict=True):
        count = len(plain.ids) + 1
        assert plain.forwards == count
        assert two.forwards <= count / 4
        assert fused.forwards <= count / 6


def test_no_draft_row_sees_its_own_answer(tokenizer: Tokenizer) -> None:
    """The draft loss of a slot doesn't move when the clean tokens of its block or of later ones change."""
    torch.manual_seed(0)
    draft = DraftConfig(64, tokenizer.special("<|mask|>"), 1.0)
    model = OcrModel(small_nano(tokenizer)).eval()
    end = tokenizer.special("<|end|>")
    batch = collate(samples_of(["one two three four"]), tokenizer, model.config, draft, end, np.random.default_rng(0))
    batch = replace(batch, delta=torch.zeros_like(batch.delta))
    changed = replace(batch, answers=batch.answers.flip(1))
    with torch.no_grad():
        assert torch.equal(joint_losses(model, batch, draft).draft, joint_losses(model, changed, draft).draft)


def test_one_head_learns_where_to_look(tokenizer: Tokenizer) -> None:
    """Both the clean rows and the mask rows are told the place that their next token is read from."""
    torch.manual_seed(0)
    draft = DraftConfig(8, tokenizer.special("<|mask|>"), 1.0)
    model = OcrModel(small_nano(tokenizer))
    initialise(model)
    text = "abc def"
    glyphs = tuple((char, 8.0 + 16 * n, 8.0) for n, char in enumerate("abcdef"))
    drawn = [replace(sample, glyphs=glyphs) for sample in samples_of([text])]
    end = tokenizer.special("<|end|>")
    batch = collate(drawn, tokenizer, model.config, draft, end, np.random.default_rng(0))
    prompt = batch.grid[0] * batch.grid[1] + 3
    length, places = batch.answers.shape[1], batch.places[0].tolist()
    targets = pointer_targets(batch, torch.arange(prompt - 3)[None], NOTHING, prompt)[0].tolist()
    assert targets[prompt - 1 : prompt - 1 + length] == [place + 1 for place in places]
    assert targets[prompt + length : prompt + 2 * length - 1] == [place + 1 for place in places[1:]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        losses = joint_losses(model, batch, draft)
        optimizer.zero_grad()
        losses.pointer.backward()
        optimizer.step()
    assert losses.pointer_accuracy == 1.0


ALONE = Team(0, 1, torch.device("cpu"))


@pytest.fixture
def nano(tmp_path: Path) -> Nano:
    folder = tmp_path / "nano"
    folder.mkdir()
    shutil.copy(NANO / "tokenizer.json", folder)
    return Nano(folder)


def batch_of(nano: Nano, drawn: list[Sample]) -> Batch:
    end = nano.tokenizer.special("<|end|>")
    return collate(drawn, nano.tokenizer, nano.config, nano.draft, end, np.random.default_rng(0))


def test_a_run_resumes_from_its_state_and_from_its_weights(nano: Nano, tmp_path: Path) -> None:
    first = nano.trainer(tmp_path / "state", ALONE)
    first.progress.samples = READING_FIRST
    batch = batch_of(nano, samples_of(["some words", "more"]))
    for _ in range(2):
        first.step(batch, 1e-3)
        first.count(2)
    first.save()
    average = first.averaged()
    assert average is not None
    nano.export(first, average)
    resumed = nano.trainer(tmp_path / "state", ALONE)
    assert resumed.progress == first.progress
    a, b = first.step(batch, 1e-3), resumed.step(batch, 1e-3)
    assert torch.equal(a["ar"], b["ar"])
    for name, tensor in first.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name])
        assert torch.equal(first.average[name], resumed.average[name])
    fresh = nano.trainer(tmp_path / "elsewhere", ALONE)
    assert fresh.progress.samples == READING_FIRST + 4
    for name, tensor in fresh.model.state_dict().items():
        torch.testing.assert_close(tensor, average.state_dict()[name].half().float())


def test_at_first_the_encoder_learns_alone(nano: Nano, tmp_path: Path) -> None:
    trainer = nano.trainer(tmp_path / "state", ALONE)
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    glyphs = (("a", 5.0, 5.0), ("b", 40.0, 20.0))
    figures = trainer.step(batch_of(nano, [replace(sample, glyphs=glyphs) for sample in samples_of(["ab"])]), 1e-3)
    moved = {name for name, tensor in trainer.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert torch.isfinite(figures["glyph"])
    assert any(name.startswith("model.visual") for name in moved)
    assert not any(name.startswith(("model.language_model", "lm_head")) for name in moved)


def test_the_vocabulary_is_seeded_once_when_the_decoder_begins(nano: Nano, tmp_path: Path) -> None:
    trainer: Trainer = nano.trainer(tmp_path / "state", ALONE)
    trainer.progress.samples = READING_FIRST - 1
    rows = trainer.model.lm_head.weight
    before = rows.clone()
    trainer.count(1)
    seeded = rows.clone()
    assert not torch.equal(seeded, before)
    assert torch.equal(trainer.average["lm_head.weight"], seeded)
    trainer.count(1)
    assert torch.equal(rows, seeded)


def test_an_exam_reads_as_the_program_will(nano: Nano) -> None:
    """With the encoder's reading: without it a decoder that relies on it looks as if it had learned nothing."""
    model = OcrModel(nano.config)
    engine = Engine(Checkpoint(model, nano.tokenizer, nano.draft), nano_conventions(nano.config, nano.tokenizer))
    assert engine.reads_glyphs


def test_an_exam_takes_losses_and_reads_the_kinds_that_training_has_come_to(
    nano: Nano, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn(*_: object) -> Iterator[Sample]:
        return cycle(samples_of(["some words", "more"]))

    nano.config = small_nano(nano.tokenizer)
    trainer = nano.trainer(tmp_path / "state", ALONE)
    for module in (joint, validate):
        monkeypatch.setattr(module, "samples", drawn)
    monkeypatch.setattr(joint, "TOKENS_A_BATCH", 64)
    monkeypatch.setattr(validate, "CROPS_ON_THE_WAY", 2)
    exam = Exam(nano, trainer, Corpora())
    assert len(exam.batches) == joint.VALIDATION_BATCHES
    found = exam(trainer.model)
    (losses,) = found["metrics.csv"]
    assert float(losses["ar"]) > 0
    assert losses.keys() == {field.name for field in fields(Losses)}
    assert [row["read"] for row in found["reading.csv"]] == ["words", "lines", "formulas"]
    assert {row["crops"] for row in found["reading.csv"]} == {2}


def test_the_encoder_learns_first_and_the_decoder_then_beside_it(nano: Nano) -> None:
    """The encoder by its own loss alone: what the decoder would have of it changes nothing."""
    model = OcrModel(nano.config)
    drawn = replace(samples_of(["ab"])[0], glyphs=(("a", 5.0, 8.0), ("b", 20.0, 8.0)))
    batch = batch_of(nano, [drawn])

    def gradients(seen: int) -> dict[str, torch.Tensor]:
        model.zero_grad(set_to_none=True)
        nano.loss(model, batch, seen)[0].backward()
        return {name: each.grad for name, each in model.named_parameters() if each.grad is not None}

    first, then = gradients(0), gradients(READING_FIRST)
    assert not any("language_model" in name for name in first)
    assert any("language_model" in name for name in then)
    seeing = [name for name in first if "visual" in name]
    assert seeing
    for name in seeing:
        torch.testing.assert_close(then[name], first[name])
