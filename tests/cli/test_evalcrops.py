"""Formula images: what the engine gets to see, and the figures."""

import json
import re
from pathlib import Path

import pytest
from cli.conftest import FakeEngine
from PIL import Image

from gravityocr_cli import cdm
from gravityocr_cli.crops import Limits
from gravityocr_cli.errors import InputError
from gravityocr_cli.evalcrops import (
    FormulaCase,
    FormulaResult,
    print_results,
    read_list,
    score_formula,
    score_images,
    totals,
    tsv_of,
    with_cdm,
)
from gravityocr_models.records import Decoded, LayerUse, Task


def decoded(text: str, truncated: bool = False) -> Decoded:
    return Decoded(text, (), (1,), 0.9, truncated=truncated)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "crops").mkdir()
    for name in ("a", "b"):
        image = Image.new("L", (400, 100), 255)
        image.paste(0, (20, 20, 380, 80))
        image.save(tmp_path / "crops" / f"{name}.png")
    Image.new("L", (400, 100), 255).save(tmp_path / "crops" / "white.png")
    (tmp_path / "formulas.tsv").write_text("name\tlatex\na\tx_1\nb\ty\nwhite\tz\nmissing\tw\n", "utf-8")
    return tmp_path


def test_the_engine_sees_each_image_as_a_formula_at_its_own_dpi(folder: Path) -> None:
    listed = tsv_of(folder)
    assert listed is not None
    engine = FakeEngine("x_{1}")
    limits = Limits(token_px=16, max_tokens=1024, max_lines=1)
    results = score_images(read_list(listed), lambda crops: engine.read(crops, layer=LayerUse.OFF), 100.0, limits)
    assert [crop.task for crop in engine.seen] == [Task.FORMULA] * 2
    assert engine.seen[0].pixels.shape == (50, 200, 3)  # 400 x 100 at 200 dpi
    assert [(result.name, result.exact) for result in results] == [
        ("a", True),
        ("b", False),
        ("white", False),
        ("missing", False),
    ]
    assert results[2].error == "nothing to see"
    assert results[3].error.startswith("FileNotFoundError")


def test_figures() -> None:
    cases = [FormulaCase(name, latex, Path()) for name, latex in (("a", "a+b=c"), ("b", r"\frac{a}{b}"), ("c", "x"))]
    results = [
        score_formula(cases[0], decoded(r"a + b \; = c")),
        score_formula(cases[1], decoded(r"\frac{a}{c}", truncated=True)),
        score_formula(cases[2], "no image"),
    ]
    assert [result.exact for result in results] == [True, False, False]
    assert [result.similarity for result in results] == [1, pytest.approx(2 / 3), 0]
    # n-grams that fit, over both answers (5 and 3 tokens): 5+2 of 8, 4+1 of 6, 3+0 of 4, 2+0 of 2; 8 tokens for 9
    bleu = (7 / 8 * 5 / 6 * 3 / 4 * 2 / 2) ** 0.25 * 2.718281828 ** (1 - 9 / 8)
    figures = totals(results)
    assert (figures.images, figures.failed) == (3, 2)
    assert figures.exact == pytest.approx(1 / 3)
    assert figures.bleu4 == pytest.approx(bleu)
    assert figures.similarity == pytest.approx(5 / 9)


RESULTS = [FormulaResult(name, "x", "y", False, 0.5) for name in "abc"]


def test_cdm_is_a_mean_over_truths_that_latex_can_set(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cdm, "missing", lambda: "")
    monkeypatch.setattr(cdm, "cdm_scores", lambda pairs: [0.25, None, 0.75] if pairs == [("y", "x")] * 3 else [])
    results = with_cdm(RESULTS)
    assert [result.cdm for result in results] == [0.25, None, 0.75]
    assert totals(results).cdm == 0.5
    print_results(results, as_json=False)
    assert "CDM without 1 formulas that LaTeX cannot set" in capsys.readouterr().out


def test_without_latex_there_is_a_dash_and_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cdm, "missing", lambda: "LaTeX is not installed")
    print_results(with_cdm(RESULTS), as_json=False)
    shown = capsys.readouterr().out
    assert "no CDM: LaTeX is not installed" in shown
    assert re.search(r"50\.0\s*│\s*-\s*│\s*0", shown)
    print_results(with_cdm(RESULTS), as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert (found["total"]["cdm"], found["images"][0]["cdm"], found["remark"]) == (
        None,
        None,
        "no CDM: LaTeX is not installed",
    )


def test_what_is_no_list_is_refused(tmp_path: Path) -> None:
    assert tsv_of(tmp_path) is None
    (tmp_path / "a.tsv").write_text("name\tformula\na\tx\n", "utf-8")
    with pytest.raises(InputError, match="columns name and latex"):
        read_list(tmp_path / "a.tsv")
    (tmp_path / "a.tsv").write_text("name\tlatex\n", "utf-8")
    with pytest.raises(InputError, match="no formulas"):
        read_list(tmp_path / "a.tsv")
