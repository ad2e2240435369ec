"""kernels.c against PyTorch, and against itself: what a row gives must not depend on what it is computed with."""

import platform
import shutil
import sys
from dataclasses import replace

import numpy as np
import pymupdf
import pytest
import torch
from torch import Tensor

from gravityocr_models import compiled
from gravityocr_models.attention import additive, folded, window_mask
from gravityocr_models.cache import KVCache
from gravityocr_models.compiled import CompiledDecoder, CompiledHead, CompiledStem
from gravityocr_models.config import VisionConfig
from gravityocr_models.engine import Engine
from gravityocr_models.ocr import OcrModel, Read, picked, rotary
from gravityocr_models.reading import BONUS, with_hints
from gravityocr_models.records import Crop
from gravityocr_models.vision import ConvStem
from tiny import tiny_config

needs_kernels = pytest.mark.skipif(compiled.library() is None, reason="no kernels on this machine")


def test_a_machine_with_a_compiler_has_kernels() -> None:
    """What setup leaves out in silence would be noticed by nobody."""
    if sys.platform != "linux" or platform.machine() != "x86_64" or not (shutil.which("gcc") or shutil.which("cc")):
        pytest.skip("nothing to compile with, or for")
    if torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        pytest.skip("the processor has no AVX2")
    assert compiled.library() is not None


def _model() -> OcrModel:
    """Two layers, of widths that leave rows and panels over, with heads as wide as the kernels want them."""
    torch.manual_seed(0)
    config = tiny_config()
    text = replace(
        config.text, vocab_size=80, hidden_size=48, intermediate_size=112, num_hidden_layers=2, head_dim=64,
        mrope_section=(8, 12, 12),
    )  # fmt: skip
    vision = replace(config.vision, hidden_size=48, out_hidden_size=48, stem_widths=(16, 48))
    model = OcrModel(replace(config, text=text, vision=vision)).eval().requires_grad_(False)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def _decoders(model: OcrModel) -> CompiledDecoder:
    text = model.model.language_model
    assert CompiledDecoder.fits(text)
    return CompiledDecoder(text, *rotary(text.config, model.device))


def _filled(model: OcrModel, sequences: int) -> KVCache:
    cache = KVCache(model.config.text, sequences, 96, model.device, model.dtype)
    cache.store.normal_(generator=torch.Generator().manual_seed(1))
    return cache


