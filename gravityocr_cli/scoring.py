"""What `gravityocr eval` has in common over every kind of truth: cases, their results, means by category, the table.

A case knows how to score a Markdown page; a suite knows what its columns are called and what makes up `overall`.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from gravityocr_cli.report import RegionReport

Scores = Mapping[str, float | None]
"""By name, from 0 to 1; None where there is no truth. Names that end in `_edit` are distances: less is better."""


@dataclass(frozen=True)
class Scored:
    """The scores of one page, and what else is worth knowing (surplus tables, failed unit tests)."""

    scores: Scores
    notes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One page. page: its file. truth: (heading, text) of what is known, for people. score: of the page's Markdown."""

    id: str
    category: str
    page: Path
    truth: tuple[tuple[str, str], ...]
    score: Callable[[str], Scored]


@dataclass(frozen=True)
class Suite:
    """A set of cases. columns: score -> heading. overall: of one page's or of mean scores. remark: under the table."""

    cases: tuple[Case, ...]
    columns: Mapping[str, str]
    overall: Callable[[Scores], float | None]
    remark: str = ""


@dataclass(frozen=True)
class Reading:
    """A page as converted. regions: what the pipeline's report says, in points; none for a ready-made Markdown."""

    markdown: str
    regions: tuple[RegionReport, ...] = ()


Convert = Callable[[Case], Reading]
"""A case -> its page's Markdown. What it raises loses the page, not the run."""


@dataclass(frozen=True)
class Result:
    """One page scored. seconds: to convert. error: why it failed, else ""."""

    case: Case
    reading: Reading
    scores: Scores
    overall: float | None
    notes: Mapping[str, Any]
    seconds: float = 0.0
    error: str = ""


def score_all(suite: Suite, convert: Convert) -> Iterator[Result]:
    """One result a case, in order, with a line of progress each on stderr. A page that is not converted is empty."""
    for number, case in enumerate(suite.cases, 1):
        started = time.perf_counter()
        try:
            reading, error = convert(case), ""
        except Exception as fault:  # whatever went wrong, the other pages are still worth scoring
            reading, error = Reading(""), f"{type(fault).__name__}: {fault}"
        seconds = time.perf_counter() - started
        scored = case.score(reading.markdown)
        overall = suite.overall(scored.scores)
        yield Result(case, reading, scored.scores, overall, scored.notes, round(seconds, 3), error)
        line = f"{number}/{len(suite.cases)} {case.id} {shown('', overall)} in {seconds:.1f} s {error}"
        print(line.rstrip(), file=sys.stderr, flush=True)


def by_category(suite: Suite, results: Sequence[Result]) -> dict[str, tuple[int, Scores]]:
    """Number of pages and mean scores (with `overall`) of each category, by name, and of all under "total"."""
    groups: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda result: result.case.category):
        groups.setdefault(result.case.category, []).append(result)
    return {name: (len(group), _means(suite, group)) for name, group in [*groups.items(), ("total", list(results))]}


def _means(suite: Suite, results: Sequence[Result]) -> Scores:
    means = {name: mean([result.scores.get(name) for result in results]) for name in suite.columns}
    return means | {"overall": suite.overall(means)}


def mean(scores: Sequence[float | None]) -> float | None:
    """Mean of those that are there; None where none is."""
    present = [score for score in scores if score is not None]
    return sum(present) / len(present) if present else None


def as_table(suite: Suite, results: Sequence[Result]) -> Table:
    """The means by category, for a terminal."""
    table = Table("category", "pages", *suite.columns.values(), "overall", caption=suite.remark or None)
    for name, (count, scores) in by_category(suite, results).items():
        if name == "total":
            table.add_section()
        table.add_row(name, str(count), *(shown(key, scores[key]) for key in (*suite.columns, "overall")))
    return table


def print_table(table: Table) -> None:
    """On stdout, and never so narrow that figures are cut."""
    Console(width=max(120, Console().width)).print(table)


def as_json(suite: Suite, results: Sequence[Result]) -> dict[str, Any]:
    """Everything as one object: `total`, `categories` and `pages`."""
    rows = {name: {"pages": count} | rounded(scores) for name, (count, scores) in by_category(suite, results).items()}
    return {"total": rows.pop("total"), "categories": rows, "remark": suite.remark, "pages": [*map(_page, results)]}


def _page(result: Result) -> dict[str, Any]:
    scores = rounded({**result.scores, "overall": result.overall})
    about = {"id": result.case.id, "category": result.case.category}
    return about | {"scores": scores, **result.notes, "seconds": result.seconds, "error": result.error}


def rounded(scores: Scores) -> dict[str, float | None]:
    """Scores with four digits after the point."""
    return {name: value if value is None else round(value, 4) for name, value in scores.items()}


def shown(name: str, score: float | None) -> str:
    """A similarity as a percentage, a distance as it is; a dash for None."""
    if score is None:
        return "-"
    return f"{score:.3f}" if name.endswith("_edit") else f"{100 * score:.1f}"
