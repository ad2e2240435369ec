"""kernels.c from Python: the stem, the decoder and the output head of a small model on a CPU, in float32.

Setup compiles kernels.c where it finds a compiler (pyproject.toml); without it, on other processors than x86-64 with
AVX2, and for every other device and number format, PyTorch does the same (vision.py, ocr.py). The classes here pack the
weights of a module once and then stand in for its forward.
"""

import ctypes
import platform
from collections.abc import Sequence
from contextlib import suppress
from ctypes import POINTER, Structure, byref, c_float, c_int32, c_int64, c_size_t, c_void_p
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from gravityocr_models.cache import Window

PANEL, HEAD, TILES, BLOCK = 16, 64, 48, 48  # as in kernels.c
SMALL = 512  # width of a decoder whose products one core computes about as fast as several
MATRICES = "query", "key_value", "out", "gate_up", "down"
NORMS = "before_attention", "behind_attention", "before_mlp", "behind_mlp"


class _Matrix(Structure):
    _fields_ = (("weight", c_void_p), ("bias", c_void_p), ("length", c_int32), ("width", c_int32))


class _StemBlock(Structure):
    _fields_ = (("norm", c_void_p), ("first", _Matrix), ("second", _Matrix))


class _Stage(Structure):
    _fields_ = (("conv", _Matrix), ("norm", c_void_p), ("blocks", POINTER(_StemBlock)), ("depth", c_int32))


class _Layer(Structure):
    _fields_ = (*((name, _Matrix) for name in MATRICES), *((name, c_void_p) for name in NORMS))


class _Decoder(Structure):
    _fields_ = (
        ("layers", POINTER(_Layer)), ("norm", c_void_p), ("frequency", c_void_p), ("axis", c_void_p),
        ("depth", c_int32), ("heads", c_int32), ("shared", c_int32), ("eps", c_float),
    )  # fmt: skip


class _Call(Structure):
    _fields_ = (
        ("sequences", c_int32), ("width", c_int32), ("slots", c_int32), ("mask_rows", c_int32), ("read", c_int32),
        ("read_mask_rows", c_int32), ("first", c_int64), ("stride", c_int64), ("positions", c_void_p),
        ("places", c_void_p), ("mask", c_void_p), ("rows", c_void_p), ("read_mask", c_void_p),
        ("store", POINTER(c_void_p)),
    )  # fmt: skip


@cache
def library() -> Any:
    """The compiled kernels; None where there are none or this processor can't run them."""
    if platform.machine() != "x86_64" or torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"):
        return None
    for suffix in EXTENSION_SUFFIXES:
        with suppress(OSError):  # not there, or made for another system
            return ctypes.CDLL(str(Path(__file__).with_name(f"_kernels{suffix}")))
    return None


def serves(weight: Tensor, *sizes: int) -> bool:
    """Whether the kernels can take the place of a module with such a weight and widths, and are worth it."""
    place = weight.device.type == "cpu" and weight.dtype == torch.float32
    return place and not any(size % PANEL for size in sizes) and sizes[0] <= SMALL and library() is not None


class _Packed:
    """What C has the addresses of must live on: tensors and arrays are kept here."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def _address(self, tensor: Tensor) -> int:
        self._kept.append(tensor := tensor.detach().contiguous())
        return tensor.data_ptr()

    def _matrix(self, *weights: Tensor, bias: Tensor | None = None) -> _Matrix:
        """Of weights [..., outputs, inputs], their outputs behind each other."""
        weight = torch.cat([weight.detach() for weight in weights], dim=-2)
        width, length = weight.shape[-2:]
        panels = weight.unflatten(-2, (-1, PANEL)).transpose(-1, -2)
        return _Matrix(self._address(panels), None if bias is None else self._address(bias), length, width)

    def _array(self, kind: type[Structure], parts: Sequence[Structure]) -> Any:
        self._kept.append(made := (kind * len(parts))(*parts))
        return made


class CompiledDecoder(_Packed):
    """A decoder's forward with a cache."""

    def __init__(self, model: Any, axis: Tensor, frequency: Tensor) -> None:
        """model: an `ocr.TextModel`. axis, frequency: of each rotary pair, see `ocr.rotary`."""
        super().__init__()
        config = model.config
        layers = []
        for layer in model.layers:
            attention, mlp = layer.self_attn, layer.mlp
            matrices = (
                (attention.q_proj.weight,), (attention.k_proj.weight, attention.v_proj.weight),
                (attention.o_proj.weight,), (mlp.gate_up_proj.weight,), (mlp.down_proj.weight,),
            )  # fmt: skip
            norms = (
                layer.input_layernorm, layer.post_self_attn_layernorm, layer.post_attention_layernorm,
                layer.post_mlp_layernorm,
            )  # fmt: skip
            packed = [self._matrix(*weights) for weights in matrices]
            layers.append(_Layer(*packed, *(self._address(norm.weight) for norm in norms)))
        self._model = _Decoder(
            self._array(_Layer, layers), self._address(model.norm.weight), self._address(frequency),
            self._address(axis.to(torch.int32)), len(layers), config.num_attention_heads, config.num_key_value_heads,
            config.rms_norm_eps,
        )  # fmt: skip
        self._slot = 2 * config.num_key_value_heads * HEAD
        inner = max(self._slot, 2 * config.intermediate_size)
        self._room = BLOCK * (config.hidden_size + config.num_attention_heads * HEAD + inner)

    @staticmethod
    def fits(model: Any) -> bool:
        """Whether the kernels serve this decoder."""
        config = model.config
        sizes = config.hidden_size, config.intermediate_size
        return config.head_dim == HEAD and serves(model.norm.weight, *sizes)

    def __call__(
        self, embeds: Tensor, positions: Tensor, mask: Tensor, window: Window, read: tuple[Tensor, Tensor] | None
    ) -> Tensor:
        """See `TextModel.forward`; the mask is additive. read: rows and mask of an `ocr.Read`."""
        batch, width, hidden = embeds.shape
        x = embeds.clone(memory_format=torch.contiguous_format)  # worked on in place
        positions, mask = positions.contiguous(), mask.contiguous()
        call = _Call(batch, width, mask.shape[-1], mask.shape[2], positions=positions.data_ptr(), mask=mask.data_ptr())
        call.places, keys = window.places.data_ptr(), window.seen[0]
        call.store = (c_void_p * len(window.rows))(*(rows.data_ptr() for rows in window.rows))
        call.first = (keys.data_ptr() - window.rows[0].data_ptr()) // (keys.element_size() * self._slot)
        call.stride = keys.stride(1) // self._slot
        wanted = width
        if read is not None:
            rows, read_mask = (each.contiguous() for each in read)
            wanted = call.read = rows.shape[1]
            call.read_mask_rows, call.rows, call.read_mask = read_mask.shape[2], rows.data_ptr(), read_mask.data_ptr()
        room = embeds.new_empty(batch * width * HEAD + mask.shape[-1] + PANEL + self._room)
        library().decode(byref(self._model), byref(call), c_void_p(x.data_ptr()), c_void_p(room.data_ptr()))
        return x.view(-1, hidden)[: batch * wanted].view(batch, wanted, hidden)


