"""A published checkpoint that is to learn drafting: its mask token, and how it is examined on the way."""

from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
import torch

import published
from gravityocr_models.config import ConfigError, read_json
from gravityocr_models.family import read_conventions
from gravityocr_models.records import Task
from gravityocr_models.train import finetune, validate
from gravityocr_models.train.corpora import Corpora
from gravityocr_models.train.finetune import Exam, drafting, export
from gravityocr_models.train.packed import Packer
from gravityocr_models.train.sample import Sample
from gravityocr_models.weights import load


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    published.write(folder)
    return folder


def test_the_mask_token_is_the_first_free_id_and_starts_as_the_mean(folder: Path) -> None:
    checkpoint, draft = drafting(folder)
    embeddings = checkpoint.model.model.language_model.embed_tokens.weight
    assert draft.mask_id == len(checkpoint.tokenizer) < checkpoint.model.config.text.vocab_size
    torch.testing.assert_close(embeddings[draft.mask_id], embeddings[: draft.mask_id].mean(0))
    assert embeddings.requires_grad


def test_what_is_written_drafts_with_the_same_mask_when_it_is_taught_again(folder: Path, tmp_path: Path) -> None:
    checkpoint, draft = drafting(folder)
    export(folder, tmp_path, draft, checkpoint.model)
    again, same = drafting(tmp_path)
    assert same == draft
    assert torch.equal(again.model.lm_head.weight, checkpoint.model.lm_head.weight.bfloat16().float())
    assert read_json(tmp_path / "config.json") == read_json(folder / "config.json")


def test_a_vocabulary_without_room_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = load(folder)
    monkeypatch.setattr(type(checkpoint.tokenizer), "__len__", lambda _: checkpoint.model.config.text.vocab_size)
    with pytest.raises(ConfigError, match="no id left"):
        drafting(folder)


def test_an_exam_takes_losses_and_reads_every_kind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (30, 60)).astype(np.uint8)

    def drawn(*_: object) -> Iterator[Sample]:
        return cycle([Sample(pixels, "ab", Task.TEXT, (), "test")])

    for module in (finetune, validate):
        monkeypatch.setattr(module, "samples", drawn)
    monkeypatch.setattr(validate, "CROPS_ON_THE_WAY", 1)
    checkpoint, draft = drafting(folder)
    conventions = read_conventions(folder, checkpoint.model.config, checkpoint.tokenizer)
    packer = Packer(checkpoint.model.config, checkpoint.tokenizer, conventions)
    found = Exam(packer, draft, Corpora(), 200)(checkpoint.model.eval())
    (losses,) = found["metrics.csv"]
    assert losses.keys() == {"ar", "draft", "ar_accuracy", "draft_accuracy"}
    assert {str(row["read"]) for row in found["reading.csv"]} == {"words", "lines", "paragraphs", "formulas", "tables"}
