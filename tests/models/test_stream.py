"""Workers and processes draw different samples and walk the curriculum together."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
import torch

from gravityocr_models.records import Task
from gravityocr_models.train import stream
from gravityocr_models.train.corpora import Corpora
from gravityocr_models.train.curriculum import Stage
from gravityocr_models.train.distributed import Team
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.stream import CHUNK, LANE, Stream, curriculum, loader

PIXELS = np.zeros((1, 1), np.uint8)


def named(corpora: Corpora, seed: int, stage: Stage) -> Iterator[Sample]:
    """Samples that tell the seed and the stage that they were drawn with."""
    while True:
        yield Sample(PIXELS, f"{seed} {stage.max_words}", Task.TEXT, (), "test")


def stage_at(seen: int) -> Stage:
    return Stage(words=1.0, lines=0.0, paragraphs=0.0, max_words=1 + seen // CHUNK)


def texts(samples: Iterator[Sample], seed: int) -> Iterator[list[str]]:
    yield [sample.text for sample in islice(samples, 3 * CHUNK)][::CHUNK]


def test_lanes_draw_apart_and_walk_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "samples", named)
    alone = next(texts(curriculum(Corpora(), stage_at, 0), 0))
    assert alone == ["0 1", f"{CHUNK} 2", f"{2 * CHUNK} 3"]
    third = next(texts(curriculum(Corpora(), stage_at, 0, 2, 4), 0))
    assert third == [f"{2 * LANE + 4 * n * CHUNK} {1 + 4 * n}" for n in range(3)]


@pytest.mark.filterwarnings("ignore:This DataLoader will create 2 worker")  # where the tests have one core
def test_every_worker_of_every_process_has_a_lane_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "samples", named)
    found = []
    for rank in range(2):
        team = Team(rank, 2, torch.device("cpu"))
        found += [drawn[0] for drawn in loader(Stream(Corpora(), stage_at, 7, team, texts), 2)]
    assert sorted(found) == sorted(f"{7 + LANE * lane} 1" for lane in range(4))
