"""The joint loss: one forward over `[S | x0 | xt]` gives the AR, drafting, glyph and pointer losses."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gravityocr_models.attention import training_mask
from gravityocr_models.config import DraftConfig
from gravityocr_models.glyphs import Tag, emptiness
from gravityocr_models.ocr import OcrModel, TextAttention, picked, rotate_pairs
from gravityocr_models.times import shown_on, told_positions
from gravityocr_models.train.batch import IGNORE, Batch
from gravityocr_models.train.telling import NOTHING, Told

TAG_WEIGHT = 1.0  # shared by all tags of a glyph
POINTER_LAYER = 1  # the first layer can tell where the answer stands, the second where to look next


@dataclass(frozen=True)
class Losses:
    """Mean cross entropies (nats) and shares of right argmaxes, all scalars on the model's device."""

    ar: Tensor
    draft: Tensor
    glyph: Tensor
    pointer: Tensor
    ar_accuracy: Tensor
    draft_accuracy: Tensor
    glyph_accuracy: Tensor
    pointer_accuracy: Tensor


def joint_losses(
    model: OcrModel, batch: Batch, draft: DraftConfig, tell: Callable[[Batch, Tensor], Told] | None = None
) -> Losses:
    """All losses of a batch. The vision side is never noised; the output head runs on labelled rows only.

    tell: the encoder's reading of a batch, from the glyph head's logits; the decoder learns to go by it. The encoder
    itself learns by the glyph loss alone: what the decoder would have of it blurs it (docs/journal.md).
    """
    image = model.see(batch.pixels)
    named = model.name_glyphs(image)
    glyph, glyph_accuracy = _named(named, batch.glyphs)
    told = tell(batch, named) if tell else NOTHING
    attention: TextAttention = model.model.language_model.layers[POINTER_LAYER].self_attn  # type: ignore[assignment]
    seen: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    hook = attention.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[:4]))
    shown = shown_on(emptiness(named)).cpu()
    hidden, prompt = _hidden(model, image.detach(), shown, batch, draft, told)
    hook.remove()
    answer_rows = hidden[:, prompt - 1 : prompt + batch.answers.shape[1]]
    draft_rows = hidden[:, prompt + batch.answers.shape[1] :]
    ar, ar_accuracy = _scored(model, answer_rows, batch.ar_labels)
    drafted, draft_accuracy = _scored(model, draft_rows, batch.draft_labels)
    pointer, pointer_accuracy = _pointed(attention, *seen[0], pointer_targets(batch, shown, told, prompt))
    return Losses(ar, drafted, glyph, pointer, ar_accuracy, draft_accuracy, glyph_accuracy, pointer_accuracy)


def pointer_targets(batch: Batch, shown: Tensor, told: Told, prompt: int) -> Tensor:
    """For each row of `[S | x0 | xt]` the sequence index of what its next token is read from: int64 [B, T].

    That is the same token of the reading, or where there is no reading the image token. shown int64 [B, K]: the image
    tokens of the prompt.
    """
    size, length = batch.places.shape
    count = batch.draft_labels.shape[1]
    index = shown.new_full((size, batch.grid[0] * batch.grid[1]), IGNORE)
    index.scatter_(1, shown, torch.arange(1, shown.shape[1] + 1).expand_as(shown))  # the image starts at index 1
    at = batch.places.cpu()
    places = torch.where(at == IGNORE, IGNORE, index.gather(1, at.clamp(min=0)))
    read = torch.where(told.alike == IGNORE, IGNORE, 1 + shown.shape[1] + told.alike)
    places = torch.where((told.times < 0).all(dim=1, keepdim=True), places, read).to(batch.places.device)
    targets = places.new_full((size, prompt + length + count), IGNORE)
    targets[:, prompt - 1 : prompt - 1 + length] = places
    shifted = min(length - 1, count)
    targets[:, prompt + length : prompt + length + shifted] = places[:, 1 : 1 + shifted]
    return targets


