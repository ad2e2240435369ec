"""Train nano: the joint AR and block-diffusion loss over an endless stream of crops.

    python -m gravityocr_models.train.joint --data DATA [--minutes 90] [--weights models/weights/nano]
    torchrun --nproc-per-node 8 -m gravityocr_models.train.joint --data DATA

Resumes from ~/.cache/gravityocr/train when a run is there, else from the weights, else from scratch. What is written to
--weights at every validation and at the end is the moving average. Metrics go to CSVs beside the state.
"""

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gravityocr_models import family, weights
from gravityocr_models.config import DraftConfig, OcrConfig, TextConfig, VisionConfig
from gravityocr_models.ocr import OcrModel
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.batch import GLYPHS, Batch, batches
from gravityocr_models.train.corpora import Corpora, load_corpora
from gravityocr_models.train.curriculum import READING_FIRST, stage_at
from gravityocr_models.train.data import samples
from gravityocr_models.train.distributed import Team, team
from gravityocr_models.train.loop import Row, plan_of, run, run_options
from gravityocr_models.train.losses import joint_losses, reading_losses
from gravityocr_models.train.sample import ALPHABET, Sample
from gravityocr_models.train.seeding import seed_vocabulary
from gravityocr_models.train.stream import Stream, loader
from gravityocr_models.train.telling import Teller
from gravityocr_models.train.trainer import Figures, Objective, Trainer, fast_numbers, means, moved
from gravityocr_models.train.validate import Reading
from gravityocr_models.train.vocabulary import END, IMAGE, IMAGE_END, IMAGE_START, MASK

STATE = Path.home() / ".cache/gravityocr/train"
BLOCK = 32
PEAK_RATE = 0.8e-3
TOKENS_A_BATCH = 512
AR_WEIGHT = 3.0  # against 1 for drafting: what is written is the AR path's, and drafts have a reading to fall back on
BRANCH_SIZE, TOKEN_SIZE = 0.2, 0.5  # at the start
POINTER_WEIGHT = 0.5
VALIDATION_BATCHES = 12


def nano_config(tokenizer: Tokenizer) -> OcrConfig:
    """nano's architecture: GLM-OCR's at a hundredth of its size, with a convolutional stem."""
    width, inner = 256, 768
    return OcrConfig(
        vision=VisionConfig(
            depth=2, hidden_size=width, num_heads=4, intermediate_size=inner, out_hidden_size=width, in_channels=1,
            patch_size=16, spatial_merge_size=1, temporal_patch_size=1, attention_bias=False,
            stem_widths=(32, 64, 128, width), stem_depths=(0, 1, 1), glyphs=len(GLYPHS),
        ),
        text=TextConfig(
            vocab_size=len(tokenizer), hidden_size=width, intermediate_size=inner, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=2, head_dim=64, mrope_section=(8, 12, 12),
        ),
        image_token_id=tokenizer.special(IMAGE),
        image_start_token_id=tokenizer.special(IMAGE_START),
        image_end_token_id=tokenizer.special(IMAGE_END),
    )  # fmt: skip


def initialise(model: OcrModel) -> None:
    """Normal weights that keep variance; tokens loud and the decoder's branches quiet.

    A branch ends in a norm, so its weight is its size whatever the matrices are. At size 1 one branch drowns the
    embedding it is added to, and the decoder starts blind to its own tokens.
    """
    for name, parameter in model.named_parameters():
        if "post_self_attn" in name or "post_mlp" in name:
            torch.nn.init.constant_(parameter, BRANCH_SIZE)
        elif "embed_tokens" in name:
            torch.nn.init.normal_(parameter, std=TOKEN_SIZE)
        elif "conv2" in name:
            torch.nn.init.zeros_(parameter)
        elif parameter.ndim > 1 and "convs" not in name:
            torch.nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)