@needs_kernels
@torch.inference_mode()
@pytest.mark.parametrize(
    ("batch", "width", "first", "read"), [(1, 1, 0, 0), (3, 1, 2, 0), (2, 9, 1, 0), (2, 40, 0, 7), (3, 33, 1, 33)]
)
def test_the_decoder_is_pytorchs(batch: int, width: int, first: int, read: int) -> None:
    """Windows with mask rows and padding, prefills of which some rows or all are read; states and cache alike."""
    model = _model()
    ours = _decoders(model)
    embeds, positions = torch.randn(batch, width, 48), torch.randint(0, 90, (3, batch, width))
    lengths = torch.randint(0, 30, (batch,))
    masks = torch.full((batch,), 0 if read else width // 3)
    mask = additive(window_mask(lengths, (width - masks - 1).clamp(min=1), masks, width, 30 + width), model.dtype)
    rows = torch.arange(width - read, width).expand(batch, -1)
    wanted = Read(rows, folded(picked(mask[:, 0], rows)[:, None], 2)) if read else None
    caches = _filled(model, batch + 2), _filled(model, batch + 2)
    windows = [cache.window(first, lengths, width, 30 + width) for cache in caches]
    expected = model.decode(embeds, positions, folded(mask, 2), windows[0], wanted)
    found = ours(embeds, positions, folded(mask, 2), windows[1], (wanted.rows, wanted.mask) if wanted else None)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(caches[1].store, caches[0].store, rtol=1e-4, atol=1e-4)


@needs_kernels
@torch.inference_mode()
def test_a_row_gives_the_same_to_the_last_bit_alone_in_a_window_and_in_a_batch() -> None:
    model = _model()
    ours = _decoders(model)

    def states(batch: int, sizes: list[int]) -> Tensor:
        """Of the last sequence's ten tokens, given in windows of these sizes."""
        generator = torch.Generator().manual_seed(2)
        embeds = torch.randn(10, 48, generator=generator)
        cache, found, done = KVCache(model.config.text, batch, 64, model.device, model.dtype), [], 0
        for size in sizes:
            window = torch.randn(batch, size, 48)
            window[-1] = embeds[done : done + size]
            lengths, width = torch.full((batch,), done), done + size
            clean, masks = torch.full((batch,), size), torch.zeros(batch, dtype=torch.int64)
            mask = folded(additive(window_mask(lengths, clean, masks, size, width), model.dtype), 2)
            positions = torch.arange(done, width).expand(3, batch, -1)
            found.append(ours(window, positions, mask, cache.window(0, lengths, size, width), None)[-1])
            done += size
        return torch.cat(found)

    alone = states(1, [1] * 10)
    assert torch.equal(states(1, [10]), alone)
    assert torch.equal(states(7, [4, 1, 5]), alone)


@needs_kernels
@torch.inference_mode()
def test_the_head_chooses_as_pytorch_does() -> None:
    model = _model()
    ours = CompiledHead(model.lm_head)
    hidden, hints = torch.randn(5, 13, 48), torch.randint(-1, 80, (5, 13))
    for given in (hints, hints[:, :0]):
        logits = model.logits(hidden)
        logits = with_hints(logits, given) if given.shape[1] else logits
        choices, certainties = ours(hidden, given, BONUS)
        assert torch.equal(choices, logits.argmax(-1))
        torch.testing.assert_close(certainties, logits.softmax(-1).amax(-1), rtol=1e-5, atol=1e-6)
    model.lm_head.weight[40:] = model.lm_head.weight[:40]  # every word twice: the first of equals is chosen
    assert CompiledHead(model.lm_head)(hidden, hints[:, :0], BONUS)[0].max() < 40


@needs_kernels
@torch.inference_mode()
@pytest.mark.parametrize("size", [(16, 16), (48, 400), (32, 16), (16, 272)])
def test_the_stem_is_pytorchs(size: tuple[int, int]) -> None:
    """With residual blocks at two of its stages, down to a single token."""
    torch.manual_seed(0)
    config = VisionConfig(
        1, 64, 4, 64, 64, in_channels=1, patch_size=16, spatial_merge_size=1, temporal_patch_size=1,
        stem_widths=(16, 32, 48, 64), stem_depths=(0, 2, 1),
    )  # fmt: skip
    module = ConvStem(config).eval().requires_grad_(False)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    pixels = torch.rand(2, 1, *size)
    assert CompiledStem.fits(module)
    torch.testing.assert_close(CompiledStem(module)(pixels), module(pixels), rtol=1e-4, atol=1e-4)


def test_widths_and_numbers_that_the_kernels_dont_know_are_left_to_pytorch() -> None:
    odd, narrow = tiny_config(), _model()
    assert not CompiledDecoder.fits(OcrModel(odd).model.language_model)
    assert not CompiledHead.fits(OcrModel(odd).lm_head)
    for number in (torch.float64, torch.bfloat16):
        assert not CompiledDecoder.fits(narrow.to(number).model.language_model)
    laid_out = OcrModel(odd).lay_out()
    assert laid_out.compiled_head is None
    assert laid_out.model.language_model.compiled is None


def test_nano_reads_the_same_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    with pymupdf.open() as document:
        page = document.new_page(width=300, height=16)
        page.insert_text((4, 12), "No answer depends on a compiler.", fontname="tiro")
        image = page.get_pixmap(dpi=144)
        crop = Crop(np.frombuffer(image.samples, np.uint8).reshape(image.height, image.width, 3))
    (read,) = Engine.load().read([crop])
    monkeypatch.setattr(compiled, "library", lambda: None)
    plain = Engine.load()
    assert "kernels" not in plain.describe()
    assert plain.read([crop])[0].ids == read.ids
    assert read.text == "No answer depends on a compiler."
