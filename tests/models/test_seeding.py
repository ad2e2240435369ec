"""The vocabulary's start: pieces that end alike are alike, and what is copied is what is written."""

import torch

from gravityocr_models.ocr import OcrModel
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.joint import initialise
from gravityocr_models.train.seeding import seed_vocabulary
from gravityocr_models.weights import NANO
from tiny import small_nano


@torch.no_grad()
def test_rows_lean_on_their_letters_and_keep_their_length() -> None:
    torch.manual_seed(0)
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    model = OcrModel(small_nano(tokenizer))
    initialise(model)
    embeddings, outputs = model.model.language_model.embed_tokens.weight, model.lm_head.weight
    lengths, weights, before = embeddings.norm(dim=1), outputs.norm(dim=1), embeddings.clone()
    seed_vocabulary(model, tokenizer)

    def alike(rows: torch.Tensor, one: str, other: str) -> float:
        (a,), (b,) = tokenizer.encode(one), tokenizer.encode(other)
        return torch.cosine_similarity(rows[a], rows[b], dim=0).item()

    assert alike(embeddings, " on", "tion") > 0.7 > 0.4 > alike(embeddings, "th", "tion")
    torch.testing.assert_close(embeddings.norm(dim=1), lengths)
    torch.testing.assert_close(outputs.norm(dim=1), weights)
    torch.testing.assert_close(torch.cosine_similarity(outputs, embeddings), torch.ones(len(tokenizer)))
    for untouched in (tokenizer.special("<|mask|>"), tokenizer.encode("\n")[0]):
        assert torch.equal(embeddings[untouched], before[untouched])
