import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from gravityocr_cli import cli
from gravityocr_cli.errors import ModelError
from gravityocr_cli.inputs import plan_run

MakePdf = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("no_layout")


def words(page: Any) -> None:
    page.insert_text((72, 100), "Some words.", fontsize=11)


@pytest.fixture
def with_engine(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gravityocr_cli.run.load_reader", lambda settings: engine)
    monkeypatch.setenv("GRAVITYOCR_JOBS", "0")


def call(*arguments: object) -> int:
    return cli.run([str(each) for each in arguments])


@pytest.mark.usefixtures("with_engine")
def test_convert_to_a_file(make_pdf: MakePdf, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    assert call("convert", make_pdf(words), "-o", tmp_path / "out.md", "--report", report) == 0
    assert (tmp_path / "out.md").read_text() == "Some words.\n"
    assert json.loads(report.read_text())["documents"][0]["pages"][0]["page"] == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert "page 1 of 1" in output.err


@pytest.mark.usefixtures("with_engine")
def test_standard_output_carries_the_product_alone(make_pdf: MakePdf, capfdbinary: Any) -> None:
    assert call("convert", make_pdf(words), "-q") == 0
    output = capfdbinary.readouterr()
    assert (output.out, output.err) == (b"Some words.\n", b"")


@pytest.mark.usefixtures("with_engine")
def test_one_bad_input_of_several_hides_no_other(
    make_pdf: MakePdf, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, other = make_pdf(words, name="a.pdf"), make_pdf(words, name="b.pdf")
    assert call("convert", good, tmp_path / "none.pdf", other, "-o", tmp_path / "out", "-q") == 8
    assert sorted(os.listdir(tmp_path / "out")) == [".gravityocr", "a.md", "b.md"]
    assert "none.pdf: no such file" in capsys.readouterr().err


@pytest.mark.usefixtures("with_engine")
@pytest.mark.parametrize(
    ("fault", "code"),
    [("missing", 3), ("empty", 3), ("locked", 4), ("unwritable", 5), ("pages", 2), ("block", 2), ("option", 2)],
)
def test_exit_codes(
    make_pdf: MakePdf, tmp_path: Path, capsys: pytest.CaptureFixture[str], fault: str, code: int
) -> None:
    (tmp_path / "empty.pdf").write_bytes(b"")
    lock = {"encryption": pymupdf.PDF_ENCRYPT_AES_256, "owner_pw": "owner", "user_pw": "user"}
    good, out = make_pdf(words), tmp_path / "out.md"
    out.write_text("old")
    arguments = {
        "missing": [tmp_path / "none.pdf", "-o", out],
        "empty": [tmp_path / "empty.pdf", "-o", out],
        "locked": [make_pdf(words, name="locked.pdf", **lock), "-o", out],
        "unwritable": [good, "-o", good / "out.md"],
        "pages": [good, "-o", out, "--pages", "5"],
        "block": [good, "-o", out, "--block", "0"],
        "option": [good, "-o", out, "--no-such-option"],
    }
    assert call("convert", *arguments[fault]) == code
    assert out.read_text() == "old"
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_a_model_that_is_not_there(make_pdf: MakePdf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(settings: Any) -> Any:
        raise ModelError("no model")

    monkeypatch.setattr("gravityocr_cli.run.load_reader", missing)
    monkeypatch.setenv("GRAVITYOCR_JOBS", "0")
    assert call("convert", make_pdf(words), "-o", tmp_path / "out.md") == 6
    assert call("convert", make_pdf(words), make_pdf(words, name="b.pdf"), "-o", tmp_path / "out") == 6


@pytest.mark.usefixtures("with_engine")
def test_something_lost_is_exit_7(make_pdf: MakePdf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(page: Any, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("bad stream")

    monkeypatch.setattr(pymupdf.Page, "get_pixmap", broken)
    assert call("convert", make_pdf(words), "-o", tmp_path / "out.md") == 7
    assert "page 1" in (tmp_path / "out.md").read_text()


def test_outputs_of_several_inputs_are_all_different(tmp_path: Path) -> None:
    inputs = ["a/README.pdf", "b/README.pdf", "c/other.pdf"]
    targets = [job.target for job in plan_run(inputs, "out", ".md").jobs]
    assert targets == [Path("out/README.md"), Path("out/README-2.md"), Path("out/other.md")]
    assert plan_run(inputs[:1], str(tmp_path), ".md").jobs[0].target == tmp_path / "README.md"
    assert plan_run(inputs[:1], "-", ".md").jobs[0].target is None


def test_several_inputs_need_a_folder(tmp_path: Path) -> None:
    assert call("convert", tmp_path / "a.pdf", tmp_path / "b.pdf") == 2


def test_help_is_quick_and_imports_nothing_heavy() -> None:
    script = (
        "import sys\nfrom gravityocr_cli.__main__ import main\nsys.argv = ['gravityocr', '--help']\ncode = main()\n"
    )
    script += (
        "heavy = {'torch', 'pymupdf', 'numpy', 'rich', 'transformers'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "convert" in done.stdout
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before < 1  # 0.15 s of an idle processor


def test_nobody_loads_what_others_need() -> None:
    """PyTorch takes two seconds to import, its compiler two more, PyMuPDF one: none is loaded where it has no use."""
    for script in (
        "import sys, gravityocr_cli.run\nassert not {'torch', 'pymupdf'} & set(sys.modules)",
        "import sys, gravityocr_cli.worker\nassert 'torch' not in sys.modules",
        "import sys; from gravityocr_models.engine import Engine\nEngine.load()\n"
        "assert not {'torch._dynamo', 'scipy.optimize'} & set(sys.modules)",
    ):
        subprocess.run([sys.executable, "-c", script], check=True)


def test_utf8_whatever_the_locale(make_pdf: MakePdf) -> None:
    script = (
        "import sys; from gravityocr_cli.output import StdoutProduct\n"
        "with StdoutProduct() as product: product.write('字 🎉\\n')"
    )
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=environment)
    assert done.stdout == "字 🎉\n".encode()


COMMANDS = ("convert", "eval", "bench", "inspect", "doctor", "models")


@pytest.mark.parametrize("arguments", [["--version"], *([name, "--help"] for name in COMMANDS)])
def test_every_command_explains_itself(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*arguments) == 0
    assert "gravityocr" in capsys.readouterr().out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(tmp_path: Path, number: int, code: int) -> None:
    os.mkfifo(tmp_path / "slow")  # a stand-in for long work: opening it waits for a writer
    script = "import sys, gravityocr_cli.__main__ as m, gravityocr_cli.cli as c\n"
    script += f"c.run = lambda a: open({str(tmp_path / 'slow')!r})\nprint('on', flush=True)\nsys.exit(m.main())"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"on\n"
        time.sleep(0.2)
        process.send_signal(number)
        _, error = process.communicate(timeout=20)
    assert process.returncode == code
    assert b"Traceback" not in error


def test_a_closed_pipe_is_quiet() -> None:
    script = (
        "import sys; from gravityocr_cli.output import StdoutProduct\n"
        "with StdoutProduct() as product:\n    for _ in range(10000): product.write('word ' * 100)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_settings_reach_eval_and_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def keep(*arguments: Any, **options: Any) -> int:
        seen.append((arguments, options))
        return 7

    monkeypatch.setattr("gravityocr_cli.evaluate.run", keep)
    monkeypatch.setattr("gravityocr_cli.inspect.run", keep)
    monkeypatch.setenv("GRAVITYOCR_DEVICE", "cpu")
    assert call("eval", tmp_path, "--text-layer", "off", "--limit", "3", "--predictions", tmp_path) == 7
    assert call("inspect", tmp_path / "a.pdf", "--page", "2", "--model", "nano") == 7
    (_, options), (arguments, _) = seen
    assert (options["limit"], options["text_layer"], options["predictions"]) == (3, "off", tmp_path)
    assert (options["settings"].device, options["settings"].text_layer) == ("cpu", "off")
    assert arguments[:3] == (tmp_path / "a.pdf", 2, Path("inspect.html"))
    assert (arguments[3].model, arguments[3].device) == ("nano", "cpu")


@pytest.mark.parametrize(
    ("typed", "offered"), [("gravityocr con", "convert"), ("gravityocr convert --te", "--text-layer")]
)
def test_the_shell_completes_commands_and_options(typed: str, offered: str) -> None:
    completing = {"_GRAVITYOCR_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(typed.count(" "))}
    command = [sys.executable, "-m", "gravityocr_cli"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **completing}, timeout=60)
    assert done.stdout.split() == [offered]
