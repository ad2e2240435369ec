"""A checkpoint's folder -> a model, and back. Strict: a missing, surplus, mis-shaped or mis-typed tensor raises.

config.json  block_diffusion.json  tokenizer.json  model.safetensors (or shards with an index)
family.py reads the rest of a folder.
"""

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from gravityocr_models import store
from gravityocr_models.config import ConfigError, DraftConfig, OcrConfig, read_json
from gravityocr_models.letters import Letters
from gravityocr_models.ocr import OcrModel
from gravityocr_models.tokenizer import Tokenizer

NANO = store.NANO
_FLOATS = {torch.float32, torch.float16, torch.bfloat16}


class WeightsError(ValueError):
    """The tensors of a checkpoint are not those that its config asks for."""


@dataclass(frozen=True)
class Checkpoint:
    """Everything a folder holds. draft is None where the decoder was not trained to draft; letters, where there are
    none."""

    model: OcrModel
    tokenizer: Tokenizer
    draft: DraftConfig | None
    letters: Letters | None = None


def load(folder: Path, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32) -> Checkpoint:
    """A checkpoint, ready to run. FileNotFoundError, ConfigError or WeightsError say what is wrong with it."""
    if not folder.is_dir():
        raise FileNotFoundError(f"no checkpoint folder: {folder}")
    config = OcrConfig.from_json(read_json(folder / "config.json"))
    with torch.device("meta"):
        model = OcrModel(config)
    state = _checked(read_tensors(folder), model, config)
    model.load_state_dict(state, strict=True, assign=True)
    model.to(device=device, dtype=dtype).eval().requires_grad_(False)
    try:
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
    except OSError as error:
        raise ConfigError(f"cannot read the tokenizer: {error}") from error
    draft_file = folder / "block_diffusion.json"
    draft = DraftConfig.from_json(read_json(draft_file)) if draft_file.exists() else None
    if draft and draft.mask_id >= config.text.vocab_size:
        raise ConfigError(f"block_diffusion.json: mask_id {draft.mask_id} of a vocabulary of {config.text.vocab_size}")
    if len(tokenizer) > config.text.vocab_size:
        raise ConfigError(
            f"tokenizer.json has {len(tokenizer)} tokens, text_config.vocab_size is {config.text.vocab_size}"
        )
    return Checkpoint(model, tokenizer, draft if draft and draft.ar_loss_weight > 0 else None, _letters(folder))


def _letters(folder: Path) -> Letters | None:
    path = folder / store.LETTERS
    try:
        return Letters.load(path) if path.exists() else None
    except (OSError, ValueError, LookupError, zipfile.BadZipFile) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of model.safetensors, or of the shards that model.safetensors.index.json names."""
    index = folder / "model.safetensors.index.json"
    names = sorted(set(read_json(index)["weight_map"].values())) if index.exists() else ["model.safetensors"]
    state: dict[str, Tensor] = {}
    for name in names:
        if Path(name).name != name:
            raise WeightsError(f"shard outside the checkpoint: {name}")
        try:
            state |= load_file(folder / name)
        except (OSError, SafetensorError) as error:
            raise WeightsError(f"cannot read {folder / name}: {error}") from error
    return state


def save(folder: Path, model: OcrModel, dtype: torch.dtype = torch.float16) -> None:
    """Write model.safetensors, config.json and SHA256SUMS (of every file of the folder that a model is loaded from)."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.detach().to("cpu", dtype).contiguous() for name, tensor in model.state_dict().items()}
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(model.config.to_json(), indent=2) + "\n", encoding="utf-8")
    store.write_sums(folder)


def _checked(state: dict[str, Tensor], model: OcrModel, config: OcrConfig) -> dict[str, Tensor]:
    """The state without the multi-token head of published checkpoints; WeightsError names what does not fit."""
    extra_head = f"model.language_model.layers.{config.text.num_hidden_layers}."
    state = {name: tensor for name, tensor in state.items() if not name.startswith(extra_head)}
    wanted = {name: tensor.shape for name, tensor in model.state_dict().items()}
    faults = [f"missing {name}" for name in wanted.keys() - state.keys()]
    faults += [f"surplus {name}" for name in state.keys() - wanted.keys()]
    for name in wanted.keys() & state.keys():
        if state[name].shape != wanted[name]:
            faults.append(f"{name} is {list(state[name].shape)}, not {list(wanted[name])}")
        elif state[name].dtype not in _FLOATS:
            faults.append(f"{name} is {state[name].dtype}")
    if faults:
        shown = "; ".join(sorted(faults)[:5])
        raise WeightsError(f"{len(faults)} tensors do not fit the config: {shown}")
    return state
