"""Batches: what each row of `[S | x0 | xt]` has to predict, and where the glyphs are."""

from dataclasses import replace

import numpy as np
import pytest

from gravityocr_models.config import DraftConfig
from gravityocr_models.glyphs import Tag
from gravityocr_models.records import Task
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.batch import GLYPHS, IGNORE, TRAILING, batches, collate, glyph_labels, token_places
from gravityocr_models.train.joint import nano_config
from gravityocr_models.train.sample import Glyph, Sample
from gravityocr_models.train.tags import tags_of
from gravityocr_models.weights import NANO

END = 0


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(NANO / "tokenizer.json")


def sample(text: str, width: int = 60) -> Sample:
    return Sample(np.full((20, width), 255, np.uint8), text, Task.TEXT, (), "test")


def test_labels_are_the_next_token(tokenizer: Tokenizer) -> None:
    texts = ["a short line", "a somewhat longer line, with more tokens in it"]
    draft = DraftConfig(8, tokenizer.special("<|mask|>"), 1.0)
    made = collate([sample(t) for t in texts], tokenizer, nano_config(tokenizer), draft, END, np.random.default_rng(3))
    for row, text in enumerate(texts):
        ids = tokenizer.encode(text)
        assert made.answers[row, : len(ids)].tolist() == ids
        assert made.ar_labels[row].tolist() == ids + [END] + [IGNORE] * (made.answers.shape[1] - len(ids))
        drafted = [label for label in made.draft_labels[row].tolist() if label != IGNORE]
        assert drafted == ((ids[1:] + [END] * 99)[: len(drafted)])
        assert len(ids) <= len(drafted) <= len(ids) + TRAILING
        last = (len(drafted) + int(made.delta[row])) % draft.bd_size
        assert last == 0 or len(drafted) == len(ids) + TRAILING


def test_batches_share_a_grid_and_keep_to_the_budget(tokenizer: Tokenizer) -> None:
    rng = np.random.default_rng(0)
    stream = (sample("x " * int(rng.integers(1, 20)), int(rng.integers(10, 400))) for _ in range(400))
    draft = DraftConfig(8, tokenizer.special("<|mask|>"), 1.0)
    made = list(batches(stream, tokenizer, nano_config(tokenizer), draft, END, budget=600, seed=0))
    assert len(made) > 10
    for batch in made:
        rows, columns = batch.grid
        assert batch.pixels.shape[2:] == (rows * 16, columns * 16)
        assert len(batch.answers) * rows * columns <= 2 * 600


def test_glyphs_are_named_by_the_token_under_their_centre() -> None:
    glyphs = (("b", 12.0, 5.0), ("a", 3.0, 5.0), ("c", 14.0, 6.0), ("d", 40.0, 20.0), ("e", 900.0, 5.0))
    drawn = replace(sample("ba c\nde"), glyphs=glyphs)
    labels = glyph_labels(drawn, (2, 4), 16)[..., :2]
    assert labels[0].tolist() == [[GLYPHS["a"], 1], [GLYPHS["b"], 0], [GLYPHS["c"], 1]]
    assert labels[4 + 2].tolist() == [[GLYPHS["d"], 0], [0, IGNORE], [0, IGNORE]]
    assert labels[..., 0].sum() == sum(GLYPHS[char] for char in "abcd")
    assert (glyph_labels(replace(drawn, glyphs=()), (1, 2), 16) == IGNORE).all()


def test_blanks_behind_glyphs_are_unknown_by_markup() -> None:
    drawn = replace(
        sample("<b>a</b> c"), task=Task.TABLE, glyphs=(*[None] * 3, ("a", 3.0, 5.0), *[None] * 4, ("c", 40.0, 5.0))
    )
    labels = glyph_labels(drawn, (1, 4), 16)
    assert labels[0, 0, :2].tolist() == [GLYPHS["a"], IGNORE]
    assert labels[2, 0, :2].tolist() == [GLYPHS["c"], 1]


def test_blanks_in_a_formula_are_unknown_and_behind_it_known() -> None:
    text = "a $x\\in y$ is"
    places = iter(range(10, 990, 20))
    painted = {"a": "a", "x": "x", "y": "y", "i": "i", "s": "s"}
    glyphs: list[Glyph | None] = []
    for at, char in enumerate(text):
        if not char.isspace():
            sign = "∈" if text[at - 1 : at + 2] == "\\in" and char == "i" else painted.get(char)
            glyphs.append(None if char in "$\\n" else (sign or char, float(next(places)), 8.0))
    drawn = replace(sample(text), glyphs=tuple(glyphs))
    tags = {glyph[0]: both for glyph, both in tags_of(drawn, 16).items()}
    assert Tag.BLANK in tags["a"][0] & tags["a"][1]
    assert Tag.BLANK not in tags["x"][1]
    assert Tag.MATH in tags["x"][0]
    assert Tag.BLANK in tags["y"][0] & tags["y"][1]
    assert Tag.MATH not in tags["s"][0]


def test_each_token_stands_where_its_first_glyph_is(tokenizer: Tokenizer) -> None:
    """Blanks have no place of their own; a line break moves the place a row down."""
    text = "ab cd\nef"
    centres = [(5.0 + 20 * n, 8.0) for n in range(4)] + [(5.0, 24.0), (25.0, 24.0)]
    glyphs = tuple((char, x, y) for char, (x, y) in zip("abcdef", centres, strict=True))
    spans = [(0, 1), (1, 2), (2, 5), (5, 6), (6, 8)]
    drawn = replace(sample(text), glyphs=glyphs)
    assert token_places(drawn, spans, (2, 8), 16) == [0, 1, 2, IGNORE, 8]
    assert token_places(replace(drawn, glyphs=()), spans, (2, 8), 16) == [IGNORE] * 5
    assert [text[a:b] for a, b in tokenizer.spans(text)] == [tokenizer.decode([i]) for i in tokenizer.encode(text)]
