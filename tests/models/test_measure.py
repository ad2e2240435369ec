"""What the benchmark counts: forwards as a hook counts them, and ids of transformers that are ours."""

from dataclasses import replace

import pytest
import torch

from gravityocr_models.config import DraftConfig
from gravityocr_models.engine import Engine
from gravityocr_models.family import nano_conventions
from gravityocr_models.measure import BARE, PEER, rows_of
from gravityocr_models.ocr import OcrModel, image_positions
from gravityocr_models.peer import Peer
from gravityocr_models.reading import Reading
from gravityocr_models.records import Rounds
from gravityocr_models.speculate import Prompt, Rules, decode
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.weights import NANO, Checkpoint
from tiny import small_nano


@pytest.fixture(scope="module")
def model() -> OcrModel:
    torch.manual_seed(0)
    model = OcrModel(small_nano(Tokenizer.load(NANO / "tokenizer.json"))).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.4)
    return model


def prompts_of(model: OcrModel) -> list[Prompt]:
    prompts = []
    for rows, columns in ((2, 8), (1, 4), (2, 3)):
        embeds = torch.randn(rows * columns + 1, model.config.text.hidden_size)
        after = torch.full((3, 1), max(rows, columns))
        prompts.append(Prompt(embeds, torch.cat([image_positions(rows, columns, 0), after], dim=1), limit=5 + columns))
    return prompts


@pytest.mark.parametrize("batch", [1, 3])
def test_transformers_writes_the_same_ids(model: OcrModel, batch: int) -> None:
    """Also where sequences of a batch differ in length, and end early."""
    prompts = prompts_of(model)
    plain = [answer.ids for answer in decode(model, prompts, Rules(frozenset(), None, 1, Rounds.PLAIN))]
    ends = frozenset({plain[0][4], plain[1][2]})
    ours = [answer.ids for answer in decode(model, prompts, Rules(ends, None, 1, Rounds.PLAIN))]
    assert list(Peer(model, ends).answers(prompts, batch)) == ours


def test_rows_agree_and_count_what_a_hook_counts(model: OcrModel) -> None:
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    draft = DraftConfig(8, tokenizer.special("<|mask|>"), 1.0)
    engine = Engine(Checkpoint(model, tokenizer, draft), nano_conventions(model.config, tokenizer))
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    hook = model.model.language_model.layers[0].register_forward_hook(count)
    prompts, total = prompts_of(model), 0
    rows = []
    for row in rows_of(engine, prompts, [2], [4, 0], peer=True):
        rows.append(row)
        total += row.batch_forwards if row.way != PEER else 0
    hook.remove()
    assert [row.way for row in rows] == ["plain", "two-forward", "fused", "two-forward", "fused", "transformers"]
    assert {row.same_as_plain for row in rows} == {3}
    assert {row.tokens for row in rows} == {rows[0].tokens}
    read = [replace(prompt, reading=Reading("as read", tokenizer, 1)) for prompt in prompts]
    *_, bare, peer = rows_of(engine, read, [2], [], peer=True)
    assert (bare.way, peer.way) == (BARE, PEER)
    assert bare.tokens == peer.tokens == rows[0].tokens, "neither knows what was read"
    assert peer.same_as_plain == 3
    assert calls > total, "the hook also saw each row's warming up"
    assert rows[0].batch_forwards < rows[0].forwards == rows[0].tokens
