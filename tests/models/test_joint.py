"""The joint loss teaches what decoding asks for, and a run goes on where it stopped."""

import shutil
from dataclasses import replace
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
from gravityocr_models.train.batch import Batch, collate
from gravityocr_models.train.data import READING_FIRST, Sample
from gravityocr_models.train.joint import Trainer, initialise, rate_at
from gravityocr_models.train.losses import GlyphHead, joint_losses, pointer_targets
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
    head = GlyphHead(64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rng = np.random.default_rng(0)
    end = tokenizer.special("<|end|>")
    for _ in range(120):
        batch = collate(samples_of(texts), tokenizer, model.config, draft, end, rng)
        losses = joint_losses(model, head, batch, draft)
        optimizer.zero_grad()
        (losses.ar + losses.draft).backward()
        optimizer.step()
    engine = Engine(
        Checkpoint(model.eval().requires_grad_(False), tokenizer, draft), nano_conventions(model.config, tokenizer)
    )
    crops = [Crop(np.repeat(sample.pixels[:, :, None], 3, axis=2)) for sample in samples_of(texts)]
    read = {rounds: engine.read(crops, rounds=rounds, layer=LayerUse.OFF) for rounds in Rounds}
    for answers in read.values():
        assert [answer.text for answer in answers] == texts
    for plain, two, fused in zip(*read.values(), strict=True):
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
    head = GlyphHead(64)
    with torch.no_grad():
        assert torch.equal(
            joint_losses(model, head, batch, draft).draft, joint_losses(model, head, changed, draft).draft
        )


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
    targets = pointer_targets(batch, prompt)[0].tolist()
    assert targets[prompt - 1 : prompt - 1 + length] == [place + 1 for place in places]
    assert targets[prompt + length : prompt + 2 * length - 1] == [place + 1 for place in places[1:]]
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(60):
        losses = joint_losses(model, GlyphHead(64), batch, draft)
        optimizer.zero_grad()
        losses.pointer.backward()
        optimizer.step()
    assert losses.pointer_accuracy == 1.0


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "nano"
    folder.mkdir()
    shutil.copy(NANO / "tokenizer.json", folder)
    return folder


def one_batch(trainer: Trainer) -> Batch:
    end = trainer.tokenizer.special("<|end|>")
    rng = np.random.default_rng(0)
    return collate(samples_of(["some words", "more"]), trainer.tokenizer, trainer.model.config, trainer.draft, end, rng)


def test_a_run_resumes_from_its_state_and_from_its_weights(target: Path, tmp_path: Path) -> None:
    cpu = torch.device("cpu")
    first = Trainer(target, tmp_path / "state", cpu)
    first.progress.samples = READING_FIRST
    batch = one_batch(first)
    for _ in range(2):
        first.step(batch, 1e-3)
    first.save()
    first.export()
    resumed = Trainer(target, tmp_path / "state", cpu)
    assert resumed.progress == first.progress
    a, b = first.step(batch, 1e-3), resumed.step(batch, 1e-3)
    assert torch.equal(a.ar, b.ar)
    for name, tensor in first.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name])
    fresh = Trainer(target, tmp_path / "elsewhere", cpu)
    assert fresh.progress.samples == READING_FIRST + 4
    stored = torch.load(tmp_path / "state" / "state.pt", weights_only=True)["average"]
    for name, tensor in fresh.model.state_dict().items():
        torch.testing.assert_close(tensor, stored[name].half().float())


def test_at_first_the_encoder_learns_alone(target: Path, tmp_path: Path) -> None:
    trainer = Trainer(target, tmp_path / "state", torch.device("cpu"))
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    glyphs = (("a", 5.0, 5.0), ("b", 40.0, 20.0))
    named = [replace(sample, glyphs=glyphs) for sample in samples_of(["ab"])]
    end = trainer.tokenizer.special("<|end|>")
    config = trainer.model.config
    batch = collate(named, trainer.tokenizer, config, trainer.draft, end, np.random.default_rng(0))
    losses = trainer.step(batch, 1e-3)
    moved = {name for name, tensor in trainer.model.state_dict().items() if not torch.equal(tensor, before[name])}
    assert torch.isfinite(losses.glyph)
    assert any(name.startswith("model.visual") for name in moved)
    assert not any(name.startswith(("model.language_model", "lm_head")) for name in moved)


def test_learning_rate_warms_up_holds_and_falls() -> None:
    assert rate_at(0, 0.0) < rate_at(50, 0.1) < rate_at(1000, 0.2) == pytest.approx(rate_at(5000, 0.8))
    assert rate_at(5000, 0.9) == pytest.approx(rate_at(5000, 0.5) / 2)
    assert rate_at(5000, 1.0) == 0
