"""Formula images: a TSV of names and LaTeX (`formulas.tsv`) beside a folder of images, `crops/<name>.png`.

The engine reads each image as a formula, without layout analysis or clean-up: this measures the model alone.
"""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from PIL import Image
from rich.table import Table

from gravityocr_cli import cdm
from gravityocr_cli.crops import Limits, crops_of
from gravityocr_cli.document import Kind, Page, Region
from gravityocr_cli.errors import InputError
from gravityocr_cli.scoring import mean, print_table, rounded, shown
from gravityocr_models.latex import tokens
from gravityocr_models.metrics import bleu4, similarity
from gravityocr_models.records import Crop, Decoded
from gravityocr_models.signs import Box

IMAGE_DPI = 200  # of the images, about
Read = Callable[[Sequence[Crop]], list[Decoded]]


@dataclass(frozen=True)
class FormulaCase:
    """One image and its formula."""

    name: str
    latex: str
    image: Path


@dataclass(frozen=True)
class FormulaResult:
    """What the model read. exact: the same normalised tokens. similarity: 1 - their relative edit distance. cdm: None
    where LaTeX is missing or cannot set the truth."""

    name: str
    truth: str
    read: str
    exact: bool
    similarity: float
    error: str = ""
    cdm: float | None = None


@dataclass(frozen=True)
class FormulaScores:
    """Over all images, from 0 to 1. bleu4: of the corpus of normalised tokens. cdm: of those that have one. failed:
    images without an answer."""

    images: int
    exact: float
    bleu4: float
    similarity: float
    cdm: float | None
    failed: int


def tsv_of(folder: Path) -> Path | None:
    """The list of formulas that the folder is about; None where it is about something else."""
    return next(iter(sorted(folder.glob("*.tsv"))), None) if (folder / "crops").is_dir() else None


def read_list(path: Path) -> list[FormulaCase]:
    """The formulas, in order. Raises InputError."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
        cases = [FormulaCase(row["name"], row["latex"], path.parent / "crops" / f"{row['name']}.png") for row in rows]
    except (OSError, ValueError, KeyError, csv.Error) as fault:
        raise InputError(f"{path}: not a list of formulas with the columns name and latex ({fault!r})") from fault
    if not cases:
        raise InputError(f"{path}: no formulas in it")
    return cases


def score_images(cases: Sequence[FormulaCase], read: Read, dpi: float, limits: Limits) -> list[FormulaResult]:
    """A result for each image, in order. dpi: at which the model wants its crops."""
    crops: list[tuple[int, Crop]] = []
    errors: dict[int, str] = {}
    for number, case in enumerate(cases):
        try:
            crops += [(number, crop) for crop in _crops(case.image, dpi, limits)]
        except OSError as fault:
            errors[number] = f"{type(fault).__name__}: {fault}"
    answers = dict(zip((number for number, _ in crops), read([crop for _, crop in crops]), strict=True))
    return [
        score_formula(case, answers[number] if number in answers else errors.get(number, "nothing to see"))
        for number, case in enumerate(cases)
    ]


def _crops(image: Path, dpi: float, limits: Limits) -> tuple[Crop, ...]:
    with Image.open(image) as opened:
        shown = opened.convert("RGB")
    size = tuple(max(1, round(side * dpi / IMAGE_DPI)) for side in shown.size)
    pixels = np.asarray(shown.resize((size[0], size[1]), Image.Resampling.LANCZOS))
    width, height = size[0] * 72 / dpi, size[1] * 72 / dpi
    page = Page(1, width, height, dpi, pixels)
    return crops_of(page, Region(1, 0, Kind.FORMULA, Box(0, 0, width, height)), limits, trust_layer=False)


def score_formula(case: FormulaCase, answer: Decoded | str) -> FormulaResult:
    """One answer, or the reason why there is none, against the formula."""
    if isinstance(answer, str):
        return FormulaResult(case.name, case.latex, "", False, 0.0, answer)
    ours, theirs = tokens(answer.text), tokens(case.latex)
    error = "the answer ran into the token limit" if answer.truncated else ""
    return FormulaResult(case.name, case.latex, answer.text, ours == theirs, similarity(ours, theirs), error)


def with_cdm(results: Sequence[FormulaResult]) -> list[FormulaResult]:
    """The results with their CDM, as far as there can be one."""
    if cdm.missing():
        return list(results)
    scores = cdm.cdm_scores([(result.read, result.truth) for result in results])
    return [replace(result, cdm=score) for result, score in zip(results, scores, strict=True)]


def totals(results: Sequence[FormulaResult]) -> FormulaScores:
    """The figures of the whole list (at least one result)."""
    count = len(results)
    return FormulaScores(
        images=count,
        exact=sum(result.exact for result in results) / count,
        bleu4=bleu4([(tokens(result.read), tokens(result.truth)) for result in results]),
        similarity=sum(result.similarity for result in results) / count,
        cdm=mean([result.cdm for result in results]),
        failed=sum(bool(result.error) for result in results),
    )


def print_results(results: Sequence[FormulaResult], as_json: bool) -> None:
    """A table on stdout, or one JSON object with every image."""
    scores = totals(results)
    unset = sum(result.cdm is None for result in results)
    remark = f"no CDM: {cdm.missing()}" if cdm.missing() else f"CDM without {unset} formulas that LaTeX cannot set"
    if as_json:
        images = [asdict(result) | rounded({"similarity": result.similarity, "cdm": result.cdm}) for result in results]
        print(json.dumps({"total": asdict(scores), "remark": remark, "images": images}, ensure_ascii=False, indent=1))
        return
    table = Table("images", "exact", "BLEU-4", "edit similarity", "CDM", "failed", caption=remark)
    figures = (shown("", value) for value in (scores.exact, scores.bleu4, scores.similarity, scores.cdm))
    table.add_row(str(scores.images), *figures, str(scores.failed))
    print_table(table)
