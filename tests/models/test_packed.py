"""Packs: each sample as serving asks it and as the joint mask wants it, untouched by its neighbours."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask, create_mask

import published
from gravityocr_models.attention import mask_of, training_mask
from gravityocr_models.config import DraftConfig
from gravityocr_models.engine import Engine
from gravityocr_models.records import Crop, Task
from gravityocr_models.train import packed
from gravityocr_models.train.batch import IGNORE
from gravityocr_models.train.packed import Pack, Packer, hidden_states, joint_loss, together, visibility
from gravityocr_models.train.sample import Sample

BLOCK = 8
DRAFT = DraftConfig(BLOCK, 300, 1.0)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    folder = tmp_path_factory.mktemp("published")
    published.write(folder)
    return Engine.load(folder, "cpu", "float32")


@pytest.fixture(scope="module")
def packer(engine: Engine) -> Packer:
    return Packer(engine.checkpoint.model.config, engine.checkpoint.tokenizer, engine.conventions)


def sample(size: tuple[int, int] = (40, 90), text: str = "some words\nof text", task: Task = Task.TEXT) -> Sample:
    pixels = np.random.default_rng(sum(size)).integers(0, 256, size).astype(np.uint8)
    return Sample(pixels, text, task, (), "test")


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.mark.parametrize("task", Task)
def test_prompt_and_positions_are_those_that_serving_asks_with(engine: Engine, packer: Packer, task: Task) -> None:
    one = sample((90, 200), "x", task)
    asked = engine.prompts([Crop(np.repeat(one.pixels[:, :, None], 3, axis=2), task)])[0]
    pack = packer.causal(one, [5, 6, 7])
    count = len(asked.embeds)
    assert torch.equal(pack.positions[:, :count], asked.positions)
    assert pack.positions[:, count:].tolist() == [[int(asked.positions.max()) + 1 + n for n in range(2)]] * 3
    model = engine.checkpoint.model
    with torch.no_grad():  # as serving does; with gradients norms round differently
        embeds = model.embed(pack.ids).masked_scatter(pack.shown[:, None], model.see(torch.stack(pack.images))[0])
    assert torch.equal(embeds[:count], asked.embeds)


def dense(pack: Pack) -> Tensor:
    mask = mask_of(visibility(pack), len(pack.ids), torch.device("cpu"))
    assert isinstance(mask, Tensor)
    return mask


def test_one_sample_is_masked_as_the_joint_mask_says(packer: Packer) -> None:
    random = rng()
    for text in ("a", "ab", "eight   ", "more than one block of tokens"):
        pack = packer.joint(sample(text=text), DRAFT, random)
        noised = int(pack.noised.sum())
        answer = int(pack.lengths) - 1
        start = len(pack.ids) - noised - answer
        delta = int(pack.block[start] * BLOCK + BLOCK - (pack.block[-noised:] == 0).sum())
        expected = training_mask(start, torch.tensor([answer]), noised, torch.tensor([delta]), BLOCK)
        assert torch.equal(dense(pack), expected)


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_by_blocks_a_pack_sees_the_same_and_gets_the_same_states(
    engine: Engine, packer: Packer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a GPU is given: FlexAttention asks the rule pair by pair, and once more inside of its blocks."""
    random = rng()
    pack = together([packer.joint(sample(size), DRAFT, random) for size in ((40, 90), (100, 60), (60, 300))])
    tokens, rule, model = len(pack.ids), visibility(pack), engine.checkpoint.model
    assert tokens > 128  # more than one block
    assert torch.equal(create_mask(rule, 1, 1, tokens, tokens, "cpu"), dense(pack))
    blocks = create_block_mask(rule, None, None, tokens, tokens, device="cpu")
    with torch.no_grad():
        expected = hidden_states(model, pack)
        monkeypatch.setattr(packed, "mask_of", lambda *_: blocks)
        torch.testing.assert_close(hidden_states(model, pack), expected, rtol=1e-4, atol=1e-4)


def test_both_copies_predict_the_next_token(packer: Packer) -> None:
    pack = packer.joint(sample(text="some words\nof text"), DRAFT, rng())
    answer = packer.tokenizer.encode("some words of text")  # a paragraph is one line in the family's answers
    labels = pack.labels[pack.labels != IGNORE]
    clean = labels[: len(answer) + 1].tolist()
    noised = labels[len(answer) + 1 :].tolist()
    assert clean == [*answer, packer.end]
    assert noised[: len(answer) - 1] == answer[1:]
    assert set(noised[len(answer) - 1 :]) == {packer.end}
    assert pack.ids[pack.noised].unique().tolist() == [DRAFT.mask_id]
    where = torch.where(pack.noised)[0][0]
    first = len(pack.ids) - int(pack.noised.sum()) - len(answer)
    assert torch.equal(pack.positions[:, where], pack.positions[:, first])


def test_neighbours_in_a_pack_change_nothing(engine: Engine, packer: Packer) -> None:
    random = rng()
    ones = [packer.joint(sample(size), DRAFT, random) for size in ((40, 90), (100, 60), (40, 90))]
    model = engine.checkpoint.model
    with torch.no_grad():
        alone = torch.cat([hidden_states(model, one) for one in ones])
        torch.testing.assert_close(hidden_states(model, together(ones)), alone, rtol=1e-4, atol=1e-4)


def test_loss_is_the_mean_of_both_paths(engine: Engine, packer: Packer) -> None:
    pack = packer.joint(sample(), DRAFT, rng())
    with torch.no_grad():
        loss, figures = joint_loss(3.0)(engine.checkpoint.model, pack, 0)
        other = replace(pack, labels=torch.where(pack.noised & (pack.labels != IGNORE), 0, pack.labels))
        changed = joint_loss(3.0)(engine.checkpoint.model, other, 0)[1]
    assert float(loss) == pytest.approx(float(figures["draft"] + 3 * figures["ar"]) / 4)
    assert changed["ar"] == figures["ar"]
    assert changed["draft"] != figures["draft"]


def test_packs_hold_what_fits_and_leave_out_what_never_will(packer: Packer) -> None:
    def drawn() -> "list[Sample]":
        return [sample((30, 60 + 40 * (number % 3))) for number in range(12)] + [sample((400, 400))]

    size = len(packer.joint(sample((30, 140)), DRAFT, rng()).ids)
    packs = list(islice(packer.packs(iter(drawn()), 0, DRAFT, 3 * size), 4))
    assert all(len(pack.ids) <= 3 * size for pack in packs)
    assert all(len(pack.lengths) == len(pack.images) == int(pack.sample.max()) + 1 >= 2 for pack in packs)
