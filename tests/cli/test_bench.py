"""The benchmark on a small random model: what it counts must be so, whatever the seconds are."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest
import torch

from gravityocr_cli import bench
from gravityocr_cli.benchpages import STAGES, page_rows, places_in
from gravityocr_cli.errors import InputError, UsageError
from gravityocr_cli.settings import Settings, TextLayer
from gravityocr_cli.stopwatch import Stopwatch
from gravityocr_models.config import DraftConfig
from gravityocr_models.engine import Engine
from gravityocr_models.family import nano_conventions
from gravityocr_models.ocr import OcrModel
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.weights import NANO, Checkpoint
from tiny import small_nano

OFF = Settings(text_layer=TextLayer.OFF)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    torch.manual_seed(0)
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    model = OcrModel(small_nano(tokenizer)).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.4)
    draft = DraftConfig(8, tokenizer.special("<|mask|>"), 1.0)
    conventions = replace(nano_conventions(model.config, tokenizer), tokens_per_image_token=1)  # short answers will do
    made = Engine(Checkpoint(model, tokenizer, draft), conventions)
    monkeypatch.setattr("gravityocr_cli.pipeline.load_reader", lambda settings: made)
    monkeypatch.setattr("gravityocr_cli.pdf._layout", lambda page: ((), ()))
    monkeypatch.setattr("shutil.which", lambda name: None)  # whether Tesseract is installed must not matter
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    document = pymupdf.open()
    for _ in range(2):
        page = document.new_page(width=300, height=200)
        for row in range(3):
            page.insert_text((20, 40 + 20 * row), "a line of text", fontsize=11)
    document.save(tmp_path / "two.pdf")
    (tmp_path / "broken.pdf").write_bytes(b"not a PDF")
    return tmp_path


def test_rows_agree_and_the_last_line_is_json(engine: Engine, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = bench.run(folder, limit=5, pages=0, batches=[2], blocks=[8], plot=folder / "bench.svg")
    out, err = capsys.readouterr()
    facts = json.loads(out.splitlines()[-1])
    assert code == 0
    assert "broken.pdf" in err
    assert facts["crops"] == 5
    plain, two, fused, peer = facts["decoding"]
    assert [row["way"] for row in facts["decoding"]] == ["plain", "two-forward", "fused", "transformers"]
    assert (plain["batch"], plain["block"], fused["block"]) == (2, None, 8)
    assert plain["tokens_a_forward"] == 1
    assert plain["tokens"] == plain["forwards"] == two["tokens"] == fused["tokens"] == peer["tokens"]
    assert {row["same_as_plain"] for row in facts["decoding"]} == {5}
    assert plain["batch_forwards"] < plain["forwards"], "two sequences share a forward"
    assert facts["peak_memory_mib"] > 0
    assert (folder / "bench.svg").read_text("utf-8").startswith("<?xml")


def test_a_page_s_time_is_split_into_stages(engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every stage's function is still where it is looked for, was called, and no time is counted twice."""
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("gravityocr_cli.benchpages._tesseract", lambda image: 0.5)
    places = places_in([folder / "two.pdf", folder / "broken.pdf"], 9)
    assert places == [(folder / "two.pdf", 1), (folder / "two.pdf", 2)]
    rows = list(page_rows(engine, places[:1], OFF))
    assert [row.way for row in rows] == ["ar", "speculative", "tesseract"]
    assert [row.pages for row in rows] == [1, 1, 1]
    assert rows[2].pages_per_second == 2
    for row in rows[:2]:
        assert all(row.stages[stage] > 0 for stage in STAGES.values())
        assert sum(row.stages.values()) == pytest.approx(row.seconds)


def test_a_stage_within_a_stage_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 1.0, 4.0, 6.0])  # outer runs 0..1 and 4..6, inner 1..4
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    monkeypatch.setattr("math.sqrt", lambda x: x + 1)
    monkeypatch.setattr("math.exp", lambda x: math.sqrt(x))
    watch = Stopwatch()
    with watch.watching({"math:exp": "outer", "math:sqrt": "inner"}):
        assert math.exp(1) == 2
    assert watch.seconds == {"outer": 3.0, "inner": 3.0}


def test_nothing_to_measure(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        bench.run(tmp_path)


def test_a_picture_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        bench.run(tmp_path, plot=tmp_path / "bench.bmp")
