"""One round of decoding as tensors: windows of ids in, what the model chooses and accepts out.

A round sends one tensor to the device and takes one back. What is done in between depends on shapes and on no value, so
that on a GPU each shape can be recorded once as a graph (graphs.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gravityocr_models.attention import additive, folded, window_mask
from gravityocr_models.cache import KVCache
from gravityocr_models.graphs import Graphs
from gravityocr_models.ocr import OcrModel, Read, picked
from gravityocr_models.reading import BONUS, with_hints

CACHE_STEP = 256  # slots that the cache begins with
NO_HINT = -1
HEADER = 4  # columns of a packed window before its ids
# Rows that cost as much as a forward's fixed part, its calls and memory traffic (docs/performance.md). A CPU soon has
# its hands full; a GPU moves the weights once for hundreds of rows.
FREE_ROWS = {"cpu": 16.0, "compiled": 4.5, "cuda": 250.0}
PREFILL_ROWS = {"cpu": 640, "cuda": 4_096}  # most of one prefill: bounds its memory, and keeps a CPU's in its caches


@dataclass(frozen=True)
class Steps:
    """What a round's shape is rounded up to, so that few shapes occur: sequences, rows of a window, slots looked at."""

    sequences: int = 1
    width: int = 1
    visible: int = 1


FEW_SHAPES = Steps(8, 8, 256)


@dataclass(frozen=True)
class Work:
    """One sequence's part of a forward.

    ids: clean tokens, then `masks` mask tokens. position: rotary position of the first. cached: slots of the cache that
    hold what was before. prompt: where the sequence begins, its embeddings [n, hidden] and positions [3, n]. hints:
    what a reading goes on with, before the first candidate, after each and after masks; empty = nothing.
    """

    ids: Sequence[int]
    masks: int
    position: int
    cached: int = 0
    prompt: tuple[Tensor, Tensor] | None = None
    hints: Sequence[int] = ()

    @property
    def clean(self) -> int:
        return len(self.ids) - self.masks


@dataclass(frozen=True)
class Outcome:
    """accepted: candidates that are the model's own choices. choices, certainties: what each row predicts, from the one
    that predicts the first candidate on, and with what probability."""

    accepted: int
    choices: list[int]
    certainties: list[float]


def accept(drafts: Tensor, lengths: Tensor, choices: Tensor) -> Tensor:
    """How many candidates of each sequence are the model's own choices, up to the first that is not: int64 [B].

    drafts int64 [B, A], padded; lengths int64 [B]; choices int64 [B, >= A]: row i is what follows candidate i - 1.
    """
    places = torch.arange(drafts.shape[1], device=drafts.device)
    equal = (drafts == choices[:, : drafts.shape[1]]) & (places < lengths[:, None])
    return equal.cumprod(dim=1).sum(dim=1)


