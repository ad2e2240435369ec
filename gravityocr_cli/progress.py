"""What a run says on standard error: a bar on a terminal, plain lines or JSON lines elsewhere, nothing when quiet.

Standard output carries only the product.
"""

import contextlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from gravityocr_cli.report import DocumentReport, Method, PageReport
from gravityocr_cli.settings import LogFormat, Settings
from gravityocr_cli.streams import printable, say

if TYPE_CHECKING:
    from rich.progress import Progress


@dataclass
class Tally:
    """The sums of a run, however many documents it has."""

    converted: int = 0
    partial: int = 0
    failed: int = 0
    skipped: int = 0
    pages: int = 0
    seconds: float = 0.0

    def add(self, document: DocumentReport) -> None:
        self.failed += bool(document.error)
        self.skipped += bool(document.skipped)
        self.partial += not document.error and document.lost_parts > 0
        self.converted += not document.error and not document.skipped and document.lost_parts == 0
        self.pages += len(document.pages)

    @property
    def documents(self) -> int:
        return self.converted + self.partial + self.failed + self.skipped

    def sentence(self) -> str:
        rate = f", {self.pages / self.seconds:.2f} pages a second" if self.seconds > 0 else ""
        return (
            f"{self.documents} documents: {self.converted} converted, {self.partial} with losses, {self.failed} failed,"
            f" {self.skipped} skipped; {self.pages} pages in {self.seconds:.1f} s{rate}"
        )


@dataclass
class Log:
    """Tells people, or programs, how a run goes. Use as a context. documents: how many the run has."""

    settings: Settings
    documents: int = 1
    _bar: "Progress | None" = field(default=None, init=False)
    _tasks: dict[str, Any] = field(default_factory=dict, init=False)

    def __enter__(self) -> "Log":
        as_text = self.settings.log_format is LogFormat.TEXT
        if as_text and not self.settings.quiet and not self.settings.verbose and sys.stderr.isatty():
            self._bar = _bar()
            self._bar.start()
            if self.documents > 1:
                self._tasks["all"] = self._bar.add_task("documents", total=self.documents)
        return self

    def __exit__(self, *fault: object) -> None:
        if self._bar is not None:
            with contextlib.suppress(OSError):
                self._bar.stop()

    def page_of(self, name: str) -> Callable[[PageReport, int], None]:
        """A callback for every page of a document that is done."""
        return lambda page, total: self._page(name, page, total)

    def document(self, name: str, document: DocumentReport) -> None:
        """A document is done, or has failed, or was skipped."""
        if self._bar is not None:
            if "page" in self._tasks:
                self._bar.remove_task(self._tasks.pop("page"))
            if "all" in self._tasks:
                self._bar.advance(self._tasks["all"])
        for message in [] if self.settings.quiet else _warnings(document):
            self._say("warning", f"{name}: {message}", document=name, message=message)
        if document.skipped and not self.settings.quiet:
            self._say("skipped", f"{name}: skipped: {document.skipped}", document=name, message=document.skipped)
        if document.error:
            self.error(document.error)
        if self.settings.log_format is LogFormat.JSON and not self.settings.quiet:
            facts = {"seconds": round(document.seconds, 3), "lost_parts": document.lost_parts, "error": document.error}
            self._say("document", "", document=name, output=document.output, pages=len(document.pages), **facts)

    def error(self, message: str) -> None:
        """Something went wrong; said even when quiet."""
        self._say("error", message, message=message)

    def trace(self, stack: str) -> None:
        """Where this program itself went wrong, for those who asked for every detail."""
        for line in stack.splitlines() if self.settings.verbose else ():
            self._say("trace", line, message=line)

    def summary(self, tally: Tally) -> None:
        """The end of a run over several documents."""
        if self.settings.quiet:
            return
        facts = vars(tally) | {"seconds": round(tally.seconds, 3)}
        if self._bar is None:
            self._say("summary", tally.sentence(), **facts)
            return
        from rich.table import Table

        table = Table("", "documents", title=tally.sentence().partition("; ")[2])
        rows = {"converted": "converted", "with losses": "partial", "failed": "failed", "skipped": "skipped"}
        for label, name in rows.items():
            table.add_row(label, str(facts[name]))
        with contextlib.suppress(OSError):
            self._bar.console.print(table)

    def _page(self, name: str, page: PageReport, total: int) -> None:
        if self._bar is not None:
            if "page" not in self._tasks:
                self._tasks["page"] = self._bar.add_task(printable(name), total=total)
            self._bar.advance(self._tasks["page"])
        elif not self.settings.quiet:
            seconds = round(page.prepare_s + page.read_s, 3)
            facts = {"page": page.page, "pages": total, "seconds": seconds, "lost_parts": page.lost_parts}
            self._say("page", _line(name, page, total, self.settings.verbose), document=name, **facts)

    def _say(self, event: str, text: str, **facts: object) -> None:
        if self.settings.log_format is LogFormat.JSON:
            record = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts}
            say(json.dumps(record))
        elif text:
            line = printable(text if event == "page" else f"gravityocr: {text}")
            if self._bar is not None:
                with contextlib.suppress(OSError):  # the terminal has gone
                    self._bar.console.print(line, markup=False, highlight=False, soft_wrap=True)
            else:
                say(line)


def _bar() -> "Progress":
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        Task,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.text import Text

    class Rate(ProgressColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.speed:.2f}/s" if task.speed else "")

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), Rate())
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)


def _line(name: str, page: PageReport, total: int, verbose: bool) -> str:
    line = f"{name}: page {page.page} of {total} pages, {page.prepare_s + page.read_s:.2f} s"
    if verbose:
        counts = {method: sum(region.method is method for region in page.regions) for method in Method}
        line += "; " + ", ".join(f"{count} {method.value}" for method, count in counts.items() if count)
    return line


def _warnings(document: DocumentReport) -> list[str]:
    found = list(document.warnings)
    for page in document.pages:
        if page.lost:
            found.append(f"page {page.page} is lost: {page.lost}")
        found += [f"page {page.page}: {warning}" for warning in page.warnings]
        for region in page.regions:
            if region.warnings:
                where = f"page {page.page}, region {region.order} ({region.method.value})"
                found.append(f"{where}: {'; '.join(region.warnings)}")
    return found
