"""What decoding costs: the same prompts decoded in every way, batch and block, and by transformers.

All run one after the other in one process: ratios are what counts, seconds differ from machine to machine. Processor
seconds stand beside those on the clock, because on a shared machine they are the steadier ones.
"""

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from gravityocr_models.engine import Engine, by_length
from gravityocr_models.memory import peak_mib
from gravityocr_models.peer import Peer
from gravityocr_models.records import Crop, LayerUse, Rounds
from gravityocr_models.rounds import Outcome, Runner, Work
from gravityocr_models.speculate import Prompt, decode

PEER = "transformers"
BARE = "plain, no reading"  # what transformers is compared with: it can't be given an encoder's reading


@dataclass(frozen=True)
class Row:
    """One way of decoding over all prompts.

    block: mask tokens a round; None where there are none, 0 where they follow what is accepted. decode_seconds: all
    rounds but the prefill, None where the two can't be told apart. forwards: of each sequence, prefill counted;
    batch_forwards: of the model. same_as_plain: prompts whose ids are those of plain decoding at the same batch.
    """

    way: str
    batch: int
    block: int | None
    seconds: float
    cpu_seconds: float
    decode_seconds: float | None
    tokens: int
    forwards: int
    batch_forwards: int
    same_as_plain: int

    @property
    def tokens_a_forward(self) -> float:
        return self.tokens / max(1, self.forwards)


class _Timed(Runner):
    """A runner that counts its forwards and the seconds of those that go on with a sequence."""

    forwards = 0
    seconds = 0.0

    def prefill(self, first: int, work: Sequence[Work]) -> list[Outcome]:
        self.forwards += 1
        return super().prefill(first, work)

    def round(self, work: Sequence[Work]) -> list[Outcome]:
        self.forwards += 1
        started = time.perf_counter()
        outcomes = super().round(work)
        self.seconds += time.perf_counter() - started
        return outcomes


def prompts_of(engine: Engine, crops: Sequence[Crop], layer: LayerUse) -> tuple[list[Prompt], float]:
    """Prompts, longest first as the engine decodes them, and the seconds of the vision encoder."""
    started = time.perf_counter()
    prompts = engine.prompts(crops, layer)
    if engine.checkpoint.model.device.type == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - started
    return list(by_length(dict(enumerate(prompts))).values()), seconds


def rows_of(
    engine: Engine, prompts: Sequence[Prompt], batches: Sequence[int], blocks: Sequence[int], peer: bool
) -> Iterator[Row]:
    """Plain decoding, then the speculative ways at every block (0: adaptive), then transformers; batch by batch.

    Where there are readings, plain decoding without them goes before transformers.
    """
    other = Peer(engine.checkpoint.model, engine.conventions.ends) if peer else None
    ways = Rounds.TWO_FORWARD, Rounds.FUSED, *([Rounds.READING] if engine.reads_glyphs else [])
    bare = [replace(prompt, reading=None) for prompt in prompts]
    for batch in batches:
        plain, ids = _ours(engine, prompts, batch, Rounds.PLAIN, None, None)
        yield plain
        for block, rounds in itertools.product(blocks, ways):
            yield _ours(engine, prompts, batch, rounds, block, ids)[0]
        if other is not None:
            if any(prompt.reading for prompt in prompts):
                plain, ids = _ours(engine, bare, batch, Rounds.PLAIN, None, None)
                yield replace(plain, way=BARE)
            yield _theirs(other, bare, batch, ids)


def _ours(
    engine: Engine,
    prompts: Sequence[Prompt],
    batch: int,
    rounds: Rounds,
    block: int | None,
    plain: list[list[int]] | None,
) -> tuple[Row, list[list[int]]]:
    model, rules = engine.checkpoint.model, engine.rules(rounds, block or None)
    runner = _Timed(model)
    decode(model, prompts[-1:], rules, batch, runner)  # first calls are slow
    runner.forwards, runner.seconds = 0, 0.0
    started, worked = time.perf_counter(), time.process_time()
    answers = decode(model, prompts, rules, batch, runner)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - worked
    ids = [answer.ids for answer in answers]
    same = sum(mine == theirs for mine, theirs in zip(ids, plain or ids, strict=True))
    forwards = sum(len(answer.committed) for answer in answers)
    tokens = sum(map(len, ids))
    row = Row(rounds.value, batch, block, seconds, cpu_seconds, runner.seconds, tokens, forwards, runner.forwards, same)
    return row, ids


def _theirs(peer: Peer, prompts: Sequence[Prompt], batch: int, plain: list[list[int]]) -> Row:
    list(peer.answers(prompts[-1:], 1))
    started, worked = time.perf_counter(), time.process_time()
    ids = list(peer.answers(prompts, batch))
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - worked
    same = sum(mine == theirs for mine, theirs in zip(ids, plain, strict=True))
    tokens = sum(map(len, ids))
    steps = sum(max(map(len, ids[start : start + batch])) for start in range(0, len(ids), batch))
    return Row(PEER, batch, None, seconds, cpu_seconds, None, tokens, tokens, steps, same)


def peak_memory_mib() -> float:
    """Most memory that this process has held so far; on a GPU, that of the GPU."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() / 2**20
    return peak_mib()
