"""Teach a checkpoint of the GLM-OCR family to draft: the joint loss on packed samples, from its published weights.

    python -m gravityocr_models.train.finetune --data DATA --model DIR --out DIR --steps 2000
    torchrun --nproc-per-node 8 -m gravityocr_models.train.finetune ... --shard

What is written to --out, at every validation and at the end, is a whole checkpoint: the moving average of the weights,
block_diffusion.json, and the other files of --model as they are. State and metrics lie in OUT.state; a run goes on from
there. Works for nano's folder too, without the losses that taught nano to read.
"""

import itertools
import json
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from gravityocr_models import store, weights
from gravityocr_models.config import ConfigError, DraftConfig
from gravityocr_models.family import read_conventions
from gravityocr_models.ocr import OcrModel
from gravityocr_models.train.corpora import Corpora, load_corpora
from gravityocr_models.train.curriculum import Stage, stage_at
from gravityocr_models.train.data import samples
from gravityocr_models.train.distributed import team
from gravityocr_models.train.loop import Row, plan_of, run, run_options
from gravityocr_models.train.packed import Packer, joint_loss
from gravityocr_models.train.stream import Stream, loader
from gravityocr_models.train.trainer import Objective, Trainer, fast_numbers, means, moved, recompute
from gravityocr_models.train.validate import Reading
from gravityocr_models.weights import Checkpoint

BLOCK = 32
PEAK_RATE = 1e-5
TOKENS_A_BATCH = 8192
VALIDATION_PACKS = 8
WHOLE_CURRICULUM = 10**9  # samples seen: a published checkpoint can read, and starts where nano's curriculum ends


def drafting(folder: Path) -> tuple[Checkpoint, DraftConfig]:
    """A checkpoint to be trained, and how it is to draft.

    One that has not drafted gets as its mask token the first id of the padded vocabulary that the tokenizer leaves free
    (GLM-OCR: 59282), embedded as the mean of all tokens. ConfigError where there is none.
    """
    checkpoint = weights.load(folder)
    checkpoint.model.requires_grad_(True)
    if checkpoint.draft:
        return checkpoint, checkpoint.draft
    embeddings, mask = checkpoint.model.model.language_model.embed_tokens.weight, len(checkpoint.tokenizer)
    if mask >= len(embeddings):
        raise ConfigError(f"{folder}: the vocabulary of {len(embeddings)} has no id left for a mask token")
    with torch.no_grad():
        embeddings[mask] = embeddings[:mask].mean(0)
    return checkpoint, DraftConfig(BLOCK, mask, 1.0)


def export(source: Path, out: Path, draft: DraftConfig | None, model: OcrModel) -> None:
    """The model as a checkpoint, with the files of the one it came from."""
    out.mkdir(parents=True, exist_ok=True)
    weights.save(out, model, torch.bfloat16)
    for file in source.iterdir():
        if file.suffix in (".json", ".jinja") and not file.name.endswith(".safetensors.index.json"):
            shutil.copy(file, out)
    file = out / "block_diffusion.json"
    if draft and not file.exists():
        facts = {"bd_size": draft.bd_size, "mask_id": draft.mask_id, "ar_loss_weight": draft.ar_loss_weight}
        file.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
    store.write_sums(out)


class Exam:
    """Losses on packs, and reading of crops, from documents and fonts that are never trained on."""

    def __init__(self, packer: Packer, draft: DraftConfig, corpora: Corpora, tokens: int) -> None:
        stage = stage_at(WHOLE_CURRICULUM)
        drawn = packer.packs(samples(corpora, 0, stage, "valid"), 0, draft, tokens)
        self.packs = list(itertools.islice(drawn, VALIDATION_PACKS))
        self.loss = joint_loss(draft.ar_loss_weight)
        self.reading = Reading(corpora, packer.tokenizer, packer.conventions, draft)

    @torch.no_grad()
    def __call__(self, model: OcrModel) -> Mapping[str, list[Row]]:
        with fast_numbers(model.device):
            rows = [self.loss(model, moved(pack, model.device), 0)[1] for pack in self.packs]
        return {"metrics.csv": [means(rows)], "reading.csv": self.reading.rows(model, stage_at(WHOLE_CURRICULUM))}


def last_stage(_: int) -> Stage:
    """Of the curriculum."""
    return stage_at(WHOLE_CURRICULUM)


def main() -> None:
    parser = run_options("teach a checkpoint to draft", PEAK_RATE, TOKENS_A_BATCH)
    parser.add_argument("--model", type=Path, required=True, help="folder of the checkpoint to start from")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the trained checkpoint to")
    parser.add_argument("--shard", action="store_true", help="deal weights and optimizer out to the processes")
    parser.add_argument("--recompute", action="store_true", help="less memory, a third more work")
    options = parser.parse_args()
    plan, state = plan_of(options), options.out.with_name(options.out.name + ".state")
    with team() as world:
        checkpoint, draft = drafting(options.model)
        conventions = read_conventions(options.model, checkpoint.model.config, checkpoint.tokenizer)
        packer = Packer(checkpoint.model.config, checkpoint.tokenizer, conventions)
        if options.recompute:
            recompute(checkpoint.model)
        objective = Objective(checkpoint.model, joint_loss(draft.ar_loss_weight))
        trainer, corpora = Trainer(objective, state, world, shard=options.shard), load_corpora(options.data)
        write = partial(export, options.model, options.out, draft)
        batched = partial(packer.packs, draft=draft, budget=options.tokens)
        stream = Stream(corpora, last_stage, trainer.progress.samples, world, batched)
        run(trainer, loader(stream, options.workers), plan, state, Exam(packer, draft, corpora, options.tokens), write)


if __name__ == "__main__":
    main()
