"""`gravityocr convert`: one input or many, each to its own output; one bad file never stops or hides the others.

The model is loaded once, here. PDFs are taken apart by worker processes, which are a few documents ahead of the model;
the model reads one document after the other, so that outputs appear in the order of the inputs.
"""

import contextlib
import functools
import importlib
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path

from gravityocr_cli import checkpoints, errors
from gravityocr_cli.inputs import Job, keep_apart, on_disk, plan_run
from gravityocr_cli.journal import Marker
from gravityocr_cli.output import FileProduct, StdoutProduct, TextProduct, write_atomically
from gravityocr_cli.pipeline import Reader, convert, limits_of, load_reader
from gravityocr_cli.prepared import Pages, plan_of
from gravityocr_cli.progress import Log, Tally
from gravityocr_cli.report import DocumentReport, to_json
from gravityocr_cli.settings import Settings
from gravityocr_cli.workers import Pool, RemotePages, default_jobs


def convert_all(
    inputs: Sequence[str],
    output: str | None,
    settings: Settings,
    report: Path | None = None,
    as_json: bool = False,
) -> int:
    """Converts every input and returns the exit code.

    output: None or "-" for standard output; a file for one input; a folder for several, and wherever one exists.
    as_json: standard output gets the report as one JSON object, with the documents in it where they go to no file.
    Raises UsageError for a senseless output.
    """
    plan = plan_run(inputs, output, f".{settings.format.value}", need_output=not as_json)
    keep_apart(plan.jobs, report)
    jobs = settings.jobs if settings.jobs is not None else default_jobs()
    documents: list[DocumentReport] = []
    tally, started = Tally(), time.perf_counter()
    failure: errors.GravityOcrError | None = None
    with Log(settings, len(plan.jobs)) as log, Pool(jobs) if jobs else contextlib.nullcontext() as pool:
        run = _Run(settings, log, plan.root, pool, as_json)
        if pool:  # while workers open the first document
            threading.Thread(target=importlib.import_module, args=("gravityocr_models.engine",)).start()
        try:
            for begun in run.ahead(plan.jobs):
                document, fault = run.one(begun)
                failure = fault or failure
                tally.add(document)
                log.document(begun.job.name, document)
                if report is not None or as_json:
                    documents.append(document)  # else nobody asks, and a run over thousands must not grow
                if isinstance(fault, errors.ModelError):
                    break  # no other input can fare better
        finally:  # a run that is interrupted reports what it has done
            tally.seconds = time.perf_counter() - started
            if len(plan.jobs) > 1:
                log.summary(tally)
            text = to_json(documents, version("gravityocr")) if report is not None or as_json else ""
            if report is not None:
                write_atomically(report, text)
            if as_json:
                with StdoutProduct() as product:
                    product.write(text)
    if failure is not None:
        alone = len(plan.jobs) == 1 or isinstance(failure, errors.ModelError)
        return failure.exit_code if alone else errors.SOME_FAILED
    return errors.PARTIAL if tally.partial else 0


@dataclass
class _Run:
    """What the documents of one run share."""

    settings: Settings
    log: Log
    root: Path | None
    pool: Pool | None
    as_json: bool

    @functools.cached_property
    def reader(self) -> Reader:
        return load_reader(self.settings)

    @functools.cached_property
    def options(self) -> str:
        """The hash of all that shapes an output beside its input."""
        model = checkpoints.identity(checkpoints.folder_of(self.settings.model, self.settings.device))
        return self.settings.options_hash(version("gravityocr"), model)

    def ahead(self, jobs: Sequence[Job]) -> Iterator["_Begun"]:
        """Every document in order; workers have begun with it, and with a few after it once the model is loaded."""
        begun: deque[_Begun] = deque()
        left = iter(jobs)
        while True:
            while len(begun) < (1 + self.pool.jobs if self.pool and "reader" in vars(self) else 1):
                job = next(left, None)
                if job is None:
                    break
                begun.append(self._begin(job))
            if not begun:
                return
            yield begun.popleft()

    def _begin(self, job: Job) -> "_Begun":
        if job.fault:
            return _Begun(job)
        if job.target is not None and not self.settings.overwrite and job.target.exists():
            return _Begun(job, skip="its output exists")
        marker = self._marker(job)
        if marker is not None and self.settings.resume and marker.holds():
            return _Begun(job, skip="an earlier run has finished it")
        opened = None
        if self.pool is not None and job.in_place and "reader" in vars(self):
            settings = self._settings_of(job)
            plan = plan_of(self.reader.dpi, limits_of(self.reader), settings)
            opened = self.pool.open(Path(job.source), settings, job.name, plan)
        return _Begun(job, marker, opened)

    def _marker(self, job: Job) -> Marker | None:
        if job.target is None or job.read_once or (self.root is None and not self.settings.resume):
            return None
        try:
            source = checkpoints.digest(Path(job.source))
        except OSError:
            return None  # whoever opens the file will say what is wrong with it
        return Marker(self.root or job.target.parent, job.target, source, self.options)

    def _settings_of(self, job: Job) -> Settings:
        return self.settings if job.target is not None else replace(self.settings, images=False)

    def one(self, begun: "_Begun") -> tuple[DocumentReport, errors.GravityOcrError | None]:
        """Converts one document; the error is the one that made it fail."""
        job, started = begun.job, time.perf_counter()
        target = str(job.target or "-")
        fault: errors.GravityOcrError
        if begun.skip:
            return DocumentReport(job.name, target, skipped=begun.skip), None
        try:
            if job.fault:
                raise errors.InputError(job.fault)
            with on_disk(job) as path:
                document = self._converted(begun, path)
            late = errors.TimeLimit(document.error) if document.error else None
            code = late.exit_code if late else errors.PARTIAL if document.lost_parts else 0
            return replace(document, exit_code=code), late
        except errors.UsageError as error:  # pages that this document has not
            fault = errors.UsageError(f"{job.name}: {error}")
        except errors.GravityOcrError as error:
            fault = error
        except Exception as error:  # a fault of this program must not take the other documents with it
            self.log.trace(traceback.format_exc())
            fault = errors.GravityOcrError(f"{job.name}: unexpected error: {error!r}")
        seconds = time.perf_counter() - started
        return DocumentReport(job.name, target, seconds, error=str(fault), exit_code=fault.exit_code), fault

    def _converted(self, begun: "_Begun", path: Path) -> DocumentReport:
        job, settings = begun.job, self._settings_of(begun.job)
        pages: Pages | None = begun.opened or (self.pool.open(path, settings, job.name) if self.pool else None)
        progress, target = self.log.page_of(job.name), str(job.target or "-")
        with self._product(job) as product:
            document = convert(path, product, lambda: self.reader, settings, progress, target, job.name, pages)
        if isinstance(product, TextProduct):
            document = replace(document, content=product.text)
        if begun.marker is not None and isinstance(product, FileProduct) and not document.lost_parts:
            begun.marker.write(product.files)  # a document with losses is read again by the next --resume
        return document

    def _product(self, job: Job) -> FileProduct | StdoutProduct | TextProduct:
        if job.target is not None:
            return FileProduct(job.target, self.settings.images)
        return TextProduct() if self.as_json else StdoutProduct()


@dataclass(frozen=True)
class _Begun:
    """A document whose turn has come or will soon. skip: why nothing is to be done. opened: as far as workers are."""

    job: Job
    marker: Marker | None = None
    opened: RemotePages | None = None
    skip: str = ""
