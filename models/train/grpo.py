"""GRPO: sampled answers to the same crop compete, and what scores above their mean becomes likelier (on the AR path).

    python -m gravityocr_models.train.grpo --data DATA --model DIR --out DIR --steps 200

Rewards: rewards.py. The advantage of an answer is its reward against its group, in standard deviations; the update is
clipped token by token, weighed by how far the sampler's numbers and the trainer's differ, and held near the model that
it began with. Drafts are not trained: validate.py says what is left of their acceptance.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from gravityocr_models import weights
from gravityocr_models.cache import KVCache
from gravityocr_models.engine import Engine
from gravityocr_models.family import read_conventions
from gravityocr_models.ocr import OcrModel
from gravityocr_models.records import Crop
from gravityocr_models.speculate import Prompt
from gravityocr_models.train.batch import IGNORE
from gravityocr_models.train.corpora import load_corpora
from gravityocr_models.train.distributed import team
from gravityocr_models.train.finetune import export, last_stage
from gravityocr_models.train.loop import Row, plan_of, run, run_options
from gravityocr_models.train.packed import Pack, Packer, hidden_states, together
from gravityocr_models.train.rewards import reward
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.stream import LANE, curriculum
from gravityocr_models.train.trainer import Figures, Objective, Trainer, fast_numbers, moved
from gravityocr_models.train.validate import Reading
from gravityocr_models.weights import Checkpoint

# The paper's values, as far as they are known; the clip is the usual one.
PEAK_RATE = 3e-6
GROUP = 28
TEMPERATURE = 0.8
KL_WEIGHT = 1e-3
CLIP = 0.2
TRUNCATION = 2.0  # most that a token's importance weight may be
UPDATES = 2  # steps on the same answers


@dataclass(frozen=True)
class Sampled:
    """One answer. ids: with the end token if it ended; logprobs: of each id, as the sampler saw them."""

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    ended: bool


@dataclass(frozen=True)
class Rollouts:
    """Answers of one or more groups, packed. Of each answer token, float32 [N]: advantage, and its log probability as
    sampled (behaviour), in the trainer before the updates (old), and in the model it all began with (reference).
    rewards float32 [answers]; ended bool [answers]."""

    pack: Pack
    advantage: Tensor
    behaviour: Tensor
    old: Tensor
    reference: Tensor
    rewards: Tensor
    ended: Tensor

    @property
    def lengths(self) -> Tensor:
        return self.pack.lengths


def advantages(rewards: Tensor) -> Tensor:
    """Rewards [groups, answers] against their group, in its standard deviations; 0 where all are alike."""
    spread = rewards.std(dim=1, keepdim=True, correction=0)
    return torch.where(spread > 1e-6, (rewards - rewards.mean(dim=1, keepdim=True)) / spread.clamp(min=1e-6), 0.0)


def policy_loss(
    new: Tensor, old: Tensor, behaviour: Tensor, reference: Tensor, advantage: Tensor
) -> tuple[Tensor, Figures]:
    """The clipped objective of tokens [N], all log probabilities but the advantage.

    A token that was sampled by slightly other numbers counts by how much likelier the trainer found it, at most
    TRUNCATION. The distance to the reference is the estimate exp(d) - d - 1 of d = reference - new, never negative.
    """
    ratio = (new - old).exp()
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP, 1 + CLIP) * advantage)
    weight = (old - behaviour).exp().clamp(max=TRUNCATION)
    apart = (reference - new).exp() - (reference - new) - 1
    loss = (KL_WEIGHT * apart - weight * gain).mean()
    clipped = ((ratio - 1).abs() > CLIP).float().mean()
    return loss, {"kl": apart.mean(), "clipped": clipped, "importance": weight.mean()}


def log_probabilities(model: OcrModel, pack: Pack) -> Tensor:
    """Of the labelled tokens, float32 [N], at the sampling temperature."""
    labelled = pack.labels != IGNORE
    logits = model.logits(hidden_states(model, pack)[labelled]).float() / TEMPERATURE
    return logits.log_softmax(-1).gather(1, pack.labels[labelled][:, None])[:, 0]


def loss_of(model: OcrModel, rollouts: Rollouts, seen: int) -> tuple[Tensor, Figures]:
    """The loss of rollouts, with what they earned."""
    new = log_probabilities(model, rollouts.pack)
    loss, figures = policy_loss(new, rollouts.old, rollouts.behaviour, rollouts.reference, rollouts.advantage)
    earned = {"reward": rollouts.rewards.mean(), "spread": rollouts.rewards.std(correction=0)}
    return loss, earned | {"ended": rollouts.ended.float().mean()} | figures


@torch.inference_mode()
def sample_answers(model: OcrModel, prompt: Prompt, count: int, ends: frozenset[int]) -> list[Sampled]:
    """`count` answers to one prompt, drawn token by token at the sampling temperature, up to the prompt's limit."""
    start, device = len(prompt.embeds), model.device
    cache = KVCache(model.config.text, count, start + prompt.limit, device, model.dtype)
    lengths = torch.zeros(count, dtype=torch.int64, device=device)
    causal = torch.ones(start, start, dtype=torch.bool, device=device).tril()[None, None]
    window = cache.window(0, lengths[:1], start, start)
    hidden = model.decode(prompt.embeds[None], prompt.positions[:, None], causal, window)
    for row in range(1, count):
        cache.move(0, row, start)  # one prefill serves the group
    hidden = hidden[:, -1:].expand(count, -1, -1)
    going = torch.ones(count, dtype=torch.bool, device=device)
    ids, logprobs = [], []
    for place in range(prompt.limit):
        scores = (model.logits(hidden[:, 0]).float() / TEMPERATURE).log_softmax(-1)
        token = scores.exp().multinomial(1)
        ids.append(token[:, 0].tolist())
        logprobs.append(scores.gather(1, token)[:, 0].tolist())
        going &= ~torch.isin(token[:, 0], torch.tensor(sorted(ends), device=device))
        if not going.any() or place == prompt.limit - 1:
            break
        position = prompt.positions.max() + 1 + torch.full((3, count, 1), place, device=device)
        used = start + place
        seen = torch.ones(count, 1, 1, used + 1, dtype=torch.bool, device=device)
        window = cache.window(0, lengths + used, 1, used + 1)
        hidden = model.decode(model.embed(token), position, seen, window)
    rows = zip(zip(*ids, strict=True), zip(*logprobs, strict=True), strict=True)
    return [_cut(row, scores, ends) for row, scores in rows]


