"""The GLM-OCR architecture: a vision encoder and a text decoder that drafts and verifies with the same weights.

One forward serves training, drafting and verifying; what a token may see (mask) and where it stands (positions) are
arguments. Modules carry the names of the published checkpoints, so that a state dict needs no translation. nano differs
in its encoder's stem and in a head that names glyphs (vision.py).

Equal to transformers' GlmOcrForConditionalGeneration (see tests/models/test_ocr.py); written for images only.
"""

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gravityocr_models.attention import attend
from gravityocr_models.cache import Window
from gravityocr_models.compiled import CompiledDecoder, CompiledHead
from gravityocr_models.config import OcrConfig, TextConfig
from gravityocr_models.layers import EXACT, RMSNorm, frequencies
from gravityocr_models.vision import ConvStem, GlyphHead, VisionModel


@cache
def rotary(config: TextConfig, device: torch.device) -> tuple[Tensor, Tensor]:
    """For each rotary pair of the decoder, the axis whose position it turns with (0..2), and its frequency."""
    with torch.inference_mode(False):  # whoever asks first, training must be able to use it
        axis = torch.repeat_interleave(torch.tensor(config.mrope_section))
        return axis.to(device), frequencies(config.rope_theta, config.head_dim, device)


def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate neighbouring pairs (0, 1), (2, 3)... of x [B, T, heads, D], in place, by angles [B, T, 1, D / 2].

    A pair is a complex number: one product, 2 to 12 times as fast on a CPU as working on every second column.
    """
    wide = x if x.dtype in EXACT else x.float()
    pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)))
    pairs.mul_(torch.complex(cos.to(wide.dtype), sin.to(wide.dtype)))
    return x if wide is x else x.copy_(wide)


def _read_along(weight: Tensor) -> Tensor:
    """The same matrix [out, in], its longer side contiguous: what one row is multiplied with is read in long runs."""
    return weight.t().contiguous().t() if len(weight) > weight.shape[1] else weight.contiguous()


class TextAttention(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.head_dim = config.head_dim
        self.shared = config.num_key_value_heads
        self.q_proj = nn.Linear(config.hidden_size, config.num_attention_heads * config.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * config.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, config.num_key_value_heads * config.head_dim, bias=False)
        self.o_proj = nn.Linear(config.num_attention_heads * config.head_dim, config.hidden_size, bias=False)
        self.qkv: Tensor | None = None  # see lay_out; a checkpoint knows the three apart

    def lay_out(self) -> None:
        """Have the three projections share one tensor, so that one product gives them all."""
        projections = self.q_proj, self.k_proj, self.v_proj
        self.qkv = _read_along(torch.cat([projection.weight.detach() for projection in projections]))
        parts = self.qkv.split([projection.out_features for projection in projections])
        for projection, part in zip(projections, parts, strict=True):
            projection.weight.data = part

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, cache: Window | None, layer: int, rows: Tensor | None
    ) -> Tensor:
        """rows int64 [B, R]: those that look around; all leave their keys and values. None: all rows do."""
        batch = len(x)
        weight = self.qkv
        if weight is None:
            weight = torch.cat((self.q_proj.weight, self.k_proj.weight, self.v_proj.weight))
        if rows is None:
            heads = F.linear(x, weight).view(batch, x.shape[1], -1, self.head_dim)
            rotate_pairs(heads[:, :, : -self.shared], cos, sin)
            query, new = heads.split((heads.shape[2] - 2 * self.shared, 2 * self.shared), dim=2)
        else:
            asking, answering = weight.split((self.q_proj.out_features, 2 * self.shared * self.head_dim))
            new = F.linear(x, answering).view(batch, x.shape[1], -1, self.head_dim)
            query = F.linear(picked(x, rows), asking).view(batch, rows.shape[1], -1, self.head_dim)
            rotate_pairs(new[:, :, : self.shared], cos, sin)
            rotate_pairs(query, picked(cos[:, :, 0], rows)[:, :, None], picked(sin[:, :, 0], rows)[:, :, None])
        key, value = cache.write(layer, new) if cache is not None else new.transpose(1, 2).chunk(2, dim=1)
        out = attend(query.transpose(1, 2), key, value, mask)
        return self.o_proj(out.transpose(1, 2).reshape(batch, query.shape[1], -1))  # type: ignore[no-any-return]


class TextMlp(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.gate_up_proj = nn.Linear(config.hidden_size, 2 * config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(F.silu(gate) * up)  # type: ignore[no-any-return]


class DecoderLayer(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.self_attn = TextAttention(config)
        self.mlp = TextMlp(config)
        self.input_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_self_attn_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_mlp_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, cache: Window | None, layer: int, rows: Tensor | None
    ) -> Tensor:
        """rows: the states that are wanted, see `TextAttention.forward`."""
        attended = self.self_attn(self.input_layernorm(x), cos, sin, mask, cache, layer, rows)
        x = (x if rows is None else picked(x, rows)) + self.post_self_attn_layernorm(attended)
        return x + self.post_mlp_layernorm(self.mlp(self.post_attention_layernorm(x)))  # type: ignore[no-any-return]


class Embedding(nn.Embedding):
    """Stays as it is on the meta device, where random numbers would have PyTorch import its compiler: two seconds."""

    def reset_parameters(self) -> None:
        if not self.weight.is_meta:
            super().reset_parameters()


class TextModel(nn.Module):
    """Embeddings -> hidden states; the state at a token predicts the next one, for clean and mask tokens alike."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.compiled: CompiledDecoder | None = None  # see lay_out

    def lay_out(self) -> None:
        """Have kernels.c do the work where it can, and lay the weights out for where it can't."""
        fits = CompiledDecoder.fits(self)
        self.compiled = CompiledDecoder(self, *rotary(self.config, self.norm.weight.device)) if fits else None
        for layer in self.layers:
            layer.self_attn.lay_out()  # type: ignore[union-attr, operator]

    def forward(
        self, embeds: Tensor, positions: Tensor, mask: Tensor, cache: Window | None = None, read: "Read | None" = None
    ) -> Tensor:
        """Hidden states [B, T, hidden], or of the rows to be read [B, R, hidden].

        embeds [B, T, hidden]; positions int64 [3, B, T] (time, row, column); mask as in `attend`, [B, 1, T, S]: S = T
        without a cache, else the slots of the cache that are looked at. With a cache the new keys are written to it.
        """
        if self.compiled is not None and cache is not None:
            return self.compiled(embeds, positions, mask, cache, None if read is None else (read.rows, read.mask))
        axis, inv_freq = rotary(self.config, embeds.device)
        angles = (positions.permute(1, 2, 0).index_select(-1, axis) * inv_freq)[:, :, None]
        cos, sin = angles.cos().to(embeds.dtype), angles.sin().to(embeds.dtype)
        x, last = embeds, len(self.layers) - 1
        for index, layer in enumerate(self.layers):
            rows, mask = (read.rows, read.mask) if read is not None and index == last else (None, mask)
            x = layer(x, cos, sin, mask, cache, index, rows)
        return self.norm(x)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Read:
    """The rows int64 [B, R] whose states are read, and what they see: the last layer spares the others."""

    rows: Tensor
    mask: Tensor


