"""transformers' `generate` with our weights: what decoding costs in the library that most people would use.

It is given the same image tokens and prompts as our decoder (nano's encoder does not exist there), so that its ids must
be ours and its time is that of prefill and decoding alone.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor
from transformers import GlmOcrConfig, GlmOcrForConditionalGeneration

from gravityocr_models.ocr import OcrModel
from gravityocr_models.speculate import Prompt

PAD = 0
_UNUSED_VISION = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32}


class Peer:
    """GlmOcrForConditionalGeneration with our decoder's weights, laid out as it loads them itself."""

    def __init__(self, model: OcrModel, ends: frozenset[int]) -> None:
        values = model.config.to_json()
        ids = {name: values[name] for name in ("image_token_id", "image_start_token_id", "image_end_token_id")}
        vision = _UNUSED_VISION | {"out_hidden_size": model.config.text.hidden_size}
        self.model = GlmOcrForConditionalGeneration(
            GlmOcrConfig(text_config=values["text_config"], vision_config=vision, **ids)
        ).to(model.device, model.dtype)  # type: ignore[arg-type]
        decoder = {name: tensor.contiguous() for name, tensor in model.state_dict().items() if ".visual." not in name}
        self.model.load_state_dict(decoder, strict=False, assign=True)
        self.model.eval()
        self.model.generation_config.eos_token_id = sorted(ends)
        self.model.generation_config.pad_token_id = PAD
        self.ends = ends

    @torch.inference_mode()
    def answers(self, prompts: Sequence[Prompt], batch: int) -> Iterator[list[int]]:
        """Greedy ids of each prompt, end token included, so many prompts at a time."""
        for start in range(0, len(prompts), batch):
            some = prompts[start : start + batch]
            longest = max(prompt.limit for prompt in some)
            found = self.model.generate(**_padded(some), max_new_tokens=longest, do_sample=False)
            for prompt, ids in zip(some, found.tolist(), strict=True):
                ends = [place for place, token in enumerate(ids) if token in self.ends]
                yield ids[: min([prompt.limit, *(end + 1 for end in ends[:1])])]


def _padded(prompts: Sequence[Prompt]) -> dict[str, Tensor]:
    """Prompts padded on the left. position_ids [4, B, T]: the place in the sequence, then the three rotary axes."""
    longest = max(len(prompt.embeds) for prompt in prompts)
    first = prompts[0].embeds
    embeds = first.new_zeros(len(prompts), longest, first.shape[1])
    seen = torch.zeros(len(prompts), longest, dtype=torch.int64, device=first.device)
    positions = torch.zeros(4, len(prompts), longest, dtype=torch.int64, device=first.device)
    for row, prompt in enumerate(prompts):
        start = longest - len(prompt.embeds)
        embeds[row, start:], seen[row, start:] = prompt.embeds, 1
        positions[0, row, start:] = torch.arange(len(prompt.embeds), device=first.device)
        positions[1:, row, start:] = prompt.positions
    return {"inputs_embeds": embeds, "attention_mask": seen, "position_ids": positions}
