"""Where checkpoints lie: the built-in one, folders, and the cache of the Hugging Face hub. Opens no socket.

    resolve("auto")  resolve("nano")  resolve("zai-org/GLM-OCR")  resolve("some/folder")

Only file names and hashes are looked at, so that nothing heavy is imported; weights.py judges the content.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NANO = Path(__file__).parent / "weights" / "nano"
KNOWN = ("trillionlabs/GravityOCR", "zai-org/GLM-OCR")  # best first: what `auto` chooses from
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
# What a checkpoint is loaded from; also the patterns to download it by. One of each row must be there.
PARTS = (
    ("config.json",),
    (WEIGHTS, INDEX),
    ("tokenizer.json",),
    ("preprocessor_config.json", "processor_config.json"),
    ("chat_template.jinja", "chat_template.json", "tokenizer_config.json"),
)
LETTERS = "letters.npz"
OPTIONAL = ("generation_config.json", "block_diffusion.json", LETTERS, "SHA256SUMS")
PATTERNS = (*(name for row in PARTS for name in row), *OPTIONAL, "*.safetensors")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_ROOM = 1.5  # device memory a checkpoint needs beside its weights' own size: cache, activations


class CheckpointMissing(FileNotFoundError):
    """A checkpoint, or a file of it, is not on this machine; the message says how to get it."""


@dataclass(frozen=True)
class Installed:
    """A checkpoint on this machine. size: bytes. missing: parts of it that are not there, by file name."""

    name: str
    folder: Path
    size: int
    drafts: bool
    missing: tuple[str, ...]


def resolve(name: str = "auto", device: str = "auto") -> Path:
    """The folder of a checkpoint: auto, nano, a folder, or a hub id from the cache.

    auto: the best of KNOWN that is installed whole and that the device can run, else nano. Raises CheckpointMissing.
    """
    if name == "auto":
        found = (folder for known in KNOWN if (folder := _cached(known)) and not missing(folder))
        return next((folder for folder in found if _runs(folder, device)), NANO)
    folder = NANO if name == "nano" else Path(name).expanduser()
    advice = "the program's installation is damaged" if name == "nano" else "complete the folder"
    if not folder.is_dir():
        if not _HUB_ID.fullmatch(name):
            raise CheckpointMissing(f"{name}: no such folder, and not a name on the hub (auto, nano, DIR, owner/name)")
        advice = f"fetch it with: gravityocr models pull {name}"
        cached = _cached(name)
        if cached is None:
            raise CheckpointMissing(f"{name}: not installed (no config.json in {_cache()}); {advice}")
        folder = cached
    if absent := missing(folder):
        raise CheckpointMissing(f"{name}: {absent[0]} is missing in {folder}; {advice}")
    return folder


def installed() -> list[Installed]:
    """nano, then every checkpoint of the family in the hub's cache, KNOWN ones first."""
    names = sorted(_cached_names(), key=lambda name: (KNOWN.index(name) if name in KNOWN else len(KNOWN), name))
    places = [("nano", NANO), *((name, folder) for name in names if (folder := _cached(name)))]
    return [
        _describe(name, folder)
        for name, folder in places
        if _json(folder / "config.json").get("model_type") == "glm_ocr"
    ]


def missing(folder: Path) -> list[str]:
    """Names of files without which the folder is no checkpoint; shards that its index names included."""
    absent = [" or ".join(row) for row in PARTS if not any((folder / name).is_file() for name in row)]
    shards = _json(folder / INDEX).get("weight_map")
    names = {str(name) for name in shards.values()} if isinstance(shards, dict) else set()
    return absent + [name for name in sorted(names) if not (folder / name).is_file()]


def verify(folder: Path) -> list[str]:
    """What is wrong with a checkpoint's files, a line each: missing, or other than published.

    Checked against SHA256SUMS where the folder has it, and in the hub's cache against the hash that names each file.
    """
    faults = [f"{name} is missing" for name in missing(folder)]
    if (folder / "SHA256SUMS").is_file():
        faults += [f"{name} differs from SHA256SUMS" for name in verify_sums(folder) if (folder / name).is_file()]
    return faults + [f"{path.name} is damaged" for path in sorted(folder.iterdir()) if not _matches_its_blob(path)]


def pull(name: str) -> Path:
    """Fetch a checkpoint of the hub into the cache, or complete it: the one function here that needs a network.

    Raises CheckpointMissing for what is no hub id or no checkpoint; OSError where the hub can't be reached.
    """
    if not _HUB_ID.fullmatch(name):
        raise CheckpointMissing(f"{name}: not a name on the hub (owner/name)")
    from huggingface_hub import snapshot_download

    folder = Path(snapshot_download(name, allow_patterns=list(PATTERNS)))
    if absent := missing(folder):
        raise CheckpointMissing(f"{name}: the hub has no {absent[0]} for it")
    return folder


def write_sums(folder: Path) -> None:
    """SHA256SUMS of the files that a model is loaded from."""
    files = sorted(path for path in folder.iterdir() if path.suffix in (".json", ".jinja", ".npz", ".safetensors"))
    rows = [f"{_digest(path)}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(rows), encoding="utf-8")


def verify_sums(folder: Path) -> list[str]:
    """Names of files that are missing or differ from SHA256SUMS."""
    wrong = []
    for row in (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines():
        digest, name = row.split(maxsplit=1)
        path = folder / name
        if not path.is_file() or _digest(path) != digest:
            wrong.append(name)
    return wrong


def _describe(name: str, folder: Path) -> Installed:
    size = sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
    return Installed(name, folder, size, (folder / "block_diffusion.json").is_file(), tuple(missing(folder)))


def _cache() -> Path:
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def _cached(name: str) -> Path | None:
    """The folder of the newest fetched version of a hub's repository."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, "config.json", cache_dir=_cache())
    return Path(found).parent if isinstance(found, str) else None


def _cached_names() -> Iterator[str]:
    for folder in sorted(_cache().glob("models--*--*")):
        yield folder.name.removeprefix("models--").replace("--", "/", 1)


def _runs(folder: Path, device: str) -> bool:
    """Whether `auto` may pick a full-size checkpoint: on a GPU with room. On a CPU a page would take minutes."""
    import torch

    if device.split(":")[0] not in ("auto", "cuda") or not torch.cuda.is_available():
        return False
    try:
        free, _ = torch.cuda.mem_get_info(None if device == "auto" else device)
    except RuntimeError:  # no such device: loading says so
        return False
    return free > _ROOM * sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def _json(path: Path) -> dict[str, Any]:
    """A JSON object, empty where there is none: loading it says what is wrong with it."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _matches_its_blob(path: Path) -> bool:
    """Whether a file of the hub's cache is what its blob's name says: a SHA-256, or for small files git's own hash."""
    blob = Path(os.path.realpath(path))
    if not path.is_symlink() or blob.parent.name != "blobs":
        return True
    if len(blob.name) == 64:
        return blob.is_file() and _digest(blob) == blob.name
    data = blob.read_bytes() if blob.is_file() else b""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest() == blob.name
