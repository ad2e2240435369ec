"""Whatever drafts, in whatever batch: the ids are those of plain decoding (the invariants of decoding)."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gravityocr_models.attention import window_mask
from gravityocr_models.cache import KVCache
from gravityocr_models.ocr import OcrModel, image_positions
from gravityocr_models.reading import Reading
from gravityocr_models.records import Rounds
from gravityocr_models.rounds import Runner, Steps, accept
from gravityocr_models.speculate import Answer, Pace, Prompt, Rules, agreements, decode, decode_plain
from tiny import END, MASK, VOCABULARY, tiny_model

ENDS = frozenset({END})


@pytest.fixture
def model() -> OcrModel:
    return tiny_model()


def prompt_of(model: OcrModel, rows: int, columns: int, seed: int, limit: int = 24, **more: object) -> Prompt:
    """An image of rows x columns tokens and two prompt tokens, all from the seed."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, 50, (rows * columns + 2,), generator=generator)
    after = max(rows, columns)
    positions = torch.cat([image_positions(rows, columns, 0), torch.arange(after, after + 2).expand(3, -1)], dim=1)
    return Prompt(model.embed(ids), positions, limit, **more)  # type: ignore[arg-type]


def rules(rounds: Rounds = Rounds.FUSED, block: int = 4) -> Rules:
    return Rules(ENDS, MASK, block, rounds)


def ending_at(model: OcrModel, prompt: Prompt, place: int) -> frozenset[int]:
    """End tokens such that plain decoding ends at `place`: the token chosen there, if it didn't occur before."""
    ids = decode_plain(model, prompt, frozenset())
    return frozenset({ids[place]}) if ids[place] not in ids[:place] else frozenset()


def oracle(truth: Sequence[int], length: int, error_rate: float, seed: int) -> Callable[[Sequence[int]], list[int]]:
    """Candidates that are right but for a share of errors: full accepts, partial accepts and none all occur."""
    rng = random.Random(seed)

    def ask(committed: Sequence[int]) -> list[int]:
        right = truth[len(committed) : len(committed) + length]
        return [rng.randrange(VOCABULARY) if rng.random() < error_rate else token for token in right]

    return ask


@pytest.mark.parametrize("rounds", list(Rounds))
@pytest.mark.parametrize("block", [1, 3, 8])
def test_own_drafts_change_nothing(model: OcrModel, rounds: Rounds, block: int) -> None:
    prompts = [prompt_of(model, 1 + seed % 3, 2 + seed, seed) for seed in range(4)]
    found = decode(model, prompts, rules(rounds, block))
    assert [a.ids for a in found] == [decode_plain(model, p, ENDS) for p in prompts]
    assert all(sum(a.committed) == len(a.ids) for a in found)


class Letters:
    """A tokenizer of one id a letter, from A on."""

    def encode(self, text: str) -> list[int]:
        return [ord(char) - ord("A") for char in text]

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(chr(number + ord("A")) for number in ids)


def read(prompt: Prompt, line: str) -> Prompt:
    return replace(prompt, reading=Reading(line, Letters(), END))  # type: ignore[arg-type]


@pytest.mark.parametrize("rounds", list(Rounds))
@pytest.mark.parametrize("block", [1, 3, 8])
def test_with_a_reading_all_ways_give_the_same(model: OcrModel, rounds: Rounds, block: int) -> None:
    """It is part of what the model chooses by; what is drafted, and how windows are cut, still changes nothing."""
    plain = [prompt_of(model, 1 + seed % 3, 2 + seed, seed) for seed in range(4)]
    prompts = [read(prompt, line) for prompt, line in zip(plain, ("ABCDEFGHIJ", "QQQQ", "KLM", "A"), strict=True)]
    expected = [decode_plain(model, prompt, ENDS) for prompt in prompts]
    assert expected != [decode_plain(model, prompt, ENDS) for prompt in plain]
    found = decode(model, [*prompts, *plain[:1]], rules(rounds, block), slots=3)
    assert [answer.ids for answer in found[:-1]] == expected
    assert found[-1].ids == decode_plain(model, plain[0], ENDS)


