"""The vision encoder of the GLM-OCR architecture: pixels -> image tokens, and nano's head that names glyphs on them.

nano differs in one place: `ConvStem` instead of linear patches. Written for images only.
"""

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from gravityocr_models.attention import attend
from gravityocr_models.compiled import CompiledStem
from gravityocr_models.config import VisionConfig
from gravityocr_models.glyphs import Tag
from gravityocr_models.layers import RMSNorm, frequencies

GLYPHS_PER_TOKEN = 3  # two lose 1 % of the characters of held-out lines, such as an l in "ill"; four gain nothing


def rotate_halves(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate pairs (i, i + D / 2) of x [..., D] by angles [..., D / 2]."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


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
