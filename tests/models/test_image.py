"""Pixels on their way to the encoder."""

import random

import numpy as np
import pytest
from transformers.models.glm46v.image_processing_glm46v import smart_resize

from gravityocr_models.config import ConfigError, VisionConfig
from gravityocr_models.image import ImageRules, grid_of, levelled, normalise

ONE = VisionConfig(1, 32, 2, 32, 32, in_channels=1, patch_size=16, spatial_merge_size=1, stem_widths=(4, 4, 4, 32))
THREE = VisionConfig(1, 32, 2, 32, 32)
SCALED = ImageRules((0.4, 0.4, 0.4), (0.2, 0.2, 0.2), (6272, 4816896))


@pytest.mark.parametrize(
    ("shape", "grid"), [((1, 1), (1, 4)), ((16, 64), (1, 4)), ((17, 65), (2, 8)), ((160, 640, 3), (10, 40))]
)
def test_grid_covers_the_crop(shape: tuple[int, ...], grid: tuple[int, int]) -> None:
    assert grid_of(shape, 16) == grid


def test_scaled_sizes_are_those_of_transformers() -> None:
    rng = random.Random(0)
    for _ in range(3000):
        shape = int(10 ** rng.uniform(0, 3.7)), int(10 ** rng.uniform(0, 3.7))
        if max(shape) < 195 * min(shape):  # transformers refuses what is more elongated
            expected = smart_resize(2, *shape, factor=28, min_pixels=12544, max_pixels=9633792)
            rows, columns = grid_of(shape, 28, SCALED)
            assert (28 * rows, 28 * columns) == expected


@pytest.mark.parametrize("shape", [(1, 66000), (3, 1600), (5000, 2), (6000, 6000), (1, 1)])
def test_any_shape_stays_within_the_bounds(shape: tuple[int, int]) -> None:
    rows, columns = grid_of(shape, 28, SCALED)
    assert 8 <= rows * columns <= 6144
    if max(shape) < 2000:
        pixels = np.full((*shape, 3), 200, np.uint8)
        np.testing.assert_allclose(normalise(pixels, THREE, SCALED)[0], (200 / 255 - 0.4) / 0.2, atol=1e-5)


def test_rules_that_contradict_themselves_raise() -> None:
    with pytest.raises(ConfigError):
        ImageRules((0.5,), (0.5, 0.5))
    with pytest.raises(ConfigError):
        ImageRules((0.5,), (0.0,))
    with pytest.raises(ConfigError):
        ImageRules(bounds=(9.0, 3.0))


def test_padding_continues_the_border() -> None:
    pixels = np.full((20, 50), 10, np.uint8)
    pixels[5:15, 5:45] = np.random.default_rng(0).integers(100, 255, (10, 40))
    out = normalise(pixels, ONE)
    assert out.shape == (1, 32, 64)
    np.testing.assert_allclose(out[0, :20, :50], pixels / 127.5 - 1, atol=1e-6)
    np.testing.assert_allclose(out[0, 20:], 10 / 127.5 - 1, atol=1e-6)
    np.testing.assert_allclose(out[0, :, 50:], 10 / 127.5 - 1, atol=1e-6)


def test_grey_and_colour_agree() -> None:
    grey = np.arange(0, 240, dtype=np.uint8).reshape(12, 20)
    colour = np.repeat(grey[:, :, None], 3, axis=2)
    np.testing.assert_allclose(normalise(colour, ONE), normalise(grey, ONE), atol=1e-6)
    assert normalise(colour, THREE).shape == normalise(grey, THREE).shape == (3, 28, 112)


def test_colours_weigh_as_the_eye_sees_them() -> None:
    red, green, blue = (
        normalise(np.full((4, 4, 3), [255 * (i == c) for i in range(3)], np.uint8), ONE) for c in range(3)
    )
    assert green[0, 0, 0] > red[0, 0, 0] > blue[0, 0, 0]


@pytest.mark.parametrize("top", [0, 3, 9, 14, 20])
@pytest.mark.parametrize("colours", [(), (3,)])
def test_a_line_is_set_on_a_row_of_tokens(top: int, colours: tuple[int, ...]) -> None:
    """Wherever its ink begins; nothing of it is lost."""
    pixels = np.full((36, 40, *colours), 250, np.uint8)
    pixels[top : top + 11, 5:30] = 20
    placed = levelled(pixels, 16)
    inked = np.flatnonzero((placed.reshape(len(placed), -1) < 100).any(axis=1))
    assert len(inked) == 11
    assert (inked // 16 == inked[0] // 16).all()
    assert placed.max() == 250


def test_what_is_no_line_stays_where_it_is() -> None:
    blank, high = np.full((20, 9), 255, np.uint8), np.zeros((60, 9), np.uint8)
    high[:5] = 255
    assert levelled(blank, 16) is blank
    assert levelled(high, 16) is high
