"""How well regions are found, on pages of which something else tells what there was to find.

    python benchmarks/layout_quality.py painted ../shared/eval/dev     born-digital: lines of text in some region
    python benchmarks/layout_quality.py scanned ../shared/eval/dev     the same pages as scans, and their reading order
    python benchmarks/layout_quality.py labelled ../shared/eval/layout regions by label, as scans
    python benchmarks/layout_quality.py drawn                          both, on forms, receipts, slides and CJK pages

Pages go the way that the program takes them (prepare.laid_out or straightened and found_on_scan, then regions_of), at
144 dpi. A scan is the page in grey under the scan look of training, drawn from the page's name; `--clean` goes without,
`--looks 3` draws three, `--least 0.15` is the detector's least score.

A line counts as held where a region covers 70 % of the band that its small letters fill; as read where that region is
neither dropped nor a picture; as doubled where two read it. `in order` is the likeness of the text to the truth, `free`
the F1 of its words: the reader makes no mistakes, a region says what the painted lines say that lie in it.
"""

import argparse
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gravityocr_cli.document import Kind, Line, Page, Region
from gravityocr_cli.evalpages import suite_of
from gravityocr_cli.pdf import Sheet, Source
from gravityocr_cli.prepare import laid_out
from gravityocr_cli.regions import regions_of
from gravityocr_cli.scans import found_on_scan, seen_by
from gravityocr_cli.scoring import Case
from gravityocr_cli.straighten import straightened
from gravityocr_cli.textlayer import draft_of, is_upright
from gravityocr_models.layout import LABELS, LEAST_SCORE, WEIGHTS, Detector, Found
from gravityocr_models.train.layout.drawn import KINDS, drawn_pages
from gravityocr_models.train.layout.labels import Labelled, Rect
from gravityocr_models.train.layout.look import Shown
from gravityocr_models.train.layout.pages import evaluation_page
from gravityocr_models.train.layout.score import average_precision, covered, overlap_of
from gravityocr_models.train.scanlook import scan_look

DPI = 144.0
UNREAD = (Kind.HEADER, Kind.FOOTER, Kind.PICTURE)
SIX = ("text", "heading", "table", "formula", "picture", "caption")

Grey = NDArray[np.uint8]


@dataclass(frozen=True)
class Count:
    """Lines of text on a page: all, held, read, doubled; and its regions."""

    lines: int
    held: int
    read: int
    doubled: int
    regions: int


def painted(options: argparse.Namespace) -> None:
    """A row a page: lines of the text layer against the regions that follow from it, and what of it isn't read."""
    counts = []
    for case, sheet in sheets(options.folder):
        whole = laid_out(sheet)
        parts = [whole, *(small for _, small in whole.asides)]
        found = [(part.page.lines, regions_of(part.page, part.found)) for part in parts]
        counts.append(total([count([core(line) for line in lines], regions) for lines, regions in found]))
        print(row(case.id, counts[-1]), *(line.text for part in found for line in unread(*part)), sep=" | ")
    print(row("all", total(counts)))


def scanned(options: argparse.Namespace) -> None:
    """A row a look of a page: lines, and likeness to the truth in order and free of it."""
    detector = Detector(options.weights)
    counts, columns = [], []
    for case, sheet in sheets(options.folder):
        for look in range(options.looks):
            page = as_scan(sheet.page, None if options.clean else (case.id, look))
            page, regions = read(page, detector, options.least)
            counts.append(count([core(line) for line in sheet.page.lines], regions))
            scores = case.score(spoken(sheet.page.lines, regions)).scores
            likeness = scores.get("text"), scores.get("bag_f1")
            if case.category == "two column":
                columns.append(likeness)
            print(row(case.id, counts[-1]), *(f"{value:.3f}" if value is not None else "-" for value in likeness))
    print(row("all", total(counts)))
    in_order, free = np.mean(np.array(columns, float), axis=0)
    print(f"two columns, {len(columns)} pages: in order {in_order:.3f}, free {free:.3f}, ratio {in_order / free:.3f}")


