"""The masks, checked cell by cell against the rules they stand for."""

import torch

from gravityocr_models.attention import attend, training_mask, window_mask


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


def test_grouped_heads_equal_repeated_heads() -> None:
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 6, 3, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 8)
    mask = torch.rand(2, 1, 3, 5) > 0.3
    mask[..., 0] = True
    repeated = attend(query, key.repeat_interleave(3, 1), value.repeat_interleave(3, 1), mask)
    torch.testing.assert_close(attend(query, key, value, mask), repeated)
