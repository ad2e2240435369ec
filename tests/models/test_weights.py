"""A checkpoint folder loads whole or not at all."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer as Backend
from tokenizers.models import BPE

from gravityocr_models import weights
from gravityocr_models.config import ConfigError
from tiny import tiny_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    weights.save(tmp_path, tiny_model(dtype=torch.float32), torch.float32)
    vocabulary = {char: number for number, char in enumerate("abc")}
    Backend(BPE(vocab=vocabulary, merges=[])).save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def edit_tensors(folder: Path, change: dict[str, torch.Tensor | None]) -> None:
    state = load_file(folder / "model.safetensors")
    for name, tensor in change.items():
        state.pop(name, None)
        if tensor is not None:
            state[name] = tensor
    save_file(state, folder / "model.safetensors")


def test_what_is_saved_is_loaded(folder: Path) -> None:
    saved, loaded = tiny_model(dtype=torch.float32).state_dict(), weights.load(folder).model.state_dict()
    assert saved.keys() == loaded.keys()
    assert all(torch.equal(saved[name], loaded[name]) for name in saved)


def test_multi_token_head_is_ignored(folder: Path) -> None:
    edit_tensors(folder, {"model.language_model.layers.3.eh_proj.weight": torch.zeros(2, 2)})
    weights.load(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lm_head.weight": None}, "missing lm_head.weight"),
        ({"lm_head.bias": torch.zeros(61)}, "surplus lm_head.bias"),
        ({"lm_head.weight": torch.zeros(60, 32)}, r"\[60, 32\], not \[61, 32\]"),
        ({"lm_head.weight": torch.zeros(61, 32, dtype=torch.int64)}, "int64"),
    ],
)
def test_tensors_that_do_not_fit_raise(folder: Path, change: dict[str, torch.Tensor | None], message: str) -> None:
    edit_tensors(folder, change)
    with pytest.raises(weights.WeightsError, match=message):
        weights.load(folder)


def test_a_tokenizer_larger_than_the_vocabulary_raises(folder: Path) -> None:
    vocabulary = {chr(0x4E00 + number): number for number in range(62)}
    Backend(BPE(vocab=vocabulary, merges=[])).save(str(folder / "tokenizer.json"))
    with pytest.raises(ConfigError, match="62 tokens"):
        weights.load(folder)


def test_cut_file_raises(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(weights.WeightsError):
        weights.load(folder)


def test_shards_are_joined_and_stay_in_the_folder(folder: Path) -> None:
    state = load_file(folder / "model.safetensors")
    names = sorted(state)
    halves = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, part in halves.items():
        save_file({name: state[name] for name in part}, folder / file)
    (folder / "model.safetensors").unlink()
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {name: file for file, part in halves.items() for name in part}}))
    assert torch.equal(weights.load(folder).model.lm_head.weight, state["lm_head.weight"])
    index.write_text(json.dumps({"weight_map": {"lm_head.weight": "../a.safetensors"}}))
    with pytest.raises(weights.WeightsError, match="outside"):
        weights.load(folder)


def test_number_format_leaves_positions_exact(folder: Path) -> None:
    """bfloat16 rotary frequencies would misplace far tokens: they are computed, in float32, whatever the weights."""
    model = weights.load(folder, dtype=torch.bfloat16).model
    assert {tensor.dtype for tensor in model.state_dict().values()} == {torch.bfloat16}
    assert not list(model.buffers())
