"""Where a decoder's vocabulary starts: from the glyphs that the encoder has learned to name.

A piece of text is told to the decoder by an embedding, a place on the image by features from which its glyphs can be
named. If the two have nothing in common, the decoder must learn for every one of 2,000 pieces apart what it looks like.
So both the embeddings and the rows of the output head start as sums of glyph directions (the rows of the glyph head):
an embedding leans on the piece's last letters, which say where reading has come to, a row of the output head on its
first letters, which are what stands where the next piece begins.
"""

import torch
from torch import Tensor

from gravityocr_models.ocr import GLYPHS_PER_TOKEN, OcrModel
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.batch import GLYPHS

NEAR, FAR = 1.0, 0.5  # weight of the nearest letter and of the one behind it
RANDOM = 0.3  # share of what was there before: tells pieces of like ends apart


@torch.no_grad()
def seed_vocabulary(model: OcrModel, tokenizer: Tokenizer) -> None:
    """Set the embeddings and output rows of all pieces that are written in known glyphs, each with its old length."""
    assert model.glyph_head is not None
    directions = model.glyph_head.weight.unflatten(0, (GLYPHS_PER_TOKEN, -1))[:, : 1 + len(GLYPHS)]
    directions = directions - directions.mean(dim=1, keepdim=True)
    embeddings, outputs = model.model.language_model.embed_tokens.weight, model.lm_head.weight
    for piece in range(len(tokenizer)):
        letters = [GLYPHS.get(char, 0) for char in tokenizer.decode([piece]).strip()]
        if letters and all(letters):
            _lean(embeddings[piece], directions, letters[::-1])
            _lean(outputs[piece], directions, letters)


def _lean(row: Tensor, directions: Tensor, letters: list[int]) -> None:
    """Turn a vector towards its letters, nearest first. directions [3, glyphs + 1, hidden]."""
    length = row.norm()
    towards = NEAR * directions[:, letters[0]].sum(0)
    if len(letters) > 1:
        towards = towards + FAR * directions[:, letters[1]].sum(0)
    mixed = towards / towards.norm() + RANDOM * row / length
    row.copy_(mixed / mixed.norm() * length)
