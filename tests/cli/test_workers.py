"""PDFs that hang, crash and bloat, in real worker processes (tests/fake_program.py makes them do it)."""

import functools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fake_program
import pytest

from gravityocr_cli import errors, workers
from gravityocr_cli.crops import Limits
from gravityocr_cli.prepare import LocalPages
from gravityocr_cli.prepared import OUT_OF_TIME, Pages, plan_of
from gravityocr_cli.settings import PageRanges, Settings
from gravityocr_cli.workers import Pool, WorkerDied, default_jobs

MakePdf = Callable[..., Path]
SETTINGS = Settings(page_timeout=30)
SHIPPED = list(workers.COMMAND)
PLAN = plan_of(144.0, Limits(16, 1024, 6), SETTINGS)


def saying(*texts: str) -> list[Callable[[Any], None]]:
    def paint(page: Any, text: str) -> None:
        page.insert_text((72, 100), text, fontsize=11)

    return [functools.partial(paint, text=text) for text in texts]


@pytest.fixture(scope="module", autouse=True)
def faulty() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "COMMAND", fake_program.WORKER)
        yield


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(1) as pool:
        yield pool


def drafts(pages: Pages, *numbers: int) -> list[str | None]:
    """What each page says, or why it is lost."""
    found = pages.prepared(numbers, PLAN)
    return [page.lost or "".join(crop.draft or "" for part in page.parts for crop in part.crops) for page in found]


@pytest.mark.usefixtures("no_layout")
def test_workers_prepare_what_this_process_would(make_pdf: MakePdf, pool: Pool) -> None:
    path = make_pdf(*saying("One.", "Two.", "Three."))
    with pool.open(path, SETTINGS, plan=PLAN) as remote, LocalPages(path, SETTINGS) as local:
        assert remote.facts == local.facts
        for theirs, ours in zip(remote.prepared((1, 3), PLAN), local.prepared((1, 3), PLAN), strict=True):
            assert theirs.number == ours.number
            assert [part.region for part in theirs.parts] == [part.region for part in ours.parts]
            crops = [
                (a, b)
                for p, q in zip(theirs.parts, ours.parts, strict=True)
                for a, b in zip(p.crops, q.crops, strict=True)
            ]
            assert crops
            assert all((a.pixels == b.pixels).all() and a.draft == b.draft for a, b in crops)


def test_a_page_that_crashes_or_bloats_costs_itself(make_pdf: MakePdf, pool: Pool) -> None:
    path = make_pdf(*saying("One.", "CRASH", "Three.", "BLOAT", "Five."))
    with pool.open(path, SETTINGS) as pages:
        one, crash, three, bloat, five = drafts(pages, 1, 2, 3, 4, 5)
    assert (one, three, five) == ("One.", "Three.", "Five.")
    assert crash == "the process that rendered it crashed (SIGSEGV)"
    assert bloat is not None
    assert "MemoryError" in bloat


def test_a_first_page_that_crashes_ahead_of_time_costs_itself(make_pdf: MakePdf, pool: Pool) -> None:
    path = make_pdf(*saying("Zero.", "CRASH", "Two."))
    settings = Settings(pages=PageRanges.parse("2-end"))
    with pool.open(path, settings, plan=PLAN) as pages:
        assert pages.facts.count == 3
        assert drafts(pages, 2, 3) == ["the process that rendered it crashed (SIGSEGV)", "Two."]


def test_a_page_that_hangs_is_ended_at_its_limit(make_pdf: MakePdf, pool: Pool) -> None:
    with pool.open(make_pdf(*saying("One.", "HANG", "Three.")), Settings(page_timeout=2)) as pages:
        assert drafts(pages, 1, 2, 3) == ["One.", "the process that rendered it took longer than 2 s", "Three."]


def test_a_worker_killed_from_outside_costs_the_page_it_had(make_pdf: MakePdf, pool: Pool) -> None:
    with pool.open(make_pdf(*saying("One.", "HANG", "Three.")), SETTINGS) as pages:
        assert pages.facts
        found = pages.prepared((1, 2, 3), PLAN)
        assert not next(found).lost
        (process,) = pool._running
        threading.Timer(0.5, process.kill).start()
        assert next(found).lost == "the process that rendered it crashed (SIGKILL)"
        assert not next(found).lost


