"""Samples along a curriculum, made in worker processes; every worker of every process draws its own."""

import itertools
import signal
from collections.abc import Callable, Iterator
from typing import Any

from torch.utils.data import DataLoader, IterableDataset, get_worker_info

from gravityocr_models.train.corpora import Corpora
from gravityocr_models.train.curriculum import Stage
from gravityocr_models.train.data import samples
from gravityocr_models.train.distributed import Team
from gravityocr_models.train.sample import Sample

CHUNK = 2000  # samples between looks at the curriculum
LANE = 10**9  # seeds apart from one worker to the next: more samples than any of them draws

StageAt = Callable[[int], Stage]
Batched = Callable[[Iterator[Sample], int], Iterator[Any]]


def curriculum(corpora: Corpora, stage_at: StageAt, seen: int, lane: int = 0, lanes: int = 1) -> Iterator[Sample]:
    """Endless training samples of one of `lanes` workers, `seen` of all samples on; the stage moves with the samples
    of all workers together."""
    for start in itertools.count(seen, CHUNK * lanes):
        yield from itertools.islice(samples(corpora, start + LANE * lane, stage_at(start)), CHUNK)


class Stream(IterableDataset[Any]):
    """Batches from samples. batched: (samples, seed) -> batches."""

    def __init__(self, corpora: Corpora, stage_at: StageAt, seen: int, team: Team, batched: Batched) -> None:
        self.corpora, self.stage_at, self.seen, self.batched = corpora, stage_at, seen, batched
        self.rank, self.size = team.rank, team.size

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        number, workers = (worker.id, worker.num_workers) if worker else (0, 1)
        lane, lanes = self.rank * workers + number, self.size * workers
        drawn = curriculum(self.corpora, self.stage_at, self.seen, lane, lanes)
        return self.batched(drawn, self.seen + LANE * lane)


def loader(stream: Stream, workers: int) -> DataLoader[Any]:
    """The stream's batches, made by so many processes."""
    return DataLoader(stream, batch_size=None, num_workers=workers, prefetch_factor=4, worker_init_fn=_deaf)


def _deaf(_: int) -> None:
    """Signals reach the whole group of processes; the trainer alone decides when its workers end."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
