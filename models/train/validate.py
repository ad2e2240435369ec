"""How well a checkpoint reads and drafts crops of documents and fonts that it has never been trained on.

    python -m gravityocr_models.train.validate --data DATA [--weights DIR] [--crops 200]

For each kind of crop: character error rate (edits over true characters), likeness to the truth in the measure of its
task (see rewards.py), crops read without a fault, and what drafting gave. The crops are the same every time.
"""

import argparse
import itertools
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rapidfuzz.distance import Levenshtein

from gravityocr_models.config import DraftConfig
from gravityocr_models.engine import Engine
from gravityocr_models.family import Conventions
from gravityocr_models.ocr import OcrModel
from gravityocr_models.records import Crop, LayerUse
from gravityocr_models.store import NANO
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.corpora import Corpora, load_corpora
from gravityocr_models.train.curriculum import Stage
from gravityocr_models.train.data import samples
from gravityocr_models.train.loop import Row
from gravityocr_models.train.rewards import quality
from gravityocr_models.train.sample import Sample
from gravityocr_models.weights import Checkpoint

STAGES = {
    "words": Stage(words=1.0, lines=0.0, paragraphs=0.0, max_words=4),
    "lines": Stage(words=0.0, lines=1.0, paragraphs=0.0),
    "lines, scan look": Stage(words=0.0, lines=1.0, paragraphs=0.0, scan=1.0),
    "lines, on screens": Stage(words=0.0, lines=1.0, paragraphs=0.0, screens=1.0),
    "paragraphs": Stage(words=0.0, lines=0.0, paragraphs=1.0),
    "formulas": Stage(words=0.0, lines=1.0, paragraphs=0.0, formulas=1.0),
    "tables": Stage(words=0.0, lines=1.0, paragraphs=0.0, tables=1.0, max_cells=24),
}
CROPS_ON_THE_WAY = 24  # of each kind, at a validation during training: some seconds


@dataclass(frozen=True)
class Score:
    """character_error: edits over true characters, may exceed 1. likeness: mean of rewards.quality. right: share of
    crops without a fault. cut: share of crops whose answer ran into the token cap. tokens_a_forward: over all crops,
    end tokens and prefill counted. accepted: draft tokens accepted a round, the prefill, which has no draft, left out.
    """

    crops: int
    character_error: float
    likeness: float
    right: float
    cut: float
    tokens_a_forward: float
    accepted: float


def score(engine: Engine, held_out: Sequence[Sample]) -> Score:
    """Read the samples and compare."""
    crops = [Crop(np.repeat(sample.pixels[:, :, None], 3, axis=2), sample.task) for sample in held_out]
    answers = engine.read(crops, layer=LayerUse.OFF)
    pairs = list(zip(answers, held_out, strict=True))
    edits = [Levenshtein.distance(answer.text, sample.text) for answer, sample in pairs]
    rounds = [count for answer in answers for count in answer.committed[1:]]
    return Score(
        crops=len(crops),
        character_error=sum(edits) / sum(len(sample.text) for sample in held_out),
        likeness=float(np.mean([quality(sample.task, answer.text, sample.text) for answer, sample in pairs])),
        right=edits.count(0) / len(edits),
        cut=sum(answer.truncated for answer in answers) / len(answers),
        tokens_a_forward=sum(sum(a.committed) for a in answers) / sum(a.forwards for a in answers),
        accepted=sum(count - 1 for count in rounds) / max(1, len(rounds)),
    )


def held_out_samples(corpora: Corpora, stage: Stage, count: int) -> list[Sample]:
    """The first crops of the validation split."""
    return list(itertools.islice(samples(corpora, 0, stage, "valid"), count))


def kinds_of(stage: Stage) -> list[str]:
    """Names of the kinds of crops that a stage of training holds."""
    return [name for name in STAGES if getattr(stage, name, 0) > 0]


class Reading:
    """Reads a few crops of each kind as training goes on."""

    def __init__(
        self, corpora: Corpora, tokenizer: Tokenizer, conventions: Conventions, draft: DraftConfig | None
    ) -> None:
        self.corpora, self.tokenizer, self.conventions, self.draft = corpora, tokenizer, conventions, draft
        self.crops: dict[str, list[Sample]] = {}

    def rows(self, model: OcrModel, stage: Stage) -> list[Row]:
        """Scores of the kinds that training has come to."""
        engine = Engine(Checkpoint(model, self.tokenizer, self.draft), self.conventions)
        rows: list[Row] = []
        for kind in kinds_of(stage):
            if kind not in self.crops:
                self.crops[kind] = held_out_samples(self.corpora, STAGES[kind], CROPS_ON_THE_WAY)
            rows.append({"read": kind} | asdict(score(engine, self.crops[kind])))
        return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="read held-out crops")
    parser.add_argument("--data", type=Path, required=True, help="folder of training corpora (see docs/training.md)")
    parser.add_argument("--weights", type=Path, default=NANO)
    parser.add_argument("--crops", type=int, default=200, help="of each kind")
    options = parser.parse_args()
    engine, corpora = Engine.load(options.weights), load_corpora(options.data)
    heads = "crops", "number", "CER", "likeness", "right", "cut", "tokens/forward", "accepted"
    print(f"{heads[0]:20}" + "".join(f"{head:>16}" for head in heads[1:]))
    for name, stage in STAGES.items():
        found = asdict(score(engine, held_out_samples(corpora, stage, options.crops)))
        print(f"{name:20}{found.pop('crops'):16}" + "".join(f"{value:16.3f}" for value in found.values()))


if __name__ == "__main__":
    main()
