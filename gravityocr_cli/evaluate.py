"""Scores conversions of a folder of pages against their ground truth, by category.

The folder holds `<id>/page.pdf` or `<id>/page.png` with `<id>/truth.json`; what the fields and the scores mean is in
README.md beside the development set. Null truth is not scored; a page that is not converted scores 0 on what it has.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gravityocr_cli.errors import PARTIAL, InputError, MissingInput
from gravityocr_cli.output import TextProduct
from gravityocr_cli.pipeline import convert, load_reader
from gravityocr_cli.settings import Settings, TextLayer
from gravityocr_models.metrics import bag_f1, fold_text, formula_score, heading_f1, table_score, text_similarity

Convert = Callable[[Path], str]
"""A page's path -> its Markdown. What it raises loses the page, not the run."""


@dataclass(frozen=True)
class Truth:
    """What is known of one page. None: nobody wrote the truth. `furniture` may be in the answer or not."""

    id: str
    category: str
    text: str | None = None
    text_order_reliable: bool = True
    furniture: tuple[str, ...] = ()
    tables: tuple[str, ...] | None = None
    formulas: tuple[str, ...] | None = None
    headings: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Scores:
    """From 0 to 1, None where there is no truth: of one page, or means over the pages that have each."""

    text: float | None = None
    bag_f1: float | None = None
    teds: float | None = None
    teds_structure: float | None = None
    math: float | None = None
    headings: float | None = None

    @property
    def overall(self) -> float | None:
        """Mean of text, TEDS and math, as far as they are there."""
        return _mean([self.text, self.teds, self.math])


@dataclass(frozen=True)
class PageScore:
    """One page. surplus_tables: predicted without a partner; seconds: to convert; error: why it failed, else ""."""

    id: str
    category: str
    scores: Scores
    surplus_tables: int = 0
    seconds: float = 0.0
    error: str = ""


def run(folder: Path, *, text_layer: str, limit: int | None, as_json: bool) -> int:
    """Converts and scores the first `limit` pages (all for None); prints the table, or one JSON. Returns the exit code.

    Raises MissingInput or InputError where there is nothing to score, ModelError where there is no model.
    """
    pages = read_pages(folder)[:limit]
    results = list(score_pages(pages, _pipeline(text_layer)))
    print_results(results, as_json)
    return PARTIAL if any(result.error for result in results) else 0


def score_markdown_folder(folder: Path, markdown: Path) -> list[PageScore]:
    """Scores ready-made `<markdown>/<id>.md` files, of whatever converter, against the truth in `folder`."""
    return list(score_pages(read_pages(folder), lambda page: (markdown / f"{page.parent.name}.md").read_text("utf-8")))


def read_pages(folder: Path) -> list[tuple[Path, Truth]]:
    """Every page of the folder with its truth, by name."""
    if not folder.is_dir():
        raise MissingInput(folder)
    pages = [(_page_file(path.parent), _read_truth(path)) for path in sorted(folder.glob("*/truth.json"))]
    if not pages:
        raise InputError(f"{folder}: no folder in it has a truth.json")
    return pages


def _page_file(folder: Path) -> Path:
    found = [folder / name for name in ("page.pdf", "page.png") if (folder / name).exists()]
    if not found:
        raise InputError(f"{folder}: neither page.pdf nor page.png beside truth.json")
    return found[0]


def _read_truth(path: Path) -> Truth:
    try:
        record = json.loads(path.read_text("utf-8"))
        names = {each.name for each in fields(Truth)} & set(record)
        known: dict[str, Any] = {n: tuple(record[n]) if isinstance(record[n], list) else record[n] for n in names}
        return Truth(**known)
    except (ValueError, TypeError) as fault:
        raise InputError(f"{path}: not a truth file ({fault})") from fault


