"""Draw what the trainers wrote down: losses and accuracies, and how well crops were read, over the samples seen.

    python -m gravityocr_models.train.curves ~/.cache/gravityocr/train docs/training.svg

Takes every metrics*.csv and reading*.csv of the folder, older ones renamed by the trainer too. Needs matplotlib.
"""

import argparse
import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

POINTS = 120  # of a curve: more would only make the picture larger

Point = tuple[float, float]
PANELS = {
    "loss (nats)": ("ar", "draft", "glyph", "pointer"),
    "accuracy": ("ar_accuracy", "draft_accuracy", "glyph_accuracy", "pointer_accuracy"),
}


def rows_of(folder: Path, pattern: str) -> list[dict[str, str]]:
    """Rows of all CSVs of that name, by samples seen."""
    rows = [row for file in sorted(folder.glob(pattern)) for row in csv.DictReader(file.read_text().splitlines())]
    return sorted(rows, key=lambda row: int(row["samples"]))


def curve(rows: Iterable[Mapping[str, str]], name: str) -> list[Point]:
    """(samples, value) of a column, where it has a value; neighbours averaged to at most POINTS."""
    known = [(float(row["samples"]), float(row.get(name) or "nan")) for row in rows]
    points = [point for point in known if math.isfinite(point[1])]
    size = max(1, -(-len(points) // POINTS))
    return [centre(points[start : start + size]) for start in range(0, len(points), size)]


def centre(points: Sequence[Point]) -> Point:
    """The mean of points."""
    return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)


def draw(metrics: Sequence[Mapping[str, str]], reading: Sequence[Mapping[str, str]]) -> Figure:
    """Two panels of losses and accuracies, training as a line and validation as dots; a third where crops were read."""
    figure = Figure(figsize=(4.2 * (3 if reading else 2), 3), layout="constrained")
    panels: Any = figure.subplots(1, 3 if reading else 2, squeeze=False)[0]
    for axes, (title, names) in zip(panels, PANELS.items(), strict=False):
        for name in names:
            points = curve((row for row in metrics if row["kind"] == "train"), name)
            (line,) = axes.plot(*zip(*points, strict=True), label=name.removesuffix("_accuracy")) if points else (None,)
            checked = curve((row for row in metrics if row["kind"] == "valid"), name)
            if line and checked:
                axes.plot(*zip(*checked, strict=True), ".", color=line.get_color())
        axes.set_title(title)
    if reading:
        for kind in dict.fromkeys(row["read"] for row in reading):
            points = curve((row for row in reading if row["read"] == kind), "character_error")
            panels[2].plot(*zip(*points, strict=True), ".-", label=kind)
        panels[2].set_title("character error rate")
    for axes in panels:
        axes.set_xlabel("samples")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        if axes.lines:
            axes.legend(fontsize="small")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description="draw the metrics of a training")
    parser.add_argument("folder", type=Path, help="with metrics.csv and reading.csv")
    parser.add_argument("picture", type=Path, help="to be written, as its suffix says")
    options = parser.parse_args()
    metrics, reading = rows_of(options.folder, "metrics*.csv"), rows_of(options.folder, "reading*.csv")
    if not metrics:
        parser.error(f"{options.folder}: no metrics*.csv with a row in it")
    # Text stays text, and the same figures give the same bytes: a picture under version control.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "training"}):
        dated = {"Date": None} if options.picture.suffix == ".svg" else None
        draw(metrics, reading).savefig(options.picture, metadata=dated)


if __name__ == "__main__":
    main()
