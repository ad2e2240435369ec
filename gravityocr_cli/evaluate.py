"""`gravityocr eval`: converts pages with known content and scores the result, by category.

Takes a folder of truth.json pages (evalpages.py), OmniDocBench's JSON or the folder that holds it (omnidocbench.py),
or a list of formula images (evalcrops.py); with ready-made Markdown instead of the pipeline where there is some.
"""

import json
from dataclasses import replace
from pathlib import Path

from gravityocr_cli import evalcrops, evalpages, evalreport, omnidocbench
from gravityocr_cli.errors import PARTIAL, UsageError
from gravityocr_cli.output import TextProduct, write_atomically
from gravityocr_cli.pipeline import Reader, convert, limits_of, load_reader
from gravityocr_cli.scoring import Case, Convert, Reading, Suite, as_table, print_table, score_all
from gravityocr_cli.scoring import as_json as json_of
from gravityocr_cli.settings import Settings, TextLayer
from gravityocr_models.records import LayerUse

BENCHMARK = "OmniDocBench.json"


def run(
    folder: Path,
    *,
    text_layer: str = "auto",
    limit: int | None = None,
    as_json: bool = False,
    report_html: Path | None = None,
    predictions: Path | None = None,
    settings: Settings | None = None,
) -> int:
    """Scores the first `limit` pages or images (all for None); prints a table, or one JSON. Returns the exit code.

    report_html: where to write the worst pages for looking at. predictions: folder of `<id>.md` of whatever converter,
    scored instead of running the pipeline. settings: model, device and the like for the pipeline.

    Raises MissingInput or InputError where there is nothing to score, ModelError where there is no model, CannotWrite
    for the report, UsageError for options that the kind of truth has no use for.
    """
    settings = replace(settings or Settings(), text_layer=TextLayer(text_layer))
    formulas = evalcrops.tsv_of(folder)
    if formulas is not None:
        if report_html or predictions:
            raise UsageError("--report-html and --predictions are for pages; this folder holds formula images")
        return _run_crops(formulas, load_reader(settings), limit, as_json)
    suite = suite_of(folder)
    suite = replace(suite, cases=suite.cases[:limit])
    results = list(score_all(suite, _ready_made(predictions) if predictions else _pipeline(settings)))
    if as_json:
        print(json.dumps(json_of(suite, results), indent=1))
    else:
        print_table(as_table(suite, results))
    if report_html:
        write_atomically(report_html, evalreport.page_of(f"{folder}", suite, results))
    return PARTIAL if any(result.error for result in results) else 0


def suite_of(path: Path) -> Suite:
    """The pages to score. Raises MissingInput or InputError where there are none."""
    benchmark = path if path.suffix == ".json" else path / BENCHMARK
    return omnidocbench.suite_of(benchmark) if benchmark.is_file() else evalpages.suite_of(path)


def _run_crops(formulas: Path, engine: Reader, limit: int | None, as_json: bool) -> int:
    cases = evalcrops.read_list(formulas)[:limit]
    results = evalcrops.score_images(
        cases, lambda crops: engine.read(crops, layer=LayerUse.OFF), engine.dpi, limits_of(engine)
    )
    evalcrops.print_results(evalcrops.with_cdm(results), as_json)
    return PARTIAL if any(result.error for result in results) else 0


def _ready_made(folder: Path) -> Convert:
    return lambda case: Reading((folder / f"{case.id}.md").read_text("utf-8"))


def _pipeline(settings: Settings) -> Convert:
    """The product itself, with its model loaded. Raises ModelError."""
    engine = load_reader(settings)

    def read(case: Case) -> Reading:
        product = TextProduct()
        report = convert(case.page, product, lambda: engine, settings)
        return Reading(product.text, report.pages[0].regions if report.pages else ())

    return read