def test_a_page_is_ready_once_it_is_prepared(make_pdf: MakePdf, pool: Pool) -> None:
    with pool.open(make_pdf(*saying("One.", "HANG")), Settings(page_timeout=2), plan=PLAN) as pages:
        found = pages.prepared((1, 2), PLAN)
        assert not next(found).lost
        assert not pages.ready
        assert next(found).lost
        assert pages.ready


def test_the_documents_limit_ends_a_page_too(make_pdf: MakePdf, pool: Pool) -> None:
    path = make_pdf(*saying("One.", "HANG"))
    with pool.open(path, Settings(page_timeout=60, timeout=2)) as pages:
        assert pages.facts.count == 2
        assert drafts(pages, 2) == [OUT_OF_TIME]


def test_errors_come_back_as_they_were(make_pdf: MakePdf, tmp_path: Path, pool: Pool) -> None:
    (tmp_path / "empty.pdf").write_bytes(b"")
    with pool.open(tmp_path / "empty.pdf", SETTINGS, "shown name") as pages, pytest.raises(errors.EmptyInput) as caught:
        assert pages.facts
    assert str(caught.value) == "shown name: the file is empty (0 bytes)"
    locked = make_pdf(*saying("One."), name="locked.pdf", encryption=5, owner_pw="owner", user_pw="user")
    with pool.open(locked, Settings(password="guess")) as pages, pytest.raises(errors.WrongPassword):
        assert pages.facts
    with pool.open(locked, Settings(password="user"), plan=PLAN) as pages:
        assert drafts(pages, 1) == ["One."]
    fifth = Settings(pages=PageRanges.parse("5"), password="user")
    with pool.open(locked, fifth, plan=PLAN) as pages, pytest.raises(errors.UsageError, match="page 5"):
        assert pages.facts


def test_no_document_reaches_the_network(make_pdf: MakePdf, pool: Pool) -> None:
    with pool.open(make_pdf(*saying("CONNECT")), SETTINGS) as pages:
        (page,) = pages.prepared((1,), PLAN)
    assert page.warnings == ("the network is off (--offline, or a process that reads documents)",)


def test_what_a_worker_held_begins_with_itself() -> None:
    """Not with what its starter holds: beside a large model, a worker would be replaced at every page."""
    held = bytearray(300 << 20)
    program = "from gravityocr_models.memory import peak_mib; print(peak_mib())"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
    assert 1 < float(told) < len(held) / 2**20


def test_workers_are_replaced_before_they_grow(make_pdf: MakePdf, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    with pool.open(make_pdf(*saying("One.")), SETTINGS) as pages:
        assert pages.facts
        (first,) = pool._running
        monkeypatch.setattr(workers, "RECYCLE_ABOVE", 1.0)
        assert drafts(pages, 1) == ["One."]
    assert first.returncode == 0
    assert first not in pool._running


def test_a_pool_leaves_no_process_behind(make_pdf: MakePdf) -> None:
    started = time.perf_counter()
    with Pool(1) as pool:
        pool.open(make_pdf(*saying("HANG")), Settings(page_timeout=300), plan=PLAN)
        while not pool._running:
            time.sleep(0.01)
        (process,) = pool._running
    assert process.wait(timeout=20) == -signal.SIGKILL
    assert time.perf_counter() - started < 60


def test_a_worker_that_cannot_start_costs_the_input(make_pdf: MakePdf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "COMMAND", [sys.executable, "-c", "raise SystemExit(3)"])
    path = make_pdf(*saying("One."))
    fault = pytest.raises(errors.CrashedOnInput, match="exit code 3")
    with Pool(1) as pool, pool.open(path, SETTINGS) as pages, fault:
        assert pages.facts


def test_a_worker_outlives_nobody() -> None:
    """With the other end of its pipe gone, an idle worker ends by itself."""
    process = subprocess.Popen(fake_program.WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    assert process.wait(timeout=60) == 0
    process.stdout.close()


def test_workers_import_nothing_from_the_current_folder(tmp_path: Path) -> None:
    for name in ("numpy", "gravityocr_cli", "tempfile"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(3)")
    done = subprocess.run(SHIPPED, stdin=subprocess.DEVNULL, cwd=tmp_path, timeout=120)
    assert done.returncode == 0


def test_how_a_worker_died_is_told() -> None:
    assert str(WorkerDied(-signal.SIGALRM, 2.5)) == "took longer than 2.5 s"
    assert str(WorkerDied(-signal.SIGKILL, 2.5)) == "crashed (SIGKILL)"
    assert 1 <= default_jobs() <= 4
