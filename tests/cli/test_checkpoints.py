from pathlib import Path

import pytest

from gravityocr_cli import cli
from gravityocr_cli.checkpoints import faults, folder_of, identity, pull
from gravityocr_cli.errors import ModelError
from gravityocr_models import store


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_cache", lambda: tmp_path / "cache")


def test_what_is_missing_is_named_with_the_command_that_fetches_it() -> None:
    with pytest.raises(ModelError, match="gravityocr models pull zai-org/GLM-OCR") as caught:
        folder_of("zai-org/GLM-OCR")
    assert caught.value.exit_code == 6
    with pytest.raises(ModelError, match="no such folder"):
        folder_of("none/such/folder")
    assert folder_of("nano") == store.NANO


def test_offline_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "pull", lambda name: pytest.fail("went to the network"))
    with pytest.raises(ModelError, match="gravityocr models pull zai-org/GLM-OCR"):
        pull("zai-org/GLM-OCR", offline=True)


def test_a_pull_that_fails_or_arrives_broken_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(name: str) -> Path:
        raise OSError("no route\n to host")

    monkeypatch.setattr(store, "pull", unreachable)
    with pytest.raises(ModelError, match=r"owner/name: cannot be fetched \(no route to host\)"):
        pull("owner/name", offline=False)
    monkeypatch.setattr(store, "pull", lambda name: tmp_path)
    with pytest.raises(ModelError, match=r"config\.json is missing; pull it again"):
        pull("owner/name", offline=False)


def test_identity_changes_with_the_files(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    first = identity(tmp_path)
    (tmp_path / "config.json").write_text("{ }")
    second = identity(tmp_path)
    store.write_sums(tmp_path)
    assert len({first, second, identity(tmp_path)}) == 3
    with pytest.raises(ModelError):
        identity(tmp_path / "none")


def test_verify_tells_a_changed_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.json").write_text("{}")
    store.write_sums(tmp_path)
    (tmp_path / "config.json").write_text("{ }")
    assert f"{tmp_path}: config.json differs from SHA256SUMS" in faults(tmp_path)
    monkeypatch.setattr(store, "installed", lambda: [store.Installed("odd", tmp_path, 2, False, ())])
    assert cli.run(["models", "verify"]) == 6
    assert "config.json differs from SHA256SUMS" in capsys.readouterr().err
    assert cli.run(["models", "verify", str(tmp_path)]) == 6
    assert "model.safetensors or model.safetensors.index.json is missing" in capsys.readouterr().err


def test_the_list_names_what_is_here_and_what_can_be_had(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["models", "list"]) == 0
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("nano\t")
    assert others == [f"{name}\t-\tnot installed\tgravityocr models pull {name}" for name in store.KNOWN]
