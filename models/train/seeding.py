"""Where a decoder's vocabulary starts: from the glyphs that the encoder has learned to name.

A piece of text is told to the decoder by an embedding, a place on the image by features from which its glyphs can be
named. If the two have nothing in common, the decoder must learn for every one of 2,000 pieces apart what it looks like.
So embeddings start as sums of glyph directions (the rows of the glyph head), leaning on the piece's last letters, which
say where reading has come to. The rows of the output head start as the embeddings: most of what is to be written stands
in the prompt, as the encoder's reading, and to copy a rare piece is then no harder than to copy a frequent one.
"""

import torch
from torch import Tensor

from gravityocr_models.ocr import OcrModel
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.batch import GLYPHS
from gravityocr_models.vision import GLYPHS_PER_TOKEN

NEAR, FAR = 1.0, 0.5  # weight of the last letter and of the one before it
RANDOM = 0.3  # share of what was there before: tells pieces of like ends apart


@torch.no_grad()
def seed_vocabulary(model: OcrModel, tokenizer: Tokenizer) -> None:
    """Set the embeddings of all pieces that are written in known glyphs, and all output rows; lengths stay."""
    assert model.glyph_head is not None
    directions = model.glyph_head.weight.unflatten(0, (GLYPHS_PER_TOKEN, -1))[:, : 1 + len(GLYPHS)]
    directions = directions - directions.mean(dim=1, keepdim=True)
    embeddings, outputs = model.model.language_model.embed_tokens.weight, model.lm_head.weight
    for piece in range(len(tokenizer)):
        letters = [GLYPHS.get(char, 0) for char in tokenizer.decode([piece]).strip()]
        if letters and all(letters):
            _lean(embeddings[piece], directions, letters[::-1])
    outputs.copy_(embeddings / embeddings.norm(dim=1, keepdim=True) * outputs.norm(dim=1, keepdim=True))


def _lean(row: Tensor, directions: Tensor, letters: list[int]) -> None:
    """Turn a vector towards its letters, nearest first. directions [3, glyphs + 1, hidden]."""
    length = row.norm()
    towards = NEAR * directions[:, letters[0]].sum(0)
    if len(letters) > 1:
        towards = towards + FAR * directions[:, letters[1]].sum(0)
    mixed = towards / towards.norm() + RANDOM * row / length
    row.copy_(mixed / mixed.norm() * length)
