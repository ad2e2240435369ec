"""The GLM-OCR architecture: a vision encoder and a text decoder that drafts and verifies with the same weights.

One forward serves training, drafting and verifying; what a token may see (mask) and where it stands (positions) are
arguments. Modules carry the names of the published checkpoints, so that a state dict needs no translation. nano differs
in one place: `ConvStem` instead of linear patches.

Equal to transformers' GlmOcrForConditionalGeneration (see tests/models/test_ocr.py); written for images only.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gravityocr_models.attention import attend
from gravityocr_models.cache import Window
from gravityocr_models.compiled import CompiledDecoder, CompiledHead, CompiledStem
from gravityocr_models.config import OcrConfig, TextConfig, VisionConfig
from gravityocr_models.glyphs import Tag

GLYPHS_PER_TOKEN = 3  # two lose 1 % of the characters of held-out lines, such as an l in "ill"; four gain nothing
_EXACT = (torch.float32, torch.float64)


class RMSNorm(nn.Module):
    """Root-mean-square norm over the last dimension."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        if x.device.type != "cpu" or torch.is_grad_enabled() or x.dtype not in _EXACT:
            return F.rms_norm(x, self.weight.shape, self.weight, self.eps)
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)  # half the passes over memory, half the calls
        scale = torch.addcmul(_constant(self.eps, x.dtype), norm, norm, value=1 / x.shape[-1]).rsqrt_()
        return (scale * self.weight).mul_(x)


@cache
def _constant(value: float, dtype: torch.dtype) -> Tensor:
    return torch.tensor(value, dtype=dtype)


def frequencies(theta: float, dim: int, device: torch.device) -> Tensor:
    """Rotary frequencies of `dim` / 2 pairs. Not a buffer: `model.to(bfloat16)` must leave them in float32."""
    return theta ** -(torch.arange(0, dim, 2, dtype=torch.float32, device=device) / dim)


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
    wide = x if x.dtype in _EXACT else x.float()
    pairs = torch.view_as_complex(wide.unflatten(-1, (-1, 2)))
    pairs.mul_(torch.complex(cos.to(wide.dtype), sin.to(wide.dtype)))
    return x if wide is x else x.copy_(wide)


def _read_along(weight: Tensor) -> Tensor:
    """The same matrix [out, in], its longer side contiguous: what one row is multiplied with is read in long runs."""
    return weight.t().contiguous().t() if len(weight) > weight.shape[1] else weight.contiguous()


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate pairs (i, i + D / 2) of x [..., D] by angles [..., D / 2]."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


# --- vision -----------------------------------------------------------------------------------------------------------


class PatchEmbed(nn.Module):
    """Linear patches. The checkpoint's 3-D convolution does not overlap, so it is one matrix product."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        kernel = (config.temporal_patch_size, config.patch_size, config.patch_size)
        self.proj = nn.Conv3d(config.in_channels, config.hidden_size, kernel, kernel)  # holds the weights
        self.config = config

    def forward(self, pixels: Tensor) -> Tensor:
        """[B, C, H, W] -> [B, n, hidden], patches that merge into one token next to each other."""
        size, merge = self.config.patch_size, self.config.spatial_merge_size
        batch, channels, height, width = pixels.shape
        rows, columns = height // (size * merge), width // (size * merge)
        x = pixels.view(batch, channels, rows, merge, size, columns, merge, size)
        x = x.permute(0, 2, 5, 3, 6, 1, 4, 7).reshape(batch, rows * columns * merge * merge, channels, 1, size * size)
        x = x.expand(-1, -1, -1, self.config.temporal_patch_size, -1).flatten(2)  # a still image fills the time axis
        return F.linear(x, self.proj.weight.flatten(1), self.proj.bias)


class StemBlock(nn.Module):
    """A residual pair of 3x3 convolutions, [B, C, H, W] -> the same. The identity while `conv2` is zero."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.norm = RMSNorm(width, eps)
        self.conv1 = nn.Conv2d(width, width, 3, 1, 1)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        normed = self.norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return x + self.conv2(F.silu(self.conv1(normed)))  # type: ignore[no-any-return]


