"""Glyphs of a line, a numerator or a script stand in one row of tokens in training, as they do in decoding."""

import numpy as np

from gravityocr_models.image import levelled
from gravityocr_models.records import Task
from gravityocr_models.train.placing import placed
from gravityocr_models.train.sample import Glyph, Sample


def sample(text: str, heights: list[float], task: Task = Task.TEXT, step: float = 12.0) -> Sample:
    """A crop with ink from row 9 to 16, and glyphs `step` pixels apart at these heights; markup has None."""
    pixels = np.full((30, 400), 255, np.uint8)
    pixels[9:16, 4:390] = 0
    inked = [char for char in text if not char.isspace()]
    glyphs: list[Glyph | None] = [
        None if np.isnan(height) else (char, 5 + step * at, height)
        for at, (char, height) in enumerate(zip(inked, heights, strict=True))
    ]
    return Sample(pixels, text, task, tuple(glyphs), "test")


def heights_of(drawn: Sample) -> list[float | None]:
    return [glyph and round(glyph[2], 6) for glyph in placed(drawn, 16).glyphs]


def test_a_line_is_levelled_as_the_engine_does_it_and_its_glyphs_with_it() -> None:
    drawn = sample("abcd", [10.0, 14.0, 12.0, 12.0])
    assert np.array_equal(placed(drawn, 16).pixels, levelled(drawn.pixels, 16))
    down = len(levelled(drawn.pixels, 16)) - 30
    assert heights_of(drawn) == [12.0 + down] * 4


def test_each_line_has_its_own_middle_and_a_tilted_one_its_slope() -> None:
    down = placed(sample("ab", [8.0, 8.0]), 16).pixels.shape[0] - 30
    assert heights_of(sample("ab\ncd", [8.0, 10.0, 24.0, 26.0])) == [9.0 + down] * 2 + [25.0 + down] * 2
    tilted = heights_of(sample("abcdefghijklmnop", [10 + 0.5 * at for at in range(16)]))
    assert np.allclose(np.diff(np.array(tilted, float)), 0.5)


def test_scripts_and_fractions_are_rows_of_their_own() -> None:
    nan = float("nan")
    text = r"x^{(2)}=\frac{ab}{c}"
    heights = [20.0, nan, nan, 6.0, 8.0, 7.0, nan, 20.0, *[nan] * 5, nan, 10.0, 12.0, nan, nan, 30.0, nan]
    heights = heights[: len(text)]
    found = [height for height in heights_of(sample(text, heights, Task.FORMULA)) if height is not None]
    x, bracket, two, closing, equals, a, b, c = found
    assert x == equals
    assert bracket == two == closing
    assert a == b
    assert bracket < a < x < c


def test_tables_stay_as_they_are() -> None:
    drawn = sample("<td>a</td>", [float("nan")] * 4 + [9.0] + [float("nan")] * 5, Task.TABLE)
    assert placed(drawn, 16) is drawn
