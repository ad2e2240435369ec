"""Attention and its masks: one call on [B, heads, T, dim], and the boolean masks for serving and training.

A mask says which keys a query may see. The same rule serves a plain step, a drafting window and the prefill, so that a
token's answer depends only on what it may see and not on the round it came in.
"""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn import functional as F

if TYPE_CHECKING:  # half a thousand modules that only training on a GPU has a use for
    from torch.nn.attention.flex_attention import BlockMask

Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""Batch, head, query and key, as int64 tensors that broadcast -> bool: whether the query sees the key."""


def attend(query: Tensor, key: Tensor, value: Tensor, mask: "Tensor | BlockMask | None") -> Tensor:
    """Scaled dot-product attention.

    query [B, Hq, T, D]; key and value [B, Hkv, S, D] with Hq a multiple of Hkv; mask bool, broadcastable to
    [B, 1, T, S], true = visible, or what `folded` or `mask_of` makes of it; None = everything visible. Returns
    [B, Hq, T, D].
    """
    if mask is not None and not isinstance(mask, Tensor):
        return _flex(query.is_cuda)(query, key, value, block_mask=mask, enable_gqa=True)  # type: ignore[no-any-return]
    batch, heads, rows, dim = query.shape
    groups = heads // key.shape[1]
    if groups > 1:  # query heads that share a key head become further rows of it: nothing is copied
        query = query.reshape(batch, key.shape[1], groups * rows, dim)
        if mask is not None and mask.shape[-2] == rows:
            mask = folded(mask, groups)
    out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return out.view(batch, heads, rows, dim)


@cache
def _flex(compiled: bool) -> Any:
    """FlexAttention; without being compiled it is a reference, of no use but to tests."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention) if compiled else flex_attention


def mask_of(rule: Rule, tokens: int, device: torch.device) -> "Tensor | BlockMask":
    """What so many tokens see of each other, for `attend`.

    On a GPU a mask by blocks of 128 tokens, of which the empty ones are never computed; elsewhere bool [1, 1, T, T].
    """
    if device.type == "cuda":
        from torch.nn.attention.flex_attention import create_block_mask

        return create_block_mask(rule, None, None, tokens, tokens, device=device)
    place = torch.arange(tokens, device=device)
    return rule(place[:1], place[:1], place[:, None], place)[None, None]


def folded(mask: Tensor, groups: int) -> Tensor:
    """A mask [B, 1, T, S] for `groups` query heads that share a key head: [B, 1, groups * T, S]; as it is for T = 1."""
    return mask.repeat(1, 1, groups, 1) if mask.shape[2] > 1 else mask


def additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """The same mask as what is added to the scores; made once here, not once in every layer's attention."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)


def window_mask(lengths: Tensor, causal: Tensor, masked: Tensor, rows: int, slots: int) -> Tensor:
    """Which cached and new keys the rows of a window see: bool [B, 1, rows, slots].

    Row i of sequence b sits in cache slot lengths[b] + i. The first causal[b] rows are clean tokens and see their past;
    the next masked[b] rows are mask tokens and see all clean rows and each other; what follows is padding and sees
    itself only, so that its softmax is defined. lengths, causal, masked: int64 [B].
    """
    key = torch.arange(slots, device=lengths.device)[None, None, :] - lengths[:, None, None]
    if rows == 1:
        return (key <= 0)[:, None]
    row = torch.arange(rows, device=lengths.device)[None, :, None]
    clean = causal[:, None, None]
    used = clean + masked[:, None, None]
    seen = torch.where(row < clean, key <= row, key < used)
    return torch.where(row < used, seen, key == row)[:, None]


def training_mask(prompt: int, answers: Tensor, noised: int, delta: Tensor, block: int) -> Tensor:
    """The mask of `[S | x0 | xt]` for the joint loss: bool [B, 1, T, T], T = prompt + max(answers) + noised.

    S, the prompt and image, is causal; x0, the clean answer, sees S and its own past; xt, its masked copy, sees S, the
    clean tokens of earlier blocks and its own block in both directions. Slot p of the answer lies in block
    (p + delta) // block. answers int64 [B]: answer lengths without padding; delta int64 [B].
    """
    clean = int(answers.max())
    device = answers.device
    total = prompt + clean + noised
    part = torch.zeros(total, dtype=torch.int64, device=device)
    part[prompt:] = 1
    part[prompt + clean :] = 2
    index = torch.arange(total, device=device)
    slot = torch.where(part == 1, index - prompt, index - prompt - clean)
    in_block = (slot[None] + delta[:, None]).div(block, rounding_mode="floor")
    query, key = part[:, None], part[None, :]
    causal = (key <= 1) & (query <= 1) & (index[None, :] <= index[:, None])
    prompt_of_noised = (query == 2) & (key == 0)
    earlier = (query == 2) & (key == 1) & (in_block[:, None, :] < in_block[:, :, None])
    own = (query == 2) & (key == 2) & (in_block[:, None, :] == in_block[:, :, None])
    padding = (part == 1) & (slot >= answers[:, None])
    mask = causal | prompt_of_noised | earlier | own
    mask &= ~padding[:, None, :]
    return (mask | torch.eye(total, dtype=torch.bool, device=device))[:, None]
