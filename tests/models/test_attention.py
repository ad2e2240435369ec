"""The masks, checked cell by cell against the rules they stand for."""

import pytest
import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask

from gravityocr_models.attention import attend, mask_of, training_mask, window_mask

CPU = torch.device("cpu")
TOKENS = 200  # a block of FlexAttention and a part of one


def test_training_mask_is_the_table() -> None:
    """S | x0 | xt against the rules written out as a loop."""
    prompt, lengths, noised, block = 3, torch.tensor([5, 2]), 7, 4
    delta = torch.tensor([1, 3])
    mask = training_mask(prompt, lengths, noised, delta, block)
    clean = int(lengths.max())
    parts = [("S", i) for i in range(prompt)] + [("x0", i) for i in range(clean)] + [("xt", i) for i in range(noised)]
    for sample in range(2):
        shift = int(delta[sample])
        for q, (query, i) in enumerate(parts):
            for k, (key, j) in enumerate(parts):
                if key == "x0" and j >= lengths[sample]:
                    expected = q == k
                elif query == "S":
                    expected = key == "S" and j <= i
                elif query == "x0":
                    expected = key == "S" or (key == "x0" and j <= i)
                else:
                    mine, other = (i + shift) // block, (j + shift) // block
                    expected = key == "S" or (key == "x0" and other < mine) or (key == "xt" and other == mine)
                assert bool(mask[sample, 0, q, k]) == expected, (sample, query, i, key, j)


def test_window_mask_is_causal_then_open() -> None:
    mask = window_mask(torch.tensor([2, 0]), torch.tensor([2, 1]), torch.tensor([2, 3]), rows=5, slots=8)
    drawn = ["".join("x" if cell else "." for cell in row) for row in mask[0, 0].tolist()]
    assert drawn == ["xxx.....", "xxxx....", "xxxxxx..", "xxxxxx..", "......x."]
    drawn = ["".join("x" if cell else "." for cell in row) for row in mask[1, 0].tolist()]
    assert drawn == ["x.......", "xxxx....", "xxxx....", "xxxx....", "....x..."]


def test_windows_of_one_row_see_their_past() -> None:
    mask = window_mask(torch.tensor([2, 0]), torch.tensor([1, 1]), torch.tensor([0, 0]), rows=1, slots=4)
    assert mask.tolist() == [[[[True, True, True, False]]], [[[True, False, False, False]]]]


def test_grouped_heads_equal_repeated_heads() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 6, 3, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    mask = torch.rand(2, 1, 3, 5) > 0.3
    mask[..., 0] = True
    repeated = attend(query, key.repeat_interleave(3, 1), value.repeat_interleave(3, 1), mask)
    torch.testing.assert_close(attend(query, key, value, mask), repeated)


def rule(_batch: Tensor, _head: Tensor, query: Tensor, key: Tensor) -> Tensor:
    """Groups of 70 tokens see their own past, and 3 tokens ahead."""
    return (query // 70 == key // 70) & (key <= query + 3)


def heads(device: torch.device, tokens: int = TOKENS) -> tuple[Tensor, Tensor, Tensor]:
    """Queries of 4 heads, keys and values of 2."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, count, tokens, 16) for count in (4, 2, 2))
    return query.to(device), key.to(device), value.to(device)


def test_a_rule_is_the_mask_that_it_spells_out() -> None:
    mask = mask_of(rule, TOKENS, CPU)
    assert isinstance(mask, Tensor)
    assert mask.shape == (1, 1, TOKENS, TOKENS)
    places = [torch.tensor(place) for place in range(TOKENS)]
    none = torch.tensor(0)
    assert mask[0, 0].tolist() == [[bool(rule(none, none, query, key)) for key in places] for query in places]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_attention_by_blocks_equals_the_dense_mask() -> None:
    query, key, value = heads(CPU)
    blocks = create_block_mask(rule, None, None, TOKENS, TOKENS, device="cpu")
    dense = attend(query, key, value, mask_of(rule, TOKENS, CPU))
    torch.testing.assert_close(attend(query, key, value, blocks), dense)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_the_mask_is_by_blocks_and_gives_the_same_outputs_and_gradients() -> None:
    for tokens in (TOKENS, 333, 517):  # packs differ in length
        found = []
        for device in (CPU, torch.device("cuda")):
            query, key, value = (tensor.requires_grad_() for tensor in heads(device, tokens))
            mask = mask_of(rule, tokens, device)
            assert isinstance(mask, Tensor) == (device == CPU)
            out = attend(query, key, value, mask)
            grads = torch.autograd.grad(out.square().sum(), (query, key, value))
            found.append([tensor.cpu() for tensor in (out, *grads)])
        torch.testing.assert_close(found[1], found[0], rtol=1e-2, atol=1e-2)
