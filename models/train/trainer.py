"""What is trained, and how a step is taken, stored and gone on from: for nano, for checkpoints and for rewards alike.

A program hands over a loss (model, batch, samples seen) -> (loss, figures to report): joint.py, finetune.py and
grpo.py do.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from gravityocr_models.ocr import OcrModel
from gravityocr_models.train.distributed import Team, like, refill

DECAY = 0.998  # of the moving average, a step
LARGEST_GRADIENT = 1.0  # norm over all parameters


class Samples(Protocol):
    """A batch of any kind, a frozen dataclass of tensors. lengths: one entry a sample."""

    @property
    def lengths(self) -> Tensor: ...


Figures = dict[str, Tensor]
LossOf = Callable[[OcrModel, Any, int], tuple[Tensor, Figures]]


@dataclass
class Progress:
    """Where training stands; stored with the optimizer. samples: of all processes together."""

    step: int = 0
    samples: int = 0
    seconds: float = 0.0


class Objective(nn.Module):
    """A model, what is trained beside it, and the loss of both: one forward, so that it can be wrapped as one."""

    def __init__(self, model: OcrModel, loss_of: LossOf) -> None:
        super().__init__()
        self.model, self.loss_of = model, loss_of

    def forward(self, batch: Samples, seen: int) -> tuple[Tensor, Figures]:
        """The loss of a batch, `seen` samples into training, and its figures, detached."""
        with fast_numbers(self.model.device):
            loss, figures = self.loss_of(self.model, batch, seen)
        return loss, {name: value.detach() for name, value in figures.items()}


class Trainer:
    """Objective, moving average, optimizer and progress; knows how to store itself and go on.

    turn: (samples, change): once so many have been seen, the model takes over its average, `change` sets weights, and
    the average starts anew from them.
    """

    def __init__(
        self,
        objective: Objective,
        state: Path,
        team: Team,
        *,
        shard: bool = False,
        turn: tuple[int, Callable[[], None]] | None = None,
    ) -> None:
        self.model, self.team, self.turn = objective.model, team, turn
        objective.to(team.device).train()
        self.objective = team.wrap(objective, self.model.model.language_model.layers, shard)
        self.optimizer = optimizer_for(self.model)
        self.average = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
        self.progress = Progress()
        self.state_file = state / "state.pt"
        if self.state_file.exists():
            self._resume()

    def step(self, batch: Samples, rate: float) -> Figures:
        """One optimizer step; counts the samples of this process (`run` adds those of the others)."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        loss, figures = self.objective(moved(batch, self.team.device), self.progress.samples)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), LARGEST_GRADIENT)
        self.optimizer.step()
        decay = min(DECAY, self.progress.step / (self.progress.step + 50))
        torch._foreach_lerp_(list(self.average.values()), list(self.model.state_dict().values()), 1 - decay)
        self.progress.step += 1
        return dict(figures)

    def count(self, samples: int) -> None:
        """So many more samples have been seen, by all processes together."""
        before = self.progress.samples
        self.progress.samples += samples
        if self.turn and before < self.turn[0] <= self.progress.samples:
            # The average begins anew from the model, which would else fall back behind it.
            torch._foreach_copy_(list(self.model.state_dict().values()), list(self.average.values()))
            self.turn[1]()
            self.average = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}

    def averaged(self) -> OcrModel | None:
        """The moving average as a model to read with, on the first process; None on the others. All must call it."""
        tensors = self.team.whole(self.average)
        if not self.team.first:
            return None
        with torch.device("meta"):
            model = OcrModel(self.model.config)
        model.load_state_dict({name: tensor.clone() for name, tensor in tensors.items()}, assign=True)
        return model.to(self.team.device).eval().requires_grad_(False)

    def save(self) -> None:
        """Everything needed to go on, written whole or not at all. All processes must call it; the first one writes."""
        state = self.team.whole(
            {
                "model": self.model.state_dict(),
                "average": self.average,
                "optimizer": self.optimizer.state_dict(),
                "progress": asdict(self.progress),
            }
        )
        if self.team.first:
            self.state_file.parent.mkdir(parents=True, exist_ok=True)
            fresh = self.state_file.with_suffix(".new")
            torch.save(state, fresh)
            os.replace(fresh, self.state_file)

    def _resume(self) -> None:
        state = torch.load(self.state_file, map_location="cpu", weights_only=True)
        refill(self.model.state_dict(), state["model"])
        refill(self.average, state["average"])
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        for number, slots in state["optimizer"]["state"].items():
            parameter = parameters[number]
            state["optimizer"]["state"][number] = {
                name: like(value, parameter) if value.shape == parameter.shape else value
                for name, value in slots.items()
            }
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(**state["progress"])


def optimizer_for(model: OcrModel) -> torch.optim.Optimizer:
    """AdamW; norms, biases and embeddings are not decayed. The rate is set at every step."""
    named = list(model.named_parameters())
    decayed = [p for name, p in named if p.ndim > 1 and "embed" not in name]
    others = [p for name, p in named if p.ndim <= 1 or "embed" in name]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-8)


def moved(record: Any, device: torch.device) -> Any:
    """A frozen record with its tensors, those in tuples and records inside it too, on the device."""
    if isinstance(record, Tensor):
        return record.to(device)
    if is_dataclass(record) and not isinstance(record, type):
        return replace(record, **{each.name: moved(getattr(record, each.name), device) for each in fields(record)})
    return tuple(moved(each, device) for each in record) if isinstance(record, tuple) else record


def fast_numbers(device: torch.device) -> Any:
    """bfloat16 products where the processor has them in hardware."""
    fast = device.type == "cuda" or torch.cpu._is_amx_tile_supported()
    return torch.autocast(device.type, torch.bfloat16) if fast else nullcontext()


def recompute(model: OcrModel) -> None:
    """Keep no activations inside the blocks: the backward pass computes them again (gradient checkpointing)."""
    for block in [*model.model.visual.blocks, *model.model.language_model.layers]:
        forward = block.forward
        block.forward = lambda *inputs, forward=forward: checkpoint(forward, *inputs, use_reentrant=False)


def means(rows: list[Figures]) -> Mapping[str, float]:
    """Mean of every figure over the rows that have it."""
    return {name: float(torch.stack([row[name] for row in rows]).nanmean()) for name in rows[0]}