class Runner:
    """Runs windows of one model's sequences, with the cache and the graphs that they share.

    A sequence is known by its row; rows in use are neighbours, from 0 on.
    """

    def __init__(self, model: OcrModel, steps: Steps | None = None) -> None:
        self.model = model
        self.steps = steps or (FEW_SHAPES if model.device.type == "cuda" else Steps())
        self.cache = KVCache(model.config.text, 1, CACHE_STEP, model.device, model.dtype)
        self._graphs = Graphs(model.device)

    @property
    def free_rows(self) -> float:
        """Rows that cost as much as the fixed part of a forward."""
        kind = "compiled" if self.model.compiled_head is not None else self.model.device.type
        return FREE_ROWS.get(kind, FREE_ROWS["cpu"])

    @property
    def prefill_rows(self) -> int:
        """Most rows of a prefill of several sequences."""
        return PREFILL_ROWS.get(self.model.device.type, PREFILL_ROWS["cpu"])

    def prefill(self, first: int, work: Sequence[Work]) -> list[Outcome]:
        """Sequences begin, in rows from `first` on: prompts, candidates and masks in one forward."""
        prompts = [part.prompt for part in work if part.prompt is not None]
        heads = [len(embeds) for embeds, _ in prompts]
        ids, device = _padded([part.ids for part in work]), self.model.device
        width = max(head + len(part.ids) for head, part in zip(heads, work, strict=True))
        self._reserve(first + len(work), width)
        tail = self.model.embed(ids.to(device))
        embeds = tail.new_zeros(len(work), width, tail.shape[2])
        positions = torch.zeros(3, len(work), width, dtype=torch.int64, device=device)
        for row, (head, part, (image, places)) in enumerate(zip(heads, work, prompts, strict=True)):
            embeds[row, :head], positions[:, row, :head] = image, places
            end = head + len(part.ids)
            embeds[row, head:end] = tail[row, : len(part.ids)]
            positions[:, row, head:end] = torch.arange(part.position, part.position + len(part.ids), device=device)
        counts = torch.tensor([[head + part.clean, part.masks] for head, part in zip(heads, work, strict=True)])
        clean, masks = counts.to(device).unbind(1)
        before = torch.tensor(heads, device=device) - 1  # the row that predicts the first candidate
        rows = (before[:, None] + torch.arange(ids.shape[1] + 1, device=device)).clamp(max=width - 1)
        seen = self._decode(first, embeds, positions, torch.zeros_like(clean), clean, masks, width, rows)
        hints = _padded([part.hints for part in work], rows.shape[1], fill=NO_HINT).to(device)
        return _outcomes(self._judged(seen, ids.to(device), clean - before - 1, hints))

    def round(self, work: Sequence[Work]) -> list[Outcome]:
        """The sequences of rows 0, 1, 2... go on: ids begin with the last committed token."""
        count = _up(len(work), self.steps.sequences)
        width = _up(max(len(part.ids) for part in work), self.steps.width)
        visible = _up(max(part.cached for part in work) + width, self.steps.visible)
        self._reserve(count, visible)
        packed = [[part.cached, part.position, part.clean, part.masks, *part.ids] for part in work]
        unused = count - len(work)
        packed += [[0, 0, 1, 0, 0]] * unused  # they write to rows that nobody uses
        window = _padded(packed, HEADER + width)
        if any(part.hints for part in work):
            hints = _padded([*(part.hints for part in work), *[()] * unused], width, fill=NO_HINT)
            window = torch.cat([window, hints], dim=1)
        shape = count, width, visible, window.shape[1]
        found = self._graphs.run(shape, lambda moved: self._window(moved, width, visible), window)
        return _outcomes(found[: len(work)])

    def _window(self, window: Tensor, width: int, visible: int) -> Tensor:
        """Packed windows int64 [B, HEADER + W (+ W)] (ids, hints if there are any) -> packed outcomes [B, 1 + 2 W]."""
        cached, position, clean, masks = window[:, :HEADER].unbind(1)
        ids, hints = window[:, HEADER : HEADER + width], window[:, HEADER + width :]
        positions = (position[:, None] + torch.arange(ids.shape[1], device=ids.device)).expand(3, -1, -1)
        hidden = self._decode(0, self.model.embed(ids), positions, cached, clean, masks, visible)
        return self._judged(hidden, ids[:, 1:], clean - 1, hints)

    def _decode(
        self,
        first: int,
        embeds: Tensor,
        positions: Tensor,
        cached: Tensor,
        clean: Tensor,
        masks: Tensor,
        visible: int,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Hidden states of the windows, or of their rows int64 [B, R]."""
        config, width = self.model.config.text, embeds.shape[1]
        groups = config.num_attention_heads // config.num_key_value_heads
        mask = additive(window_mask(cached, clean, masks, width, visible), embeds.dtype)
        read = None if rows is None else Read(rows, folded(picked(mask[:, 0], rows)[:, None], groups))
        window = self.cache.window(first, cached, width, visible)
        return self.model.decode(embeds, positions, folded(mask, groups), window, read)

    def _judged(self, hidden: Tensor, drafts: Tensor, drafted: Tensor, hints: Tensor) -> Tensor:
        """Packed: candidates accepted, every row's choice, its probability. float32 holds ids up to 2 ** 24."""
        if self.model.compiled_head is not None:
            choices, certainty = self.model.compiled_head(hidden, hints, BONUS)
        else:
            logits = self.model.logits(hidden).float()
            if hints.shape[1]:
                logits = with_hints(logits, hints)
            choices = logits.argmax(dim=-1)
            certainty = logits.softmax(dim=-1).gather(-1, choices[..., None])[..., 0]
        return torch.cat([accept(drafts, drafted, choices)[:, None], choices, certainty], dim=1)

    def _reserve(self, sequences: int, slots: int) -> None:
        if self.cache.reserve(sequences, _up(slots, CACHE_STEP)):
            self._graphs.forget()


def _up(count: int, step: int) -> int:
    return -(-count // step) * step


def _padded(rows: Sequence[Sequence[int]], width: int = 0, fill: int = 0) -> Tensor:
    """int64 [rows, longest or width], `fill` behind."""
    width = max(width, *map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows], dtype=torch.int64)


def _outcomes(packed: Tensor) -> list[Outcome]:
    count = packed.shape[1] // 2
    return [Outcome(int(row[0]), [int(i) for i in row[1 : 1 + count]], row[1 + count :]) for row in packed.tolist()]
