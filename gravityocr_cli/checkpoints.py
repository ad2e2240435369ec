"""Checkpoints as the command line speaks of them: names -> folders, with errors that carry their exit code.

Where they lie and what makes one whole is `gravityocr_models.store`'s to know. Converting never downloads:
`models pull` is the one command that needs a network.
"""

import hashlib
import os
import sys
from pathlib import Path

from gravityocr_cli.errors import ModelError, reason_of
from gravityocr_models import store


def folder_of(model: str, device: str = "auto") -> Path:
    """The folder of a name, a folder or a hub id. Raises ModelError naming what is missing and how to fetch it."""
    try:
        return store.resolve(model, device)
    except (OSError, ValueError) as error:
        raise ModelError(str(error)) from error


def identity(folder: Path) -> str:
    """A digest that changes when the checkpoint does: of SHA256SUMS where there is one, else of the files."""
    sums = folder / "SHA256SUMS"
    try:
        files = [sums] if sums.is_file() else sorted(path for path in folder.iterdir() if path.is_file())
        return hashlib.sha256("\n".join(f"{path.name} {digest(path)}" for path in files).encode()).hexdigest()
    except OSError as error:
        raise ModelError(f"{folder}: the model cannot be read ({reason_of(error)})") from error


def faults(folder: Path) -> list[str]:
    """What is wrong with a checkpoint's files, a line each; nothing where all is well."""
    return [f"{folder}: {fault}" for fault in store.verify(folder)]


def pull(model: str, offline: bool) -> Path:
    """Fetches a checkpoint from the hub, going on where an earlier pull stopped, and compares its checksums.

    Raises ModelError where it cannot be had or does not arrive whole; offline, where a part of it is not here yet.
    """
    if offline:
        return folder_of(model)
    try:
        folder = store.pull(model)
    except (OSError, ValueError, RuntimeError) as error:  # the hub's own errors are among these
        reason = " ".join(str(error).split()) or repr(error)
        raise ModelError(f"{model}: cannot be fetched ({reason[:300]})") from error
    if wrong := faults(folder):
        raise ModelError(f"{wrong[0]}; pull it again")
    return folder


def digest(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal. Raises OSError."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_network() -> None:
    """From now on no socket of this process leads off this machine, whatever a library may try."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", HF_HUB_DISABLE_TELEMETRY="1")
    sys.addaudithook(_no_network)


def _no_network(event: str, details: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"):
        if event == "socket.connect" and isinstance(details[1], str | bytes):
            return  # a name in the file system
        raise OSError("the network is off (--offline, or a process that reads documents)")
