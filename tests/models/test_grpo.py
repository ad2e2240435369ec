"""GRPO: the objective on values worked out by hand, sampling with true probabilities, and a reward that rises."""

import csv
import math
import shutil
import sys
from dataclasses import replace
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import pytest
import torch

from gravityocr_models import weights
from gravityocr_models.engine import Engine
from gravityocr_models.family import nano_conventions
from gravityocr_models.ocr import OcrModel
from gravityocr_models.records import Crop, Task
from gravityocr_models.speculate import Prompt
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train import grpo
from gravityocr_models.train.corpora import Corpora
from gravityocr_models.train.distributed import Team
from gravityocr_models.train.grpo import (
    CLIP,
    KL_WEIGHT,
    TEMPERATURE,
    TRUNCATION,
    Sampled,
    Sampler,
    advantages,
    log_probabilities,
    loss_of,
    policy_loss,
    sample_answers,
)
from gravityocr_models.train.joint import Nano, initialise
from gravityocr_models.train.packed import Packer
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.validate import Reading
from gravityocr_models.weights import NANO
from tiny import small_nano


def policy(new: float, old: float, behaviour: float, reference: float, advantage: float) -> tuple[float, float]:
    """Loss and distance of one token."""
    values = [torch.tensor([value]) for value in (new, old, behaviour, reference, advantage)]
    loss, figures = policy_loss(*values)
    return float(loss), float(figures["kl"])


def test_advantages_are_rewards_in_deviations_from_their_group() -> None:
    rewards = torch.tensor([[0.0, 1.0, 0.5, 0.5], [0.3, 0.3, 0.3, 0.3]])
    step = 0.5 / math.sqrt(0.125)
    torch.testing.assert_close(advantages(rewards), torch.tensor([[-step, step, 0.0, 0.0], [0.0] * 4]))


def test_where_nothing_has_moved_the_loss_is_the_advantage() -> None:
    assert policy(-1.0, -1.0, -1.0, -1.0, 2.0) == (-2.0, 0.0)


@pytest.mark.parametrize(
    ("ratio", "advantage", "gain"),
    [(1.1, 2.0, 2.2), (2.0, 2.0, 2 * (1 + CLIP)), (2.0, -2.0, -4.0), (0.5, 2.0, 1.0), (0.5, -2.0, -2 * (1 - CLIP))],
)
def test_what_is_gained_is_clipped_what_is_lost_is_not(ratio: float, advantage: float, gain: float) -> None:
    new = -1.0 + math.log(ratio)
    assert policy(new, -1.0, -1.0, new, advantage)[0] == pytest.approx(-gain)


@pytest.mark.parametrize(("mismatch", "weight"), [(1.5, 1.5), (0.5, 0.5), (9.0, TRUNCATION)])
def test_tokens_weigh_what_the_trainer_thinks_of_them_up_to_a_bound(mismatch: float, weight: float) -> None:
    assert policy(-1.0, -1.0, -1.0 - math.log(mismatch), -1.0, 1.0)[0] == pytest.approx(-weight)


def test_distance_to_the_reference_costs() -> None:
    loss, apart = policy(-1.0, -1.0, -1.0, -1.5, 0.0)
    assert apart == pytest.approx(math.exp(-0.5) + 0.5 - 1)
    assert loss == pytest.approx(KL_WEIGHT * apart)


def test_a_clipped_token_has_no_gradient() -> None:
    new = torch.tensor([-0.5, -1.0], requires_grad=True)
    old = torch.tensor([-1.0, -1.0])
    policy_loss(new, old, old, new.detach(), torch.tensor([1.0, 1.0]))[0].backward()
    assert new.grad is not None
    assert new.grad.tolist() == pytest.approx([0.0, -0.5])


@pytest.fixture(scope="module")
def sampler() -> Sampler:
    """A small random nano, and the same again as the reference."""
    torch.manual_seed(0)
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    models = []
    for _ in range(2):
        torch.manual_seed(0)
        model = OcrModel(small_nano(tokenizer))
        initialise(model)
        models.append(model)
    packer = Packer(models[0].config, tokenizer, nano_conventions(models[0].config, tokenizer))
    return Sampler(models[0], models[1].requires_grad_(False), packer, group=16)


