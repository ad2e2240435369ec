"""Documents -> a folder of pages with their true regions, which training reads again and again.

    python -m gravityocr_models.train.layout.pages DATA PAGES --documents /usr/share/doc

DATA/docbank holds papers with DocBank's classes; of the documents, PyMuPDF's layout analysis is the only teacher. That
takes a second a page, so what it says is written down once (`<name>.json`, points) beside the page (`<name>.png`, grey,
its long side SIDE pixels); the regions follow from it when the page is loaded, and unsure pages are passed over.
"""

import argparse
import gzip
import json
import random
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
from numpy.typing import NDArray
from PIL import Image

from gravityocr_models.train.corpora import BANNED
from gravityocr_models.train.layout.labels import Labelled, Painted, true_regions, unlabelled_ink
from gravityocr_models.train.layout.look import Placing, Shown

SIDE = 800
PAGES_OF_A_DOCUMENT = 12  # at most; taken by turns
MOST_UNLABELLED = 0.02  # share of a page's ink outside all regions
_FLAGS = pymupdf.TEXT_MEDIABOX_CLIP | pymupdf.TEXT_PRESERVE_WHITESPACE

FLOATS = {"figure", "table", "caption"}  # pages with some come first: they are the rarer ones

_PUBLAYNET = {"title": "heading", "figure": "picture"}  # it calls every heading a title

Task = tuple[Path, int, list[Any]]


def load_page(path: Path) -> Shown | None:
    """The page of a `.json` file; None where its regions are not sure."""
    facts = json.loads(path.read_text("utf-8"))
    grey = np.asarray(Image.open(path.with_suffix(".png")))
    scale = max(grey.shape) / max(facts["width"], facts["height"])
    regions = _regions(facts)
    if not regions or unlabelled_ink(grey, regions, scale) > MOST_UNLABELLED:
        return None
    return _in_pixels(grey, regions, scale)


def evaluation_page(folder: Path, dpi: float) -> Shown:
    """A page with a layout.json (../shared/eval/layout): DocBank's runs on a PDF, or PubLayNet's boxes on an image."""
    truth = json.loads((folder / "layout.json").read_text("utf-8"))
    if "boxes" in truth:
        grey = np.asarray(Image.open(folder / "page.jpg").convert("L"))
        boxes = [Labelled(_PUBLAYNET.get(row[4], row[4]), tuple(row[:4])) for row in truth["boxes"]]
        return _in_pixels(grey, boxes, grey.shape[1] / truth["width"])
    with pymupdf.open(folder / "page.pdf") as document:
        facts = analyse(document[0], truth["runs"])
        return _in_pixels(_rendered(document[0], dpi / 72), _regions(facts), dpi / 72)


def _regions(facts: dict[str, Any]) -> tuple[Labelled, ...]:
    """What `analyse` says -> regions in points."""
    return true_regions(
        [(tuple(row[:4]), row[4]) for row in facts["boxes"]],
        [Painted(tuple(row[:4]), bool(row[4])) for row in facts["lines"]],
        [tuple(row) for row in facts["images"]],
        [(tuple(row[:4]), row[4]) for row in facts["runs"]],
    )


def _in_pixels(grey: NDArray[np.uint8], regions: Sequence[Labelled], scale: float) -> Shown:
    onto = Placing(scale, 0.0, 0.0, 0.0)
    return Shown(grey, tuple(Labelled(each.label, onto.box(each.box)) for each in regions))


def _rendered(page: pymupdf.Page, zoom: float) -> NDArray[np.uint8]:
    """The page in grey, `zoom` pixels a point."""
    sheet = page.get_pixmap(matrix=pymupdf.Matrix(zoom, zoom), colorspace=pymupdf.csGRAY, alpha=False)
    return np.asarray(Image.frombytes("L", (sheet.width, sheet.height), sheet.samples))


def analyse(page: pymupdf.Page, runs: list[Any]) -> dict[str, Any]:
    """What is known of a page: its size, the analysis' boxes, painted lines, images and DocBank's runs, in points."""
    page.get_layout()
    pymupdf.TOOLS.set_aa_level(8)  # the analysis switches it off
    lines = []
    for block in page.get_text("dict", flags=_FLAGS)["blocks"]:
        for line in block.get("lines", ()):
            spans = [span for span in line["spans"] if span["text"].strip()]
            if spans:
                mono = all(span["flags"] & pymupdf.TEXT_FONT_MONOSPACED for span in spans)
                lines.append([*_rounded(line["bbox"]), int(mono)])
    boxes = [[*_rounded(box[:4]), box[4]] for box in page.layout_information or ()]
    images = [_rounded(image["bbox"]) for image in page.get_image_info()]
    size = {"width": page.rect.width, "height": page.rect.height}
    return {**size, "boxes": boxes, "lines": lines, "images": images, "runs": runs}


def _rounded(box: Any) -> list[float]:
    return [round(float(edge), 1) for edge in box]


def write_page(page: pymupdf.Page, runs: list[Any], path: Path) -> None:
    """Writes `path` (.json) and the picture beside it, the .json last."""
    facts = analyse(page, runs)
    zoom = SIDE / max(page.rect.width, page.rect.height)
    Image.fromarray(_rendered(page, zoom)).save(path.with_suffix(".png"))
    path.write_text(json.dumps(facts), "utf-8")


def tasks(data: Path, documents: Path | None) -> Iterator[Task]:
    """Pages of papers and documents by turns, so that a run that is stopped has some of each. No evaluation pages."""
    papers = [_of_paper(path) for path in sorted((data / "docbank").glob("*.pdf"))]
    others = [_of_document(path) for path in sorted(documents.rglob("*.pdf"))] if documents else []
    rounds = zip(_by_turns(papers), _by_turns([each for each in others if each]), strict=False)
    yield from (task for pair in rounds for task in pair)


def _by_turns(lists: list[list[Task]]) -> list[Task]:
    return [task for turn in zip_longest(*lists) for task in turn if task]


def _of_paper(path: Path) -> list[Task]:
    with gzip.open(path.with_suffix(".json.gz")) as file:
        pages = json.load(file)
    shuffled = _shuffled(path, [(path, number, page["runs"]) for number, page in enumerate(pages)])
    return sorted(shuffled, key=lambda task: not FLOATS & {run[4] for run in task[2]})


def _of_document(path: Path) -> list[Task]:
    if any(word in path.name.lower() for word in BANNED):
        return []
    try:
        with pymupdf.open(path) as document:
            count = len(document)
    except RuntimeError:
        return []
    return _shuffled(path, [(path, number, []) for number in range(count)])[:PAGES_OF_A_DOCUMENT]


def _shuffled(path: Path, pages: list[Task]) -> list[Task]:
    return random.Random(path.name).sample(pages, len(pages))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("pages", type=Path)
    parser.add_argument("--documents", type=Path)
    options = parser.parse_args()
    import pymupdf.layout

    options.pages.mkdir(parents=True, exist_ok=True)
    for path, number, runs in tasks(options.data, options.documents):
        target = options.pages / f"{path.stem}_{number + 1}.json"
        if not target.exists():
            try:
                with pymupdf.open(path) as document:
                    write_page(document[number], runs, target)
            except (RuntimeError, ValueError) as error:
                print(f"{path}, page {number + 1}: {error}")


if __name__ == "__main__":
    main()