class CompiledStem(_Packed):
    """A stem's forward."""

    def __init__(self, module: Any) -> None:
        """module: an `vision.ConvStem`."""
        super().__init__()
        stages = []
        for conv, norm, blocks in zip(module.convs, module.norms, [*module.blocks, ()], strict=True):
            made = [
                _StemBlock(self._address(block.norm.weight), self._turned(block.conv1), self._turned(block.conv2))
                for block in blocks
            ]
            matrix = self._matrix(conv.weight.permute(0, 2, 3, 1).flatten(1), bias=conv.bias)
            stages.append(_Stage(matrix, self._address(norm.weight), self._array(_StemBlock, made), len(made)))
        self._stages, self._eps = self._array(_Stage, stages), module.norms[0].eps
        self._widths = [int(conv.out_channels) for conv in module.convs]

    @staticmethod
    def fits(module: Any) -> bool:
        """Whether the kernels serve this stem."""
        widths = [conv.out_channels for conv in module.convs]
        return module.convs[0].in_channels == 1 and serves(module.convs[0].weight, *widths)

    def _turned(self, conv: nn.Conv2d) -> _Matrix:
        """A convolution's weights as the 16 matrices of F(2x2, 3x3)."""
        side = torch.tensor([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
        matrices = torch.einsum("ak,oikl,bl->aboi", side, conv.weight.detach(), side)
        return self._matrix(matrices.flatten(0, 1), bias=conv.bias)

    def __call__(self, pixels: Tensor) -> Tensor:
        """See `ConvStem.forward`."""
        batch, _, height, width = pixels.shape
        pixels, count, widest = pixels.contiguous(), len(self._widths), max(self._widths)
        out = pixels.new_empty(batch, (height >> count) * (width >> count), self._widths[-1])
        frames = [((height >> n) + 2) * ((width >> n) + 2) * size for n, size in enumerate([1, *self._widths])]
        room = pixels.new_empty(3 * max(frames) + 2 * 16 * TILES * widest)
        for image, tokens in zip(pixels, out, strict=True):
            library().stem(
                self._stages, count, c_float(self._eps), c_void_p(image.data_ptr()), height, width,
                c_void_p(tokens.data_ptr()), c_void_p(room.data_ptr()), c_size_t(max(frames)),
            )  # fmt: skip
        return out


class CompiledHead(_Packed):
    """The output head, and the choice among its logits."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self._weight = self._matrix(layer.weight)

    @staticmethod
    def fits(layer: nn.Linear) -> bool:
        """Whether the kernels serve this head."""
        return serves(layer.weight, layer.in_features, layer.out_features)

    def __call__(self, hidden: Tensor, hints: Tensor, bonus: float) -> tuple[Tensor, Tensor]:
        """What states [B, T, hidden] choose, int64 [B, T], and with what probability, float32 [B, T].

        hints int64 [B, T]: words that have the bonus, -1 for none; [B, 0]: none at all.
        """
        hidden, hints = hidden.contiguous(), hints.contiguous()
        choices = hidden.new_empty(hidden.shape[:2], dtype=torch.int64)
        certainties = hidden.new_empty(hidden.shape[:2])
        room = hidden.new_empty(BLOCK * self._weight.width)
        library().choose(
            c_void_p(hidden.data_ptr()), choices.numel(), byref(self._weight),
            c_void_p(hints.data_ptr() if hints.shape[1] else None), c_float(bonus), c_void_p(choices.data_ptr()),
            c_void_p(certainties.data_ptr()), c_void_p(room.data_ptr()),
        )  # fmt: skip
        return choices, certainties