def _pointed(
    attention: TextAttention, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """The pointer loss: one attention head looks at what the next token is read from.

    Where each token stands in the reading and on the image is known in training. Left to itself, a decoder takes very
    long to find out that there is something to look at. Returns the cross entropy of the head's attention, and the
    share of rows that look there most.
    """
    size = attention.head_dim

    def head_of(projection: nn.Linear) -> Tensor:
        return rotate_pairs(F.linear(x, projection.weight[:size])[:, :, None], cos, sin)[:, :, 0]

    wanted = targets != IGNORE
    if not wanted.any():
        return x.sum() * 0, x.new_zeros(())
    scores = head_of(attention.q_proj) @ head_of(attention.k_proj).transpose(1, 2) * size**-0.5
    scores = scores.masked_fill(~mask[:, 0], -torch.inf)[wanted].float()
    return F.cross_entropy(scores, targets[wanted]), (scores.argmax(-1) == targets[wanted]).float().mean()


def reading_losses(model: OcrModel, batch: Batch) -> Losses:
    """The glyph loss alone, at half the work; the others are not a number."""
    glyph, accuracy = _named(model.name_glyphs(model.see(batch.pixels)), batch.glyphs)
    unknown = glyph.detach() * torch.nan
    return Losses(unknown, unknown, glyph, unknown, unknown, unknown, accuracy, unknown)


def _named(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Cross entropies of all glyphs and tags that are known, and the share of glyphs named right."""
    letters, tags = labels[..., 0], labels[..., 1:]
    known, told = letters != IGNORE, tags != IGNORE
    if not known.any():
        return logits.sum() * 0, logits.new_zeros(())
    named, tagged = logits.split((logits.shape[-1] - len(Tag), len(Tag)), dim=-1)
    named, letters = named[known].float(), letters[known]
    loss = F.cross_entropy(named, letters)
    if told.any():
        loss = loss + TAG_WEIGHT * F.binary_cross_entropy_with_logits(tagged[told].float(), tags[told].float())
    return loss, (named.argmax(-1) == letters)[letters > 0].float().mean()


def _hidden(
    model: OcrModel, image: Tensor, shown: Tensor, batch: Batch, draft: DraftConfig, told: Told
) -> tuple[Tensor, int]:
    """Hidden states of `[S | x0 | xt]` and the length of S. shown int64 [B, K]: the image tokens of S."""
    config, device = model.config, image.device
    size, count = len(batch.answers), batch.draft_labels.shape[1]
    ids = [config.image_start_token_id, config.image_end_token_id]
    start, stop = model.embed(torch.tensor(ids, device=device))
    one = (size, 1, -1)
    masks = model.embed(torch.full((size, count), draft.mask_id, device=device))
    reading = model.embed(told.ids.to(device)).expand(size, -1, -1)
    parts = [start.expand(one), picked(image, shown.to(device)), reading, stop.expand(one)]
    parts += [model.embed(batch.tasks)[:, None], model.embed(batch.answers), masks]
    prompt = shown.shape[1] + reading.shape[1] + 3
    times = told.times.expand(size, image.shape[1])
    before = told_positions(1, batch.grid, shown, reading.shape[1], 2, times)
    behind = before[:, :, -1:] + 1
    answer, slots = torch.arange(batch.answers.shape[1]), torch.arange(count)
    positions = torch.cat([before, behind + answer, behind + slots], dim=2).to(device)
    mask = training_mask(prompt, batch.lengths, count, batch.delta, draft.bd_size)
    return model.decode(torch.cat(parts, dim=1), positions, mask), prompt


def _scored(model: OcrModel, rows: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    wanted = labels != IGNORE
    logits = model.logits(rows[wanted]).float()
    return F.cross_entropy(logits, labels[wanted]), (logits.argmax(-1) == labels[wanted]).float().mean()
