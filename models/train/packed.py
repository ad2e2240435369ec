"""Samples of any size and any checkpoint as one packed sequence for the joint loss, or for rewards.

Each sample is `[S | x0 | xt]` (see attention.training_mask) with the prompt and the image of its checkpoint's
conventions; a pack is such samples behind each other, and a token sees nothing of another sample. Nothing is padded.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from gravityocr_models.attention import Rule, mask_of
from gravityocr_models.config import DraftConfig, OcrConfig
from gravityocr_models.family import Conventions
from gravityocr_models.image import normalise
from gravityocr_models.ocr import OcrModel, sequence_positions
from gravityocr_models.records import Task
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.batch import IGNORE
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.trainer import Figures


@dataclass(frozen=True)
class Pack:
    """images: normalised pixels [C, H, W] of each sample, in order. lengths int64 [samples]: tokens of the answers.

    Of each token, [T]: ids int64; positions int64 [3, T]; shown bool: an image token; sample int64: whose it is; noised
    bool: a mask token of xt; block int64: block of its answer slot, -1 in S; labels int64: what it predicts, or IGNORE.
    """

    images: tuple[Tensor, ...]
    lengths: Tensor
    ids: Tensor
    positions: Tensor
    shown: Tensor
    sample: Tensor
    noised: Tensor
    block: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Packer:
    """Samples -> packs, as a checkpoint is asked."""

    config: OcrConfig
    tokenizer: Tokenizer
    conventions: Conventions

    @property
    def end(self) -> int:
        """The token that ends an answer in training, where there are several."""
        return min(self.conventions.ends)

    def answer(self, sample: Sample) -> str:
        """What the checkpoint is to answer: the family writes a paragraph on one line."""
        return self.conventions.as_answer(sample.text) if sample.task is Task.TEXT else sample.text

    def packs(self, samples: Iterator[Sample], seed: int, draft: DraftConfig, budget: int) -> Iterator[Pack]:
        """Endless packs of at most `budget` tokens; a sample that is larger by itself is left out."""
        rng = np.random.default_rng(seed)
        waiting: list[Pack] = []
        tokens = 0
        for sample in samples:
            one = self.joint(sample, draft, rng)
            if len(one.ids) > budget:
                continue
            if tokens + len(one.ids) > budget:
                yield together(waiting)
                waiting, tokens = [], 0
            waiting.append(one)
            tokens += len(one.ids)

    def joint(self, sample: Sample, draft: DraftConfig, rng: np.random.Generator) -> Pack:
        """One sample for both paths: its answer, and a copy of mask tokens to the end of the last token's block."""
        answer = self.tokenizer.encode(self.answer(sample))
        clean = self.causal(sample, [*answer, self.end])
        size, start = draft.bd_size, len(clean.ids) - len(answer)
        delta = int(rng.integers(size))
        count = ((len(answer) - 1 + delta) // size + 1) * size - delta
        blocks = (torch.arange(count) + delta) // size
        masks = Pack(
            images=(),
            lengths=torch.zeros(0, dtype=torch.int64),
            ids=torch.full((count,), draft.mask_id),
            positions=clean.positions[:, start - 1 : start] + 1 + torch.arange(count),
            shown=torch.zeros(count, dtype=torch.bool),
            sample=torch.zeros(count, dtype=torch.int64),
            noised=torch.ones(count, dtype=torch.bool),
            block=blocks,
            labels=torch.tensor((answer[1:] + [self.end] * count)[:count]),
        )
        return joined([replace(clean, block=torch.cat([clean.block[:start], blocks[: len(answer)]])), masks])

    def causal(self, sample: Sample, targets: Sequence[int]) -> Pack:
        """One sample with a given answer, on the AR path alone. targets: its tokens, with the end token if it ends."""
        pixels = torch.from_numpy(normalise(sample.pixels, self.config.vision, self.conventions.image))
        rows, columns = (side // self.config.vision.token_px for side in pixels.shape[1:])
        before, after = self.conventions.prompts[sample.task]
        prompt = len(before) + rows * columns + len(after)
        ids = [*before, *[self.config.image_token_id] * rows * columns, *after, *targets[:-1]]
        shown = torch.zeros(len(ids), dtype=torch.bool)
        shown[len(before) : len(before) + rows * columns] = True
        return Pack(
            images=(pixels,),
            lengths=torch.tensor([len(targets)]),
            ids=torch.tensor(ids),
            positions=sequence_positions(len(before), (rows, columns), len(after) + len(targets) - 1),
            shown=shown,
            sample=torch.zeros(len(ids), dtype=torch.int64),
            noised=torch.zeros(len(ids), dtype=torch.bool),
            block=torch.full((len(ids),), -1),
            labels=torch.tensor([IGNORE] * (prompt - 1) + list(targets)),
        )


def together(packs: Sequence[Pack]) -> Pack:
    """Packs of one sample each as one pack."""
    return joined([replace(pack, sample=torch.full_like(pack.sample, place)) for place, pack in enumerate(packs)])


def joined(parts: Sequence[Pack]) -> Pack:
    """The parts' tokens behind each other, samples numbered as they are."""
    tokens = ("lengths", "ids", "shown", "sample", "noised", "block", "labels")
    return Pack(
        images=tuple(image for part in parts for image in part.images),
        positions=torch.cat([part.positions for part in parts], dim=1),
        **{name: torch.cat([getattr(part, name) for part in parts]) for name in tokens},
    )


def visibility(pack: Pack) -> Rule:
    """Which keys a query may see: the rule of attention.training_mask, for many samples at once.

    Clean tokens see their own sample's past; mask tokens its clean tokens of earlier blocks (the prompt is block -1),
    and their own block in both directions.
    """
    sample, noised, block = pack.sample, pack.noised, pack.block

    def sees(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        past = ~noised[query] & (key <= query)
        earlier = noised[query] & (block[key] < block[query])
        own = noised[query] & noised[key] & (block[key] == block[query])
        return (sample[query] == sample[key]) & (~noised[key] & (past | earlier) | own)

    return sees


def hidden_states(model: OcrModel, pack: Pack) -> Tensor:
    """What the decoder makes of every token, [T, hidden]."""
    embeds = model.embed(pack.ids)
    image = _seen(model, pack.images).to(embeds.dtype)
    embeds = embeds.masked_scatter(pack.shown[:, None], image)
    mask = mask_of(visibility(pack), len(pack.ids), model.device)
    return model.decode(embeds[None], pack.positions[:, None], mask)[0]  # type: ignore[arg-type]


def joint_loss(ar_weight: float) -> Callable[[OcrModel, Pack, int], tuple[Tensor, Figures]]:
    """The loss of a pack on both paths: (L_draft + w * L_ar) / (1 + w)."""

    def loss_of(model: OcrModel, pack: Pack, seen: int) -> tuple[Tensor, Figures]:
        labelled = pack.labels != IGNORE
        labels, noised = pack.labels[labelled], pack.noised[labelled]
        logits = model.logits(hidden_states(model, pack)[labelled]).float()
        each = F.cross_entropy(logits, labels, reduction="none")
        right = (logits.argmax(-1) == labels).float()
        ar, draft = each[~noised].mean(), each[noised].mean()
        accuracies = {"ar_accuracy": right[~noised].mean(), "draft_accuracy": right[noised].mean()}
        return (draft + ar_weight * ar) / (1 + ar_weight), {"ar": ar, "draft": draft} | accuracies

    return loss_of


def _seen(model: OcrModel, images: Sequence[Tensor]) -> Tensor:
    """Image tokens [n, hidden] of all images in order; those of one shape share a forward."""
    shapes = [image.shape for image in images]
    found: dict[int, Tensor] = {}
    for shape in dict.fromkeys(shapes):
        alike = [place for place, other in enumerate(shapes) if other == shape]
        found |= dict(zip(alike, model.see(torch.stack([images[place] for place in alike])), strict=True))
    return torch.cat([found[place] for place in range(len(images))])
