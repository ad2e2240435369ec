"""The benchmark as a picture: speed-up over plain decoding by batch, and where a page's time goes."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gravityocr_cli.benchpages import PageRow
from gravityocr_cli.errors import UsageError

if TYPE_CHECKING:
    from gravityocr_models.measure import Row

SUFFIXES = (".svg", ".png")


def check(path: Path) -> None:
    """Raises UsageError where no picture can be written: another kind of file, or matplotlib is not installed."""
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--plot {path}: must end in {' or '.join(SUFFIXES)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError("--plot needs matplotlib: pip install 'gravityocr[train]'") from error


def draw(
    path: Path, rows: Sequence["Row"], names: Sequence[str], speedups: Sequence[float], pages: Sequence[PageRow]
) -> None:
    """Writes the picture. names, speedups: of each row of decoding, against plain at the same batch."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    decoding, reading = figure.subplots(1, 2)
    for name in dict.fromkeys(names):
        points = [(row.batch, up) for row, each, up in zip(rows, names, speedups, strict=True) if each == name]
        decoding.plot(*zip(*points, strict=True), marker="o", label=name)
    decoding.set(xscale="log", xlabel="sequences at once", ylabel="times as fast as plain decoding", ylim=0)
    batches = sorted({row.batch for row in rows})
    decoding.set_xticks(batches, [str(batch) for batch in batches])
    decoding.legend(fontsize="small")
    ways = [row.way for row in pages]
    left = [0.0] * len(pages)
    for stage in dict.fromkeys(stage for row in pages for stage in row.stages):
        widths = [row.stages.get(stage, 0.0) / row.pages for row in pages]
        reading.barh(ways, widths, left=left, label=stage)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    whole = [0.0 if row.stages else row.seconds / row.pages for row in pages]
    reading.barh(ways, whole, color="grey")
    reading.set(xlabel="seconds a page")
    if pages:
        reading.legend(fontsize="small")
    figure.savefig(path)
