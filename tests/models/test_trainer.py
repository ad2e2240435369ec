"""What every trainer shares: the plan, the loop, the saved state."""

import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from gravityocr_models.ocr import OcrModel
from gravityocr_models.train.distributed import Team
from gravityocr_models.train.loop import Plan, Row, append, run
from gravityocr_models.train.trainer import Figures, Objective, Trainer, means, moved, recompute
from tiny import tiny_model

ALONE = Team(0, 1, torch.device("cpu"))


@dataclass(frozen=True)
class Numbers:
    """A batch for a loss that needs nothing else."""

    ids: Tensor

    @property
    def lengths(self) -> Tensor:
        return self.ids[0]


def loss_of(model: OcrModel, batch: Numbers, seen: int) -> tuple[Tensor, Figures]:
    loss = model.embed(batch.ids).square().mean()
    return loss, {"loss": loss, "seen": torch.tensor(float(seen))}


def trainer(state: Path) -> Trainer:
    model = tiny_model(dtype=torch.float32).requires_grad_(True)
    return Trainer(Objective(model, loss_of), state, ALONE)


def numbers() -> Iterator[Numbers]:
    while True:
        yield Numbers(torch.arange(6).view(2, 3))


def test_rate_warms_up_holds_and_falls() -> None:
    plan = Plan(1.0, minutes=10)
    rates = [plan.rate(step, 0, share) for step, share in ((0, 0.0), (50, 0.1), (1000, 0.2), (5000, 0.8))]
    assert rates == pytest.approx([0.01, 0.51, 1.0, 1.0])
    assert plan.rate(5000, 0, 0.9) == pytest.approx(0.5)
    assert plan.rate(5000, 0, 1.0) == 0
    assert plan.share(7, 300) == pytest.approx(0.5)


def test_a_plan_in_steps_goes_on_where_it_was_one_in_minutes_starts_anew() -> None:
    in_steps, in_minutes = Plan(1.0, steps=1000), Plan(1.0, minutes=10)
    assert in_steps.rate(500, 500, in_steps.share(500, 0)) == 1.0
    assert in_minutes.rate(500, 500, in_minutes.share(500, 0)) == pytest.approx(0.01)


def test_at_the_turn_the_average_becomes_the_model(tmp_path: Path) -> None:
    """What stands still from there on must be as good as what was exported before."""
    model = tiny_model(dtype=torch.float32).requires_grad_(True)
    training = Trainer(Objective(model, loss_of), tmp_path, ALONE, turn=(4, lambda: None))
    batch = next(numbers())
    for _ in range(60):
        training.step(batch, 0.01)
    weight = model.model.language_model.embed_tokens.weight
    average = training.average["model.language_model.embed_tokens.weight"].clone()
    training.count(3)
    assert not torch.equal(weight, average)
    training.count(3)
    assert torch.equal(weight, average)


def test_a_run_counts_saves_and_validates_its_average(tmp_path: Path) -> None:
    one = trainer(tmp_path)
    exported: list[OcrModel] = []

    def examine(model: OcrModel) -> Mapping[str, list[Row]]:
        return {"reading.csv": [{"read": "lines", "likeness": 0.5}]}

    run(one, numbers(), Plan(1e-2, steps=5), tmp_path, examine, exported.append)
    assert (one.progress.step, one.progress.samples) == (5, 15)
    assert torch.equal(exported[0].lm_head.weight, one.average["lm_head.weight"])
    assert trainer(tmp_path).progress == one.progress
    assert (tmp_path / "reading.csv").read_text().splitlines()[1].startswith("valid,5,15,")
    assert (tmp_path / "metrics.csv").read_text().startswith("kind,step,samples,seconds,loss,seen\ntrain,5,15,")


def test_an_end_asked_for_comes_after_the_step_and_skips_the_examination(tmp_path: Path) -> None:
    one, exported = trainer(tmp_path), list[OcrModel]()

    def interrupted() -> Iterator[Numbers]:
        for count, batch in enumerate(numbers()):
            if count == 3:
                signal.raise_signal(signal.SIGTERM)
            yield batch

    def examine(model: OcrModel) -> Mapping[str, list[Row]]:
        raise AssertionError("who asks for an end may not wait for long")

    handler = signal.getsignal(signal.SIGTERM)
    run(one, interrupted(), Plan(1e-2), tmp_path, examine, exported.append)
    assert one.progress.step == 3
    assert len(exported) == 1
    assert trainer(tmp_path).progress == one.progress
    assert signal.getsignal(signal.SIGTERM) == handler


def test_the_state_of_another_model_is_refused(tmp_path: Path) -> None:
    trainer(tmp_path).save()
    other = tiny_model(stem=False, dtype=torch.float32)
    with pytest.raises(ValueError, match="another model"):
        Trainer(Objective(other, loss_of), tmp_path, ALONE)


def test_a_csv_of_other_columns_is_kept_under_another_name(tmp_path: Path) -> None:
    file = tmp_path / "metrics.csv"
    append(file, {"step": 1, "ar": 2.0})
    append(file, {"step": 2, "ar": 1.0})
    append(file, {"step": 3, "ar": 1.0, "draft": 2.0})
    assert file.read_text() == "step,ar,draft\n3,1.0,2.0\n"
    assert (tmp_path / "metrics-before-3.csv").read_text() == "step,ar\n1,2.0\n2,1.0\n"


def test_means_leave_out_what_is_unknown() -> None:
    unknown, known = torch.tensor(torch.nan), torch.tensor(4.0)
    assert means([{"ar": unknown}, {"ar": known}]) == {"ar": 4.0}


def test_moved_reaches_into_tuples_and_records() -> None:
    @dataclass(frozen=True)
    class Outer:
        images: tuple[Tensor, ...]
        inner: Numbers
        grid: tuple[int, int]

    there = moved(Outer((torch.zeros(1),), Numbers(torch.zeros(1)), (2, 3)), torch.device("meta"))
    assert there.images[0].is_meta
    assert there.inner.ids.is_meta
    assert there.grid == (2, 3)


def test_recomputing_gives_the_same_gradients() -> None:
    pixels = torch.randn(2, 1, 8, 16)
    gradients = []
    for again in (False, True):
        model = tiny_model(dtype=torch.float32).requires_grad_(True)
        if again:
            recompute(model)
        image = model.see(pixels)
        mask = torch.ones(image.shape[1], image.shape[1], dtype=torch.bool).tril()[None, None]
        positions = torch.arange(image.shape[1]).expand(3, 2, -1)
        model.decode(image, positions, mask).square().sum().backward()
        gradients.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name])
