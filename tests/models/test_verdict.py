"""Which lines of a text layer are read, and what they say of the others."""

import numpy as np
import pytest

from gravityocr_models.records import Crop, Task
from gravityocr_models.verdict import BEYOND_PX, LINES, Verdict, glimpse, judge, unseen

TOKENS = 10


def line(region: int, font: str | None = "A+Roman", width: int = 400, draft: str = "a line of twenty letters") -> Crop:
    return Crop(np.zeros((16, width, 3), np.uint8), draft=draft, region=(1, region), font=(1, font) if font else None)


def judged(crops: list[Crop], lies: set[int], keep_above: float = 0.15) -> tuple[dict[int, Verdict], list[int]]:
    """The verdicts where the layers of these places are false, and what was read for them."""
    seen: list[int] = []

    def read(places: list[int]) -> dict[int, Verdict]:
        seen.extend(places)
        return {place: Verdict(0 if place in lies else TOKENS, TOKENS) for place in places}

    return judge(crops, range(len(crops)), keep_above, read), seen


def inked(*words: tuple[int, int], width: int = 800, draft: str = "sixteen letters, " * 4 + "end") -> Crop:
    """A line with ink in these columns of pixels."""
    pixels = np.full((16, width, 3), 255, np.uint8)
    for start, stop in words:
        pixels[4:12, start:stop] = 0
    return Crop(pixels, draft=draft, region=(1, 1))


def test_of_a_long_line_the_beginning_is_looked_at() -> None:
    crop = inked((0, 800))
    begun = glimpse(crop)
    assert begun.draft == "sixteen letters, sixteen letters,"
    assert begun.pixels.shape[1] == pytest.approx(800 * len(begun.draft) / len(crop.draft or "") + BEYOND_PX, abs=2)
    assert np.array_equal(begun.pixels, crop.pixels[:, : begun.pixels.shape[1]])


def test_white_is_no_part_of_what_the_letters_take() -> None:
    crop = inked((0, 100), (500, 800))
    begun = glimpse(crop)
    share = len(begun.draft or "") / len(crop.draft or "")
    assert begun.pixels.shape[1] == pytest.approx(500 + 400 * share - 100 + BEYOND_PX, abs=2)


@pytest.mark.parametrize(
    "crop",
    [
        inked((0, 800), draft="a line of forty letters, or thereabouts."),
        inked((0, 800), draft="where $x^2$ is the square of what x is, and $x^3$ its cube"),
        inked((0, 800), draft="withoutanyblankinitforaverylongtimeandsowithoutaplacetobecutat"),
        Crop(np.zeros((16, 800, 3), np.uint8), Task.FORMULA, draft="a + b " * 20),
        Crop(np.zeros((16, 800, 3), np.uint8)),
    ],
)
def test_what_is_short_or_has_no_place_to_be_cut_at_is_looked_at_whole(crop: Crop) -> None:
    assert glimpse(crop) is crop


@pytest.mark.parametrize(
    ("agreed", "tokens", "holds"),
    [(15, 100, True), (14, 100, False), (1, 9, True), (1, 10, False), (0, 3, True), (0, 4, False)],
)
def test_few_tokens_have_the_benefit_of_the_doubt(agreed: int, tokens: int, holds: bool) -> None:
    assert Verdict(agreed, tokens).holds(0.15) == holds


@pytest.mark.parametrize(("clarity", "holds"), [(0.5, True), (0.6, False), (0.9, False), (None, False)])
def test_what_the_model_cannot_read_itself_speaks_against_no_layer(clarity: float | None, holds: bool) -> None:
    assert Verdict(0, 30, unseen(30, clarity)).holds(0.15) is holds
    assert Verdict(27, 30, unseen(30, clarity)).holds(0.15)


def test_a_few_lines_stand_for_a_sound_page() -> None:
    verdicts, seen = judged([line(place // 10) for place in range(40)], set())
    assert len(seen) == len({place // 10 for place in seen}) == 4
    assert all(verdicts[place].share == 1 for place in range(40))


def test_every_font_is_seen_a_few_times_spread_over_the_page() -> None:
    crops = [line(0, font="A+Roman" if place < 20 else "B+Italic") for place in range(40)]
    _, seen = judged(crops, set())
    assert sum(place < 20 for place in seen) == sum(place >= 20 for place in seen) == LINES
    assert max(seen) - min(seen) > 30


def test_of_a_region_a_short_line_is_read_that_says_enough() -> None:
    crops = [line(0, width=400), line(0, width=40, draft="end."), line(0, width=200), *(line(1) for _ in range(3))]
    _, seen = judged(crops, set())
    assert 2 in seen
    assert 1 not in seen


def test_a_font_that_lies_has_its_regions_read_whole() -> None:
    """And only those: the other regions stand for themselves."""
    crops = [line(place // 10, font="B+Italic" if place in (5, 6, 7) else "A+Roman") for place in range(40)]
    verdicts, seen = judged(crops, {5, 6, 7})
    assert set(range(10)) <= set(seen)
    assert len(seen) == 10 + 3
    assert verdicts[0] == Verdict(7 * TOKENS, 10 * TOKENS)


def test_a_region_that_lies_is_read_whole() -> None:
    """As where something covers it: its font is sound elsewhere."""
    verdicts, seen = judged([line(place // 10) for place in range(40)], set(range(10, 20)))
    assert set(range(10, 20)) <= set(seen)
    assert verdicts[10] == Verdict(0, 10 * TOKENS)
    assert verdicts[0].share == verdicts[20].share == 1


def test_a_line_that_is_hard_to_read_costs_two_more() -> None:
    crops = [line(0, width=300 if place == 4 else 400) for place in range(30)] + [line(1) for _ in range(3)]
    verdicts, seen = judged(crops, {4})
    assert len([place for place in seen if place < 30]) <= 5
    assert verdicts[0] == Verdict(TOKENS, 2 * TOKENS)


def test_who_keeps_only_what_agrees_nearly_wholly_reads_on_until_it_does() -> None:
    crops = [line(0, width=300 if place == 4 else 400) for place in range(30)]
    few, many = (len(judged(crops, {4, 5}, keep_above)[1]) for keep_above in (0.15, 0.9))
    assert few < 10
    assert many == 27


def test_a_layer_of_unknown_font_is_read_whole() -> None:
    """As that of a scan, where every word may be wrong by itself."""
    _, seen = judged([line(0, font=None) for _ in range(10)], set())
    assert sorted(seen) == list(range(10))
