"""The engine: order, company, text layers, caps. A small random model reads nonsense, but always the same nonsense."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch

from gravityocr_models.config import DraftConfig
from gravityocr_models.engine import LEAST_LIMIT, Engine
from gravityocr_models.family import nano_conventions
from gravityocr_models.ocr import OcrModel
from gravityocr_models.records import Crop, LayerUse, Rounds, Task
from gravityocr_models.speculate import Prompt, agreements
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.verdict import Verdict
from gravityocr_models.weights import NANO, Checkpoint
from tiny import small_nano


@pytest.fixture(scope="module")
def engine() -> Engine:
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    torch.manual_seed(0)
    model = OcrModel(small_nano(tokenizer)).double().eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.4)
    draft = DraftConfig(8, tokenizer.special("<|mask|>"), 1.0, frozenset("abcdefghijklmnopqrstuvwxyz "))
    conventions = replace(nano_conventions(model.config, tokenizer), keep_above=0.5)
    return Engine(Checkpoint(model, tokenizer, draft), conventions, slots=3)


def crops(count: int, **more: object) -> list[Crop]:
    rng = np.random.default_rng(0)
    sizes = [(20 + 16 * (n % 2), 40 + 50 * (n % 3)) for n in range(count)]
    return [Crop(rng.integers(0, 255, (*size, 3)).astype(np.uint8), **more) for size in sizes]  # type: ignore[arg-type]


def test_order_and_company_change_nothing(engine: Engine) -> None:
    some = crops(7)
    together = engine.read(some, layer=LayerUse.OFF)
    alone = [engine.read([crop], layer=LayerUse.OFF)[0] for crop in some]
    assert [answer.ids for answer in together] == [answer.ids for answer in alone]
    assert len({answer.ids for answer in together}) > 3


def test_threads_change_nothing(engine: Engine) -> None:
    some = [replace(crop, draft=text) for crop, text in zip(crops(7), "abcdefg", strict=True)]
    for layer in LayerUse:
        alone, shared = (replace(engine, threads=count).read(some, layer=layer) for count in (1, 3))
        assert [(each.ids, each.kept_layer) for each in alone] == [(each.ids, each.kept_layer) for each in shared]


def test_rounds_and_blocks_change_nothing(engine: Engine) -> None:
    some = crops(4)
    plain = engine.read(some, rounds=Rounds.PLAIN, layer=LayerUse.OFF)
    for rounds in Rounds:
        for block in (2, 8):
            found = engine.read(some, rounds=rounds, layer=LayerUse.OFF, block=block)
            assert [answer.ids for answer in found] == [answer.ids for answer in plain]


def test_layer_as_draft_changes_nothing(engine: Engine) -> None:
    some = [replace(crop, draft=text) for crop, text in zip(crops(3), ["right or wrong", "", "x" * 50], strict=True)]
    drafted = engine.read(some, layer=LayerUse.DRAFT)
    off = engine.read(some, layer=LayerUse.OFF)
    assert [answer.text for answer in drafted] == [answer.text for answer in off]
    assert not any(answer.kept_layer for answer in drafted)


def test_a_layer_is_kept_if_the_model_agrees(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crops of a region stand and fall together."""
    shares = {"a good one": 1.0, "a rather bad one": 0.0}
    tokens = {text: len(engine.checkpoint.tokenizer.encode(text)) for text in shares}
    by_ids = {tuple(engine.checkpoint.tokenizer.encode(text)): text for text in shares}

    def agreements(_: OcrModel, prompts: Sequence[Prompt]) -> list[int]:
        return [round(shares[by_ids[prompt.layer]] * tokens[by_ids[prompt.layer]]) for prompt in prompts]

    monkeypatch.setattr("gravityocr_models.engine.agreements", agreements)
    keys = [None, None, (1, 2), (1, 2), (1, 3), None]
    drafts = ["a good one", "a rather bad one", "a good one", "a rather bad one", "a good one", None]
    some = [replace(crop, draft=d, region=k) for crop, d, k in zip(crops(6), drafts, keys, strict=True)]
    answers = engine.read(some)
    pooled = tokens["a good one"] / (tokens["a good one"] + tokens["a rather bad one"])
    assert [answer.agreement for answer in answers] == [1.0, 0.0, pooled, pooled, 1.0, None]
    both = Verdict(tokens["a good one"], sum(tokens.values())).holds(engine.conventions.keep_above)
    assert [answer.kept_layer for answer in answers] == [True, False, both, both, True, False]
    read = engine.read(some, layer=LayerUse.OFF)
    for draft, answer, plain in zip(drafts, answers, read, strict=True):
        assert answer.text == (draft if answer.kept_layer else plain.text)


