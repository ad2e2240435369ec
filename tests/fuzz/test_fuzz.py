"""Hostile PDFs, by mutation: whatever the file, an exit code of the list, a whole output or none, in time.

Some mutants in the suite, without a model. `make fuzz` (GO_FUZZ=1000) takes them all, with the shipped model and the
real layout analysis. They go through in folders, a process for many, and the report says of each how it ended. Some go
again alone, to hold that against what a process of their own ends with.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_program
import pytest
from mutate import mutant, seeds

MUTANTS = int(os.environ.get("GO_FUZZ", "20"))
REAL = MUTANTS > 20
FOLDER = 100  # mutants a process
ALONE = 4 if REAL else 1  # of each folder that go again
LIMIT_S = 20.0  # for a page; two pages, an opening and a second try without the first page make a document
DOCUMENT_S = 5 * LIMIT_S
CODES = {0, 3, 4, 7, 9}  # what a document may end with
PROGRAM = [sys.executable, "-m", "gravityocr_cli"] if REAL else [sys.executable, fake_program.__file__]


def test_mutants_are_the_same_everywhere() -> None:
    sources = seeds()
    assert seeds()[:-1] == sources[:-1]  # the last is encrypted, with a key of its own each time
    assert len({mutant(sources, number) for number in range(40)}) > 35


@pytest.mark.parametrize("first", range(0, MUTANTS, FOLDER))
def test_no_mutant_hangs_crashes_or_leaves_half_a_file(tmp_path: Path, first: int) -> None:
    sources, folder, out = seeds(), tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    numbers = range(first, min(first + FOLDER, MUTANTS))
    for number in numbers:
        (folder / f"{number:04}.pdf").write_bytes(mutant(sources, number))
    code, documents = converted([folder], out, tmp_path / "run.json", 60 + DOCUMENT_S * len(numbers))
    codes = {Path(document["source"]).stem: document["exit_code"] for document in documents}
    assert sorted(codes) == [f"{number:04}" for number in numbers]
    assert code == (8 if set(codes.values()) - {0, 7} else max(codes.values()))
    for number in numbers[:: len(numbers) // ALONE]:
        name = f"{number:04}"
        alone = converted([folder / f"{name}.pdf"], tmp_path / "alone", tmp_path / "alone.json", 60 + DOCUMENT_S)[0]
        assert alone == codes[name]
        there = [(tmp_path / place / f"{name}.md") for place in ("out", "alone")]
        assert [path.exists() for path in there] in ([False] * 2, [True] * 2)
        assert not there[0].exists() or there[0].read_bytes() == there[1].read_bytes()


def converted(inputs: Sequence[Path], out: Path, report: Path, limit_s: float) -> tuple[int, list[dict[str, Any]]]:
    """The exit code of a run, and what its report says of each document once it agrees with what is on disk."""
    command: list[str | Path] = [*PROGRAM, "convert", *inputs, "-o", f"{out}/", "--report", report]
    options = ["--page-timeout", str(LIMIT_S), "--jobs", "2", "--log-format", "json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=limit_s)
    assert done.stdout == ""
    assert all(json.loads(line)["event"] for line in done.stderr.splitlines()), done.stderr  # no traceback, no chatter
    assert "unexpected error" not in done.stderr
    documents: list[dict[str, Any]] = json.loads(report.read_text())["documents"]
    for document in documents:
        assert document["exit_code"] in CODES, document["error"]
        assert document["seconds"] < DOCUMENT_S, document["source"]
        path = out / f"{Path(document['source']).stem}.md"
        assert path.exists() == (document["exit_code"] in (0, 7, 9))
        lost = sum(bool(page["lost"]) for page in document["pages"])
        assert not lost or path.read_text("utf-8").count("<!-- gravityocr: page") >= lost
    assert not [path.name for path in out.glob("**/.*") if path.name.endswith(".part")]
    return done.returncode, documents
