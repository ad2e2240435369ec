"""Names become folders without a network; what is missing is named with the command that fetches it."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from gravityocr_models import store
from gravityocr_models.store import CheckpointMissing

FILES = ("config.json", "model.safetensors", "tokenizer.json", "preprocessor_config.json", "chat_template.jinja")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    return tmp_path


def fill(folder: Path, drop: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        if name != drop:
            (folder / name).write_text(json.dumps({"model_type": "glm_ocr", "file": name}))
    return folder


def cached(cache: Path, name: str, drop: str = "") -> Path:
    """A repository as the hub's client lays it out: blobs named by hash, a snapshot of links, a reference."""
    root = cache / f"models--{name.replace('/', '--')}"
    folder = fill(root / "snapshots" / "abc", drop)
    (root / "refs").mkdir()
    (root / "refs" / "main").write_text("abc")
    (root / "blobs").mkdir()
    for path in list(folder.iterdir()):
        data = path.read_bytes()
        large = path.suffix == ".safetensors"
        name = hashlib.sha256(data).hexdigest() if large else hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        (root / "blobs" / name).write_bytes(data)
        path.unlink()
        path.symlink_to(root / "blobs" / name)
    return folder


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device=None: (10_000, 10_000))


def test_auto_is_nano_where_nothing_else_is_installed(cache: Path, gpu: None) -> None:
    assert store.resolve() == store.resolve("nano") == store.NANO


def test_auto_is_the_best_whole_checkpoint_that_fits(cache: Path, gpu: None, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = cached(cache, "zai-org/GLM-OCR")
    cached(cache, "someone/finetuned")
    assert store.resolve("auto") == plain
    best = cached(cache, "trillionlabs/GravityOCR", drop="tokenizer.json")
    assert store.resolve("auto") == plain
    (best / "tokenizer.json").write_text("{}")
    assert store.resolve("auto") == store.resolve("auto", "cuda:0") == best
    assert store.resolve("auto", "cpu") == store.NANO
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device=None: (20, 10_000))
    assert store.resolve("auto") == store.NANO

    def no_such(device: str | None = None) -> None:
        raise RuntimeError("invalid device ordinal")

    monkeypatch.setattr("torch.cuda.mem_get_info", no_such)
    assert store.resolve("auto", "cuda:7") == store.NANO
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert store.resolve("auto") == store.NANO


def test_names_and_folders(cache: Path, tmp_path: Path) -> None:
    folder = cached(cache, "zai-org/GLM-OCR")
    assert store.resolve("zai-org/GLM-OCR") == folder
    own = fill(tmp_path / "own")
    assert store.resolve(str(own)) == own


@pytest.mark.parametrize("drop", FILES)
def test_what_is_missing_is_named(cache: Path, tmp_path: Path, drop: str) -> None:
    own = fill(tmp_path / "own", drop)
    with pytest.raises(CheckpointMissing, match=drop):
        store.resolve(str(own))
    cached(cache, "zai-org/GLM-OCR", drop)
    with pytest.raises(CheckpointMissing, match=rf"{drop}.*gravityocr models pull zai-org/GLM-OCR"):
        store.resolve("zai-org/GLM-OCR")


def test_names_that_are_nothing(cache: Path) -> None:
    with pytest.raises(CheckpointMissing, match="gravityocr models pull no/such"):
        store.resolve("no/such")
    with pytest.raises(CheckpointMissing, match="no such folder"):
        store.resolve("nanoo")


def test_a_missing_shard_is_missing(tmp_path: Path) -> None:
    folder = fill(tmp_path, "model.safetensors")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    (folder / "model-1.safetensors").touch()
    assert store.missing(folder) == ["model-2.safetensors"]


def test_installed_lists_nano_and_the_family(cache: Path) -> None:
    cached(cache, "a/finetuned")
    cached(cache, "zai-org/GLM-OCR", drop="chat_template.jinja")
    other = cached(cache, "b/other-kind")
    (other / "config.json").unlink()
    (other / "config.json").write_text('{"model_type": "llama"}')
    found = store.installed()
    assert [each.name for each in found] == ["nano", "zai-org/GLM-OCR", "a/finetuned"]
    assert [bool(each.missing) for each in found[1:]] == [True, False]
    assert found[0].drafts
    assert not found[2].drafts
    assert found[2].size == sum(path.stat().st_size for path in found[2].folder.iterdir())


def test_verify_finds_damage(cache: Path, tmp_path: Path) -> None:
    folder = cached(cache, "zai-org/GLM-OCR")
    assert store.verify(folder) == []
    (folder / "model.safetensors").resolve().write_text("{}")
    (folder / "config.json").resolve().write_text("{}")
    (folder / "tokenizer.json").resolve().unlink()
    found = store.verify(folder)
    assert found[0] == "tokenizer.json is missing"
    assert {line.split()[0] for line in found} == {"tokenizer.json", "model.safetensors", "config.json"}


def test_sums_notice_a_changed_file(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    store.write_sums(folder)
    assert store.verify_sums(folder) == store.verify(folder) == []
    (folder / "config.json").write_text("[]")
    (folder / "chat_template.jinja").unlink()
    assert store.verify_sums(folder) == ["chat_template.jinja", "config.json"]
    assert "config.json differs from SHA256SUMS" in store.verify(folder)


def test_nano_matches_its_sums() -> None:
    assert store.verify_sums(store.NANO) == []


def test_nothing_heavy_and_no_socket_to_look_around(cache: Path) -> None:
    program = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('a socket')\n"
        "socket.socket.connect = refuse\n"
        "from gravityocr_models import store\n"
        "store.installed(); store.resolve('nano')\n"
        "print('torch' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False"]