def score_pages(pages: Sequence[tuple[Path, Truth]], converter: Convert) -> Iterator[PageScore]:
    """One score a page, in order, with a line of progress each on stderr."""
    for number, (path, truth) in enumerate(pages, 1):
        started = time.perf_counter()
        try:
            markdown, error = converter(path), ""
        except Exception as fault:  # whatever went wrong, the other pages are still worth scoring
            markdown, error = "", f"{type(fault).__name__}: {fault}"
        seconds = time.perf_counter() - started
        result = replace(score_page(markdown, truth), seconds=round(seconds, 3), error=error)
        overall = _shown(result.scores.overall) or _shown(result.scores.bag_f1) or "-"
        line = f"{number}/{len(pages)} {truth.id} {overall} in {seconds:.1f} s {error}"
        print(line.rstrip(), file=sys.stderr, flush=True)
        yield result


def score_page(markdown: str, truth: Truth) -> PageScore:
    """One page's Markdown against its truth."""
    tables = table_score(markdown, truth.tables) if truth.tables else None
    # A converter may keep running heads and page numbers or drop them: whichever of the two readings is nearer counts.
    readings = {markdown, without_furniture(markdown, truth.furniture)}
    text = truth.text
    scores = Scores(
        text=max(text_similarity(each, text) for each in readings) if text and truth.text_order_reliable else None,
        bag_f1=max(bag_f1(each, text) for each in readings) if text else None,
        teds=tables.teds if tables else None,
        teds_structure=tables.teds_structure if tables else None,
        math=formula_score(markdown, truth.formulas) if truth.formulas else None,
        headings=heading_f1(markdown, truth.headings) if truth.headings else None,
    )
    return PageScore(truth.id, truth.category, scores, surplus_tables=tables.surplus if tables else 0)


def without_furniture(markdown: str, furniture: Sequence[str]) -> str:
    """The Markdown without the lines that say what a running head, foot or page number says."""
    unwanted = {fold_text(text) for text in furniture} - {""}
    return "\n".join(line for line in markdown.split("\n") if fold_text(line) not in unwanted)


def by_category(results: Sequence[PageScore]) -> dict[str, tuple[int, Scores]]:
    """Number of pages and mean scores of each category, by name, and of all under "total"."""
    groups: dict[str, list[PageScore]] = {}
    for result in sorted(results, key=lambda result: result.category):
        groups.setdefault(result.category, []).append(result)
    return {name: (len(group), _means(group)) for name, group in [*groups.items(), ("total", list(results))]}


def _means(results: Sequence[PageScore]) -> Scores:
    return Scores(**{each.name: _mean([getattr(r.scores, each.name) for r in results]) for each in fields(Scores)})


def print_results(results: Sequence[PageScore], as_json: bool) -> None:
    """The table by category on stdout, or one JSON object with pages too."""
    rows = by_category(results)
    if as_json:
        categories = {name: {"pages": count} | _record(scores) for name, (count, scores) in rows.items()}
        pages = [asdict(result) | {"scores": _record(result.scores)} for result in results]
        print(json.dumps({"total": categories.pop("total"), "categories": categories, "pages": pages}, indent=1))
        return
    table = Table("category", "pages", "text", "bag F1", "TEDS", "TEDS-S", "math", "head", "overall")
    for name, (count, scores) in rows.items():
        if name == "total":
            table.add_section()
        table.add_row(name, str(count), *(_shown(value) for value in _record(scores).values()))
    Console(width=max(100, Console().width)).print(table)


def _record(scores: Scores) -> dict[str, Any]:
    return {name: value if value is None else round(value, 4) for name, value in asdict(scores).items()} | {
        "overall": None if scores.overall is None else round(scores.overall, 4)
    }


def _shown(score: float | None) -> str:
    return "" if score is None else f"{100 * score:.1f}"


def _mean(scores: Sequence[float | None]) -> float | None:
    present = [score for score in scores if score is not None]
    return sum(present) / len(present) if present else None


def _pipeline(text_layer: str) -> Convert:
    """The product itself, with its model loaded. Raises ModelError."""
    settings = Settings(text_layer=TextLayer(text_layer))
    engine = load_reader(settings)

    def markdown(page: Path) -> str:
        product = TextProduct()
        convert(page, product, lambda: engine, settings)
        return product.text

    return markdown
