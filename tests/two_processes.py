"""What each of two processes does in tests/models/test_distributed.py: the trainers' own main(), made small.

    torchrun --nproc-per-node 2 tests/two_processes.py FOLDER

Both trainers run undisturbed (`whole`), then stopped and gone on (`parts`); there are metrics of every step.
"""

import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from typing import Any

import numpy as np

from gravityocr_models.records import Task
from gravityocr_models.train import finetune, joint, loop
from gravityocr_models.train.corpora import Corpora
from gravityocr_models.train.distributed import Team, team
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.stream import Stream
from tiny import small_nano

SAMPLES = 2  # a batch and process


def sample(number: int, size: tuple[int, int] = (30, 60)) -> Sample:
    """Noise with an answer, another one for every number."""
    pixels = np.random.default_rng(number).integers(0, 256, size).astype(np.uint8)
    return Sample(pixels, f"number {number} of many", Task.TEXT, (), "test")


def batches(stream: Stream, stop_at: int | None) -> Iterator[object]:
    """Batches that depend on nothing but the process and the samples already seen."""
    for step in count(stream.seen // (SAMPLES * stream.size)):
        if step == stop_at and stream.rank == 1:
            signal.raise_signal(signal.SIGTERM)  # in one process: the other has to learn of it
        first = (step * stream.size + stream.rank) * SAMPLES
        drawn = [sample(first + n) for n in range(SAMPLES)]
        yield next(stream.batched(iter([*drawn, sample(0, (100, 200))]), step))  # the last one no longer fits


def go(module: Any, stop_at: int | None, *arguments: str) -> None:
    """One run of a trainer; `stop_at`: the step before which it is asked to end."""
    module.loader = lambda stream, _: batches(stream, stop_at)
    sys.argv = [module.__name__, "--data", ".", *arguments]
    module.main()


def main(world: Team) -> None:
    folder = sys.argv[1]
    loop.REPORT_SECONDS = -1
    modules: tuple[Any, ...] = (joint, finetune)
    modules[0].nano_config = small_nano
    modules[0].READING_FIRST = 3 * SAMPLES  # the vocabulary is seeded on the way
    for module in modules:
        module.team = lambda: nullcontext(world)
        module.load_corpora = lambda _: Corpora()
        module.Exam = lambda *_: lambda model: {}
    for name, stop_at in (("whole", None), ("parts", 3), ("parts", None)):
        nano = "--weights", f"{folder}/{name}", "--state", f"{folder}/{name}/state", "--tokens", "64", "--steps", "6"
        go(joint, stop_at, *nano)
        family = "--model", f"{folder}/published", "--out", f"{folder}/{name}-drafting", "--tokens", "186"
        go(finetune, stop_at, *family, "--steps", "6", "--shard", "--recompute", "--rate", "0.01")


if __name__ == "__main__":
    with team() as world:
        main(world)
