"""`gravityocr bench`: plain against speculative decoding on the crops of real pages, and whole pages by stage.

All ways of decoding get the same crops, batches and image tokens, one after the other in one process: the ratios are
what counts, seconds differ from machine to machine.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from gravityocr_cli import benchplot
from gravityocr_cli.benchpages import PageRow, page_rows, places_in
from gravityocr_cli.crops import crops_of
from gravityocr_cli.errors import InputError
from gravityocr_cli.pdf import LostPage, Source
from gravityocr_cli.pipeline import Reader, limits_of
from gravityocr_cli.regions import regions_of
from gravityocr_cli.settings import Settings, TextLayer
from gravityocr_models.records import Crop, LayerUse, Rounds

if TYPE_CHECKING:
    from gravityocr_models.engine import Engine
    from gravityocr_models.measure import Row

SUFFIXES = (".pdf", ".png", ".jpg", ".jpeg")
CROPS, PAGES = 32, 4
BATCHES, BLOCKS = (1, 4, 16, 32), (0, 16)


def run(
    folder: Path,
    *,
    limit: int | None = None,
    pages: int | None = None,
    batches: Sequence[int] | None = None,
    blocks: Sequence[int] | None = None,
    text_layer: TextLayer = TextLayer.OFF,
    peer: bool = True,
    plot: Path | None = None,
    as_json: bool = False,
) -> int:
    """Measures some crops and pages of the folder's documents; prints tables, then one JSON line.

    limit: crops, 0 for all. pages: 0 for none. blocks: mask tokens a round, 0 for as many as pay. peer: transformers
    too. Raises InputError where there is nothing to read, UsageError for a picture that cannot be written.
    """
    if plot is not None:
        benchplot.check(plot)
    from gravityocr_cli.pipeline import load_reader
    from gravityocr_models.measure import peak_memory_mib, prompts_of, rows_of

    engine: Engine = load_reader(Settings())  # type: ignore[assignment]
    paths = [folder] if folder.is_file() else sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)
    crops = list(islice(crops_in(paths, engine), CROPS if limit is None else limit or None))
    if not crops:
        raise InputError(f"{folder}: no page with anything to read")
    layer = LayerUse(text_layer.value)
    prompts, vision_seconds = prompts_of(engine, crops, layer)
    rows = list(rows_of(engine, prompts, batches or BATCHES, BLOCKS if blocks is None else blocks, peer))
    settings = Settings(text_layer=text_layer, images=False)
    read = list(page_rows(engine, places_in(paths, PAGES if pages is None else pages), settings))
    facts = {
        "engine": engine.describe(),
        "crops": len(crops),
        "text_layer": layer.value,
        "vision_seconds": round(vision_seconds, 3),
        "decoding": [_decoding_facts(row, _plain(rows, row)) for row in rows],
        "reading": [_reading_facts(row, read[0]) for row in read],
        "peak_memory_mib": round(peak_memory_mib(), 1),
    }
    if not as_json:
        for table in (_decoding_table(facts, rows), _reading_table(read)):
            Console().print(table)
    if plot is not None:
        benchplot.draw(plot, rows, [_name(row) for row in rows], [_speedup(rows, row) for row in rows], read)
    print(json.dumps(facts))
    return 0


def crops_in(paths: Sequence[Path], engine: Reader) -> Iterator[Crop]:
    """Crops of every page of every document; what can't be read is named on stderr."""
    limits = limits_of(engine)
    for path in paths:
        try:
            with Source(path) as source:
                for sheet in source.sheets(range(1, source.count + 1), engine.dpi):
                    if isinstance(sheet, LostPage):
                        continue
                    for region in regions_of(sheet.page, sheet.found):
                        yield from crops_of(sheet.page, region, limits, trust_layer=False)
        except InputError as error:
            print(f"gravityocr: {error}", file=sys.stderr)


def _plain(rows: Sequence["Row"], row: "Row") -> "Row":
    """What the row is compared with: plain decoding at its batch, for transformers that without a reading."""
    from gravityocr_models.measure import BARE, PEER

    alike = [other for other in rows if other.batch == row.batch and other.way in (Rounds.PLAIN, BARE)]
    return alike[-1 if row.way in (BARE, PEER) else 0]


def _speedup(rows: Sequence["Row"], row: "Row") -> float:
    return _plain(rows, row).seconds / row.seconds


def _name(row: "Row") -> str:
    block = {None: "", 0: ", adaptive"}.get(row.block, f", block {row.block}")
    return row.way + block


def _decoding_facts(row: "Row", plain: "Row") -> dict[str, object]:
    facts = {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(row).items()}
    facts["tokens_a_forward"] = round(row.tokens_a_forward, 3)
    facts["times_as_fast_as_plain"] = round(plain.seconds / row.seconds, 3)
    facts["times_as_fast_as_plain_in_cpu_time"] = round(plain.cpu_seconds / row.cpu_seconds, 3)
    if row.decode_seconds and plain.decode_seconds:
        facts["decode_only_times_as_fast_as_plain"] = round(plain.decode_seconds / row.decode_seconds, 3)
    return facts


def _reading_facts(row: PageRow, plain: PageRow) -> dict[str, object]:
    return {
        "way": row.way,
        "pages": row.pages,
        "seconds_a_page": round(row.seconds / row.pages, 3),
        "pages_a_second": round(row.pages_per_second, 3),
        "times_as_fast_as_plain": round(plain.seconds / row.seconds, 3),
        "stage_seconds_a_page": {stage: round(seconds / row.pages, 4) for stage, seconds in row.stages.items()},
    }


def _decoding_table(facts: dict[str, object], rows: Sequence["Row"]) -> Table:
    title = "{crops} crops, text layer {text_layer}; {engine}; vision {vision_seconds} s".format(**facts)
    table = Table("batch", title=title)
    table.add_column("decoding", no_wrap=True)
    for heading in ("seconds", "without prefill", "against plain", "tokens a forward", "same ids"):
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(
            str(row.batch),
            _name(row),
            f"{row.seconds:.2f}",
            "" if row.decode_seconds is None else f"{row.decode_seconds:.2f}",
            f"{_speedup(rows, row):.2f} x",
            f"{row.tokens_a_forward:.2f}",
            f"{row.same_as_plain}/{facts['crops']}",
            end_section=row is [other for other in rows if other.batch == row.batch][-1],
        )
    return table


def _reading_table(rows: Sequence[PageRow]) -> Table:
    table = Table("seconds a page", title=f"{rows[0].pages if rows else 0} whole pages")
    for row in rows:
        table.add_column(row.way, justify="right")
    table.add_row("all", *(f"{row.seconds / row.pages:.2f}" for row in rows), end_section=True)
    for stage in dict.fromkeys(stage for row in rows for stage in row.stages):
        table.add_row(stage, *(f"{row.stages[stage] / row.pages:.2f}" if row.stages else "" for row in rows))
    return table
