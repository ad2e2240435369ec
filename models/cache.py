"""Keys and values of the tokens committed so far: one row of slots a sequence.

Rollback costs nothing: the caller knows how many slots of a sequence count, and a rejected token is simply written over
by the next window.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from gravityocr_models.config import TextConfig


class KVCache:
    """store [layer, sequence, slot, 2, kv_heads, head_dim]: a token's key and its value lie side by side."""

    def __init__(
        self, config: TextConfig, sequences: int, slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        shape = (config.num_hidden_layers, sequences, slots, 2, config.num_key_value_heads, config.head_dim)
        # Zeros, not empty: a masked slot still takes part in the product, and garbage may be NaN.
        self.store = torch.zeros(shape, device=device, dtype=dtype)

    @property
    def slots(self) -> int:
        return self.store.shape[2]

    def reserve(self, sequences: int, slots: int) -> bool:
        """Make room for so many sequences of at least so many slots; whether the store had to be replaced for it."""
        layers, held, length = self.store.shape[:3]
        if sequences <= held and slots <= length:
            return False
        if slots > length:
            slots = max(slots, length + length // 2)  # in proportion: a long answer must not copy all the time
        store = self.store.new_zeros(layers, max(sequences, held), max(slots, length), *self.store.shape[3:])
        store[:, :held, :length] = self.store
        self.store = store
        return True

    def move(self, source: int, target: int, count: int) -> None:
        """Copy the first `count` slots of one sequence over those of another."""
        self.store[:, target, :count] = self.store[:, source, :count]

    def window(self, first: int, lengths: Tensor, width: int, visible: int) -> "Window":
        """Where the next `width` tokens of the sequences from `first` on go: behind lengths int64 [B] slots in use."""
        slots = torch.arange(width, device=lengths.device) + lengths[:, None]
        starts = torch.arange(first, first + len(lengths), device=lengths.device) * self.slots
        seen = self.store[:, first : first + len(lengths), :visible].permute(0, 3, 1, 4, 2, 5)
        return Window(self.store.flatten(3).flatten(1, 2).unbind(), seen.unbind(), (starts[:, None] + slots).flatten())


@dataclass(frozen=True)
class Window:
    """A forward's part of a cache, layer by layer.

    rows [sequence * slot, 2 * kv_heads * head_dim]: all that is kept. seen [2, B, kv_heads, S, head_dim]: the keys and
    values that the forward looks at. places int64 [B * W]: the rows of its own tokens.
    """

    rows: tuple[Tensor, ...]
    seen: tuple[Tensor, ...]
    places: Tensor

    def write(self, layer: int, new: Tensor) -> tuple[Tensor, Tensor]:
        """Keep what is new, keys and values [B, W, 2 * kv_heads, D]; give all that is seen, 2 x [B, kv_heads, S, D]."""
        self.rows[layer].index_copy_(0, self.places, new.reshape(len(self.places), -1))
        key, value = self.seen[layer].unbind()
        return key, value
