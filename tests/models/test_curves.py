"""The picture of a training: every file of metrics counts, and the same figures give the same bytes."""

import sys
from pathlib import Path

import pytest

from gravityocr_models.train import curves

METRICS = "kind,step,samples,seconds,ar,draft,glyph,ar_accuracy\n"


def test_a_curve_leaves_out_what_is_unknown_and_averages_neighbours() -> None:
    rows = [{"samples": str(n), "ar": "nan" if n == 0 else str(n)} for n in range(2 * curves.POINTS + 1)]
    points = curves.curve(rows, "ar")
    assert points[0] == (1.5, 1.5)
    assert len(points) == curves.POINTS
    assert curves.curve(rows, "pointer") == []


def test_draws_all_files_of_a_folder_the_same_every_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "metrics.csv").write_text(METRICS + "train,2,20,1,3.0,3.5,1.0,0.4\nvalid,2,20,1,3.1,3.6,nan,0.3\n")
    (tmp_path / "metrics-1.csv").write_text(METRICS + "train,1,10,1,nan,nan,2.0,nan\n")
    (tmp_path / "reading.csv").write_text("kind,samples,read,character_error\nvalid,20,lines,0.5\n")
    assert [row["samples"] for row in curves.rows_of(tmp_path, "metrics*.csv")] == ["10", "20", "20"]
    for name in ("a.svg", "b.svg"):
        monkeypatch.setattr(sys, "argv", ["curves", str(tmp_path), str(tmp_path / name)])
        curves.main()
    drawn = (tmp_path / "a.svg").read_text()
    assert drawn == (tmp_path / "b.svg").read_text()
    for label in ("glyph", "draft", "lines", "character error rate"):
        assert f">{label}</text>" in drawn


def test_a_folder_without_metrics_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["curves", str(tmp_path), str(tmp_path / "a.svg")])
    with pytest.raises(SystemExit):
        curves.main()
