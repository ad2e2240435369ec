"""Reading scores: edits over characters, on crops whose answers are known."""

from collections.abc import Sequence

import numpy as np
import pytest

from gravityocr_models.engine import Engine
from gravityocr_models.records import Crop, Decoded, Task
from gravityocr_models.train.curriculum import Stage
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.validate import kinds_of, score


class Reader:
    """Answers from a list."""

    def __init__(self, answers: list[Decoded]) -> None:
        self.answers = answers

    def read(self, crops: Sequence[Crop], **_: object) -> list[Decoded]:
        assert len(crops) == len(self.answers)
        return self.answers


def test_score_counts_edits_over_characters() -> None:
    blank = np.full((20, 40), 255, np.uint8)
    truth = [Sample(blank, text, Task.TEXT, (), "test") for text in ("abcd", "efgh", "ij")]
    answers = [
        Decoded("abcd", (1, 2), (1, 2), 1.0),
        Decoded("efxh!", (1, 2, 3), (4,), 1.0),
        Decoded("", (), (1,), 1.0, truncated=True),
    ]
    engine: Engine = Reader(answers)  # type: ignore[assignment]
    found = score(engine, truth)
    assert found.character_error == pytest.approx(4 / 10)
    assert (found.right, found.cut) == pytest.approx((1 / 3, 1 / 3))
    assert found.tokens_a_forward == pytest.approx(8 / 4)
    assert found.accepted == 1  # one round had a draft, and committed two tokens
    assert found.likeness == pytest.approx((1 + 3 / 5 + 0) / 3)


def test_kinds_are_those_that_a_stage_holds() -> None:
    assert kinds_of(Stage(words=0.5, lines=0.5, paragraphs=0.0)) == ["words", "lines"]
    everything = Stage(words=0.2, lines=0.3, paragraphs=0.5, formulas=0.1, tables=0.1)
    assert kinds_of(everything) == ["words", "lines", "paragraphs", "formulas", "tables"]
