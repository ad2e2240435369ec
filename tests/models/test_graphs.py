"""A function recorded as a graph gives what it gives when called. Without a GPU only the calling is left to test."""

import pytest
import torch
from torch import Tensor

from gravityocr_models.graphs import Graphs
from gravityocr_models.records import Rounds
from gravityocr_models.rounds import Runner
from gravityocr_models.speculate import Prompt, Rules, decode
from tiny import END, MASK, tiny_model

no_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, no_gpu])])
def test_each_shape_is_run_on_what_it_is_given(device: str) -> None:
    offset = torch.ones(3, dtype=torch.int64, device=device)

    def add(given: Tensor) -> Tensor:
        return given + offset[: len(given)]

    graphs = Graphs(torch.device(device))
    for values in ([1, 2], [5, 6], [1, 2, 3], [7, 8]):
        assert graphs.run(len(values), add, torch.tensor(values)).tolist() == [value + 1 for value in values]
    graphs.forget()
    assert graphs.run(2, add, torch.tensor([0, 0])).tolist() == [1, 1]


@pytest.mark.gpu
@no_gpu
def test_a_gpu_writes_the_ids_of_the_cpu() -> None:
    """In float64, over shapes, refilled slots and a cache that grows; the last call replays what the second left."""
    answers = []
    for device in ("cpu", "cuda"):
        model = tiny_model().to(device)
        generator = torch.Generator().manual_seed(0)
        prompts = []
        for count in range(3, 12):
            ids = torch.randint(0, 50, (count,), generator=generator).to(device)
            prompts.append(Prompt(model.embed(ids), torch.arange(count, device=device).expand(3, -1), 20 * count))
        runner = Runner(model)
        for rounds in (Rounds.PLAIN, Rounds.FUSED, Rounds.FUSED):
            found = decode(model, prompts, Rules(frozenset({END}), MASK, 6, rounds), 4, runner)
            answers.append([answer.ids for answer in found])
    assert all(each == answers[0] for each in answers)
