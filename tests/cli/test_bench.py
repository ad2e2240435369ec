"""The benchmark on a small random model: what it counts must be so, whatever the seconds are."""

import json
from pathlib import Path

import pymupdf
import pytest
import torch

from gravityocr_cli import bench
from gravityocr_cli.errors import InputError
from gravityocr_cli.settings import TextLayer
from gravityocr_models.config import DraftConfig
from gravityocr_models.engine import Engine
from gravityocr_models.family import nano_conventions
from gravityocr_models.ocr import OcrModel
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.weights import NANO, Checkpoint
from tiny import small_nano


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    torch.manual_seed(0)
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    model = OcrModel(small_nano(tokenizer)).eval().requires_grad_(False)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            torch.nn.init.normal_(parameter, std=0.4)
    draft = DraftConfig(8, tokenizer.special("<|mask|>"), 1.0)
    made = Engine(Checkpoint(model, tokenizer, draft), nano_conventions(model.config, tokenizer))
    monkeypatch.setattr("gravityocr_cli.pipeline.load_reader", lambda settings: made)
    monkeypatch.setattr("gravityocr_cli.pdf._layout", lambda page: ((), ()))
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
    code = bench.run(folder, limit=5, block=None, batch=2, text_layer=TextLayer.OFF, as_json=False)
    out, err = capsys.readouterr()
    facts = json.loads(out.splitlines()[-1])
    assert code == 0
    assert "broken.pdf" in err
    assert (facts["crops"], facts["batch"], facts["block"]) == (5, 2, 8)
    plain, two, fused = facts["rows"]
    assert plain["tokens_a_forward"] == 1
    assert plain["tokens"] == plain["forwards"] == two["tokens"] == fused["tokens"]
    assert plain["same_as_plain"] == two["same_as_plain"] == fused["same_as_plain"] == 5
    assert plain["batch_forwards"] < plain["forwards"], "two sequences share a forward"


def test_nothing_to_measure(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        bench.run(tmp_path, limit=5, block=None, batch=None, text_layer=TextLayer.OFF, as_json=True)
