"""`gravityocr bench`: plain against speculative decoding on the crops of real pages.

All ways of decoding get the same crops, batches and image tokens, one after the other in one process: the ratios are
what counts, seconds differ from machine to machine. A token's forwards are counted by a hook on the decoder's first
layer, prefill included, one for each sequence of a batch that takes part.
"""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from gravityocr_cli.crops import crops_of
from gravityocr_cli.errors import InputError
from gravityocr_cli.pdf import LostPage, Source
from gravityocr_cli.pipeline import Reader, limits_of
from gravityocr_cli.regions import regions_of
from gravityocr_cli.settings import Settings, TextLayer
from gravityocr_models.records import Crop, LayerUse, Rounds

if TYPE_CHECKING:
    from gravityocr_models.engine import Engine

SUFFIXES = (".pdf", ".png", ".jpg", ".jpeg")
DEFAULT_CROPS = 64


@dataclass(frozen=True)
class Row:
    """One way of decoding over all crops. same_as_plain: crops whose ids equal those of plain decoding."""

    rounds: str
    decode_seconds: float
    tokens: int
    forwards: int
    batch_forwards: int
    same_as_plain: int

    @property
    def tokens_a_forward(self) -> float:
        return self.tokens / max(1, self.forwards)


def run(
    folder: Path, *, limit: int | None, block: int | None, batch: int | None, text_layer: TextLayer, as_json: bool
) -> int:
    """Measures the first `limit` crops (64 for None) of the folder's documents; prints a table, then one JSON line."""
    from dataclasses import replace

    from gravityocr_cli.pipeline import load_reader

    engine: Engine = load_reader(Settings())  # type: ignore[assignment]
    if batch is not None:
        engine = replace(engine, slots=batch)
    crops = list(islice(crops_in(folder, engine), limit or DEFAULT_CROPS))
    if not crops:
        raise InputError(f"{folder}: no page with anything to read")
    layer = LayerUse(text_layer.value)
    vision_seconds, rows = measure(engine, crops, block, layer)
    facts: dict[str, object] = {
        "crops": len(crops),
        "batch": engine.slots,
        "block": engine.rules(Rounds.FUSED, block).block,
        "text_layer": layer.value,
        "engine": engine.describe(),
        "vision_seconds": round(vision_seconds, 3),
        "rows": [_as_row(row, rows[0]) for row in rows],
    }
    if not as_json:
        Console().print(_table(facts, rows))
    print(json.dumps(facts))
    return 0


def crops_in(folder: Path, engine: Reader) -> Iterator[Crop]:
    """Crops of every page of every document under the folder, by path; what can't be read is named on stderr."""
    paths = [folder] if folder.is_file() else sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)
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


def measure(engine: "Engine", crops: Sequence[Crop], block: int | None, layer: LayerUse) -> tuple[float, list[Row]]:
    """Seconds of the vision encoder, and a row each for plain, two-forward and fused decoding."""
    from gravityocr_models.engine import by_length
    from gravityocr_models.speculate import decode

    model = engine.checkpoint.model
    started = time.perf_counter()
    prompts = list(by_length(dict(enumerate(engine.prompts(crops, layer)))).values())
    vision_seconds = time.perf_counter() - started
    batch_forwards = 0

    def count(*_: object) -> None:
        nonlocal batch_forwards
        batch_forwards += 1

    hook = model.model.language_model.layers[0].register_forward_hook(count)
    decode(model, prompts[-1:], engine.rules(Rounds.FUSED, block))  # first calls are slow
    plain: list[list[int]] = []
    rows = []
    for rounds in Rounds:
        batch_forwards = 0
        started = time.perf_counter()
        answers = decode(model, prompts, engine.rules(rounds, block), engine.slots)
        seconds = time.perf_counter() - started
        ids = [answer.ids for answer in answers]
        plain = plain or ids
        same = sum(a == b for a, b in zip(ids, plain, strict=True))
        tokens, forwards = sum(map(len, ids)), sum(len(answer.committed) for answer in answers)
        rows.append(Row(rounds.value, seconds, tokens, forwards, batch_forwards, same))
    hook.remove()
    return vision_seconds, rows


def _as_row(row: Row, plain: Row) -> dict[str, object]:
    return asdict(row) | {
        "decode_seconds": round(row.decode_seconds, 3),
        "tokens_a_forward": round(row.tokens_a_forward, 3),
        "decode_speedup_over_plain": round(plain.decode_seconds / row.decode_seconds, 3),
    }


def _table(facts: dict[str, object], rows: Sequence[Row]) -> Table:
    title = "{crops} crops, batch {batch}, block {block}, text layer {text_layer}; {engine}".format(**facts)
    table = Table(title=title, caption=f"vision: {facts['vision_seconds']} s for all rows")
    for heading in ("decoding", "seconds", "against plain", "tokens", "tokens a forward", "same ids as plain"):
        table.add_column(heading, justify="left" if heading == "decoding" else "right")
    for row in rows:
        table.add_row(
            row.rounds,
            f"{row.decode_seconds:.2f}",
            f"{rows[0].decode_seconds / row.decode_seconds:.2f} x",
            str(row.tokens),
            f"{row.tokens_a_forward:.2f}",
            f"{row.same_as_plain}/{facts['crops']}",
        )
    return table
