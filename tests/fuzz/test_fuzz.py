"""Hostile PDFs, by mutation: whatever the file, an exit code of the list, a whole output or none, in time.

A bounded number of mutants in the suite; `make fuzz` (or GO_FUZZ=1000) for all of them, with the real layout analysis.
"""

import json
import os
import time
from pathlib import Path

import fake_program
import pytest
from mutate import mutant, seeds

from gravityocr_cli import cli

MUTANTS = int(os.environ.get("GO_FUZZ", "20"))
LIMIT_S = 20.0


def test_mutants_are_the_same_everywhere() -> None:
    sources = seeds()
    assert seeds()[:-1] == sources[:-1]  # the last is encrypted, with a key of its own each time
    assert len({mutant(sources, number) for number in range(40)}) > 35


def test_no_mutant_hangs_crashes_or_leaves_half_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gravityocr_cli.run.load_reader", lambda settings: fake_program.FakeReader())
    if MUTANTS <= 20:
        monkeypatch.setattr("gravityocr_cli.workers.COMMAND", fake_program.WORKER)
    sources, folder = seeds(), tmp_path / "in"
    folder.mkdir()
    for number in range(MUTANTS):
        (folder / f"{number:04}.pdf").write_bytes(mutant(sources, number))
    started = time.perf_counter()
    command = ("convert", folder, "-o", tmp_path / "out", "--page-timeout", LIMIT_S, "--report", tmp_path / "run.json")
    code = cli.run([str(each) for each in (*command, "--jobs", 2, "--log-format", "json")])
    seconds = time.perf_counter() - started
    check(tmp_path, code, capfd.readouterr().err)
    assert seconds < 30 + MUTANTS * LIMIT_S


def check(folder: Path, code: int, err: str) -> None:
    """Every document is accounted for, and what is on disk is what the report says."""
    assert code in (0, 7, 8)
    assert "Traceback" not in err
    assert "unexpected error" not in err
    documents = json.loads((folder / "run.json").read_text())["documents"]
    assert len(documents) == MUTANTS
    written = {path.stem for path in (folder / "out").glob("*.md")}
    for document in documents:
        name = Path(document["source"]).stem
        timed_out = document["error"] and document["pages"]
        assert (name in written) == (not document["error"] or bool(timed_out)), document["error"]
        if name in written:
            text = (folder / "out" / f"{name}.md").read_text("utf-8")
            assert text.count("<!-- gravityocr: page") >= sum(bool(page["lost"]) for page in document["pages"])
    leftovers = [path.name for path in (folder / "out").iterdir() if path.name.endswith(".part")]
    assert leftovers == []