class ConvStem(nn.Module):
    """3x3 convolutions of stride 2 down to one vector for `patch_size` px: sees strokes across patch borders."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        widths = (config.in_channels, *config.stem_widths)
        self.convs = nn.ModuleList(nn.Conv2d(a, b, 3, 2, 1) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(RMSNorm(width, config.rms_norm_eps) for width in widths[1:])
        depths = config.stem_depths or (0,) * (len(config.stem_widths) - 1)
        self.blocks = nn.ModuleList(
            nn.Sequential(*(StemBlock(width, config.rms_norm_eps) for _ in range(depth)))
            for width, depth in zip(config.stem_widths[:-1], depths, strict=True)
        )
        self.compiled: CompiledStem | None = None  # see lay_out

    def lay_out(self) -> None:
        """Have kernels.c do the work where it can."""
        self.compiled = CompiledStem(self) if CompiledStem.fits(self) else None

    def forward(self, pixels: Tensor) -> Tensor:
        """[B, C, H, W] -> [B, n, hidden], row by row."""
        if self.compiled is not None:
            return self.compiled(pixels)
        x = pixels.contiguous(memory_format=torch.channels_last)
        for conv, norm, blocks in zip(self.convs[:-1], self.norms[:-1], self.blocks, strict=True):
            x = blocks(F.silu(norm(conv(x).permute(0, 2, 3, 1))).permute(0, 3, 1, 2))
        return self.norms[-1](self.convs[-1](x).permute(0, 2, 3, 1)).flatten(1, 2)  # type: ignore[no-any-return]


class VisionAttention(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.heads = config.num_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=config.attention_bias)
        self.proj = nn.Linear(config.hidden_size, config.hidden_size, bias=config.attention_bias)
        self.q_norm = RMSNorm(config.hidden_size // config.num_heads, config.rms_norm_eps)
        self.k_norm = RMSNorm(config.hidden_size // config.num_heads, config.rms_norm_eps)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, count, _ = x.shape
        query, key, value = self.qkv(x).view(batch, count, 3, self.heads, -1).unbind(2)
        query = rotate_halves(self.q_norm(query), cos, sin)
        key = rotate_halves(self.k_norm(key), cos, sin)
        out = attend(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), None)
        return self.proj(out.transpose(1, 2).reshape(batch, count, -1))  # type: ignore[no-any-return]


class GatedMlp(nn.Module):
    """SwiGLU with three separate matrices: the vision blocks' and the merger's."""

    def __init__(self, size: int, inner: int, bias: bool) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(size, inner, bias=bias)
        self.up_proj = nn.Linear(size, inner, bias=bias)
        self.down_proj = nn.Linear(inner, size, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))  # type: ignore[no-any-return]


class VisionBlock(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.norm1 = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.norm2 = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.attn = VisionAttention(config)
        self.mlp = GatedMlp(config.hidden_size, config.intermediate_size, config.attention_bias)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))  # type: ignore[no-any-return]


class Merger(GatedMlp):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__(config.out_hidden_size, config.out_hidden_size * config.in_channels, bias=False)
        self.proj = nn.Linear(config.out_hidden_size, config.out_hidden_size, bias=False)
        self.post_projection_norm = nn.LayerNorm(config.out_hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(F.gelu(self.post_projection_norm(self.proj(x))))


class GlyphHead(nn.Linear):
    """Names the first three glyphs of an image token, and says what `glyphs.Tag` holds of each.

    It teaches the encoder to read before the decoder has learned where to look, and gives decoding a first draft.
    """

    def __init__(self, hidden: int, glyphs: int) -> None:
        super().__init__(hidden, GLYPHS_PER_TOKEN * (1 + glyphs + len(Tag)))

    def forward(self, tokens: Tensor) -> Tensor:
        """Image tokens [..., hidden] -> logits [..., 3, 1 + glyphs + tags]: none, each glyph, each tag."""
        return super().forward(tokens).unflatten(-1, (GLYPHS_PER_TOKEN, -1))  # type: ignore[no-any-return]


class VisionModel(nn.Module):
    """Pixels -> image tokens. All images of a call have one size; every image attends to itself only."""

    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.config = config
        self.patch_embed = ConvStem(config) if config.stem_widths else PatchEmbed(config)
        self.blocks = nn.ModuleList(VisionBlock(config) for _ in range(config.depth))
        self.post_layernorm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        merge = config.spatial_merge_size
        self.downsample = nn.Conv2d(config.hidden_size, config.out_hidden_size, merge, merge)  # holds the weights
        self.merger = Merger(config)

    def forward(self, pixels: Tensor) -> Tensor:
        """[B, C, H, W], H and W multiples of token_px -> [B, n, out_hidden], row by row."""
        merge = self.config.spatial_merge_size
        rows, columns = (side // self.config.patch_size for side in pixels.shape[2:])
        x = self.patch_embed(pixels)
        angles = self._angles(rows, columns, x.device)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        x = self.post_layernorm(x)
        x = x.view(x.shape[0], -1, merge * merge, x.shape[-1]).transpose(2, 3).flatten(2)
        x = F.linear(x, self.downsample.weight.flatten(1), self.downsample.bias)
        return self.merger(x)  # type: ignore[no-any-return]

    def _angles(self, rows: int, columns: int, device: torch.device) -> Tensor:
        """Rotary angles [n, 1, head_dim / 2] of patches in the order of `PatchEmbed`."""
        merge = self.config.spatial_merge_size
        inv_freq = frequencies(self.config.rope_theta, self.config.hidden_size // self.config.num_heads // 2, device)
        row, column = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
        places = torch.stack((row, column)).view(2, rows // merge, merge, columns // merge, merge)
        places = places.transpose(2, 3).reshape(2, -1, 1).to(device)
        return torch.cat((places[0] * inv_freq, places[1] * inv_freq), dim=-1)[:, None]


# --- text -------------------------------------------------------------------------------------------------------------


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
