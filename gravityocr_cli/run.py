"""`gravityocr convert`: one input or many, each to its own output; one bad file never stops or hides the others."""

import functools
import sys
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path

from gravityocr_cli import errors
from gravityocr_cli.output import FileProduct, StdoutProduct, write_atomically
from gravityocr_cli.pipeline import Reader, convert, load_reader
from gravityocr_cli.progress import shown
from gravityocr_cli.report import DocumentReport, to_json
from gravityocr_cli.settings import Settings


def convert_all(
    inputs: Sequence[Path], output: str | None, settings: Settings, report: Path | None, quiet: bool, verbose: bool
) -> int:
    """Converts every input and returns the exit code.

    output: None or "-" for standard output; a file for one input; a folder for several, and wherever one exists.
    Raises the error of a single input, so that its own code reaches the shell, and UsageError for a senseless output.
    """
    targets = targets_of(inputs, output)
    reader = functools.cache(lambda: load_reader(settings))
    documents = []
    failure: errors.GravityOcrError | None = None
    for path, target in zip(inputs, targets, strict=True):
        started = time.perf_counter()
        try:
            documents.append(_convert_one(path, target, settings, reader, quiet, verbose))
        except errors.GravityOcrError as error:
            failure = error
            documents.append(
                DocumentReport(str(path), str(target or "-"), time.perf_counter() - started, error=str(error))
            )
            if len(inputs) > 1:
                print(f"gravityocr: {error}", file=sys.stderr)
            if isinstance(error, errors.ModelError):
                break  # no other input can fare better
    if report is not None:
        write_atomically(report, to_json(documents, version("gravityocr")).encode())
    if failure is not None and (len(inputs) == 1 or isinstance(failure, errors.ModelError)):
        raise failure
    if failure is not None:
        return errors.SOME_FAILED
    return errors.PARTIAL if any(document.lost_parts for document in documents) else 0


def targets_of(inputs: Sequence[Path], output: str | None) -> list[Path | None]:
    """The Markdown file of each input, all different; None for standard output."""
    if output is None or output == "-":
        if len(inputs) > 1:
            raise errors.UsageError("several inputs need a folder for their outputs: -o FOLDER")
        return [None]
    if len(inputs) == 1 and not Path(output).is_dir() and not output.endswith("/"):
        return [Path(output)]
    targets: list[Path | None] = []
    for path in inputs:
        target, count = Path(output) / f"{path.stem}.md", 1
        while target in targets:
            count += 1
            target = Path(output) / f"{path.stem}-{count}.md"
        targets.append(target)
    return targets


def _convert_one(
    path: Path, target: Path | None, settings: Settings, reader: Callable[[], Reader], quiet: bool, verbose: bool
) -> DocumentReport:
    with (
        shown(path.name, quiet, verbose) as progress,
        StdoutProduct() if target is None else FileProduct(target, settings.images) as product,
    ):
        document = convert(path, product, reader, settings, progress, str(target or "-"))
    if not quiet:
        _warn(path, document)
    return document


def _warn(path: Path, document: DocumentReport) -> None:
    for warning in document.warnings:
        print(f"gravityocr: {path}: {warning}", file=sys.stderr)
    for page in document.pages:
        if page.lost:
            print(f"gravityocr: {path}: page {page.page} is lost: {page.lost}", file=sys.stderr)
        for region in page.regions:
            if region.warnings:
                where = f"page {page.page}, region {region.order} ({region.method.value})"
                print(f"gravityocr: {path}: {where}: {'; '.join(region.warnings)}", file=sys.stderr)
