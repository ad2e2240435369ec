"""The product on disk: images first, Markdown last, each in one step, or nothing at all.

Everything is staged in a hidden folder beside its final place and moved there by `os.replace` when the run is through.
A run that is killed or fails leaves an older output whole; what a killed run has staged goes when the same output is
written again.
"""

import contextlib
import errno
import fcntl
import glob
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Protocol

from gravityocr_cli.errors import CannotWrite, reason_of
from gravityocr_cli.streams import discard

_STAGED = ".part"


class Product(Protocol):
    """Where the pieces of one document go."""

    def image(self, name: str, data: bytes) -> str | None:
        """Takes a picture; returns the path to link from the Markdown, or None where pictures are not wanted."""

    def write(self, piece: str) -> None:
        """Takes the next piece of the Markdown."""


class FileProduct:
    """A Markdown file and its folder of images. Use as a context: leaving it without an error publishes both."""

    def __init__(self, path: Path, images: bool = True) -> None:
        self._path = Path(os.path.realpath(path)) if path.is_symlink() else path
        self._folder = self._path.with_name(f"{self._path.stem}_images")
        self._special = self._path.exists() and not self._path.is_file() and not self._path.is_dir()  # a device, a pipe
        self._images = images and not self._special
        self._names: list[str] = []

    def __enter__(self) -> "FileProduct":
        with _as_cannot_write(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            if self._path.is_dir():
                raise OSError(errno.EISDIR, "it is a folder")
            prefix, beside = f"{_hidden(self._path)}.", None if self._special else self._path.parent
            if beside is not None:
                _sweep(beside, prefix)
            self._stage = Path(tempfile.mkdtemp(prefix=prefix, suffix=_STAGED, dir=beside))
            self._file: BinaryIO = open(self._stage / "document", "wb")
            _is_locked_by_us(self._file)
        return self

    @property
    def files(self) -> list[Path]:
        """What was published, once the context is left."""
        return [self._path, *(self._folder / name for name in self._names)]

    def image(self, name: str, data: bytes) -> str | None:
        if not self._images:
            return None
        with _as_cannot_write(self._folder):
            _write_synced(self._stage / name, data)
        self._names.append(name)
        return f"{self._folder.name}/{name}"

    def write(self, piece: str) -> None:
        with _as_cannot_write(self._path):
            self._file.write(to_utf8(piece))

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                with _as_cannot_write(self._path):
                    self._publish()
        finally:
            with contextlib.suppress(OSError):  # of a full disk, which has been told of
                self._file.close()
            shutil.rmtree(self._stage, ignore_errors=True)

    def _publish(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        if self._names:
            self._folder.mkdir(exist_ok=True)
        for name in self._names:
            os.replace(self._stage / name, self._folder / name)
        if self._special:
            self._path.write_bytes((self._stage / "document").read_bytes())
        else:
            os.replace(self._stage / "document", self._path)


class StdoutProduct:
    """Markdown to standard output as UTF-8, whatever the locale. Pictures have no place there."""

    def __enter__(self) -> "StdoutProduct":
        return self

    def image(self, name: str, data: bytes) -> str | None:
        return None

    def write(self, piece: str) -> None:
        with _as_standard_output():
            sys.stdout.buffer.write(to_utf8(piece))

    def __exit__(self, *_: object) -> None:
        with _as_standard_output():
            sys.stdout.buffer.flush()


class TextProduct:
    """Markdown kept in memory, for scoring. Pictures are dropped."""

    def __init__(self) -> None:
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def __enter__(self) -> "TextProduct":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def image(self, name: str, data: bytes) -> str | None:
        return None

    def write(self, piece: str) -> None:
        self._pieces.append(piece)


def write_atomically(path: Path, text: str) -> None:
    """Writes a whole file in one step. Raises CannotWrite."""
    with FileProduct(path, images=False) as product:
        product.write(text)


def _hidden(path: Path) -> str:
    """The beginning of a hidden name beside a file: its own, and short enough where the file's name is not."""
    return f".{path.name[:30]}.{hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]}"


def _sweep(folder: Path, prefix: str) -> None:
    """Removes what killed runs have staged for the same output; a living run holds a lock on its own."""
    for stage in folder.glob(f"{glob.escape(prefix)}*{_STAGED}"):
        with contextlib.suppress(OSError), open(stage / "document", "rb") as file:
            if not _is_locked_by_us(file):
                continue
        shutil.rmtree(stage, ignore_errors=True)


def _is_locked_by_us(file: BinaryIO) -> bool:
    """Tries to lock an open file until it is closed or this process ends; False where another process has it.

    A file system without locks is taken for one without other processes.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def to_utf8(text: str) -> bytes:
    """UTF-8 bytes; lone surrogates, which no file may hold, become U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")


def _write_synced(path: Path, data: bytes) -> None:
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _as_cannot_write(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CannotWrite(path, reason_of(error)) from error


@contextlib.contextmanager
def _as_standard_output() -> Iterator[None]:
    """Ends the run without a word when the reader has gone (`gravityocr ... | head`); CannotWrite for other faults."""
    try:
        yield
    except OSError as error:
        discard(1)
        if isinstance(error, BrokenPipeError):
            raise SystemExit(0) from error
        raise CannotWrite("standard output", reason_of(error)) from error
