"""Train nano: the joint AR and block-diffusion loss over an endless stream of crops.

    python -m gravityocr_models.train.joint --data DATA [--minutes 90] [--weights models/weights/nano]

Resumes from ~/.cache/gravityocr/train when a run is there, else from the weights, else from scratch. The learning rate
warms up, holds, and falls to zero over the last fifth of the minutes asked for; the next run starts it anew. What is
written to --weights at the end, and at every validation, is the moving average. Metrics go to a CSV beside the state.
"""

import argparse
import copy
import csv
import itertools
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from gravityocr_models import family, weights
from gravityocr_models.config import DraftConfig, OcrConfig, TextConfig, VisionConfig
from gravityocr_models.ocr import OcrModel
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train.batch import Batch, batches
from gravityocr_models.train.corpora import Corpora, Split, load_corpora
from gravityocr_models.train.data import ALPHABET, READING_FIRST, Sample, Stage, samples, stage_at
from gravityocr_models.train.losses import GlyphHead, Losses, joint_losses, reading_losses
from gravityocr_models.train.seeding import seed_vocabulary
from gravityocr_models.train.vocabulary import END, IMAGE, IMAGE_END, IMAGE_START, MASK

STATE = Path.home() / ".cache/gravityocr/train"
BLOCK = 32
PEAK_RATE = 1.2e-3
WARMUP_STEPS = 100
COOLDOWN = 0.2  # share of a run over which the learning rate falls to zero
TOKENS_A_BATCH = 1024
BRANCH_SIZE, TOKEN_SIZE = 0.2, 0.5  # at the start
DECAY = 0.998  # of the moving average, a step
GLYPH_WEIGHT = 1.0
POINTER_WEIGHT = 0.5
SAVE_SECONDS = 300
VALIDATION_SECONDS = 900
VALIDATION_BATCHES = 12
CHUNK = 2000  # samples between looks at the curriculum


@dataclass
class Progress:
    """Where training stands; stored with the optimizer."""

    step: int = 0
    samples: int = 0
    seconds: float = 0.0


def nano_config(tokenizer: Tokenizer) -> OcrConfig:
    """nano's architecture: GLM-OCR's at a hundredth of its size, with a convolutional stem."""
    width, inner = 256, 768
    return OcrConfig(
        vision=VisionConfig(
            depth=2, hidden_size=width, num_heads=4, intermediate_size=inner, out_hidden_size=width, in_channels=1,
            patch_size=16, spatial_merge_size=1, temporal_patch_size=1, attention_bias=False,
            stem_widths=(32, 64, 128, width),
        ),
        text=TextConfig(
            vocab_size=len(tokenizer), hidden_size=width, intermediate_size=inner, num_hidden_layers=3,
            num_attention_heads=4, num_key_value_heads=2, head_dim=64, mrope_section=(8, 12, 12),
        ),
        image_token_id=tokenizer.special(IMAGE),
        image_start_token_id=tokenizer.special(IMAGE_START),
        image_end_token_id=tokenizer.special(IMAGE_END),
    )  # fmt: skip


class Stream(IterableDataset[Batch]):
    """Batches made in a worker process, along the curriculum from `seen` samples on."""

    def __init__(
        self, corpora: Corpora, tokenizer_file: Path, config: OcrConfig, draft: DraftConfig, seen: int
    ) -> None:
        self.corpora, self.tokenizer_file, self.config, self.draft, self.seen = (
            corpora,
            tokenizer_file,
            config,
            draft,
            seen,
        )

    def __iter__(self) -> Iterator[Batch]:
        tokenizer = Tokenizer.load(self.tokenizer_file)
        stream = curriculum(self.corpora, self.seen)
        return batches(stream, tokenizer, self.config, self.draft, tokenizer.special(END), TOKENS_A_BATCH, self.seen)


def curriculum(corpora: Corpora, seen: int) -> Iterator[Sample]:
    """Endless training samples; the stage moves on every CHUNK samples."""
    for start in itertools.count(seen, CHUNK):
        yield from itertools.islice(samples(corpora, start, stage_at(start)), CHUNK)


