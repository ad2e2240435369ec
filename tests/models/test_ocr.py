"""Our model is transformers' GlmOcrForConditionalGeneration: same names, logits and greedy ids on random weights."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GlmOcrConfig, GlmOcrForConditionalGeneration

from gravityocr_models.cache import KVCache
from gravityocr_models.config import OcrConfig
from gravityocr_models.layers import RMSNorm
from gravityocr_models.ocr import OcrModel, Read, image_positions, picked
from gravityocr_models.records import Rounds
from gravityocr_models.speculate import Prompt, Rules, decode, decode_plain
from gravityocr_models.vision import ConvStem
from tiny import tiny_config, tiny_model

IMAGE, START, END_OF_IMAGE, END = 150, 151, 152, 7
PATCH = 14


@pytest.fixture(scope="module")
def theirs() -> GlmOcrForConditionalGeneration:
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 6, 6]}
    text = {"vocab_size": 160, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "rope_parameters": rope}  # fmt: skip
    vision = {"depth": 2, "hidden_size": 64, "num_heads": 4, "intermediate_size": 80, "out_hidden_size": 64}
    torch.manual_seed(0)
    ids: dict[str, Any] = {"image_token_id": IMAGE, "image_start_token_id": START, "image_end_token_id": END_OF_IMAGE}
    model = GlmOcrForConditionalGeneration(GlmOcrConfig(text_config=text, vision_config=vision, **ids)).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    model.generation_config.eos_token_id = END
    model.generation_config.pad_token_id = 0
    return model  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def ours(theirs: GlmOcrForConditionalGeneration) -> OcrModel:
    """Built from their config and loaded with their state dict, names untouched."""
    model = OcrModel(OcrConfig.from_json(json.loads(theirs.config.to_json_string()))).eval()
    model.load_state_dict(theirs.state_dict(), strict=True)
    return model.requires_grad_(False)


def example(rows: int, columns: int) -> tuple[Tensor, dict[str, Tensor]]:
    """Pixels of an image of rows x columns tokens, and the same as transformers wants it."""
    torch.manual_seed(rows * 10 + columns)
    pixels = torch.randn(1, 3, rows * 2 * PATCH, columns * 2 * PATCH)
    patches = pixels.view(1, 3, rows, 2, PATCH, columns, 2, PATCH).permute(0, 2, 5, 3, 6, 1, 4, 7)
    patches = patches.reshape(rows * columns * 4, 3, 1, PATCH, PATCH).expand(-1, -1, 2, -1, -1)
    ids = torch.tensor([[3, START, *[IMAGE] * (rows * columns), END_OF_IMAGE, 9, 8]])
    inputs = {
        "input_ids": ids,
        "pixel_values": patches.reshape(rows * columns * 4, -1),
        "image_grid_thw": torch.tensor([[1, 2 * rows, 2 * columns]]),
        "mm_token_type_ids": (ids == IMAGE).int(),
    }
    return pixels, inputs


def prompt_of(model: OcrModel, pixels: Tensor, ids: Tensor, rows: int, columns: int) -> Prompt:
    embeds = model.embed(ids[0])
    embeds[2 : 2 + rows * columns] = model.see(pixels)[0]
    after = 2 + max(rows, columns)
    parts = [
        torch.arange(2).expand(3, -1),
        image_positions(rows, columns, 2),
        torch.arange(after, after + 3).expand(3, -1),
    ]
    return Prompt(embeds, torch.cat(parts, dim=1), limit=20)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (2, 3), (1, 7), (5, 2), (4, 4)])
def test_logits_and_greedy_ids_equal_transformers(
    theirs: GlmOcrForConditionalGeneration, ours: OcrModel, rows: int, columns: int
) -> None:
    pixels, inputs = example(rows, columns)
    prompt = prompt_of(ours, pixels, inputs["input_ids"], rows, columns)
    count = len(prompt.embeds)
    causal = torch.ones(count, count, dtype=torch.bool).tril()[None, None]
    with torch.no_grad():
        expected = theirs(**inputs).logits[0]
        generated = theirs.generate(**inputs, max_new_tokens=prompt.limit, do_sample=False)[0, count:].tolist()
    logits = ours.logits(ours.decode(prompt.embeds[None], prompt.positions[:, None], causal))[0]
    assert expected.std() > 0.1
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-4)
    assert decode_plain(ours, prompt, frozenset({END})) == generated
    (fused,) = decode(ours, [prompt], Rules(frozenset({END}), 5, 4, Rounds.FUSED))
    assert fused.ids == generated


def test_laid_out_weights_are_the_same_weights() -> None:
    """One product in place of three, under the same names."""
    model, laid_out = tiny_model(2), tiny_model(2).lay_out()
    embeds, positions = torch.randn(1, 5, 32, dtype=torch.float64), torch.arange(5).expand(3, 1, -1)
    causal = torch.ones(5, 5, dtype=torch.bool).tril()[None, None]
    torch.testing.assert_close(laid_out.decode(embeds, positions, causal), model.decode(embeds, positions, causal))
    laid_out.load_state_dict(tiny_model(3).state_dict())
    expected = tiny_model(3).decode(embeds, positions, causal)
    torch.testing.assert_close(laid_out.decode(embeds, positions, causal), expected)


def test_rows_that_are_not_read_are_spared_by_the_last_layer_alone() -> None:
    model = tiny_model().lay_out()
    embeds = torch.randn(2, 6, 32, dtype=torch.float64)
    positions = torch.arange(6).expand(3, 2, -1)
    causal = torch.ones(6, 6, dtype=torch.bool).tril()[None, None].expand(2, -1, -1, -1)
    rows = torch.tensor([[3, 5], [0, 4]])
    read = Read(rows, picked(causal[:, 0], rows)[:, None])
    whole, cache = model.decode(embeds, positions, causal), KVCache(model.config.text, 2, 6, model.device, model.dtype)
    window = cache.window(0, torch.zeros(2, dtype=torch.int64), 6, 6)
    torch.testing.assert_close(model.decode(embeds, positions, causal, window, read), picked(whole, rows))
    other = KVCache(model.config.text, 2, 6, model.device, model.dtype)
    model.decode(embeds, positions, causal, other.window(0, torch.zeros(2, dtype=torch.int64), 6, 6))
    torch.testing.assert_close(cache.store, other.store)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_norms_are_the_same_with_and_without_gradients(dtype: torch.dtype) -> None:
    norm = RMSNorm(8, 1e-5).to(dtype)
    torch.nn.init.normal_(norm.weight)
    for x in (torch.randn(2, 3, 8, dtype=dtype), torch.randn(2, 8, 3, dtype=dtype).transpose(1, 2) / 100):
        with torch.no_grad():
            without = norm(x)
        assert without.dtype == dtype
        torch.testing.assert_close(without, norm(x).detach())


def test_stem_sees_across_patch_borders() -> None:
    """nano's stem: one token for patch_size x patch_size pixels, row by row, touched by its neighbours' edges only."""
    stem = tiny_model(0, stem=True).model.visual.patch_embed
    pixels = torch.zeros(1, 1, 8, 16, dtype=torch.float64)
    pixels[0, 0, 4, 0] = 1.0
    changed = (stem(pixels) - stem(torch.zeros_like(pixels))).abs().sum(-1)[0] > 0
    assert stem(pixels).shape == (1, 2 * 4, 32)
    assert changed[4]
    assert not changed[[1, 2, 3, 5, 6, 7]].any()


def test_stem_blocks_are_the_identity_until_they_learn() -> None:
    """So blocks can be added to a trained stem; once their second convolution is not zero they see further."""
    plain = tiny_config(stem=True)
    deeper = replace(plain, vision=replace(plain.vision, stem_depths=(2,)))
    stem, grown = ConvStem(plain.vision).double(), ConvStem(deeper.vision).double()
    missing = grown.load_state_dict(stem.state_dict(), strict=False).missing_keys
    assert missing
    assert all(".conv" in name or ".norm" in name for name in missing)
    for name, parameter in grown.named_parameters():
        if "conv2" in name:
            torch.nn.init.zeros_(parameter)
    pixels = torch.randn(2, 1, 8, 16, dtype=torch.float64)
    torch.testing.assert_close(grown(pixels), stem(pixels))
    torch.nn.init.ones_(grown.get_parameter("blocks.0.1.conv2.bias"))
    assert not torch.allclose(grown(pixels), stem(pixels))


def test_images_of_a_batch_do_not_mix() -> None:
    model = tiny_model(1)
    images = torch.randn(3, 1, 8, 16, dtype=torch.float64)
    together = model.see(images)
    for image, tokens in zip(images, together, strict=True):
        torch.testing.assert_close(model.see(image[None])[0], tokens)


@pytest.mark.parametrize("stem", [True, False])
def test_config_survives_json(stem: bool) -> None:
    config = tiny_config(stem)
    assert OcrConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
