"""What training tells the decoder of a batch: the encoder's own reading, with the errors that it makes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from gravityocr_models import store
from gravityocr_models.glyphs import Named, slots
from gravityocr_models.letters import Letters
from gravityocr_models.reading import spelled
from gravityocr_models.records import Task
from gravityocr_models.times import told_by
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.batch import GLYPHS, IGNORE, Batch
from gravityocr_models.train.vocabulary import END

UNREAD = 0.1  # share of crops that the decoder has to read without


@dataclass(frozen=True)
class Told:
    """ids int64 [B, R]: the reading, then end tokens. times int64 [B, tokens]: see `times.read_at`; -1: unread.

    alike int64 [B, L]: which id of the reading each answer token is, IGNORE where the reading lacks it.
    """

    ids: Tensor
    times: Tensor
    alike: Tensor


NOTHING = Told(torch.empty(1, 0, dtype=torch.int64), torch.full((1, 1), -1), torch.full((1, 1), IGNORE))


class Teller:
    """Reads batches as the engine reads crops, formulas with one look."""

    def __init__(self, tokenizer: Tokenizer, folder: Path, token_px: int) -> None:
        letters = folder / store.LETTERS
        self.letters = Letters.load(letters) if letters.exists() else None
        self.tokenizer, self.token_px = tokenizer, token_px
        self.tasks = {tokenizer.special(task): task for task in Task}
        self.end = tokenizer.special(END)
        self.rng = np.random.default_rng(0)

    def __call__(self, batch: Batch, named: Tensor) -> Told:
        """named: the glyph head's logits [B, tokens, 3, ...]."""
        rows = [self._read(batch, crop, named[crop]) for crop in range(len(named))]
        longest = max(len(ids) for ids, _ in rows)
        ids = [[*ids, *[self.end] * (longest - len(ids))] for ids, _ in rows]
        alike = np.full(batch.answers.shape, IGNORE, np.int64)
        for row, (read, _) in enumerate(rows):
            answer = batch.answers[row, : batch.lengths[row]].tolist()
            for same in Levenshtein.editops(read, answer).as_matching_blocks():
                alike[row, same.b : same.b + same.size] = range(same.a, same.a + same.size)
        times = np.stack([times for _, times in rows])
        return Told(torch.tensor(ids, dtype=torch.int64), torch.from_numpy(times), torch.from_numpy(alike))

    def _read(self, batch: Batch, crop: int, named: Tensor) -> tuple[list[int], np.ndarray]:
        task = self.tasks[int(batch.tasks[crop])]
        line, glyphs = "", list[Named]()
        if task is not Task.TABLE and self.rng.random() >= UNREAD:
            pixels = ((batch.pixels[crop, 0].cpu().numpy() + 1) * 127.5).round().astype(np.uint8)
            found = slots(named.detach().cpu(), batch.grid, [*GLYPHS], self.token_px)
            line, glyphs, _ = spelled(task, [found], pixels, self.letters)
        return told_by(line, glyphs, batch.grid, self.tokenizer, self.end)