def optimizer_for(model: OcrModel, head: GlyphHead) -> torch.optim.Optimizer:
    """AdamW; norms, biases and embeddings are not decayed."""
    named = [*model.named_parameters(), *head.named_parameters()]
    decayed = [p for name, p in named if p.ndim > 1 and "embed" not in name]
    others = [p for name, p in named if p.ndim <= 1 or "embed" in name]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98), eps=1e-8)


def rate_at(step: int, share_of_run: float) -> float:
    """Learning rate `step` steps into this run, `share_of_run` (0..1) of its time used."""
    return PEAK_RATE * min(1.0, (step + 1) / WARMUP_STEPS) * min(1.0, max(0.0, 1 - share_of_run) / COOLDOWN)


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
        elif parameter.ndim > 1 and "convs" not in name:
            torch.nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)


class Trainer:
    """Model, moving average, optimizer and progress; knows how to store itself and go on."""

    def __init__(self, target: Path, state: Path, device: torch.device) -> None:
        self.target, self.state_file, self.device = target, state / "state.pt", device
        state.mkdir(parents=True, exist_ok=True)
        self.log_file = state / "metrics.csv"
        self.tokenizer = Tokenizer.load(target / "tokenizer.json")
        self.draft = DraftConfig(BLOCK, self.tokenizer.special(MASK), 1.0)
        config = nano_config(self.tokenizer)
        self.progress = Progress()
        self.model = OcrModel(config)
        self.head = GlyphHead(config.text.hidden_size)
        if (target / "model.safetensors").exists():
            self.model = weights.load(target).model.requires_grad_(True)
            self.progress.samples = json.loads((target / "training.json").read_text())["samples"]
        else:
            initialise(self.model)
        self.model.to(device).train()
        self.head.to(device)
        self.optimizer = optimizer_for(self.model, self.head)
        self.average = copy.deepcopy(self.model).requires_grad_(False).eval()
        if self.state_file.exists():
            self._resume()

    def _resume(self) -> None:
        state = torch.load(self.state_file, map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.head.load_state_dict(state["head"])
        self.average.load_state_dict(state["average"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(**state["progress"])

    def save(self) -> None:
        """Everything needed to go on, written whole or not at all."""
        state = {
            "model": self.model.state_dict(),
            "head": self.head.state_dict(),
            "average": self.average.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "progress": asdict(self.progress),
        }
        fresh = self.state_file.with_suffix(".new")
        torch.save(state, fresh)
        os.replace(fresh, self.state_file)

    def export(self) -> None:
        """The moving average as a checkpoint that the program loads."""
        facts: dict[str, Any] = {"bd_size": BLOCK, "mask_id": self.draft.mask_id, "ar_loss_weight": 1.0}
        facts["alphabet"] = "".join(sorted(ALPHABET))
        (self.target / "block_diffusion.json").write_text(
            json.dumps(facts, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        (self.target / "training.json").write_text(json.dumps(asdict(self.progress), indent=2) + "\n")
        family.write_nano(self.target, self.tokenizer)
        weights.save(self.target, self.average)

    def step(self, batch: Batch, rate: float) -> Losses:
        """One optimizer step."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        losses = self.losses(self.model, batch, reading=self.progress.samples < READING_FIRST)
        weight = self.draft.ar_loss_weight
        loss = GLYPH_WEIGHT * losses.glyph
        if self.progress.samples >= READING_FIRST:
            loss = loss + (losses.draft + weight * losses.ar) / (1 + weight) + POINTER_WEIGHT * losses.pointer
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*self.model.parameters(), *self.head.parameters()], 1.0)
        self.optimizer.step()
        decay = min(DECAY, self.progress.step / (self.progress.step + 50))
        torch._foreach_lerp_(list(self.average.parameters()), list(self.model.parameters()), 1 - decay)
        before = self.progress.samples
        self.progress.step += 1
        self.progress.samples += len(batch.answers)
        if before < READING_FIRST <= self.progress.samples:
            seed_vocabulary(self.model, self.head, self.tokenizer)
            self.average.load_state_dict(self.model.state_dict())
        return losses

    def losses(self, model: OcrModel, batch: Batch, reading: bool = False) -> Losses:
        """Losses of a batch, in bfloat16 where the processor multiplies it in hardware."""
        moved: dict[str, Any] = {
            name: value.to(self.device) for name, value in vars(batch).items() if isinstance(value, Tensor)
        }
        batch = replace(batch, **moved)
        fast = self.device.type == "cuda" or torch.cpu._is_amx_tile_supported()
        with torch.autocast(self.device.type, torch.bfloat16) if fast else nullcontext():
            return (
                reading_losses(model, self.head, batch)
                if reading
                else joint_losses(model, self.head, batch, self.draft)
            )

    @torch.no_grad()
    def validate(self, held_out: list[Batch]) -> Losses:
        """Mean losses of the moving average on held-out batches."""
        rows = [torch.stack(list(vars(self.losses(self.average, batch)).values())) for batch in held_out]
        return Losses(*torch.stack(rows).mean(0))


def held_out_batches(corpora: Corpora, trainer: Trainer, stage: Stage) -> list[Batch]:
    """The same batches every time, from documents and fonts that are never trained on."""
    split: Split = "valid"
    stream = samples(corpora, 0, stage, split)
    end = trainer.tokenizer.special(END)
    made = batches(stream, trainer.tokenizer, trainer.model.config, trainer.draft, end, TOKENS_A_BATCH, 0)
    return list(itertools.islice(made, VALIDATION_BATCHES))


def run(trainer: Trainer, corpora: Corpora, minutes: float) -> None:
    """Train for so many minutes, saving and validating on the way."""
    held_out = held_out_batches(corpora, trainer, stage_at(100_000))
    stream = Stream(
        corpora, trainer.target / "tokenizer.json", trainer.model.config, trainer.draft, trainer.progress.samples
    )
    start = saved = validated = reported = time.monotonic()
    before = trainer.progress.seconds
    first_step = trainer.progress.step
    recent: list[Tensor] = []
    for batch in DataLoader(stream, batch_size=None, num_workers=1, prefetch_factor=4):
        now = time.monotonic()
        share = (now - start) / (60 * minutes)
        if share >= 1:
            break
        losses = trainer.step(batch, rate_at(trainer.progress.step - first_step, share))
        recent.append(torch.stack(list(vars(losses).values())).detach())
        trainer.progress.seconds = before + time.monotonic() - start
        if now - reported > 30:
            _report(trainer, "train", Losses(*torch.stack(recent).nanmean(0)))
            recent, reported = [], now
        if now - validated > VALIDATION_SECONDS:
            _report(trainer, "valid", trainer.validate(held_out))
            validated = time.monotonic()
        if now - saved > SAVE_SECONDS:
            trainer.save()
            saved = time.monotonic()
    _report(trainer, "valid", trainer.validate(held_out))


def _report(trainer: Trainer, kind: str, losses: Losses) -> None:
    row = {"kind": kind} | asdict(trainer.progress) | {name: round(float(v), 4) for name, v in vars(losses).items()}
    fresh = not trainer.log_file.exists()
    with trainer.log_file.open("a", newline="") as file:
        writer = csv.DictWriter(file, row)
        if fresh:
            writer.writeheader()
        writer.writerow(row)
    print(" ".join(f"{key}={value}" for key, value in row.items()), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="train nano")
    parser.add_argument("--data", type=Path, required=True, help="folder of training corpora (see docs/training.md)")
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--weights", type=Path, default=weights.NANO)
    parser.add_argument("--state", type=Path, default=STATE)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trainer = Trainer(options.weights, options.state, device)
    try:
        run(trainer, load_corpora(options.data), options.minutes)
    except KeyboardInterrupt:
        print("stopped; the next run goes on from here")
    finally:  # the data worker may be stopped first, and then it is not a KeyboardInterrupt
        trainer.save()
    trainer.export()


if __name__ == "__main__":
    main()
