from pathlib import Path
from typing import Any

import fake_program
import pytest

from gravityocr_cli import cli, doctor
from gravityocr_cli.configfile import resolve
from gravityocr_cli.errors import ModelError
from gravityocr_cli.pdf import Source


class Reader(fake_program.FakeReader):
    def describe(self) -> str:
        return "a fake device"


@pytest.fixture(autouse=True)
def nothing_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gravityocr_cli.doctor.load_reader", lambda settings: Reader())
    monkeypatch.setattr("gravityocr_cli.workers.COMMAND", fake_program.WORKER)


def test_a_healthy_machine(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c.toml").write_text("block = 8\npassword = 'hunter2'")
    monkeypatch.setenv("GRAVITYOCR_JOBS", "3")
    assert cli.run(["doctor", "--config", str(tmp_path / "c.toml"), "--device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "a fake device" in out
    assert "'The quick brown fox' was read as 'read'" in out
    assert out.endswith("conversions will work\n")
    assert "hunter2" not in out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("  ")}
    assert rows["jobs"] == ["3", "GRAVITYOCR_JOBS"]
    assert rows["block"] == ["8", f"{tmp_path}/c.toml:", "block"]
    assert rows["device"] == ["cpu", "--device"]
    assert rows["dtype"] == ["auto", "default"]
    assert rows["password"][0] == "(set)"


def test_a_machine_without_a_model(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(settings: Any) -> Any:
        raise ModelError("no model here")

    monkeypatch.setattr("gravityocr_cli.doctor.load_reader", missing)
    assert doctor.run(resolve({}, {})) == 6
    output = capsys.readouterr()
    assert output.err == "gravityocr: no model here\n"
    assert output.out.endswith("conversions will not work\n")


def test_a_machine_on_which_workers_die(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gravityocr_cli.workers.COMMAND", ["false"])
    assert doctor.run(resolve({}, {})) == 3
    assert "the self-test page: the file cannot be opened" in capsys.readouterr().err


def test_the_self_test_page_is_a_sound_pdf(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(doctor.one_line_pdf("Some words"))
    with Source(tmp_path / "a.pdf") as source:
        assert (source.count, source.warnings) == (1, ())