def test_a_reading_that_the_model_agrees_with_is_written_in_few_forwards(
    model: OcrModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gravityocr_models.reading.BONUS", 1e4)
    line = "THEQUICKBROWNFOX"
    prompt = read(prompt_of(model, 2, 3, 0), line)
    (answer,) = decode(model, [prompt], rules(Rounds.READING, 8))
    assert Letters().decode(answer.ids[:-1]) == line
    assert answer.ids[-1] == END
    assert len(answer.committed) == 1


@pytest.mark.parametrize("error_rate", [0.0, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("length", [1, 4, 9])
def test_injected_drafts_change_nothing(error_rate: float, length: int) -> None:
    """Oracles reach full accepts, which a random drafter never does; each batch mixes lengths and ends."""
    for seed in range(5):
        model = tiny_model(seed)
        plain = [prompt_of(model, 1 + n, 3, 10 * seed + n, limit=16 + n) for n in range(3)]
        ends = ending_at(model, plain[0], place=5 + seed)
        truths = [decode_plain(model, prompt, ends) for prompt in plain]
        prompts = [
            Prompt(p.embeds, p.positions, p.limit, ask=oracle(truth, length, error_rate, seed))
            for p, truth in zip(plain, truths, strict=True)
        ]
        for rounds in (Rounds.FUSED, Rounds.TWO_FORWARD):
            found = decode(model, prompts, Rules(ends, MASK, 4, rounds))
            assert [a.ids for a in found] == truths


def test_oracle_drafts_save_forwards(model: OcrModel) -> None:
    prompt = prompt_of(model, 2, 2, 3, limit=40)
    truth = decode_plain(model, prompt, ENDS)
    drafted = Prompt(prompt.embeds, prompt.positions, 40, ask=oracle(truth, 8, 0.0, 0))
    (found,) = decode(model, [drafted], rules(block=8))
    assert found.ids == truth
    assert len(found.committed) == -(-len(truth) // 9)


@pytest.mark.parametrize("place", range(12))
def test_end_anywhere(place: int) -> None:
    """End in the free token, inside the draft and as the bonus: nothing behind it is committed."""
    model = tiny_model(7)
    prompt = prompt_of(model, 2, 3, 7)
    ends = ending_at(model, prompt, place)
    truth = decode_plain(model, prompt, ends)
    everything = decode_plain(model, prompt, frozenset())
    drafted = Prompt(prompt.embeds, prompt.positions, prompt.limit, ask=oracle(everything, 5, 0.0, 0))
    for rounds in (Rounds.FUSED, Rounds.TWO_FORWARD):
        (found,) = decode(model, [drafted], Rules(ends, MASK, 5, rounds))
        assert found.ids == truth


@pytest.mark.parametrize("limit", [1, 2, 5, 6, 7, 13])
def test_token_cap_is_exact(model: OcrModel, limit: int) -> None:
    prompt = prompt_of(model, 2, 2, 5, limit=limit)
    everything = decode_plain(model, prompt_of(model, 2, 2, 5, limit=30), ENDS)
    drafted = Prompt(prompt.embeds, prompt.positions, limit, ask=oracle(everything, 5, 0.0, 0))
    (found,) = decode(model, [drafted], rules(block=5))
    assert found.ids == decode_plain(model, prompt, ENDS)
    assert len(found.ids) <= limit


def test_alone_or_in_a_batch(model: OcrModel) -> None:
    prompts = [prompt_of(model, 1 + n % 2, 2 + n, n, limit=8 + 3 * n) for n in range(6)]
    together = decode(model, prompts, rules())
    alone = [decode(model, [prompt], rules())[0] for prompt in prompts]
    assert [a.ids for a in together] == [a.ids for a in alone]
    assert [a.committed for a in together] == [a.committed for a in alone]


@pytest.mark.parametrize("slots", [1, 2, 4])
def test_refilled_slots_change_nothing(model: OcrModel, slots: int) -> None:
    """Sequences enter while others run; each gets the answer it gets alone, in the order of the prompts."""
    prompts = [prompt_of(model, 1 + n % 2, 2 + n % 4, n, limit=6 + 5 * (n % 3)) for n in range(9)]
    running: list[int] = []
    hook = model.model.language_model.register_forward_pre_hook(lambda _, args: running.append(len(args[0])))
    found = decode(model, prompts, rules(), slots=slots)
    hook.remove()
    assert [a.ids for a in found] == [decode_plain(model, prompt, ENDS) for prompt in prompts]
    assert max(running) == slots


def test_adaptive_blocks_change_nothing_but_the_width(model: OcrModel) -> None:
    """Random models reject nearly all of their drafts, so windows shrink; with an oracle they stay wide."""
    prompt = prompt_of(model, 2, 3, 1, limit=80)
    truth = decode_plain(model, prompt, frozenset())
    widths: list[int] = []
    hook = model.model.language_model.register_forward_pre_hook(lambda _, args: widths.append(args[0].shape[1]))
    adaptive = Rules(frozenset(), MASK, 16, adaptive=True)
    (found,) = decode(model, [prompt], adaptive)
    narrow = widths[-1]
    widths.clear()
    drafted = Prompt(prompt.embeds, prompt.positions, 80, ask=oracle(truth, 16, 0.0, 0))
    (right,) = decode(model, [drafted], adaptive)
    hook.remove()
    assert found.ids == right.ids == truth
    assert narrow <= 1 + 2 * 3
    assert max(widths[1:]) == 1 + 2 * 16


def test_the_block_shrinks_with_the_load() -> None:
    """Rows that cost next to nothing for one sequence cost a lot for many; where none can pay, none are drafted."""
    pace = Pace(Rules(frozenset(), MASK, 32, adaptive=True), free_rows=4.0)
    blocks = [pace.rules(load).block for load in (1, 2, 4, 16, 32)]
    assert blocks == sorted(blocks, reverse=True)
    assert blocks[0] > blocks[-1] == 0
    fast = Pace(Rules(frozenset(), MASK, 32, adaptive=True), free_rows=250.0)
    assert fast.rules(1).block > blocks[0]


def test_right_layer_costs_one_forward(model: OcrModel) -> None:
    plain = prompt_of(model, 2, 3, 11, limit=20)
    truth = decode_plain(model, plain, ENDS)
    prompt = Prompt(plain.embeds, plain.positions, 20, layer=tuple(truth[:-1]))
    (found,) = decode(model, [prompt], rules())
    assert found.ids == truth
    assert len(found.committed) == 1


def test_layer_with_errors_changes_nothing(model: OcrModel) -> None:
    """Wrong, missing and surplus tokens in the layer: followed where it is right, never believed."""
    plain = prompt_of(model, 2, 3, 11, limit=30)
    truth = decode_plain(model, plain, frozenset())
    wrong, missing, surplus = list(truth), truth[:7] + truth[8:], [*truth[:7], 3, *truth[7:]]
    wrong[7] = (wrong[7] + 1) % 50
    for layer in (wrong, missing, surplus, [1, 2, 3], truth[::-1]):
        for rounds in Rounds:
            prompt = Prompt(plain.embeds, plain.positions, 30, layer=tuple(layer))
            (found,) = decode(model, [prompt], Rules(frozenset(), MASK, 4, rounds))
            assert found.ids == truth


def test_agreement_counts_the_models_own_choices(model: OcrModel) -> None:
    """Each token is judged with the layer before it, right or wrong; the batch doesn't matter."""
    plain = [prompt_of(model, 1 + n, 3, 11 + n, limit=20) for n in range(3)]
    truths = [decode_plain(model, prompt, frozenset()) for prompt in plain]
    layers = [truths[0][:10], [*truths[1][:9], (truths[1][9] + 1) % 50], []]
    prompts = [replace(prompt, layer=tuple(layer)) for prompt, layer in zip(plain, layers, strict=True)]
    assert agreements(model, prompts) == [10, 9, 0]
    assert [agreements(model, [prompt])[0] for prompt in prompts] == [10, 9, 0]


def test_accept_counts_the_equal_prefix() -> None:
    drafts = torch.tensor([[5, 6, 7], [5, 6, 0], [9, 6, 7], [0, 0, 0]])
    choices = torch.tensor([[5, 6, 8, 1], [5, 6, 0, 2], [5, 6, 7, 3], [0, 0, 0, 4]])
    assert accept(drafts, torch.tensor([3, 2, 3, 0]), choices).tolist() == [2, 2, 0, 0]


def test_cache_equals_a_fresh_forward(model: OcrModel) -> None:
    """After every round, what the cache holds of committed tokens is what a causal forward over them gives."""
    runner = Runner(model)
    prompt = prompt_of(model, 2, 3, 2, limit=17)
    truth = decode_plain(model, prompt, ENDS)
    checked = 0

    def ask(committed: Sequence[int]) -> list[int]:
        nonlocal checked
        if committed:
            tokens = torch.cat([prompt.embeds, model.embed(torch.tensor(list(committed[:-1]), dtype=torch.int64))])
            first = int(prompt.positions.max()) + 1
            places = torch.arange(first, first + len(committed) - 1).expand(3, -1)
            positions = torch.cat([prompt.positions, places], dim=1)
            count = len(tokens)
            fresh = KVCache(model.config.text, 1, count, model.device, model.dtype)
            causal = torch.ones(count, count, dtype=torch.bool).tril()[None, None]
            window = fresh.window(0, torch.tensor([0]), count, count)
            model.decode(tokens[None], positions[:, None], causal, window)
            torch.testing.assert_close(runner.cache.store[:, 0, :count], fresh.store[:, 0])
            checked += 1
        return [*truth[len(committed) : len(committed) + 2], 1, 2]

    drafted = Prompt(prompt.embeds, prompt.positions, 17, ask=ask)
    decode(model, [drafted], rules(), 1, runner)
    assert checked >= 3


def test_rounded_shapes_and_a_used_runner_change_nothing(model: OcrModel) -> None:
    """Few shapes, as a GPU wants them: idle sequences, padded windows, slots that hold an earlier call's keys."""
    prompts = [prompt_of(model, 1 + n % 2, 2 + n % 4, n, limit=6 + 5 * (n % 3)) for n in range(9)]
    runner = Runner(model, Steps(4, 8, 64))
    widths: set[tuple[int, ...]] = set()
    model.model.language_model.register_forward_pre_hook(lambda _, args: widths.add(tuple(args[0].shape[:2])))
    truths = [decode_plain(model, prompt, ENDS) for prompt in prompts]
    for some in (slice(None), slice(3, 7)):
        widths.clear()
        assert [a.ids for a in decode(model, prompts[some], rules(), 5, runner)] == truths[some]
        assert (4, 16) in widths, "1 + 4 candidates + 4 masks, rounded up to two steps of 8"


def test_long_answers_outgrow_the_first_cache(model: OcrModel) -> None:
    prompts = [prompt_of(model, 2, 2 + n, n, limit=270 - 100 * n) for n in range(2)]
    runner = Runner(model)
    before = runner.cache.slots
    found = decode(model, prompts, replace(rules(block=8), ends=frozenset()), 2, runner)
    plain = decode(model, prompts, replace(rules(Rounds.PLAIN), ends=frozenset()), 2)
    assert runner.cache.slots > before
    assert [a.ids for a in found] == [a.ids for a in plain]


def test_positions_equal_those_of_plain_decoding(model: OcrModel) -> None:
    """Clean rows stand where plain decoding puts them; mask rows go on from there."""
    seen: list[tuple[Tensor, Tensor]] = []
    hook = model.model.language_model.register_forward_pre_hook(lambda _, args: seen.append((args[0], args[1])))
    prompt = prompt_of(model, 3, 2, 4, limit=12)
    truth = decode_plain(model, prompt, frozenset())
    first = int(prompt.positions.max()) + 1
    seen.clear()
    drafted = Prompt(prompt.embeds, prompt.positions, 12, ask=oracle(truth, 3, 0.0, 0))
    decode(model, [drafted], Rules(frozenset(), MASK, 3))
    hook.remove()
    count = len(prompt.embeds)
    assert torch.equal(seen[0][1][:, 0, :count], prompt.positions)
    assert seen[0][1][:, 0, count:].tolist() == [list(range(first, first + 6))] * 3
    assert seen[1][1][0, 0].tolist() == list(range(first + 3, first + 3 + seen[1][0].shape[1]))


def test_causal_rows_do_not_feel_mask_rows_or_neighbours(model: OcrModel) -> None:
    """AR logits stay where they are when mask tokens, later clean tokens or other sequences change."""
    prompt, other, changed = prompt_of(model, 2, 3, 1), prompt_of(model, 2, 2, 2), prompt_of(model, 2, 2, 9)
    tail = model.embed(torch.tensor([4, 5, 6, MASK, MASK, MASK]))
    altered = model.embed(torch.tensor([4, 5, 7, 8, MASK, 9]))

    def first_rows(end: Tensor, neighbour: Prompt) -> Tensor:
        rows = [torch.cat([prompt.embeds, end]), torch.cat([neighbour.embeds, end])]
        width = len(rows[0])
        embeds = torch.stack([torch.cat([row, row.new_zeros(width - len(row), row.shape[1])]) for row in rows])
        causal = torch.tensor([len(prompt.embeds) + 3, len(neighbour.embeds) + 3])
        mask = window_mask(torch.zeros(2, dtype=torch.int64), causal, torch.tensor([3, 3]), width, width)
        positions = torch.arange(width).expand(3, 2, -1)
        return model.decode(embeds, positions, mask)[0, : len(prompt.embeds) + 2]

    torch.testing.assert_close(first_rows(tail, other), first_rows(altered, changed), rtol=0, atol=1e-12)


def test_forwards_are_those_that_layer_0_ran(model: OcrModel) -> None:
    """Committed counts are one a forward, prefill included, as counted by a hook."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    model.model.language_model.layers[0].register_forward_hook(count)
    (found,) = decode(model, [prompt_of(model, 2, 2, 1)], rules(block=6))
    assert isinstance(found, Answer)
    assert len(found.committed) == calls


def test_half_precision_differs_only_where_two_tokens_nearly_tie() -> None:
    """In bfloat16 the shape of a product may move a logit: the first difference must be a near tie."""
    model = tiny_model(3, dtype=torch.bfloat16)
    same = 0
    for seed in range(12):
        prompt = prompt_of(model, 2, 2 + seed % 3, seed, limit=12)
        plain = decode_plain(model, prompt, frozenset())
        drafted = Prompt(prompt.embeds, prompt.positions, 12, ask=oracle(plain, 5, 0.2, seed))
        (found,) = decode(model, [drafted], Rules(frozenset(), MASK, 5))
        same += found.ids == plain
        if found.ids != plain:
            place = next(i for i, (a, b) in enumerate(zip(found.ids, plain, strict=True)) if a != b)
            logits = next_logits(model, prompt, plain[:place])
            assert logits[plain[place]] - logits[found.ids[place]] < 0.05 * logits.std()
    assert same >= 8


def next_logits(model: OcrModel, prompt: Prompt, ids: Sequence[int]) -> Tensor:
    """Logits of the token after these, from a plain forward over everything."""
    embeds = torch.cat([prompt.embeds, model.embed(torch.tensor(list(ids), dtype=torch.int64))])[None]
    first = int(prompt.positions.max()) + 1
    positions = torch.cat([prompt.positions, torch.arange(first, first + len(ids)).expand(3, -1)], dim=1)[:, None]
    causal = torch.ones(embeds.shape[1], embeds.shape[1], dtype=torch.bool).tril()[None, None]
    return model.logits(model.decode(embeds, positions, causal)[0, -1]).float()