def test_lines_that_agree_stand_for_the_others(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept without being read took no forward, and says how the lines that were read agreed."""
    monkeypatch.setattr("gravityocr_models.engine.agreements", lambda _, prompts: [len(p.layer) for p in prompts])
    some = [replace(crop, draft="a line of letters like all", region=(1, 0), font=(1, "A")) for crop in crops(9)]
    answers = engine.read(some)
    assert sorted(answer.forwards for answer in answers) == [0] * 6 + [1] * 3
    assert all(answer.kept_layer and answer.agreement == 1 for answer in answers)


@pytest.mark.parametrize("agrees", [True, False])
def test_of_a_line_the_rest_is_read_where_the_beginning_disagrees(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, agrees: bool
) -> None:
    """A beginning may be cut off wrongly; no layer is rejected for that."""
    draft = "some words of a line that is long enough to be judged by its beginning"
    crop = replace(crops(1, draft=draft)[0], pixels=np.tile(crops(1)[0].pixels, (1, 12, 1)))
    whole = len(engine.checkpoint.tokenizer.encode(draft))
    seen = list[int]()

    def agreements(_: OcrModel, prompts: Sequence[Prompt]) -> list[int]:
        seen.extend(len(prompt.layer) for prompt in prompts)
        return [len(prompt.layer) if agrees or len(prompt.layer) == whole else 0 for prompt in prompts]

    monkeypatch.setattr("gravityocr_models.engine.agreements", agreements)
    (answer,) = engine.read([crop])
    assert (answer.kept_layer, answer.text, answer.forwards) == (True, draft, 1)
    assert seen[0] < whole
    assert seen[1:] == ([] if agrees else [whole])


def test_a_formulas_layer_is_judged_by_its_signs(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the encoder reads the formula; braces in other places are no lie."""
    monkeypatch.setattr(Engine, "_reads", lambda *_: True)
    monkeypatch.setattr("gravityocr_models.engine.spelled", lambda *_: (r"\frac{abcd}{efgh}+i", [], None))
    drafts = ["abcdefgh+i", "jklmnopq+r"]
    some = [replace(crop, task=Task.FORMULA, draft=draft) for crop, draft in zip(crops(2), drafts, strict=True)]
    true, false = engine.read(some)
    assert (true.kept_layer, true.text, true.agreement) == (True, drafts[0], 1.0)
    assert (false.kept_layer, false.agreement) == (False, 0.0)


def test_a_layer_is_verified_in_one_forward(engine: Engine) -> None:
    """A random model's own words are not kept for their sense: it agrees with what it says itself."""
    crop = crops(1)[0]
    said = engine.read([crop], layer=LayerUse.OFF)[0].ids[:8]
    prompt = replace(engine.prompts([crop])[0], layer=said)
    assert agreements(engine.checkpoint.model, [prompt]) == [8]


def test_a_script_the_model_never_learned_is_not_judged(engine: Engine) -> None:
    (answer,) = engine.read([replace(crops(1)[0], draft="中文字幕 abc")])
    assert answer.kept_layer
    assert answer.text == "中文字幕 abc"
    assert answer.agreement is None
    assert answer.forwards == 0


@pytest.mark.parametrize(
    ("draft", "judged"), [("plain text", True), ("mostly plain 文", True), ("half 中文字幕", False)]
)
def test_foreign_letters_among_known_ones_spoil_the_verdict(engine: Engine, draft: str, judged: bool) -> None:
    """A model that can't say the foreign letters disagrees with them, and with what follows them, for no fault."""
    assert engine.can_judge(draft) == judged


def test_an_answer_without_end_is_cut_and_marked(engine: Engine) -> None:
    never = frozenset({engine.checkpoint.tokenizer.special("<|image|>")})
    endless = replace(engine, conventions=replace(engine.conventions, ends=never))
    (answer,) = endless.read(crops(1), layer=LayerUse.OFF)
    assert answer.truncated
    assert len(answer.ids) == LEAST_LIMIT + engine.conventions.tokens_per_image_token * 2 * 4


def test_the_task_is_part_of_the_prompt(engine: Engine) -> None:
    pixels = crops(1)[0].pixels
    answers = engine.read([Crop(pixels, task) for task in Task], layer=LayerUse.OFF)
    assert len({answer.ids for answer in answers}) == 3


def test_nothing_to_read(engine: Engine) -> None:
    assert engine.read([]) == []
