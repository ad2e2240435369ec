"""Pages with a truth.json: `<id>/page.pdf` or `<id>/page.png` beside it.

What the fields and the scores mean is in README.md beside the development set. Null truth is not scored; a page that is
not converted scores 0 on what it has.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

from gravityocr_cli.errors import InputError, MissingInput
from gravityocr_cli.scoring import Case, Scored, Scores, Suite, mean
from gravityocr_cli.unittests import UnitTest, failed, read_test
from gravityocr_models.metrics import bag_f1, fold_text, formula_score, heading_f1, table_score, text_similarity

COLUMNS = {
    "text": "text",
    "bag_f1": "bag F1",
    "teds": "TEDS",
    "teds_structure": "TEDS-S",
    "math": "math",
    "headings": "head",
    "tests": "tests",
}


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
    tests: tuple[UnitTest, ...] | None = None


def suite_of(folder: Path) -> Suite:
    """Every page of the folder, by name. Raises MissingInput or InputError where there is nothing to score."""
    if not folder.is_dir():
        raise MissingInput(folder)
    cases = tuple(_case(path) for path in sorted(folder.glob("*/truth.json")))
    if not cases:
        raise InputError(f"{folder}: no folder in it has a truth.json")
    return Suite(cases, COLUMNS, overall)


def overall(scores: Scores) -> float | None:
    """Mean of text, TEDS and math, as far as they are there."""
    return mean([scores.get("text"), scores.get("teds"), scores.get("math")])


def _case(path: Path) -> Case:
    pages = [page for name in ("page.pdf", "page.png") if (page := path.parent / name).exists()]
    if not pages:
        raise InputError(f"{path.parent}: neither page.pdf nor page.png beside truth.json")
    truth = _read_truth(path)
    parts = [("text", truth.text or ""), ("headings", "\n".join(truth.headings or ()))]
    parts += [("table", table) for table in truth.tables or ()]
    parts += [("formula", formula) for formula in truth.formulas or ()]
    return Case(
        truth.id, truth.category, pages[0], tuple(part for part in parts if part[1]), partial(score_page, truth)
    )


def _read_truth(path: Path) -> Truth:
    try:
        record = json.loads(path.read_text("utf-8"))
        names = {each.name for each in fields(Truth)} & set(record)
        known: dict[str, Any] = {n: tuple(record[n]) if isinstance(record[n], list) else record[n] for n in names}
        if known.get("tests"):
            known["tests"] = tuple(map(read_test, known["tests"]))
        return Truth(**known)
    except (ValueError, TypeError, AttributeError) as fault:
        raise InputError(f"{path}: not a truth file ({fault})") from fault


def score_page(truth: Truth, markdown: str) -> Scored:
    """One page's Markdown against its truth."""
    tables = table_score(markdown, truth.tables) if truth.tables else None
    # A converter may keep running heads and page numbers or drop them: whichever of the two readings is nearer counts.
    readings = {markdown, without_furniture(markdown, truth.furniture)}
    text = truth.text
    missed = failed(markdown, truth.tests) if truth.tests else []
    scores: dict[str, float | None] = {
        "text": max(text_similarity(each, text) for each in readings) if text and truth.text_order_reliable else None,
        "bag_f1": max(bag_f1(each, text) for each in readings) if text else None,
        "teds": tables.teds if tables else None,
        "teds_structure": tables.teds_structure if tables else None,
        "math": formula_score(markdown, truth.formulas) if truth.formulas else None,
        "headings": heading_f1(markdown, truth.headings) if truth.headings else None,
        "tests": 1 - len(missed) / len(truth.tests) if truth.tests else None,
    }
    notes = {"surplus_tables": tables.surplus if tables else 0, "failed_tests": [test.id for test in missed]}
    return Scored(scores, notes)


def without_furniture(markdown: str, furniture: Sequence[str]) -> str:
    """The Markdown without the lines that say what a running head, foot or page number says."""
    unwanted = {fold_text(text) for text in furniture} - {""}
    return "\n".join(line for line in markdown.split("\n") if fold_text(line) not in unwanted)
