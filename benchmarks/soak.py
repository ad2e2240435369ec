"""Memory over many documents, or over one long one: a curve as a picture, and one JSON line.

    python benchmarks/soak.py --documents 300            a folder of one-page PDFs, read by the fake engine of the tests
    python benchmarks/soak.py --pages 500                one document of as many pages
    python benchmarks/soak.py --pages 500 --rows 6 --real --picture docs/memory-500-pages.svg    with the shipped model

Measures the main process and its workers together (resident set, summed, twice a second) while `convert` runs on
synthetic documents. The bar: at the end no more than 10 % above what it was after a tenth of the work.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pymupdf

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1)
    parser.add_argument("--pages", type=int, default=1)
    parser.add_argument("--rows", type=int, default=40, help="lines of text on a page: the model's work")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--real", action="store_true", help="the shipped model and the real layout analysis")
    parser.add_argument("--picture", type=Path, default=Path("out/memory.svg"), help="PNG or SVG")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_documents(place / "in", options.documents, options.pages, options.rows)
        program = [sys.executable, "-m", "gravityocr_cli"]
        program = program if options.real else [sys.executable, str(ROOT / "tests" / "fake_program.py")]
        command = [*program, "convert", str(place / "in"), "-o", str(place / "out"), "--jobs", str(options.jobs)]
        curve, code = measure([*command, "--log-format", "json"])
    model = "the shipped model" if options.real else "a fake model"
    draw(curve, options.picture, f"{options.documents} x {options.pages} pages of {options.rows} lines, {model}")
    early, late = at(curve, 0.1), at(curve, 0.98)
    facts = {
        "documents": options.documents,
        "pages": options.pages,
        "exit_code": code,
        "seconds": round(curve[-1][0], 1),
    }
    print(
        json.dumps(facts | {"early_mib": round(early), "late_mib": round(late), "growth": round(late / early - 1, 3)})
    )
    return int(code != 0 or late > 1.1 * early)


def write_documents(folder: Path, documents: int, pages: int, rows: int) -> None:
    """Synthetic documents: a page of text and a drawing each."""
    folder.mkdir()
    for number in range(documents):
        with pymupdf.open() as document:
            for page_number in range(pages):
                page = document.new_page()
                for row in range(rows):
                    page.insert_text(
                        (72, 72 + 14 * row), f"Document {number}, page {page_number}, row {row}.", fontsize=10
                    )
                page.draw_rect((72, 650, 300, 750), fill=(0.3, 0.2, page_number % 10 / 10))
            document.save(folder / f"{number:04}.pdf", deflate=True)


def measure(command: list[str]) -> tuple[list[tuple[float, int, float]], int]:
    """(seconds, pages done, MiB) twice a second while the command runs, and its exit code."""
    curve: list[tuple[float, int, float]] = []
    started, pages = time.perf_counter(), 0
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:

        def watch() -> None:
            while process.poll() is None:
                curve.append((time.perf_counter() - started, pages, resident(process.pid)))
                time.sleep(0.5)

        watcher = threading.Thread(target=watch)
        watcher.start()
        assert process.stderr is not None
        for line in process.stderr:
            pages += json.loads(line).get("event") == "page"
        process.wait()
        watcher.join()
    return curve, process.returncode


def resident(pid: int) -> float:
    """MiB of a process and its children, from /proc; 0 for what has just ended."""
    try:
        kib = re.search(r"VmRSS:\s*(\d+)", Path(f"/proc/{pid}/status").read_text())
        children = [
            child for each in Path(f"/proc/{pid}/task").glob("*/children") for child in each.read_text().split()
        ]
    except OSError:
        return 0.0
    return (int(kib[1]) / 2**10 if kib else 0.0) + sum(resident(int(child)) for child in children)


def at(curve: list[tuple[float, int, float]], share: float) -> float:
    """The median MiB around the moment when this share of the pages was done."""
    wanted = share * curve[-1][1]
    place = next(index for index, (_, pages, _) in enumerate(curve) if pages >= wanted)
    near = sorted(mib for _, _, mib in curve[max(0, place - 3) : place + 4])
    return near[len(near) // 2]


def draw(curve: list[tuple[float, int, float]], path: Path, title: str) -> None:
    """The curve as a picture, in the format that the name asks for."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.fonttype"] = "none"  # text as text: a small file
    path.parent.mkdir(parents=True, exist_ok=True)
    figure, axes = pyplot.subplots(figsize=(8, 4))
    some = curve[:: len(curve) // 400 + 1]
    axes.plot([pages for _, pages, _ in some], [mib for _, _, mib in some])
    axes.set(xlabel="pages done", ylabel="MiB, with workers", title=title, ylim=(0, None))
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    sys.exit(main())
