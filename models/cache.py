"""Keys and values of the tokens committed so far, one row of slots a sequence.

Rollback is one integer a sequence: a rejected token is simply written over by the next window. Nothing else in the
program touches positions.
"""

import torch
from torch import Tensor

from gravityocr_models.config import TextConfig


class KVCache:
    """K, V [layer, B, kv_heads, slots, head_dim]; lengths int64 [B]: slots that hold committed tokens."""

    def __init__(self, config: TextConfig, batch: int, slots: int, device: torch.device, dtype: torch.dtype) -> None:
        shape = (config.num_hidden_layers, batch, config.num_key_value_heads, slots, config.head_dim)
        # Zeros, not empty: a masked slot still takes part in the product, and garbage may be NaN.
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.lengths = torch.zeros(batch, dtype=torch.int64, device=device)

    @property
    def slots(self) -> int:
        return self.keys.shape[3]

    def write(self, layer: int, key: Tensor, value: Tensor, visible: int) -> tuple[Tensor, Tensor]:
        """Put a window [B, kv_heads, W, D] behind the committed tokens; return the `visible` first slots."""
        batch, _, width, _ = key.shape
        rows = torch.arange(batch, device=key.device)[:, None]
        places = self.lengths[:, None] + torch.arange(width, device=key.device)
        self.keys[layer][rows, :, places] = key.transpose(1, 2)
        self.values[layer][rows, :, places] = value.transpose(1, 2)
        return self.keys[layer, :, :, :visible], self.values[layer, :, :, :visible]

    def reserve(self, slots: int) -> None:
        """Make room for at least `slots` a sequence."""
        if slots > self.slots:
            shape = (*self.keys.shape[:3], slots - self.slots, self.keys.shape[4])
            self.keys = torch.cat([self.keys, self.keys.new_zeros(shape)], dim=3)
            self.values = torch.cat([self.values, self.values.new_zeros(shape)], dim=3)

    def join(self, other: "KVCache") -> None:
        """The other cache's sequences behind this one's."""
        slots = max(self.slots, other.slots)
        self.reserve(slots)
        other.reserve(slots)
        self.keys = torch.cat([self.keys, other.keys], dim=1)
        self.values = torch.cat([self.values, other.values], dim=1)
        self.lengths = torch.cat([self.lengths, other.lengths])

    def keep(self, rows: Tensor) -> None:
        """Only these sequences go on. rows: int64, indices into the batch."""
        self.keys, self.values = self.keys[:, rows], self.values[:, rows]
        self.lengths = self.lengths[rows]
