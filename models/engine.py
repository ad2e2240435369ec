"""Crops in, answers out: device, number format, batches, and the verdict on text layers.

    engine = Engine.load()
    answers = engine.read([Crop(pixels)])

Crops of one shape share a vision forward; sequences of like length share a decode. An answer does not depend on what it
was batched with (up to rounding), and the order of the answers is that of the crops.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gravityocr_models import weights
from gravityocr_models.image import grid_of, normalise, stack
from gravityocr_models.ocr import image_positions
from gravityocr_models.records import Crop, Decoded, LayerUse, Rounds
from gravityocr_models.speculate import Answer, Prompt, Rules, agreements, decode

KEEP_ABOVE = 0.5  # share of a region's layer that the model must agree with; see docs/journal.md for how it was chosen
READABLE = 0.5  # share of a layer's characters that the model must have learned for its verdict to count
BATCH_TOKENS = 12_288  # prompt tokens in one decode batch
TOKENS_PER_IMAGE_TOKEN = 3  # no crop holds more text than this; what goes on longer has run away
LEAST_LIMIT = 48


@dataclass(frozen=True)
class Engine:
    """A loaded checkpoint. slots: most sequences decoded at once. ends: ids that end an answer."""

    checkpoint: weights.Checkpoint
    ends: frozenset[int]
    slots: int = 32

    dpi = 144.0
    max_crop_tokens = 1024
    max_crop_lines = 1  # what nano has been trained on so far

    @classmethod
    def load(cls, model: Path | None = None, device: str = "auto", dtype: str = "auto") -> "Engine":
        """nano, or the checkpoint in a folder.

        device: auto, cpu, cuda, cuda:1...; dtype: auto, float32, bfloat16, float16.

        Raises FileNotFoundError, ConfigError or WeightsError where the checkpoint is missing or broken.
        """
        place = torch.device(_best_device() if device == "auto" else device)
        number = _best_dtype(place) if dtype == "auto" else getattr(torch, dtype)
        checkpoint = weights.load(model or weights.NANO, place, number)
        return cls(checkpoint, frozenset({checkpoint.tokenizer.special("<|end|>")}))

    @property
    def token_px(self) -> int:
        """Edge in pixels of the square that one image token covers."""
        return self.checkpoint.model.config.vision.token_px

    def describe(self) -> str:
        """Device and number format, for people."""
        model = self.checkpoint.model
        return f"{model.device} {str(model.dtype).removeprefix('torch.')}, {torch.get_num_threads()} threads"

    def read(
        self,
        crops: Sequence[Crop],
        *,
        rounds: Rounds = Rounds.FUSED,
        layer: LayerUse = LayerUse.AUTO,
        block: int | None = None,
    ) -> list[Decoded]:
        """Answers in the order of the crops. block: mask tokens a round, by default as trained; changes speed only."""
        shares = self._verdicts(crops) if layer is LayerUse.AUTO else {}
        answers = {
            place: self._kept(crops[place].draft or "", share)
            for place, share in shares.items()
            if share is None or share >= KEEP_ABOVE
        }
        unread = [place for place in range(len(crops)) if place not in answers]
        rules = self.rules(rounds, block)
        for group in self.batches([crops[place] for place in unread]):
            places = [unread[number] for number in group]
            found = decode(self.checkpoint.model, self.prompts([crops[place] for place in places], layer), rules)
            for place, answer in zip(places, found, strict=True):
                answers[place] = self._decoded(answer, shares.get(place))
        return [answers[place] for place in range(len(crops))]

    def _verdicts(self, crops: Sequence[Crop]) -> dict[int, float | None]:
        """For each crop with a draft, the share of its region's drafts that the model agrees with; None: can't say."""
        drafted = [place for place, crop in enumerate(crops) if crop.draft]
        regions: dict[object, list[int]] = {}
        for place in drafted:
            regions.setdefault(crops[place].region or place, []).append(place)
        judged = [
            place
            for places in regions.values()
            if self.can_judge("".join(crops[place].draft or "" for place in places))
            for place in places
        ]
        agreed, tokens = dict.fromkeys(drafted, 0), dict.fromkeys(drafted, 0)
        for group in self.batches([crops[place] for place in judged]):
            places = [judged[number] for number in group]
            prompts = self.prompts([crops[place] for place in places], LayerUse.DRAFT)
            agreed |= dict(zip(places, agreements(self.checkpoint.model, prompts), strict=True))
            tokens |= {place: len(prompt.layer) for place, prompt in zip(places, prompts, strict=True)}
        shares: dict[int, float | None] = {}
        for places in regions.values():
            total = sum(tokens[place] for place in places)
            share = sum(agreed[place] for place in places) / total if total else None
            shares |= dict.fromkeys(places, share)
        return shares

    def can_judge(self, draft: str) -> bool:
        """Whether the model has learned enough of the draft's characters to have a say on it."""
        known = self.checkpoint.draft.alphabet if self.checkpoint.draft else None
        inked = [char for char in draft if not char.isspace()]
        return known is None or sum(char in known for char in inked) >= READABLE * len(inked)

    def rules(self, rounds: Rounds, block: int | None = None) -> Rules:
        """The decode rules of these options."""
        draft = self.checkpoint.draft
        return Rules(
            ends=self.ends,
            mask_id=draft.mask_id if draft else None,
            block=block or (draft.bd_size if draft else 16),
            rounds=rounds,
        )

    @torch.inference_mode()
    def prompts(self, crops: Sequence[Crop], layer: LayerUse = LayerUse.OFF) -> list[Prompt]:
        """Each crop's image tokens and prompt; crops of one shape go through the vision encoder together."""
        model, tokenizer = self.checkpoint.model, self.checkpoint.tokenizer
        config = model.config
        images = [normalise(crop.pixels, config.vision) for crop in crops]
        seen: dict[int, Tensor] = {}
        shapes = [image.shape for image in images]
        for shape in dict.fromkeys(shapes):
            members = [place for place, other in enumerate(shapes) if other == shape]
            tokens = model.see(stack([images[place] for place in members], model.device, model.dtype))
            seen |= dict(zip(members, tokens, strict=True))
        prompts = []
        for place, crop in enumerate(crops):
            rows, columns = (side // self.token_px for side in images[place].shape[1:])
            ids = [config.image_start_token_id, config.image_end_token_id, tokenizer.special(crop.task)]
            start, *after = model.embed(torch.tensor(ids, device=model.device))
            behind = 1 + max(rows, columns)
            positions = torch.cat(
                [
                    torch.zeros(3, 1, dtype=torch.int64),
                    image_positions(rows, columns, 1),
                    torch.arange(behind, behind + len(after)).expand(3, -1),
                ],
                dim=1,
            )
            drafted = crop.draft if layer is not LayerUse.OFF else None
            prompts.append(
                Prompt(
                    embeds=torch.cat([start[None], seen[place], torch.stack(after)]),
                    positions=positions.to(model.device),
                    limit=LEAST_LIMIT + TOKENS_PER_IMAGE_TOKEN * rows * columns,
                    layer=tuple(tokenizer.encode(drafted or "")),
                )
            )
        return prompts

    def batches(self, crops: Sequence[Crop]) -> Iterator[list[int]]:
        """Places of crops to decode together: alike in length, bounded in number and tokens."""
        sizes = [grid_of(crop.pixels.shape, self.token_px) for crop in crops]
        tokens = [rows * columns for rows, columns in sizes]
        group: list[int] = []
        for place in sorted(range(len(crops)), key=lambda place: (-tokens[place], sizes[place], place)):
            if group and (len(group) == self.slots or (len(group) + 1) * tokens[group[0]] > BATCH_TOKENS):
                yield group
                group = []
            group.append(place)
        if group:
            yield group

    def _kept(self, draft: str, share: float | None) -> Decoded:
        """The answer that is the layer itself: one forward committed all of it, or none was asked."""
        ids = tuple(self.checkpoint.tokenizer.encode(draft))
        committed = () if share is None else (len(ids) + 1,)
        return Decoded(draft, ids, committed, share or 0.0, share, kept_layer=True)

    def _decoded(self, answer: Answer, agreement: float | None) -> Decoded:
        ids = [token for token in answer.ids if token not in self.ends]
        return Decoded(
            text=self.checkpoint.tokenizer.decode(ids),
            ids=tuple(ids),
            committed=tuple(answer.committed),
            confidence=answer.probability / max(1, len(answer.ids)),
            agreement=agreement,
            truncated=not answer.ended,
        )


def _best_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _best_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where it is multiplied in hardware, else float32."""
    if device.type == "cuda" or torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported():
        return torch.bfloat16
    return torch.float32
