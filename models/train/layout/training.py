"""Trains the layout detector: doclayout-yolo's loss and assigner around a loop of our own.

    python -m gravityocr_models.train.layout.training PAGES STATE --start yolov8n-doclaynet.onnx --minutes 90

PAGES is what pages.py wrote. STATE is a folder: the run goes on from `last.pt` in it, else from `--start`. Every few
minutes it writes that file and `ema.safetensors`, the moving average of the weights, from which export.py makes the
file that is shipped. Why not the package's own trainer: docs/journal.md.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from gravityocr_models.layout import LABELS, Found, distinct
from gravityocr_models.train.corpora import Split, in_split
from gravityocr_models.train.layout.look import Shown, shown
from gravityocr_models.train.layout.pages import load_page
from gravityocr_models.train.layout.score import average_precision, recall
from gravityocr_models.train.layout.start import started
from gravityocr_models.yolo import Yolo, decode

LONG_SIDE, SHORT_SIDE = 640, 480
RATE, WARM_UP = 2e-4, 30  # steps of warm-up
EMA = 0.98
FROZEN = 5  # parts of the trunk, the finest maps: they have seen DocLayNet, and cost a third of a step to train
SAVE_EVERY = 240  # seconds
GAINS = SimpleNamespace(box=7.5, cls=0.5, dfl=1.5)  # doclayout-yolo's

Loss = Callable[[list[Tensor], dict[str, Any]], tuple[Tensor, Tensor]]


@dataclass
class Run:
    """What training changes. average: the moving average of the weights, by name."""

    network: Yolo
    optimizer: torch.optim.Optimizer
    average: dict[str, Tensor]
    step: int = 0

    @classmethod
    def on(cls, network: Yolo) -> "Run":
        """A run at its beginning."""
        for part in network.model[:FROZEN]:
            part.requires_grad_(False)
        learned = [weights for weights in network.parameters() if weights.requires_grad]
        average = {name: value.clone() for name, value in network.state_dict().items()}
        return cls(network, torch.optim.AdamW(learned, RATE, weight_decay=1e-3), average)

    def save(self, folder: Path) -> None:
        """Writes last.pt and ema.safetensors, each whole or not at all."""
        state = {"weights": self.network.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save({**state, "average": self.average, "step": self.step}, folder / "last.part")
        (folder / "last.part").replace(folder / "last.pt")
        save_file({name: value.contiguous() for name, value in self.average.items()}, folder / "ema.part")
        (folder / "ema.part").replace(folder / "ema.safetensors")

    def load(self, folder: Path) -> None:
        """Goes on from the folder's last.pt."""
        state = torch.load(folder / "last.pt")
        self.network.load_state_dict(state["weights"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.average, self.step = state["average"], state["step"]

    def learn(self, batch: dict[str, Any], loss: Loss) -> list[float]:
        """One step; the parts of the loss: box, class, bins."""
        total, parts = loss(self.network(batch["img"]), batch)
        self.optimizer.zero_grad()
        (total / len(batch["img"])).backward()
        self.step += 1
        for group in self.optimizer.param_groups:
            nn.utils.clip_grad_norm_(group["params"], 10.0)
            group["lr"] = RATE * min(1.0, self.step / WARM_UP)
        self.optimizer.step()
        keep = min(EMA, (1 + self.step) / (10 + self.step))
        for name, value in self.network.state_dict().items():
            self.average[name].lerp_(value, 1 - keep)
        return [float(part) for part in parts]


def page_files(folder: Path, split: Split) -> list[Path]:
    """The pages of one split; all pages of a document are in the same."""
    return [path for path in sorted(folder.glob("*.json")) if in_split(path.stem.rpartition("_")[0], split)]


def batches(files: list[Path], size: int, rng: np.random.Generator) -> Iterator[list[Shown]]:
    """Endless batches, each of upright or of wide pages only; every page once a round."""
    waiting: dict[tuple[int, int], list[Shown]] = {}
    while True:
        for index in rng.permutation(len(files)):
            page = load_page(files[index])
            if page is not None:
                shape = shape_of(page)
                waiting.setdefault(shape, []).append(shown(page, shape, rng))
                if len(waiting[shape]) == size:
                    yield waiting.pop(shape)


def shape_of(page: Shown) -> tuple[int, int]:
    """Height and width in which the network is shown the page."""
    height, width = page.grey.shape
    return (SHORT_SIDE, LONG_SIDE) if width > height else (LONG_SIDE, SHORT_SIDE)


def tensors(batch: list[Shown]) -> dict[str, Any]:
    """A batch as doclayout-yolo's loss takes it: boxes as centre and size, in shares of the picture."""
    height, width = batch[0].grey.shape
    rows = [(index, region) for index, page in enumerate(batch) for region in page.regions]
    corners = torch.tensor([region.box for _, region in rows]).reshape(-1, 4) / torch.tensor([width, height] * 2)
    low, high = corners.chunk(2, 1)
    pages = torch.from_numpy(np.stack([page.grey for page in batch])).float().unsqueeze(1) / 255
    return {
        "img": pages.to(memory_format=torch.channels_last),
        "batch_idx": torch.tensor([float(index) for index, _ in rows]),
        "cls": torch.tensor([float(LABELS.index(region.label)) for _, region in rows]).unsqueeze(1),
        "bboxes": torch.cat(((low + high) / 2, high - low), 1),
        "resized_shape": [(height, width)] * len(batch),
    }


def loss_of(network: Yolo) -> Loss:
    """doclayout-yolo's loss for this network: maps and a batch -> its sum over the batch, and its parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # half of the package is imported, and what it builds on is dated
        from doclayout_yolo.utils.loss import v8DetectionLoss
    described = nn.Module()  # what the loss asks of a model
    described.model = network.model
    described.__dict__["args"] = GAINS
    loss: Loss = v8DetectionLoss(described)
    return loss


@torch.no_grad()
def found_on(network: Yolo, page: Shown, least: float = 0.05) -> tuple[Found, ...]:
    """What the network finds on a sample."""
    boxes, scores = decode(network(tensors([page])["img"]))
    return distinct(boxes[0].numpy(), scores[0].numpy(), (page.grey.shape[1], page.grey.shape[0]), least)


def validate(network: Yolo, samples: list[Shown]) -> str:
    """One line: AP50 by label, and the share of regions of which most lies in a box with score 0.25 or more."""
    pages = [(found_on(network, page), page.regions) for page in samples]
    precisions = {label: average_precision(pages, label) for label in LABELS}
    sure = recall([([each for each in found if each.score >= 0.25], truth) for found, truth in pages])
    parts = " ".join(f"{label} {value:.2f}" for label, value in precisions.items())
    return f"mAP50 {np.nanmean(list(precisions.values())):.3f} recall {sure:.3f} | {parts}"


def held_out(folder: Path, count: int) -> list[Shown]:
    """Samples of the validation split, always the same."""
    rng = np.random.default_rng(1)
    pages = (load_page(path) for path in page_files(folder, "valid"))
    return [shown(page, shape_of(page), rng) for page in pages if page is not None][:count]


def train(options: argparse.Namespace) -> None:
    """The loop: a line every 20 steps, a validation of the average at the end."""
    torch.manual_seed(0)
    network = started(options.start) if options.start else Yolo(len(LABELS))
    run = Run.on(network.to(memory_format=torch.channels_last))
    if (options.state / "last.pt").exists():
        run.load(options.state)
    loss, rng = loss_of(run.network), np.random.default_rng(run.step)
    stream = batches(page_files(options.pages, "train"), options.batch, rng)
    begun = saved = noted = time.monotonic()
    while time.monotonic() - begun < 60 * options.minutes:
        parts = run.learn(tensors(next(stream)), loss)
        if run.step % 20 == 0:
            pace, noted = 20 * options.batch / (time.monotonic() - noted), time.monotonic()
            print(run.step, *(f"{part:.3f}" for part in parts), f"{pace:.2f} pages/s", flush=True)
        if time.monotonic() - saved > SAVE_EVERY:
            run.save(options.state)
            saved = time.monotonic()
    run.save(options.state)
    run.network.load_state_dict(run.average)
    print(validate(run.network, held_out(options.pages, options.held_out)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", type=Path)
    parser.add_argument("state", type=Path)
    parser.add_argument("--start", type=Path, help="ONNX export to begin with; without it, from nothing")
    parser.add_argument("--minutes", type=float, default=90)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--held-out", type=int, default=100, help="pages to validate on")
    options = parser.parse_args()
    options.state.mkdir(parents=True, exist_ok=True)
    train(options)


if __name__ == "__main__":
    main()
