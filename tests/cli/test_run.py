"""`convert` over many documents as a program (tests/fake_program.py): resume, limits, signals, SIGKILL, full disks."""

import hashlib
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_program
import pymupdf
import pytest

from gravityocr_cli import cli

KILLS = int(os.environ.get("GO_KILLS", "2"))  # 50 for the whole bar


@pytest.fixture(autouse=True)
def nothing_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process: what fake_program.py has in its own."""
    for name, fake in fake_program.FAKES.items():
        monkeypatch.setattr(name, fake)
    monkeypatch.setenv("GRAVITYOCR_JOBS", "0")


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """run(arguments) -> exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = cli.run([str(each) for each in arguments])
        return code, *capfd.readouterr()

    return call


def start(*arguments: object, slow: float) -> "subprocess.Popen[bytes]":
    """The same command as a process of its own."""
    command = [sys.executable, fake_program.__file__, *map(str, arguments)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, env={**os.environ, "GO_SLOW": str(slow)})


def write(path: Path, *texts: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pymupdf.open() as document:
        for text in texts:
            page = document.new_page(width=300, height=300)
            page.insert_text((30, 60), text, fontsize=11)
            page.draw_rect((100, 120, 200, 200), fill=(0.2, 0.3, 0.2))
        document.save(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(4):
        write(tmp_path / "in" / f"{number % 2}" / f"{number}.pdf", f"Document {number}.", "Its second page.")
    return tmp_path / "in"


def tree(root: Path) -> dict[str, str]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_folder_run_with_workers_equals_one_without(folder: Path, tmp_path: Path, run: Run) -> None:
    code, out, err = run("convert", folder, "-o", tmp_path / "a", "--jobs", 2, "--report", tmp_path / "run.json")
    assert (code, out) == (0, "")
    assert "4 documents: 4 converted, 0 with losses, 0 failed, 0 skipped; 8 pages" in err
    assert run("convert", folder, "-o", tmp_path / "b", "-q") == (0, "", "")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert {"0/0.md", "1/3.md", "1/3_images/p2_r1.png", ".gravityocr/1/3.md.json"} <= set(tree(tmp_path / "a"))
    report = json.loads((tmp_path / "run.json").read_text())
    assert [len(document["pages"]) for document in report["documents"]] == [2, 2, 2, 2]


def test_resume_does_what_is_left_and_nothing_else(folder: Path, tmp_path: Path, run: Run) -> None:
    command = ("convert", folder, "-o", tmp_path / "out")
    run(*command)
    whole = tree(tmp_path / "out")
    assert "4 skipped; 0 pages" in run(*command, "--resume")[2]
    (tmp_path / "out" / "0" / "0.md").write_text("cut")
    write(folder / "1" / "1.pdf", "Another text.")
    err = run(*command, "--resume")[2]
    assert "2 converted, 0 with losses, 0 failed, 2 skipped" in err
    assert tree(tmp_path / "out")["0/0.md"] == whole["0/0.md"]
    assert "Another text." in (tmp_path / "out" / "1" / "1.md").read_text()
    assert "4 converted" in run(*command, "--resume", "--page-break", "---")[2]


def test_a_document_with_losses_is_not_finished(tmp_path: Path, run: Run) -> None:
    write(tmp_path / "in" / "a.pdf", "One.", "CRASH", "Three.")
    command = ("convert", tmp_path / "in", "-o", tmp_path / "out", "--jobs", 1)
    for _ in range(2):
        code, _, err = run(*command, "--resume")
        assert code == 7
        assert "page 2 is lost: the process that rendered it crashed (SIGSEGV)" in err
    text = (tmp_path / "out" / "a.md").read_text()
    assert "One." in text
    assert "<!-- gravityocr: page 2, region 0: not read" in text
    assert "Three." in text


def test_what_exists_is_left_alone_if_wanted(folder: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / "out" / "0").mkdir(parents=True)
    (tmp_path / "out" / "0" / "0.md").write_text("mine")
    code, _, err = run("convert", folder, "-o", tmp_path / "out", "--no-overwrite")
    assert code == 0
    assert "0/0.pdf: skipped: its output exists" in err
    assert (tmp_path / "out" / "0" / "0.md").read_text() == "mine"
    assert (tmp_path / "out" / "0" / "2.md").exists()


def test_the_time_limit_of_a_document_is_exit_9_and_keeps_what_was_read(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_SLOW", "5")  # the first window of pages takes longer than the whole document may
    path = write(tmp_path / "a.pdf", *(letter * 9 for letter in "abcdefghijklmnopqrst"))
    code, _, err = run("convert", path, "-o", tmp_path / "a.md", "--timeout", 5)
    assert code == 9
    lost = re.search(r"the time limit was reached; (\d+) of 20 pages are lost", err)
    assert lost
    assert 4 <= int(lost[1]) < 20  # what a window does not hold, and on a slow machine more
    text = (tmp_path / "a.md").read_text()
    assert text.startswith("aaaaaaaaa")
    assert "page 20, region 0: not read (not reached within the document's time limit)" in text


def test_every_format_is_written_under_its_own_name(tmp_path: Path, run: Run) -> None:
    path = write(tmp_path / "in" / "a.pdf", "Some words.")
    for suffix, says in (("md", "Some words.\n"), ("html", "<p>Some words.</p>"), ("json", '"Some words."')):
        assert run("convert", path, "-o", f"{tmp_path}/out/", "--format", suffix, "-q") == (0, "", "")
        assert says in (tmp_path / "out" / f"a.{suffix}").read_text()
    page = json.loads((tmp_path / "out" / "a.json").read_text())["pages"][0]
    assert (page["width"], page["height"]) == (300, 300)


def test_standard_input_to_standard_output(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write(tmp_path / "a.pdf", "From a pipe.").read_bytes()
    (tmp_path / "cut").write_bytes(data[:100])
    with open(tmp_path / "a.pdf") as whole, open(tmp_path / "cut") as cut:
        monkeypatch.setattr("sys.stdin", whole)
        assert run("convert", "-", "-q") == (0, "From a pipe.\n", "")
        monkeypatch.setattr("sys.stdin", cut)
        code, out, err = run("convert", "-", "-q")
    assert (code, out) == (3, "")
    assert err == "gravityocr: <stdin>: the PDF is truncated or damaged beyond repair\n"


def test_one_json_object_on_standard_output_and_json_lines_on_the_other(tmp_path: Path, run: Run) -> None:
    good, bad = write(tmp_path / "a.pdf", "Some words."), tmp_path / "none.pdf"
    code, out, err = run("convert", good, bad, "--json", "--log-format", "json")
    assert code == 8
    first, second = json.loads(out)["documents"]
    assert first["content"] == "Some words.\n"
    assert second["error"] == f"{bad}: no such file"
    events = [json.loads(line) for line in err.splitlines()]
    assert [event["event"] for event in events] == ["page", "document", "error", "document", "summary"]
    assert run("convert", good, "--json", "-o", "-")[0] == 2


def test_settings_reach_the_run_and_bad_ones_are_exit_10(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "a.pdf", "One.", "Two.")
    (tmp_path / "c.toml").write_text('page-break = "=={page}=="\nquiet = true\n')
    assert run("convert", path, "--config", tmp_path / "c.toml")[1] == "One.\n\n==2==\n\nTwo.\n"
    with monkeypatch.context() as patch:
        patch.setenv("GRAVITYOCR_PAGE_BREAK", "~")
        assert run("convert", path, "--config", tmp_path / "c.toml")[1] == "One.\n\n~\n\nTwo.\n"
    (tmp_path / "c.toml").write_text("quite = true")
    code, _, err = run("convert", path, "--config", tmp_path / "c.toml")
    assert code == 10
    assert "did you mean quiet" in err


def test_no_password_is_ever_shown(tmp_path: Path, run: Run) -> None:
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 100), "Secret words.", fontsize=11)
        document.save(tmp_path / "a.pdf", encryption=5, owner_pw="owner", user_pw="hunter2")
    (tmp_path / "right").write_text("hunter2\n")
    (tmp_path / "wrong").write_text("swordfish\n")
    command = ("convert", tmp_path / "a.pdf", "-v", "--json", "--password-file")
    code, out, err = run(*command, tmp_path / "right")
    assert code == 0
    assert "Secret words." in out
    assert "hunter2" not in out + err
    code, out, err = run(*command, tmp_path / "wrong")
    assert code == 4
    assert "swordfish" not in out + err


def test_no_password_is_in_the_list_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pymupdf.open() as document:
        document.new_page().insert_text((72, 100), "HANG", fontsize=11)
        document.save(tmp_path / "a.pdf", encryption=5, owner_pw="owner", user_pw="hunter2")
    monkeypatch.setenv("GRAVITYOCR_PASSWORD", "hunter2")
    with start("convert", tmp_path / "a.pdf", "--jobs", 1, slow=0) as process:
        workers: list[bytes] = []
        while not workers:  # a child that is not yet, or no longer, a program shows an empty line
            time.sleep(0.05)
            threads = Path(f"/proc/{process.pid}/task").glob("*/children")
            children = [child for each in threads for child in each.read_text().split()]
            workers = [shown for child in children if (shown := Path(f"/proc/{child}/cmdline").read_bytes())]
        assert process.poll() is None
        for shown in (Path(f"/proc/{process.pid}/cmdline").read_bytes(), *workers):
            assert shown
            assert b"hunter2" not in shown
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130


def read_until(process: "subprocess.Popen[bytes]", text: bytes) -> None:
    """Reads standard error up to a line with the text, or to its end."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return


@pytest.mark.parametrize(("number", "code", "jobs"), [(signal.SIGINT, 130, 1), (signal.SIGTERM, 143, 0)])
def test_a_stopped_run_keeps_finished_documents_and_its_report(
    folder: Path, tmp_path: Path, number: int, code: int, jobs: int
) -> None:
    report = tmp_path / "run.json"
    with start("convert", folder, "-o", tmp_path / "out", "--report", report, "--jobs", jobs, slow=0.7) as process:
        read_until(process, b"0/2.pdf: page 1")  # the first document is finished
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Traceback" not in err
    done = [document["output"] for document in json.loads(report.read_text())["documents"]]
    assert 1 <= len(done) < 4
    found = {name for name in tree(tmp_path / "out") if name.endswith(".md")}
    assert found == {os.path.relpath(name, tmp_path / "out") for name in done}
    assert not [name for name in tree(tmp_path / "out") if ".part" in name]


def test_a_second_interrupt_ends_at_once() -> None:
    script = (
        "import signal, sys, time\nfrom gravityocr_cli import __main__, cli\n"
        "def stubborn(arguments):\n"
        "    print('on', file=sys.stderr, flush=True)\n"
        "    try:\n        time.sleep(60)\n"
        "    finally:\n        print('off', file=sys.stderr, flush=True)\n        time.sleep(60)\n"
        "cli.run = stubborn\nsys.exit(__main__.main())"
    )
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE) as process:
        for word in (b"on", b"off"):
            read_until(process, word)
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 130


def test_killed_at_random_moments_and_resumed_it_ends_as_if_undisturbed(folder: Path, tmp_path: Path, run: Run) -> None:
    chance, out = random.Random(3), tmp_path / "out"
    command = ("convert", folder, "--resume", "-o")
    assert run(*command, tmp_path / "whole", "-q")[0] == 0
    whole = tree(tmp_path / "whole")
    for _ in range(KILLS):
        with start(*command, out, slow=0.05) as process:
            read_until(process, f"{chance.randrange(4)}.pdf: ".encode())
            time.sleep(chance.uniform(0, 0.2))
            process.kill()
            process.communicate()
        for name, digest in tree(out).items():
            assert ".part" in name or whole.get(name) == digest, f"{name} is not whole"
    assert run(*command, out, "-q")[0] == 0
    assert tree(out) == whole


def test_a_full_disk_is_exit_5(tmp_path: Path, run: Run) -> None:
    path = write(tmp_path / "a.pdf", "Some words.")
    code, _, err = run("convert", path, "-o", "/dev/full", "-q")
    assert code == 5
    assert err == "gravityocr: /dev/full: cannot write the output (no space left on device)\n"


def test_a_full_disk_costs_the_documents_that_do_not_fit(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = ["\n".join(letter * 40 + str(row) for row in range(12)) for letter in "abcdefghi"]
    for name, texts in (("a", ["Small."]), ("b", large), ("c", ["Small."])):
        write(tmp_path / "in" / f"{name}.pdf", *texts)
    assert run("convert", tmp_path / "in", "-o", tmp_path / "out", "--no-images")[0] == 0
    before = tree(tmp_path / "out")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    monkeypatch.setenv("GRAVITYOCR_PAGE_BREAK", "-")  # so that --resume has something to do
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        code, _, err = run("convert", tmp_path / "in", "-o", tmp_path / "out", "--no-images", "--resume")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert code == 8
    assert f"{tmp_path}/out/b.md: cannot write the output (file too large)" in err
    assert "2 converted, 0 with losses, 1 failed" in err
    after = tree(tmp_path / "out")
    assert after.keys() == before.keys()
    assert after["b.md"] == before["b.md"]


def test_a_folder_that_cannot_be_written_is_exit_5(tmp_path: Path, run: Run) -> None:
    path = write(tmp_path / "a.pdf", "Some words.")
    assert run("convert", path, "-o", "/proc/none/a.md", "-q")[0] == 5
    assert run("convert", path, "-o", tmp_path / "a.md", "--report", "/proc/none/r.json", "-q")[0] == 5


def test_pages_that_are_not_there_name_their_document(folder: Path, tmp_path: Path, run: Run) -> None:
    code, _, err = run("convert", folder, "-o", tmp_path / "out", "--pages", "3", "-q")
    assert code == 8
    assert err.splitlines()[0] == f"gravityocr: {folder}/0/0.pdf: --pages asks for page 3; the document has 2"


def test_the_report_has_the_exit_code_that_each_document_would_end_with(tmp_path: Path, run: Run) -> None:
    write(tmp_path / "in" / "good.pdf", "Good.")
    write(tmp_path / "in" / "lossy.pdf", "One.", "CRASH")
    (tmp_path / "in" / "empty.pdf").write_bytes(b"")
    (tmp_path / "bare").mkdir()
    command = ("convert", tmp_path / "in", tmp_path / "bare", "-o", tmp_path / "out", "--jobs", 1, "--json", "-q")
    code, out, _ = run(*command)
    assert code == 8
    codes = {Path(document["source"]).name: document["exit_code"] for document in json.loads(out)["documents"]}
    assert codes == {"good.pdf": 0, "lossy.pdf": 7, "empty.pdf": 3, "bare": 3}


def test_no_name_of_a_file_acts_on_the_terminal(tmp_path: Path, run: Run) -> None:
    write(tmp_path / "in" / "a\n\x1b[31m.pdf", "Words.")
    err = run("convert", tmp_path / "in", "-o", tmp_path / "out")[2]
    assert "\x1b" not in err
    assert err.startswith(f"{tmp_path}/in/a\\n\\x1b[31m.pdf: page 1 of 1")
    assert (tmp_path / "out" / "a\n\x1b[31m.md").read_text().startswith("Words.\n")


def test_offline_opens_no_socket() -> None:
    script = (
        "import socket\nfrom gravityocr_cli.checkpoints import refuse_network\nrefuse_network()\n"
        "left, right = socket.socketpair()\n"
        "for act in (lambda: socket.create_connection(('127.0.0.1', 9)), lambda: socket.getaddrinfo('localhost', 80),\n"
        "            lambda: socket.socket().connect(('127.0.0.1', 9))):\n"
        "    try:\n        act()\n"
        "    except OSError as error:\n        assert 'offline' in str(error), error\n"
        "    else:\n        raise AssertionError('connected')\n"
        "print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def test_a_fault_of_the_program_is_one_line_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from gravityocr_cli.run import convert_all
    from gravityocr_cli.settings import LogFormat, Settings

    def broken(*arguments: Any, **options: Any) -> Any:
        raise KeyError("gone")

    monkeypatch.setattr("gravityocr_cli.run.convert", broken)
    verbose = Settings(jobs=0, verbose=True, log_format=LogFormat.JSON)
    paths = [str(write(tmp_path / name, "Some words.")) for name in ("a.pdf", "b.pdf")]
    assert convert_all(paths[:1], str(tmp_path / "a.md"), Settings(jobs=0)) == 1
    assert "a.pdf: unexpected error: KeyError('gone')" in capsys.readouterr().err
    assert convert_all(paths, str(tmp_path / "out"), Settings(jobs=0)) == 8
    capsys.readouterr()
    convert_all(paths[:1], str(tmp_path / "a.md"), verbose)
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [event["message"] for event in events if event["event"] == "trace"][-1] == "KeyError: 'gone'"
