"""What the user named -> the documents to convert, each with an output of its own."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gravityocr_cli.errors import EmptyInput, InputError, InputTooLarge, UsageError

SUFFIXES = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})
STDIN = "-"
MOST_STDIN_BYTES = 4 * 2**30


@dataclass(frozen=True)
class Job:
    """One document. source: its path, or `-`. target: its output file; None for standard output."""

    source: str
    target: Path | None

    @property
    def name(self) -> str:
        """What people read in messages and reports."""
        return "<stdin>" if self.source == STDIN else self.source


@dataclass(frozen=True)
class Plan:
    """The documents of a run. root: the folder of all outputs in a run over a folder or several inputs, else None."""

    jobs: tuple[Job, ...]
    root: Path | None


def plan_run(inputs: Sequence[str], output: str | None, suffix: str, need_output: bool = True) -> Plan:
    """Finds the documents in the inputs and gives each its output, all different.

    output: None or `-` for standard output; a file for one document; a folder for several, and wherever one exists.
    Raises UsageError for an output that cannot take them, InputError for a folder without documents.
    """
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
        return Plan(tuple(Job(source, None) for source, _ in places), None)
    if not several and not root.is_dir() and not str(output).endswith("/"):
        return Plan((Job(places[0][0], root),), None)
    return Plan(tuple(_with_targets(places, root, suffix)), root)


def _places(named: str, root: Path | None) -> Iterator[tuple[str, Path]]:
    """(source, place of its output under the root, without a suffix) of everything that was named."""
    path = Path(named)
    if named == STDIN:
        yield STDIN, Path("stdin")
    elif not path.is_dir():
        yield named, Path(path.stem)
    else:
        found = list(_walk(path, root.resolve() if root else None))
        if not found:
            raise InputError(f"{path}: no PDF or image in this folder")
        for each in found:
            yield str(each), each.relative_to(path).with_suffix("")


def _walk(folder: Path, root: Path | None) -> Iterator[Path]:
    """Documents of a folder, sorted; neither hidden files nor what an earlier run has written.

    Links to folders are not followed: they may lead out of the folder, or round in circles.
    """
    for place, folders, files in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and (here / name).resolve() != root and not _is_ours(here, name)
        )
        for name in sorted(files):
            path = here / name
            if not name.startswith(".") and path.suffix.lower() in SUFFIXES and path.is_file():
                yield path


def _is_ours(parent: Path, name: str) -> bool:
    """Whether a folder holds the pictures of an output beside it."""
    stem = name.removesuffix("_images")
    return name != stem and any((parent / f"{stem}{suffix}").is_file() for suffix in (".md", ".html", ".json"))


def _with_targets(places: Sequence[tuple[str, Path]], root: Path, suffix: str) -> Iterator[Job]:
    """Outputs under the root; same names (also where only case differs) get a number, in the order of the inputs."""
    taken: set[str] = set()
    for source, place in places:
        target, count = place.with_name(place.name + suffix), 1
        while str(target).casefold() in taken:
            count += 1
            target = place.with_name(f"{place.name}-{count}{suffix}")
        taken.add(str(target).casefold())
        yield Job(source, root / target)


@contextlib.contextmanager
def on_disk(source: str) -> Iterator[Path]:
    """The path of a document's bytes: its own, or a temporary file with what standard input held."""
    if source != STDIN:
        yield Path(source)
        return
    with tempfile.TemporaryDirectory(prefix="gravityocr-") as folder:
        path = Path(folder) / "stdin"
        with open(path, "wb") as file:
            left = MOST_STDIN_BYTES
            while left > 0 and (piece := sys.stdin.buffer.read(min(left, 2**20))):
                left -= file.write(piece)
        if left == 0:
            raise InputTooLarge("<stdin>", MOST_STDIN_BYTES, MOST_STDIN_BYTES)
        if left == MOST_STDIN_BYTES:
            raise EmptyInput("<stdin>")
        yield path