def picked(x: Tensor, rows: Tensor) -> Tensor:
    """Rows int64 [B, R] of x [B, T, ...]."""
    return x[torch.arange(len(rows), device=rows.device)[:, None], rows]


class _Body(nn.Module):
    """The checkpoint's `model.` prefix."""

    def __init__(self, config: OcrConfig) -> None:
        super().__init__()
        self.visual = VisionModel(config.vision)
        self.language_model = TextModel(config.text)


class OcrModel(nn.Module):
    """Vision encoder, decoder, output head and, in nano, the head that names glyphs."""

    def __init__(self, config: OcrConfig) -> None:
        super().__init__()
        self.config = config
        self.model = _Body(config)
        self.lm_head = nn.Linear(config.text.hidden_size, config.text.vocab_size, bias=False)
        named = config.vision.glyphs
        self.glyph_head = GlyphHead(config.text.hidden_size, named) if named else None
        self.compiled_head: CompiledHead | None = None  # see lay_out

    @property
    def device(self) -> torch.device:
        return self.lm_head.weight.device

    @property
    def dtype(self) -> torch.dtype:
        return self.lm_head.weight.dtype

    def lay_out(self) -> "OcrModel":
        """Weights as serving wants them, under the same names. After it they can't be moved, changed or trained."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.weight.data = _read_along(module.weight.data)
            elif isinstance(module, nn.Conv2d):
                module.to(memory_format=torch.channels_last)  # as the pixels come
        for module in self.modules():
            if isinstance(module, ConvStem | TextModel):
                module.lay_out()
        self.compiled_head = CompiledHead(self.lm_head) if CompiledHead.fits(self.lm_head) else None
        return self

    def see(self, pixels: Tensor) -> Tensor:
        """Normalised pixels [B, C, H, W] -> image tokens [B, n, hidden]."""
        return self.model.visual(pixels)  # type: ignore[no-any-return]

    def name_glyphs(self, tokens: Tensor) -> Tensor:
        """Image tokens -> what stands on them; see `GlyphHead.forward`. For models that have one."""
        assert self.glyph_head is not None
        return self.glyph_head(tokens)  # type: ignore[no-any-return]

    def embed(self, ids: Tensor) -> Tensor:
        """Token ids [...] -> embeddings [..., hidden]."""
        return self.model.language_model.embed_tokens(ids)  # type: ignore[no-any-return]

    def decode(
        self, embeds: Tensor, positions: Tensor, mask: Tensor, cache: Window | None = None, read: Read | None = None
    ) -> Tensor:
        """See `TextModel.forward`."""
        return self.model.language_model(embeds, positions, mask, cache, read)  # type: ignore[no-any-return]

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states [..., hidden] -> logits [..., vocab] of the next token."""
        return self.lm_head(hidden)  # type: ignore[no-any-return]


def image_positions(rows: int, columns: int, start: int) -> Tensor:
    """Rotary positions int64 [3, rows * columns] of image tokens that begin at position `start`.

    What follows the image stands at start + max(rows, columns).
    """
    row, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    return torch.stack((torch.zeros_like(row), row, column)).flatten(1) + start


def sequence_positions(before: int, grid: tuple[int, int], after: int) -> Tensor:
    """Rotary positions int64 [3, n] of so many tokens, an image of a grid of rows and columns, and so many tokens."""
    behind = before + max(grid)
    texts = torch.arange(before), torch.arange(behind, behind + after)
    head, tail = (places.expand(3, -1) for places in texts)
    return torch.cat([head, image_positions(*grid, before), tail], dim=1)
