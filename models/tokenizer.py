"""Text <-> token ids, and the special tokens by name.

A byte-level BPE (the `tokenizers` library): any Unicode string comes back unchanged. Text never turns into a special
token, even where a page shows one's spelling.
"""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer as Backend


class Tokenizer:
    """The tokenizer.json beside a checkpoint's weights."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._backend.encode_special_tokens = True

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """From a tokenizer.json. OSError or ValueError if it is missing or damaged."""
        text = path.read_text(encoding="utf-8")
        try:
            return cls(Backend.from_str(text))
        except Exception as error:  # the library raises bare Exception
            raise ValueError(f"damaged tokenizer: {path}: {error}") from error

    def __len__(self) -> int:
        return int(self._backend.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Ids of plain text."""
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """For each id of `encode(text)` the characters it stands for, [start, end)."""
        return list(self._backend.encode(text, add_special_tokens=False).offsets)

    def encode_prompt(self, text: str) -> list[int]:
        """Ids of a rendered prompt template: what spells a special token in it is one."""
        self._backend.encode_special_tokens = False
        try:
            return list(self._backend.encode(text, add_special_tokens=True).ids)
        finally:
            self._backend.encode_special_tokens = True

    def decode(self, ids: Sequence[int]) -> str:
        """Text of ids, special tokens left out; bytes that are no UTF-8 become U+FFFD."""
        return str(self._backend.decode(list(ids), skip_special_tokens=True))

    def special(self, name: str) -> int:
        """The id of a special token; KeyError if the vocabulary has none of that name."""
        found = self._backend.token_to_id(name)
        if found is None:
            raise KeyError(f"the tokenizer has no token {name!r}")
        return int(found)