def labelled(options: argparse.Namespace) -> None:
    """Average precision of the detector, and F1 of the regions after the ink has had its say."""
    folders = [path.parent for path in sorted(options.folder.glob("*/layout.json"))]
    print_labels([(folder.name, evaluation_page(folder, DPI)) for folder in folders], options)


def drawn(options: argparse.Namespace) -> None:
    """Lines and labels, kind by kind."""
    detector = Detector(options.weights)
    for kind in KINDS:
        pages = list(drawn_pages(kind, options.count, DPI))
        counts = []
        for number, each in enumerate(pages):
            for look in range(options.looks):
                shown = looked_at(each.shown.grey, None if options.clean else (f"{kind} {number}", look))
                _, regions = read(page_of(shown), detector, options.least)
                counts.append(count([band(scaled(box, 72 / DPI)) for box in each.lines], regions))
        print(row(kind, total(counts)))
        print_labels([(f"{kind} {number}", each.shown) for number, each in enumerate(pages)], options)


def print_labels(pages: Sequence[tuple[str, Shown]], options: argparse.Namespace) -> None:
    """Two rows: average precision of what the detector finds, F1 of the boxes that are read, by label."""
    detector = Detector(options.weights)
    seen: list[tuple[Sequence[Found], Sequence[Labelled]]] = []
    snapped: list[tuple[Sequence[Found], Sequence[Labelled]]] = []
    for name, shown in pages:
        for look in range(options.looks):
            page = page_of(looked_at(shown.grey, None if options.clean else (name, look)))
            truth = [Labelled(each.label, each.box) for each in shown.regions]
            seen.append((as_truth(name, seen_by(detector, page, 0.05)), truth))
            boxes = found_on_scan(page, seen_by(detector, page, options.least))
            found = [Found(str(each.kind), scaled(astuple(each.box), page.dpi / 72), 1.0) for each in boxes]
            snapped.append((as_truth(name, found), truth))
    precision = {label: average_precision(seen, label) for label in LABELS}
    f1 = {label: f1_of(snapped, label) for label in LABELS}
    for title, scores in (("AP50", precision), ("F1 as read", f1)):
        six = np.nanmean([scores[label] for label in SIX])
        parts = (f"{label} {value:.2f}" for label, value in scores.items() if not np.isnan(value))
        print(f"{title:10} six {six:.3f} |", *parts)


def as_truth(name: str, found: Sequence[Found]) -> list[Found]:
    """The finds, captions as text where the truth calls them so."""
    if not name.startswith("publaynet"):
        return list(found)
    return [replace(each, label="text") if each.label == "caption" else each for each in found]


def f1_of(pages: Sequence[tuple[Sequence[Found], Sequence[Labelled]]], label: str) -> float:
    """F1 of a label's boxes at an overlap of one half; NaN where no page has it."""
    ours = theirs = hits = 0
    for found, truth in pages:
        left = [each.box for each in truth if each.label == label]
        theirs += len(left)
        for box in (each.box for each in found if each.label == label):
            ours += 1
            fits = [other for other in left if overlap_of(box, other) >= 0.5]
            if fits:
                left.remove(max(fits, key=lambda other: overlap_of(box, other)))
                hits += 1
    return 2 * hits / (ours + theirs) if theirs else float("nan")


def sheets(folder: Path) -> Iterator[tuple[Case, Sheet]]:
    """The pages with a truth.json that have painted text."""
    for case in suite_of(folder).cases:
        with Source(case.page) as source:
            (sheet,) = source.sheets((1,), DPI)
            if isinstance(sheet, Sheet) and sheet.page.lines:
                yield case, sheet


def as_scan(page: Page, look: tuple[str, int] | None) -> Page:
    """The page as its pixels alone."""
    grey = np.asarray(np.round(page.pixels.mean(axis=2)), np.uint8)
    return replace(page_of(looked_at(grey, look), page.dpi), width=page.width, height=page.height)


