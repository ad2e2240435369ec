"""CUDA graphs: a function of fixed shapes is recorded once, then replayed with one call instead of hundreds.

Elsewhere the same function is simply called.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import torch
from torch import Tensor

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class _Recorded:
    graph: torch.cuda.CUDAGraph
    given: Tensor
    found: Tensor


class Graphs:
    """Runs functions of one tensor on a device: on a GPU as graphs, one for each shape."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._recorded: dict[Hashable, _Recorded] = {}
        self._memory = torch.cuda.graph_pool_handle() if device.type == "cuda" else None  # they never run at once

    def forget(self) -> None:
        """What was recorded no longer holds: a tensor that the functions use has been replaced."""
        self._recorded.clear()

    def run(self, shape: Hashable, function: Function, given: Tensor) -> Tensor:
        """function(given), from host tensor to host tensor. shape: equal where the function's shapes are all equal."""
        if self._device.type != "cuda":
            return function(given.to(self._device)).cpu()
        if shape not in self._recorded:
            self._recorded[shape] = self._record(function, given.to(self._device))
        recorded = self._recorded[shape]
        recorded.given.copy_(given.pin_memory(), non_blocking=True)
        recorded.graph.replay()
        return recorded.found.cpu()

    def _record(self, function: Function, given: Tensor) -> _Recorded:
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            function(given)  # the first call allocates and chooses kernels, which a recording may not
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._memory):
            found = function(given)
        return _Recorded(graph, given, found)