def crop() -> Sample:
    return Sample(np.random.default_rng(0).integers(0, 256, (16, 64)).astype(np.uint8), "eeee", Task.TEXT, (), "test")


def test_a_sampled_answer_has_the_probability_that_training_gives_it(sampler: Sampler) -> None:
    torch.manual_seed(1)
    one = crop()
    answers = sampler.answers(one)
    assert len(answers) == 16
    ends = sampler.packer.conventions.ends
    for answer in answers:
        assert answer.ended == (answer.ids[-1] in ends)
        assert not ends & set(answer.ids[:-1])
        with torch.no_grad():
            found = log_probabilities(sampler.model, sampler.packer.causal(one, answer.ids))
        torch.testing.assert_close(found, torch.tensor(answer.logprobs), rtol=1e-4, atol=1e-4)


def prompt_of(sampler: Sampler, limit: int) -> Prompt:
    pixels = np.repeat(crop().pixels[:, :, None], 3, axis=2)
    return replace(sampler.engine.prompts([Crop(pixels)])[0], limit=limit)


def test_answers_are_drawn_at_the_temperature(sampler: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    scores = torch.tensor([2.0, 1.0, 0.0])
    monkeypatch.setattr(sampler.model, "logits", lambda hidden: scores.expand(*hidden.shape[:-1], 3))
    answers = sample_answers(sampler.model, prompt_of(sampler, 1), 2000, frozenset())
    shares = [sum(answer.ids == (token,) for answer in answers) / 2000 for token in range(3)]
    assert shares == pytest.approx((scores / TEMPERATURE).softmax(-1).tolist(), abs=0.03)


def test_reward_rises(sampler: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that has half learned an answer learns the rest from what its own tries are worth."""
    torch.manual_seed(3)
    ends = sampler.packer.conventions.ends
    truth = sampler.packer.causal(crop(), [*sampler.packer.tokenizer.encode(crop().text), *ends])

    def answers(_: Sample) -> list[Sampled]:
        return sample_answers(sampler.model, prompt_of(sampler, 8), sampler.group, ends)

    def learn(optimizer: torch.optim.Optimizer, loss: torch.Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    monkeypatch.setattr(sampler, "answers", answers)
    optimizer = torch.optim.AdamW(sampler.model.parameters(), lr=1e-3)
    for _ in range(14):
        learn(optimizer, -log_probabilities(sampler.model, truth).mean())
    optimizer = torch.optim.AdamW(sampler.model.parameters(), lr=1e-3)
    earned = []
    for rollouts in islice(sampler.batches(repeat(crop()), 1), 60):
        loss, figures = loss_of(sampler.model, rollouts, 0)
        learn(optimizer, loss)
        earned.append(float(figures["reward"]))
    assert np.mean(earned[-10:]) > np.mean(earned[:10]) + 0.1


def test_the_program_goes_from_checkpoint_to_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = tmp_path / "nano", tmp_path / "out"
    folder.mkdir()
    shutil.copy(NANO / "tokenizer.json", folder)
    nano = Nano(folder)
    nano.config = small_nano(nano.tokenizer)
    trainer = nano.trainer(tmp_path / "state", Team(0, 1, torch.device("cpu")))
    nano.export(trainer, trainer.model)
    monkeypatch.setattr(grpo, "load_corpora", lambda _: Corpora())
    monkeypatch.setattr(grpo, "curriculum", lambda *_: repeat(crop()))
    monkeypatch.setattr(Reading, "rows", lambda *_: [{"read": "lines"}])
    options = f"grpo --data . --model {folder} --out {out} --steps 3 --group 2 --tokens 1"
    monkeypatch.setattr(sys, "argv", options.split())
    grpo.main()
    assert Engine.load(out, "cpu", "float32").checkpoint.draft == weights.load(folder).draft
    row = next(csv.DictReader((tmp_path / "out.state/metrics.csv").read_text().splitlines()))
    assert (row["step"], row["samples"]) == ("3", "6")
    assert float(row["reward"]) <= 0
