"""Progress on standard error: a bar on a terminal, plain lines elsewhere. Standard output carries only the product."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from gravityocr_cli.report import Method, PageReport


@contextlib.contextmanager
def shown(name: str, quiet: bool, verbose: bool) -> Iterator[Callable[[PageReport, int], None]]:
    """A callback to tell of every page done."""
    if quiet:
        yield lambda page, total: None
    elif sys.stderr.isatty() and not verbose:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(name, total=None)
            yield lambda page, total: bar.update(task, advance=1, total=total)
    else:
        yield lambda page, total: print(_line(name, page, total, verbose), file=sys.stderr, flush=True)


def _line(name: str, page: PageReport, total: int, verbose: bool) -> str:
    line = f"{name}: page {page.page} of {total} pages, {page.prepare_s + page.read_s:.2f} s"
    if verbose:
        counts = {method: sum(region.method is method for region in page.regions) for method in Method}
        line += "; " + ", ".join(f"{count} {method.value}" for method, count in counts.items() if count)
    return line
