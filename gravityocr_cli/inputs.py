"""What the user named -> the documents to convert, each with an output of its own."""

import contextlib
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gravityocr_cli import errors
from gravityocr_cli.errors import UsageError

SUFFIXES = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})
STDIN = "-"
MOST_STREAM_BYTES = 4 * 2**30
_LONGEST_NAME = 200  # bytes; a file system takes 255, and what is written beside an output has longer names
_NOT_UNICODE = re.compile("[\ud800-\udfff]")  # how Python shows the bytes of such a name
_OUR_PICTURE = re.compile(r"p\d+_r\d+\.png")


@dataclass(frozen=True)
class Job:
    """One document. source: its path, or `-`. target: its output file; None for standard output.

    fault: why nothing can be read there (a folder without documents), else "".
    """

    source: str
    target: Path | None
    fault: str = ""

    @property
    def name(self) -> str:
        """What people read in messages and reports."""
        return "<stdin>" if self.source == STDIN else self.source

    @property
    def read_once(self) -> bool:
        """Whether the source is a pipe: standard input, or a named one (`<(command)` of a shell)."""
        return self.source == STDIN or Path(self.source).is_fifo()

    @property
    def in_place(self) -> bool:
        """Whether every library can open the source by its own name, which need not be Unicode."""
        return not self.read_once and not _NOT_UNICODE.search(self.source)


@dataclass(frozen=True)
class Plan:
    """The documents of a run. root: the folder of all outputs in a run over a folder or several inputs, else None."""

    jobs: tuple[Job, ...]
    root: Path | None


def plan_run(inputs: Sequence[str], output: str | None, suffix: str, need_output: bool = True) -> Plan:
    """Finds the documents in the inputs and gives each its output, all different.

    output: None or `-` for standard output; a file for one document; a folder for several, and wherever one exists.
    Raises UsageError for an output that cannot take them, or that is one of them.
    """
    if "" in (*inputs, output):
        raise UsageError("the name of an input or output is empty")  # a variable without a value; "" is no folder
    if list(inputs).count(STDIN) > 1:
        raise UsageError("standard input (-) can be read only once")
    several = len(inputs) > 1 or any(Path(each).is_dir() for each in inputs if each != STDIN)
    to_stdout = output is None or output == "-"
    if to_stdout and several and need_output:
        raise UsageError("several inputs, or a folder, need a folder for their outputs: -o FOLDER")
    root = Path(output) if output is not None and not to_stdout else None
    if several and root is not None and root.exists() and not root.is_dir():
        raise UsageError(f"-o {output}: several inputs need a folder, and this is none")
    places = [place for each in inputs for place in _places(each, root)]
    if root is None:
        return Plan(tuple(Job(source, None, fault) for source, _, fault in places), None)
    if not several and not root.is_dir() and not str(output).endswith("/"):
        return Plan((Job(places[0][0], root),), None)
    return Plan(tuple(_with_targets(places, root, suffix)), root)


def keep_apart(jobs: Sequence[Job], report: Path | None) -> None:
    """Raises UsageError where an output, or the report, would take the place of an input or of each other."""
    sources = {os.path.realpath(job.source) for job in jobs if job.source != STDIN}
    written = [job.target for job in jobs if job.target is not None]
    for path in [*written, *([report] if report else [])]:
        if os.path.realpath(path) in sources:
            raise UsageError(f"{path}: this is an input, and would be written over")
    if report is not None and os.path.realpath(report) in map(os.path.realpath, written):
        raise UsageError(f"--report {report}: the output is to go there")


_Place = tuple[str, Path, str]
"""Source, place of its output under the root without a suffix, fault."""


def _places(named: str, root: Path | None) -> Iterator[_Place]:
    """Everything that was named, and what the folders among it hold."""
    path = Path(named)
    if named == STDIN:
        yield STDIN, Path("stdin"), ""
    elif not path.is_dir():
        yield named, Path(path.stem), ""
    else:
        unread: list[OSError] = []
        found = list(_walk(path, os.path.realpath(root) if root else None, unread))
        for each in found:
            yield str(each), each.relative_to(path).with_suffix(""), ""
        for error in unread:  # not a document lost in silence
            fault = f"{error.filename}: the folder cannot be read ({errors.reason_of(error)})"
            yield str(error.filename), Path(path.name), fault
        if not found and not unread:
            yield named, Path(path.name), f"{path}: no PDF or image in this folder"


def _walk(folder: Path, root: str | None, unread: list[OSError]) -> Iterator[Path]:
    """Documents of a folder, sorted; neither hidden files nor what an earlier run has written.

    Links to folders are not followed: they may lead out of the folder, or round in circles. unread: gets an error for
    every folder that cannot be listed.
    """
    for place, folders, files in os.walk(folder, onerror=unread.append):
        here = Path(place)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and os.path.realpath(here / name) != root
        )
        for name in sorted(files):
            path = here / name
            if not name.startswith(".") and path.suffix.lower() in SUFFIXES and path.is_file() and not _is_ours(path):
                yield path


def _is_ours(path: Path) -> bool:
    """Whether a file is a picture of an output that stands beside its folder."""
    stem = path.parent.name.removesuffix("_images")
    beside = (path.parent.with_name(f"{stem}{suffix}") for suffix in (".md", ".html", ".json"))
    return bool(_OUR_PICTURE.fullmatch(path.name)) and stem != path.parent.name and any(map(Path.is_file, beside))


def _with_targets(places: Sequence[_Place], root: Path, suffix: str) -> Iterator[Job]:
    """Outputs under the root; same names (also where only case differs) get a number, in the order of the inputs."""
    taken: set[str] = set()
    for source, place, fault in places:
        if fault:
            yield Job(source, None, fault)
            continue
        name, count = _short(place.name), 1
        target = place.parent / f"{name}{suffix}"
        while str(target).casefold() in taken:
            count += 1
            target = place.parent / f"{name}-{count}{suffix}"
        taken.add(str(target).casefold())
        yield Job(source, root / target)


def _short(name: str) -> str:
    """The name, or where it is too long for what stands beside an output, its beginning and a digest."""
    if not name:  # of "..pdf"
        return "document"
    if len(os.fsencode(name)) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME // 8]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:12]}"


@contextlib.contextmanager
def on_disk(job: Job) -> Iterator[Path]:
    """A path by which any library can open the document: its own, a link to it, or what came through a pipe as a file.

    Raises InputError.
    """
    with contextlib.ExitStack() as stack:
        path = Path(job.source)
        if not job.in_place:
            try:
                folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gravityocr-"))
                path = _fetched(job, Path(folder) / "document")
            except OSError as error:
                reason = errors.reason_of(error)
                raise errors.InputError(f"{job.name}: cannot be read by way of a temporary file ({reason})") from error
        yield path


def _fetched(job: Job, path: Path) -> Path:
    """Makes `path` the document. Raises OSError."""
    if not job.read_once:
        path.symlink_to(Path(job.source).absolute())
    elif job.source == STDIN:
        _spool(sys.stdin.buffer, path, job.name)
    else:
        with open(job.source, "rb") as stream:
            _spool(stream, path, job.name)
    return path


def _spool(stream: BinaryIO, path: Path, name: str) -> None:
    with open(path, "wb") as file:
        left = MOST_STREAM_BYTES
        while left > 0 and (piece := stream.read(min(left, 2**20))):
            left -= file.write(piece)
    if left == 0:
        raise errors.InputTooLarge(name, MOST_STREAM_BYTES, MOST_STREAM_BYTES)
    if left == MOST_STREAM_BYTES:
        raise errors.EmptyInput(name)