def _cut(ids: Sequence[int], logprobs: Sequence[float], ends: frozenset[int]) -> Sampled:
    """An answer up to and with its first end token."""
    last = next((place for place, token in enumerate(ids) if token in ends), None)
    count = len(ids) if last is None else last + 1
    return Sampled(tuple(ids[:count]), tuple(logprobs[:count]), last is not None)


class Sampler:
    """Samples answers with the model in training, and gives every batch of them UPDATES times."""

    def __init__(self, model: OcrModel, reference: OcrModel, packer: Packer, group: int) -> None:
        self.engine = Engine(Checkpoint(model, packer.tokenizer, None), packer.conventions)
        self.model, self.reference, self.packer, self.group = model, reference, packer, group

    def batches(self, crops: Iterator[Sample], budget: int) -> Iterator[Rollouts]:
        """Endless rollouts of as many groups as `budget` tokens hold, one at least."""
        packs: list[Pack] = []
        answers: list[Sampled] = []
        rewards: list[float] = []
        for crop in crops:
            for answer in self.answers(crop):
                packs.append(self.packer.causal(crop, answer.ids))
                answers.append(answer)
                rewards.append(self.reward(crop, answer))
            tokens = sum(len(pack.ids) for pack in packs)
            if tokens * (1 + self.group / len(packs)) > budget:  # another group like these would not fit
                rollouts = self.rollouts(together(packs), answers, torch.tensor(rewards))
                yield from [rollouts] * UPDATES
                packs, answers, rewards = [], [], []

    def answers(self, sample: Sample) -> list[Sampled]:
        """A group of answers to one crop."""
        crop = Crop(np.repeat(sample.pixels[:, :, None], 3, axis=2), sample.task)
        with fast_numbers(self.model.device):
            prompt = self.engine.prompts([crop])[0]
            return sample_answers(self.model, prompt, self.group, self.packer.conventions.ends)

    @torch.no_grad()
    def rollouts(self, pack: Pack, answers: Sequence[Sampled], rewards: Tensor) -> Rollouts:
        """Groups of answers with their advantages, and the probabilities that the update compares with."""
        pack = moved(pack, self.model.device)
        with fast_numbers(self.model.device):
            old, reference = (log_probabilities(model, pack) for model in (self.model, self.reference))
        return Rollouts(
            pack=pack,
            advantage=advantages(rewards.view(-1, self.group)).flatten().repeat_interleave(pack.lengths.cpu()),
            behaviour=torch.tensor([value for answer in answers for value in answer.logprobs]),
            old=old,
            reference=reference,
            rewards=rewards,
            ended=torch.tensor([answer.ended for answer in answers]),
        )

    def reward(self, sample: Sample, answer: Sampled) -> float:
        """Of one answer."""
        ids = [token for token in answer.ids if token not in self.packer.conventions.ends]
        text = self.packer.conventions.tidy(self.packer.tokenizer.decode(ids))
        return reward(sample.task, text, self.packer.answer(sample), answer.ended)


def main() -> None:
    parser = run_options("train a checkpoint on rewards", PEAK_RATE, 16_384)
    parser.add_argument("--model", type=Path, required=True, help="folder of the checkpoint to start from")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the trained checkpoint to")
    parser.add_argument("--group", type=int, default=GROUP, help="answers sampled to each crop")
    options = parser.parse_args()
    plan, state = plan_of(options), options.out.with_name(options.out.name + ".state")
    with team() as world:
        checkpoint = weights.load(options.model)
        reference = weights.load(options.model, world.device).model
        conventions = read_conventions(options.model, checkpoint.model.config, checkpoint.tokenizer)
        packer = Packer(checkpoint.model.config, checkpoint.tokenizer, conventions)
        objective = Objective(checkpoint.model.requires_grad_(True), loss_of)
        trainer, corpora = Trainer(objective, state, world), load_corpora(options.data)
        torch.manual_seed(LANE * world.rank + trainer.progress.samples)
        crops = curriculum(corpora, last_stage, trainer.progress.samples, world.rank, world.size)
        sampler = Sampler(checkpoint.model, reference, packer, options.group)
        reading = Reading(corpora, checkpoint.tokenizer, conventions, checkpoint.draft)

        def examine(model: OcrModel) -> Mapping[str, list[Row]]:
            return {"reading.csv": reading.rows(model, last_stage(0))}

        write = partial(export, options.model, options.out, checkpoint.draft)
        run(trainer, sampler.batches(crops, options.tokens), plan, state, examine, write)


if __name__ == "__main__":
    main()