def looked_at(grey: Grey, look: tuple[str, int] | None) -> Grey:
    """The pixels under one scan look of a page, given by its name and a number; as they are without one."""
    return grey if look is None else scan_look(grey, np.random.default_rng([zlib.crc32(look[0].encode()), look[1]]))


def page_of(grey: Grey, dpi: float = DPI) -> Page:
    """A page without painted text."""
    height, width = grey.shape
    return Page(2, width * 72 / dpi, height * 72 / dpi, dpi, np.repeat(grey[..., None], 3, axis=2))


def read(page: Page, detector: Detector, least: float) -> tuple[Page, tuple[Region, ...]]:
    """What scans.read_scan and regions_of make of a scan, with a least score of our own."""
    page = straightened(page)
    return page, regions_of(page, found_on_scan(page, seen_by(detector, page, least)))


def spoken(lines: Sequence[Line], regions: Sequence[Region]) -> str:
    """The text of the regions in their order, from the painted lines; words parted at line ends in one piece."""
    left, texts = list(lines), []
    for region in regions:
        if region.kind not in UNREAD:
            own = [line for line in left if covered([core(line)], boxes([region]))[0]]
            left = [line for line in left if line not in own]
            texts.append((draft_of(own) or "").replace("-\n", "").replace("\n", " "))
    return "\n\n".join(texts)


def unread(lines: Sequence[Line], regions: Sequence[Region]) -> list[Line]:
    """The lines that no region holds but dropped ones and pictures, if any."""
    places = boxes([region for region in regions if region.kind not in UNREAD])
    return [line for line in lines if not covered([core(line)], places)[0]]


def core(line: Line) -> Rect:
    """The band of a line that its small letters fill, in points."""
    box = line.box.x0, line.box.y0, line.box.x1, line.box.y1
    return band(box) if is_upright(line) else box


def band(box: Rect) -> Rect:
    """A line's box without the quarters above and below, which a font keeps free or few letters reach."""
    x0, y0, x1, y1 = box
    return x0, y0 + 0.25 * (y1 - y0), x1, y1 - 0.25 * (y1 - y0)


def boxes(regions: Sequence[Region]) -> list[Rect]:
    return [(each.box.x0, each.box.y0, each.box.x1, each.box.y1) for each in regions]


def scaled(box: Rect, factor: float) -> Rect:
    x0, y0, x1, y1 = (edge * factor for edge in box)
    return x0, y0, x1, y1


def count(lines: Sequence[Rect], regions: Sequence[Region]) -> Count:
    """Lines against regions, both in points."""
    held = np.array(covered(lines, boxes(regions)))
    read = np.array(covered(lines, boxes([region for region in regions if region.kind not in UNREAD])))
    sums = (int(flags.sum()) for flags in (held > 0, read > 0, read > 1))
    return Count(len(lines), *sums, len(regions))


def total(counts: Sequence[Count]) -> Count:
    return Count(*(sum(values) for values in zip(*(astuple(each) for each in counts), strict=True)))


def row(name: str, each: Count) -> str:
    shares = (f"{what} {n / max(each.lines, 1):.4f}" for what, n in (("held", each.held), ("read", each.read)))
    return f"{name:40} lines {each.lines:4} {' '.join(shares)} doubled {each.doubled:3} regions {each.regions:4}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = {each.__name__: each for each in (painted, scanned, labelled, drawn)}
    parser.add_argument("command", choices=commands)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--clean", action="store_true", help="without scan look")
    parser.add_argument("--looks", type=int, default=1)
    parser.add_argument("--least", type=float, default=LEAST_SCORE)
    parser.add_argument("--count", type=int, default=6, help="pages of a kind to draw")
    parser.add_argument("--weights", type=Path, default=WEIGHTS)
    options = parser.parse_args()
    commands[options.command](options)


if __name__ == "__main__":
    main()