class Nano:
    """What is particular to nano: its loss, its batches, and the folder it is written to."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.tokenizer = Tokenizer.load(target / "tokenizer.json")
        self.draft = DraftConfig(BLOCK, self.tokenizer.special(MASK), AR_WEIGHT, glyphs="".join(GLYPHS))
        self.config = nano_config(self.tokenizer)
        self.tell = Teller(self.tokenizer, target, self.config.vision.token_px)

    def trainer(self, state: Path, team: Team) -> Trainer:
        """Goes on from the state, else from the weights in the target folder, else from nothing."""
        model, seen = OcrModel(self.config), 0
        if (self.target / "model.safetensors").exists():
            model = weights.load(self.target).model.requires_grad_(True)
            seen = json.loads((self.target / "training.json").read_text())["samples"]
        else:
            initialise(model)
        turn = (READING_FIRST, partial(seed_vocabulary, model, self.tokenizer))
        trainer = Trainer(Objective(model, self.loss), state, team, turn=turn)
        if trainer.progress.step == 0:
            trainer.progress.samples = seen
        return trainer

    def loss(self, model: OcrModel, batch: Batch, seen: int) -> tuple[Tensor, Figures]:
        """At first the encoder learns to name glyphs, then the decoder, on both paths, to read what it sees.

        The encoder goes on by its own loss: a decoder that hasn't yet learned where to look would blur it.
        """
        if seen < READING_FIRST:
            losses = reading_losses(model, batch)
            return losses.glyph, vars(losses)
        losses = joint_losses(model, batch, self.draft, self.tell)
        weight = self.draft.ar_loss_weight
        both = (losses.draft + weight * losses.ar) / (1 + weight)
        return both + POINTER_WEIGHT * losses.pointer + losses.glyph, vars(losses)

    def batched(self, drawn: Iterator[Sample], seed: int, tokens: int) -> Iterator[Batch]:
        """Batches of at most so many tokens."""
        return batches(drawn, self.tokenizer, self.config, self.draft, self.tokenizer.special(END), tokens, seed)

    def export(self, trainer: Trainer, model: OcrModel) -> None:
        """The model as a checkpoint that the program loads."""
        facts: dict[str, Any] = {"bd_size": BLOCK, "mask_id": self.draft.mask_id, "ar_loss_weight": AR_WEIGHT}
        facts |= {"alphabet": "".join(sorted(ALPHABET)), "glyphs": "".join(GLYPHS)}
        (self.target / "block_diffusion.json").write_text(
            json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        (self.target / "training.json").write_text(json.dumps(asdict(trainer.progress), indent=2) + "\n")
        family.write_nano(self.target, self.tokenizer)
        weights.save(self.target, model)


class Exam:
    """Losses on batches, and reading of crops, from documents and fonts that are never trained on."""

    def __init__(self, nano: Nano, trainer: Trainer, corpora: Corpora) -> None:
        drawn = samples(corpora, 0, stage_at(READING_FIRST), "valid")
        self.batches = list(itertools.islice(nano.batched(drawn, 0, TOKENS_A_BATCH), VALIDATION_BATCHES))
        self.nano, self.trainer = nano, trainer
        conventions = family.nano_conventions(nano.config, nano.tokenizer)
        self.reading = Reading(corpora, nano.tokenizer, conventions, nano.draft)

    @torch.no_grad()
    def __call__(self, model: OcrModel) -> Mapping[str, list[Row]]:
        seen = max(self.trainer.progress.samples, READING_FIRST)
        rows = []
        for batch in self.batches:
            with fast_numbers(model.device):
                rows.append(self.nano.loss(model, moved(batch, model.device), seen)[1])
        stage = stage_at(self.trainer.progress.samples)
        return {"metrics.csv": [means(rows)], "reading.csv": self.reading.rows(model, stage)}


def main() -> None:
    parser = run_options("train nano", PEAK_RATE, TOKENS_A_BATCH)
    parser.add_argument("--weights", type=Path, default=weights.NANO)
    parser.add_argument("--state", type=Path, default=STATE)
    parser.set_defaults(minutes=90)
    options = parser.parse_args()
    plan = plan_of(options)
    with team() as world:
        nano, corpora = Nano(options.weights), load_corpora(options.data)
        trainer = nano.trainer(options.state, world)
        batched = partial(nano.batched, tokens=options.tokens)
        stream = Stream(corpora, stage_at, trainer.progress.samples, world, batched)
        exam = Exam(nano, trainer, corpora)
        run(trainer, loader(stream, options.workers), plan, options.state, exam, partial(nano.export, trainer))


if __name__ == "__main__":
    main()
