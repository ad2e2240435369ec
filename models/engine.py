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
from gravityocr_models.speculate import Answer, Prompt, Rules, decode

KEEP_ABOVE = 0.5  # share of a layer's tokens that the model must agree with; see docs/journal.md for how it was chosen
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
        answers: dict[int, Decoded] = {}
        to_read = []
        for number, crop in enumerate(crops):
            if layer is LayerUse.AUTO and crop.draft is not None and not self.can_judge(crop.draft):
                answers[number] = Decoded(crop.draft, (), (), 0.0, None, kept_layer=True)
            else:
                to_read.append(number)
        rules = self.rules(rounds, layer, block)
        for group in self.batches([crops[number] for number in to_read]):
            prompts = self.prompts([crops[to_read[place]] for place in group], layer)
            for place, answer in zip(group, decode(self.checkpoint.model, prompts, rules), strict=True):
                answers[to_read[place]] = self._decoded(crops[to_read[place]], answer)
        return [answers[number] for number in range(len(crops))]

    def can_judge(self, draft: str) -> bool:
        """Whether the model has learned enough of the draft's characters to have a say on it."""
        known = self.checkpoint.draft.alphabet if self.checkpoint.draft else None
        inked = [char for char in draft if not char.isspace()]
        return known is None or sum(char in known for char in inked) >= READABLE * len(inked)

    def rules(self, rounds: Rounds, layer: LayerUse = LayerUse.OFF, block: int | None = None) -> Rules:
        """The decode rules of these options."""
        draft = self.checkpoint.draft
        return Rules(
            ends=self.ends,
            mask_id=draft.mask_id if draft else None,
            block=block or (draft.bd_size if draft else 16),
            rounds=rounds,
            keep_above=KEEP_ABOVE if layer is LayerUse.AUTO else None,
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
                    layer=(*tokenizer.encode(drafted), min(self.ends)) if drafted else (),
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

    def _decoded(self, crop: Crop, answer: Answer) -> Decoded:
        ids = [token for token in answer.ids if token not in self.ends]
        text = crop.draft if answer.kept_layer and crop.draft is not None else self.checkpoint.tokenizer.decode(ids)
        return Decoded(
            text=text,
            ids=tuple(ids),
            committed=tuple(answer.committed),
            confidence=answer.probability / max(1, len(answer.ids)),
            agreement=answer.agreement,
            kept_layer=answer.kept_layer,
            truncated=not (answer.ended or answer.kept_layer),
        )


def _best_device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def _best_dtype(device: torch.device) -> torch.dtype:
    """bfloat16 where it is multiplied in hardware, else float32."""
    if device.type == "cuda" or torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported():
        return torch.bfloat16
    return torch.float32
