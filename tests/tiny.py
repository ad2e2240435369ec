"""Tiny random models of both kinds: large enough to have every part, small enough for hundreds of decodes."""

from dataclasses import replace
from typing import Any

import torch

from gravityocr_models.config import OcrConfig, TextConfig, VisionConfig
from gravityocr_models.ocr import OcrModel
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.joint import nano_config

torch.set_num_threads(1)  # tiny products: threads only get in each other's way

VOCABULARY = 61
IMAGE, IMAGE_START, IMAGE_END, MASK, END = 56, 57, 58, 59, 60


def tiny_config(stem: bool = True) -> OcrConfig:
    """Three layers of width 32. Without the stem: linear patches of 4 px, merged 2x2, three channels."""
    sizes: dict[str, Any] = {
        "depth": 2,
        "hidden_size": 32,
        "num_heads": 2,
        "intermediate_size": 48,
        "out_hidden_size": 32,
    }
    if stem:
        vision = VisionConfig(
            **sizes, in_channels=1, patch_size=4, spatial_merge_size=1, temporal_patch_size=1, stem_widths=(8, 32)
        )
    else:
        vision = VisionConfig(**sizes, patch_size=4)
    text = TextConfig(VOCABULARY, 32, 48, 3, 4, 2, 16, (2, 3, 3))
    return OcrConfig(vision, text, IMAGE, IMAGE_START, IMAGE_END)


def tiny_model(seed: int = 0, stem: bool = True, dtype: torch.dtype = torch.float64) -> OcrModel:
    """Random weights large enough that answers vary."""
    torch.manual_seed(seed)
    model = OcrModel(tiny_config(stem)).to(dtype).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.5)
    return model


def small_nano(tokenizer: Tokenizer) -> OcrConfig:
    """nano with one vision block of width 64 and nano's own tokenizer and token size."""
    nano = nano_config(tokenizer)
    sizes: dict[str, Any] = {"hidden_size": 64, "intermediate_size": 64, "out_hidden_size": 64}
    vision = replace(nano.vision, depth=1, stem_widths=(8, 8, 16, 64), **sizes)
    return replace(nano, vision=vision, text=replace(nano.text, hidden_size=64, intermediate_size=128))
