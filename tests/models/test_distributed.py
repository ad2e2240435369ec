"""Two processes train as one: the trainers' own programs under torchrun, stopped, gone on, and compared."""

import csv
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import published
from gravityocr_models.engine import Engine
from gravityocr_models.records import Crop
from gravityocr_models.train.distributed import Team, team
from gravityocr_models.weights import NANO

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    published.write(folder / "published")
    for name in ("whole", "parts"):
        (folder / name).mkdir()
        shutil.copy(NANO / "tokenizer.json", folder / name)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "two_processes.py", folder], cwd=TESTS, env=environment, check=True, timeout=300)
    return folder


def curve(file: Path) -> list[dict[str, str]]:
    """What was measured at every step, times left out."""
    rows = list(csv.DictReader(file.read_text().splitlines()))
    return [{name: value for name, value in row.items() if name != "seconds"} for row in rows]


@pytest.mark.parametrize("name", ["{}/state", "{}-drafting.state"])
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(folder: Path, name: str) -> None:
    whole, parts = (curve(folder / name.format(run) / "metrics.csv") for run in ("whole", "parts"))
    assert [row["step"] for row in whole] == [str(step) for step in range(1, 7)]
    assert whole[-1]["samples"] == "24"
    assert parts == whole


@pytest.mark.parametrize("name", ["{}", "{}-drafting"])
def test_the_weights_are_then_the_same_too(folder: Path, name: str) -> None:
    digests = [
        hashlib.sha256((folder / name.format(run) / "model.safetensors").read_bytes()).digest()
        for run in ("whole", "parts")
    ]
    assert digests[0] == digests[1]


def test_a_published_checkpoint_learns_and_comes_out_whole(folder: Path) -> None:
    losses = [float(row["ar"]) for row in curve(folder / "whole-drafting.state/metrics.csv")]
    assert losses[-1] < losses[0]
    before, after = (Engine.load(folder / name, "cpu", "float32") for name in ("published", "whole-drafting"))
    assert before.checkpoint.draft is None
    assert after.checkpoint.draft is not None
    assert after.checkpoint.draft.mask_id == len(after.checkpoint.tokenizer)
    assert after.conventions == before.conventions
    crop = Crop(np.zeros((30, 60, 3), np.uint8))
    assert len(after.read([crop])) == 1


def test_alone_sums_and_tensors_are_as_they_are() -> None:
    with team() as alone:
        assert alone == Team(0, 1, alone.device)
        assert alone.sums(2.5, True) == [2.5, True]
        tensor = torch.ones(2)
        assert alone.whole({"a": tensor})["a"] is tensor
