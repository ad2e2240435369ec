"""How well a checkpoint reads and drafts crops of documents and fonts that it has never been trained on.

    python -m gravityocr_models.train.validate --data DATA [--weights DIR] [--crops 200]

Prints character error rate (edits over true characters), lines read without a fault, and tokens a forward of the fused
round, prefill counted, for each kind of crop. The crops are the same every time.
"""

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein

from gravityocr_models.engine import Engine
from gravityocr_models.records import Crop, LayerUse
from gravityocr_models.store import NANO
from gravityocr_models.train.corpora import Corpora, load_corpora
from gravityocr_models.train.data import Sample, Stage, samples

STAGES = {
    "words": Stage(words=1.0, lines=0.0, paragraphs=0.0, max_words=4),
    "lines": Stage(words=0.0, lines=1.0, paragraphs=0.0),
    "lines, scan look": Stage(words=0.0, lines=1.0, paragraphs=0.0, scan=1.0),
}


@dataclass(frozen=True)
class Score:
    """character_error: edits over true characters, may exceed 1. right: share of crops without a fault. cut: share
    of crops whose answer ran into the token cap. tokens_a_forward: over all crops, end tokens and prefill counted."""

    crops: int
    character_error: float
    right: float
    cut: float
    tokens_a_forward: float


def score(engine: Engine, held_out: Sequence[Sample]) -> Score:
    """Read the samples and compare."""
    crops = [Crop(np.repeat(sample.pixels[:, :, None], 3, axis=2), sample.task) for sample in held_out]
    answers = engine.read(crops, layer=LayerUse.OFF)
    edits = [Levenshtein.distance(a.text, sample.text) for a, sample in zip(answers, held_out, strict=True)]
    return Score(
        crops=len(crops),
        character_error=sum(edits) / sum(len(sample.text) for sample in held_out),
        right=edits.count(0) / len(edits),
        cut=sum(answer.truncated for answer in answers) / len(answers),
        tokens_a_forward=sum(sum(a.committed) for a in answers) / sum(a.forwards for a in answers),
    )


def held_out_samples(corpora: Corpora, stage: Stage, count: int) -> list[Sample]:
    """The first crops of the validation split; formulas are left to their own evaluation."""
    stream = samples(corpora, 0, replace(stage, formulas=0.0), "valid")
    return list(itertools.islice(stream, count))


def main() -> None:
    parser = argparse.ArgumentParser(description="read held-out crops")
    parser.add_argument("--data", type=Path, required=True, help="folder of training corpora (see docs/training.md)")
    parser.add_argument("--weights", type=Path, default=NANO)
    parser.add_argument("--crops", type=int, default=200, help="of each kind")
    options = parser.parse_args()
    engine, corpora = Engine.load(options.weights), load_corpora(options.data)
    print(f"{'crops':20}{'number':>8}{'CER':>8}{'right':>8}{'cut':>8}{'tokens a forward':>18}")
    for name, stage in STAGES.items():
        found = score(engine, held_out_samples(corpora, stage, options.crops))
        print(
            f"{name:20}{found.crops:8}{found.character_error:8.3f}{found.right:8.3f}{found.cut:8.3f}"
            f"{found.tokens_a_forward:18.2f}"
        )


if __name__ == "__main__":
    main()
