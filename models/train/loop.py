"""The run: steps until time or steps are used up, with metrics, validation and saved states on the way."""

import argparse
import csv
import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from gravityocr_models.ocr import OcrModel
from gravityocr_models.train.trainer import Figures, Samples, Trainer, means

WARMUP_STEPS = 100
COOLDOWN = 0.2  # share of a run over which the learning rate falls to zero
REPORT_SECONDS = 30
SAVE_SECONDS = 300
VALIDATION_SECONDS = 900

Row = Mapping[str, float | str]


@dataclass(frozen=True)
class Plan:
    """How far a run goes, and how fast it learns at most.

    minutes: of this run; the learning rate then starts anew with every run. steps: of the whole training, runs that
    were stopped included; the rate goes on where it was. Whichever is used up first ends the run.
    """

    peak: float
    minutes: float = math.inf
    steps: float = math.inf

    def share(self, step: int, seconds: float) -> float:
        """How much of the plan is used, 0..1 and beyond."""
        return max(step / self.steps, seconds / (60 * self.minutes))

    def rate(self, step: int, first: int, share: float) -> float:
        """The learning rate of a step in a run that began at step `first`: warms up, holds, falls to zero."""
        since = step - (first if math.isinf(self.steps) else 0)
        return self.peak * min(1.0, (since + 1) / WARMUP_STEPS) * min(1.0, max(0.0, 1 - share) / COOLDOWN)


@dataclass
class Stop:
    """Whether an end was asked for."""

    asked: bool = False


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """TERM and Ctrl-C ask for an end after the running step; a second one ends at once."""
    stop = Stop()

    def ask(number: int, frame: Any) -> None:
        if stop.asked:
            raise KeyboardInterrupt
        stop.asked = True

    before = {number: signal.signal(number, ask) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(
    trainer: Trainer,
    batches: Iterable[Samples],
    plan: Plan,
    log: Path,
    examine: Callable[[OcrModel], Mapping[str, list[Row]]],
    export: Callable[[OcrModel], None],
) -> None:
    """Train until the plan is used up or an end is asked for.

    log: folder of metrics.csv and of what `examine` finds: name of a file -> rows. `examine` and `export` get the
    moving average, on the first process, at every validation and at the end.
    """
    team, progress = trainer.team, trainer.progress
    first_step, seconds_before = progress.step, progress.seconds
    start = time.monotonic()
    reported = saved = validated = 0.0
    stops = 0.0
    recent: list[Figures] = []

    def write(file: str, kind: str, row: Row) -> None:
        if team.first:
            append(log / file, {"kind": kind} | asdict(progress) | dict(row))

    def validate(examined: bool) -> None:
        model = trainer.averaged()
        if model is not None:
            for file, rows in examine(model).items() if examined else ():
                for row in rows:
                    write(file, "valid", row)
            export(model)

    with stop_signals() as stop:
        for batch in batches:
            here = time.monotonic() - start if team.first else 0.0
            now, stops, samples = team.sums(here, stop.asked, len(batch.lengths))
            share = plan.share(progress.step, now)
            if stops or share >= 1:
                break
            recent.append(trainer.step(batch, plan.rate(progress.step, first_step, share)))
            progress.seconds = seconds_before + now
            trainer.count(int(samples))
            if now - reported > REPORT_SECONDS:
                write("metrics.csv", "train", means(recent))
                recent, reported = [], now
            if now - validated > VALIDATION_SECONDS:
                validate(examined=True)
                validated = now
            if now - saved > SAVE_SECONDS:
                trainer.save()
                saved = now
        trainer.save()
        if recent:
            write("metrics.csv", "train", means(recent))
        validate(examined=not stops)  # who asks for an end may not wait for long


def append(file: Path, row: Row) -> None:
    """Add a row to a CSV and print it. A file of other columns, from an older program, is renamed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    short = {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
    if file.exists() and file.read_text().partition("\n")[0].split(",") != list(short):
        file.rename(file.with_stem(f"{file.stem}-before-{row['step']}"))
    fresh = not file.exists()
    with file.open("a", newline="") as handle:
        writer = csv.DictWriter(handle, short)
        if fresh:
            writer.writeheader()
        writer.writerow(short)
    print(" ".join(f"{key}={value}" for key, value in short.items()), flush=True)


def run_options(about: str, rate: float, tokens: int) -> argparse.ArgumentParser:
    """The options that all trainers share, with their usual learning rate and tokens a batch."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--data", type=Path, required=True, help="folder of training corpora (see docs/training.md)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="of this run")
    parser.add_argument("--steps", type=float, default=math.inf, help="of the whole training")
    parser.add_argument("--rate", type=float, default=rate, help="highest learning rate")
    parser.add_argument("--tokens", type=int, default=tokens, help="tokens a batch and process")
    parser.add_argument("--workers", type=int, default=1, help="processes that make samples, for each that trains")
    parser.add_argument("--threads", type=int, default=1)
    return parser


def plan_of(options: argparse.Namespace) -> Plan:
    """The plan that the options ask for; also sets threads and seed."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    return Plan(options.rate, options.minutes, options.steps)
