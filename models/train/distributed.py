"""The processes of one training run: one alone, or as many as torchrun started. The trainer is written once, for both.

    torchrun --nproc-per-node 8 -m gravityocr_models.train.joint --data DATA

Each process draws its own samples, gradients are averaged, and the first process alone writes.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils._pytree import tree_map


@dataclass(frozen=True)
class Team:
    """This process among the `size` of the run, and the device that it computes on."""

    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        return self.rank == 0

    def sums(self, *values: float) -> list[float]:
        """Each value added up over all processes: how they agree on a clock, a count or a stop."""
        if self.size == 1:
            return list(values)
        added = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(added)
        return added.tolist()

    def wrap(self, module: nn.Module, layers: nn.ModuleList, shard: bool) -> nn.Module:
        """The module with its gradients averaged over the processes.

        shard: parameters, gradients and optimizer are dealt out (FSDP2), and every one of `layers`, which all processes
        must call equally often, is gathered only while it works. Everything else is gathered once a step.
        """
        if shard:
            for layer in layers:
                fully_shard(layer)
            fully_shard(module)
            return module
        if self.size == 1:
            return module
        # A batch need not touch every parameter: the decoder's have no gradient while only the encoder is trained.
        return DistributedDataParallel(module, find_unused_parameters=True)

    def whole(self, tree: Any) -> Any:
        """The tree with its dealt-out tensors put together on the first process, and emptied on the others."""

        def gathered(leaf: Any) -> Any:
            if not isinstance(leaf, DTensor):
                return leaf
            full = leaf.full_tensor()
            return full.cpu() if self.first else full[:0]

        return tree_map(gathered, tree)


@contextmanager
def team() -> Iterator[Team]:
    """Join the run that torchrun started, or be one's own."""
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if torch.cuda.is_available() else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_torchelastic_launched():
        yield Team(0, 1, device)
        return
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield Team(dist.get_rank(), dist.get_world_size(), device)
    finally:
        dist.destroy_process_group()


def like(value: Tensor, parameter: Tensor) -> Tensor:
    """A whole tensor, dealt out as the parameter is."""
    if not isinstance(parameter, DTensor):
        return value
    return distribute_tensor(value.to(parameter.device), parameter.device_mesh, parameter.placements)


@torch.no_grad()
def refill(tensors: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    """Copy whole values into tensors that may be dealt out. ValueError where names or shapes differ."""
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    if shapes != {name: value.shape for name, value in values.items()}:
        raise ValueError("the stored state is that of another model")
    for name, tensor in tensors.items():
        tensor.copy_(like(values[name], tensor))
