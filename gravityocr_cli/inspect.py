"""`gravityocr inspect`: one page as a self-contained HTML file, to see why it came out as it did.

The page with its regions in reading order; what was read in each, coloured by the forward pass that committed it (a
long stretch of one colour is a draft that was accepted); and the Markdown.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from gravityocr_cli.errors import UsageError
from gravityocr_cli.evalreport import head, picture_of
from gravityocr_cli.output import TextProduct, write_atomically
from gravityocr_cli.pdf import LostPage, Source
from gravityocr_cli.pipeline import Reader, convert, load_reader
from gravityocr_cli.report import PageReport, RegionReport
from gravityocr_cli.settings import PageRanges, Settings
from gravityocr_models.records import Crop, Decoded, LayerUse, Rounds

if TYPE_CHECKING:
    from gravityocr_models.engine import Engine

Detokenize = Callable[[Sequence[int]], str]
PICTURE_DPI = 120.0
_COLOURS = ("#ffe08a", "#b5e3b5", "#b9d6ff", "#f6c1d5", "#d9c7f2", "#ffd2ad")


def run(path: Path, page: int, output: Path, settings: Settings | None = None) -> int:
    """Reads one page (from 1) of a document and writes the HTML file. Returns the exit code.

    Raises UsageError for a page that isn't there, the input's, the model's and the output's errors.
    """
    settings = replace(settings or Settings(), pages=PageRanges(((page, page),)))
    with Source(path, settings.password) as source:
        if not 1 <= page <= source.count:
            raise UsageError(f"--page {page}: the document has pages 1 to {source.count}")
    engine: Engine = load_reader(settings)  # type: ignore[assignment]
    text = page_of(path, page, engine, engine.checkpoint.tokenizer.decode, settings)
    write_atomically(output, text)
    return 0


@dataclass
class _Listening:
    """An engine that remembers its answers, in the order of the crops."""

    engine: Reader
    answers: list[Decoded] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:  # what it asks of crops
        return getattr(self.engine, name)

    def read(
        self,
        crops: Sequence[Crop],
        *,
        rounds: Rounds | None = None,
        layer: LayerUse = LayerUse.AUTO,
        block: int | None = None,
    ) -> list[Decoded]:
        found = self.engine.read(crops, rounds=rounds, layer=layer, block=block)
        self.answers += found
        return found


def page_of(path: Path, number: int, engine: Reader, detokenize: Detokenize, settings: Settings) -> str:
    """The HTML of page `number`; `settings.pages` must name just this page."""
    listening, product = _Listening(engine), TextProduct()
    report = convert(path, product, lambda: cast(Reader, listening), settings).pages[0]
    with Source(path, settings.password) as source:
        sheet = next(iter(source.sheets([number], PICTURE_DPI)))
    shown = sheet.reason if isinstance(sheet, LostPage) else picture_of(sheet.page, report.regions)
    title = f"{path.name}, page {number}"
    file = io.StringIO()
    file.write(f"{head(title)}<h1>{escape(title)}</h1><p>{escape(_summary(report))}</p>")
    file.write(f'<div class="page"><div>{shown}</div><div><h3>Regions</h3>')
    for region, answers in _by_region(report.regions, listening.answers):
        file.write(f"<h3>{region.order + 1}: {escape(_about(region))}</h3>")
        file.writelines(f"<p>{coloured(answer, detokenize)}</p>" for answer in answers)
    file.write(f"</div><div><h3>Markdown</h3><pre>{escape(product.text)}</pre></div></div></body></html>\n")
    return file.getvalue()


def _summary(report: PageReport) -> str:
    tokens, forwards = (sum(getattr(region, name) for region in report.regions) for name in ("tokens", "forwards"))
    speed = f", {tokens / forwards:.2f} tokens a forward" if forwards else ""
    notes = "; ".join([*report.warnings, *([report.lost] if report.lost else [])])
    seconds = f"{report.prepare_s:.2f} s to prepare, {report.read_s:.2f} s to read"
    return f"{len(report.regions)} regions, {tokens} tokens, {forwards} forwards{speed}; {seconds}. {notes}"


def _about(region: RegionReport) -> str:
    parts = [region.kind, region.method.value]
    parts += [f"{region.tokens} tokens in {region.forwards} forwards"] if region.forwards else []
    parts += [f"confidence {region.confidence:.2f}"] if region.confidence is not None else []
    parts += [f"layer agrees {region.agreement:.2f}"] if region.agreement is not None else []
    return ", ".join([*parts, *region.warnings])


def _by_region(
    regions: Sequence[RegionReport], answers: Sequence[Decoded]
) -> Iterator[tuple[RegionReport, Sequence[Decoded]]]:
    """Each region with the answers to its crops; without any where some crop has none, and places are unsure."""
    at = 0
    complete = sum(region.crops for region in regions) == len(answers)
    for region in regions:
        yield region, answers[at : at + region.crops] if complete else ()
        at += region.crops


def coloured(answer: Decoded, detokenize: Detokenize) -> str:
    """The answer as HTML, a span for what each forward committed."""
    if answer.kept_layer:
        return f'<span title="text layer, kept">{escape(answer.text)}</span>'
    spans, end, shown = [], 0, ""
    for number, count in enumerate(answer.committed):
        end += count
        text = detokenize(answer.ids[:end]).rstrip("\ufffd")  # a character may be cut: its bytes come with the next
        piece, shown = text[len(shown) :], text
        colour = _COLOURS[number % len(_COLOURS)]
        about = f"forward {number + 1}: {count} tokens"
        spans.append(f'<span style="background:{colour}" title="{about}">{escape(piece)}</span>' if piece else "")
    return "".join(spans)
