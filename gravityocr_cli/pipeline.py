"""One document, from its pages to its Markdown: composes the stages and holds a window of pages, never the document.

Crops of several pages are read together, because an engine is fast on many crops and slow on few. What fails, fails
small: a crop, a region or a page becomes a placeholder and an entry in the report, and the rest goes on.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from gravityocr_cli.blocks import block_of, lost_block
from gravityocr_cli.checkpoints import folder_of
from gravityocr_cli.crops import Limits
from gravityocr_cli.document import Block, Kind, Line, Region
from gravityocr_cli.errors import ModelError
from gravityocr_cli.furniture import without_running_heads
from gravityocr_cli.html import write_html
from gravityocr_cli.jsonfile import write_json
from gravityocr_cli.markdown import write_markdown
from gravityocr_cli.output import Product
from gravityocr_cli.prepared import OUT_OF_TIME, Pages, Part, Prepared, plan_of
from gravityocr_cli.report import DocumentReport, Method, PageReport, RegionReport, doubts, region_report
from gravityocr_cli.settings import Decode, Format, Settings, TextLayer
from gravityocr_models.records import Crop, Decoded, LayerUse, Rounds
from gravityocr_models.signs import Box

WINDOW_CROPS = 128
WINDOW_PAGES = 16


class Reader(Protocol):
    """The engine, as the pipeline needs it (`gravityocr_models.engine.Engine`, or a fake)."""

    @property
    def dpi(self) -> float: ...
    @property
    def token_px(self) -> int: ...
    @property
    def max_crop_tokens(self) -> int: ...
    @property
    def max_crop_lines(self) -> int: ...
    def read(
        self,
        crops: Sequence[Crop],
        *,
        rounds: Rounds | None = None,
        layer: LayerUse = LayerUse.AUTO,
        block: int | None = None,
    ) -> list[Decoded]: ...


def limits_of(reader: Reader) -> Limits:
    """How large a crop the engine takes."""
    return Limits(reader.token_px, reader.max_crop_tokens, reader.max_crop_lines)


Progress = Callable[[PageReport, int], None]
"""Told of every page done, and of how many there are."""


def convert(
    path: Path,
    product: Product,
    reader: Callable[[], Reader],
    settings: Settings,
    progress: Progress = lambda page, total: None,
    output: str = "-",
    name: str = "",
    opened: Pages | None = None,
) -> DocumentReport:
    """Converts one document and returns what happened to it.

    reader: gives the engine; asked only once the document has proved readable. name: of the document, for people.
    opened: the document, where somebody takes it apart elsewhere; else that is done here. Raises the error that names
    the fault where the document as a whole cannot be read.
    """
    started = time.perf_counter()
    reports: list[PageReport] = []
    sizes: dict[int, tuple[float, float] | None] = {}
    with opened or _opened_here(path, settings, name) as source:
        numbers = settings.pages.of(source.facts.count)
        engine = reader()
        until = started + settings.timeout if settings.timeout else None
        prepared = _within(until, numbers, source.prepared(numbers, plan_of(engine.dpi, limits_of(engine), settings)))

        def pages() -> Iterator[tuple[int, Sequence[Block]]]:
            read = read_pages(prepared, lambda: source.ready, engine, settings, product)
            for report, blocks in without_running_heads(read, settings.headers_footers):
                reports.append(report)
                sizes[report.page] = report.size_pt
                progress(report, len(numbers))
                yield report.page, blocks

        for piece in _written(pages(), settings, Path(name or path).name, sizes, source.facts.contents):
            product.write(piece)
        late = sum(report.lost == OUT_OF_TIME for report in reports)
        error = f"{name or path}: the time limit was reached; {late} of {len(numbers)} pages are lost" if late else ""
        seconds = time.perf_counter() - started
        return DocumentReport(name or str(path), output, seconds, tuple(reports), source.facts.warnings, error)


def _opened_here(path: Path, settings: Settings, name: str) -> Pages:
    from gravityocr_cli.prepare import LocalPages  # a second to import, and mostly others open documents

    return LocalPages(path, settings, name)


def _written(
    pages: Iterator[tuple[int, Sequence[Block]]],
    settings: Settings,
    title: str,
    sizes: Mapping[int, tuple[float, float] | None],
    contents: Sequence[tuple[int, str, int]],
) -> Iterator[str]:
    """The document piece by piece in the format that is wanted. sizes: of the pages given so far."""
    match settings.format:
        case Format.MD:
            return write_markdown(pages, settings.page_break, settings.tables, settings.math, contents)
        case Format.HTML:
            return write_html(pages, title, contents)
        case Format.JSON:
            return write_json(pages, sizes.get, contents)


def _within(until: float | None, numbers: Sequence[int], pages: Iterator[Prepared]) -> Iterator[Prepared]:
    """The pages that come before the moment `until` (of time.perf_counter); those after it, as lost ones."""
    for number in numbers:
        if until is not None and time.perf_counter() >= until:
            yield Prepared(number, lost=OUT_OF_TIME)
        else:
            yield next(pages)


def load_reader(settings: Settings) -> Reader:
    """The engine that the settings ask for. Raises ModelError."""
    folder = folder_of(settings.model, settings.device)
    try:
        from gravityocr_models.engine import Engine

        return Engine.load(folder, settings.device, settings.dtype)
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        raise ModelError(f"{folder}: cannot be loaded ({error})") from error


def read_pages(
    pages: Iterable[Prepared], ready: Callable[[], bool], reader: Reader, settings: Settings, product: Product
) -> Iterator[tuple[PageReport, list[Block]]]:
    """Pages in the order they come, each with its blocks; up to a window of pages is held.

    ready: whether the next page is there. Until it is, those held are read: the more a reader lags behind, the larger
    its windows.
    """
    window: list[Prepared] = []
    for page in pages:
        window.append(page)
        crops = sum(len(part.crops) for page in window for part in page.parts)
        if crops >= WINDOW_CROPS or len(window) >= WINDOW_PAGES or not ready():
            yield from _read(window, reader, settings, product)
            window = []
    yield from _read(window, reader, settings, product)


def _read(
    window: list[Prepared], reader: Reader, settings: Settings, product: Product
) -> Iterator[tuple[PageReport, list[Block]]]:
    crops = [crop for page in window for part in page.parts for crop in part.crops]
    started = time.perf_counter()
    answers = iter(_answers(crops, reader, settings))
    seconds = (time.perf_counter() - started) / max(len(crops), 1)
    for page in window:
        blocks: list[Block] = []
        regions: list[RegionReport] = []
        count = 0
        for part in page.parts:
            count += len(part.crops)
            if part.crops:
                part_blocks, report = _finish(part, [next(answers) for _ in part.crops], settings)
            else:
                part_blocks, report = _picture(part, product)
            blocks += part_blocks
            regions.append(report)
        if page.lost:
            blocks.append(lost_block(Region(page.number, 0, Kind.TEXT, Box(0, 0, 0, 0)), page.lost))
        warnings = (*page.warnings, *doubts(regions))
        yield (
            PageReport(page.number, page.seconds, seconds * count, tuple(regions), warnings, page.lost, page.size),
            blocks,
        )


def _picture(part: Part, product: Product) -> tuple[list[Block], RegionReport]:
    """A region that the model has no part in."""
    region, method, blocks = part.region, part.method, []
    if part.picture is not None:
        link = product.image(f"p{region.page}_r{region.order}.png", part.picture)
        blocks = [Block(region, link, source="picture")] if link is not None else []
        method = Method.SKIPPED if link is None else method
    return blocks, region_report(region, method, [], ())


def _answers(crops: list[Crop], reader: Reader, settings: Settings) -> list[Decoded | str]:
    """An answer to every crop, or why there is none."""
    rounds = Rounds.PLAIN if settings.decode is Decode.AR else None
    layer = LayerUse(settings.text_layer.value)
    if layer is LayerUse.OFF:
        crops = [replace(crop, draft=None) for crop in crops]

    def read(some: list[Crop]) -> list[Decoded]:
        return reader.read(some, rounds=rounds, layer=layer, block=settings.block)

    if not crops:
        return []
    try:
        return list(read(crops))
    except (RuntimeError, ValueError, IndexError, MemoryError):  # one crop must not take the others with it
        return [_answer_alone(crop, read) for crop in crops]


def _answer_alone(crop: Crop, read: Callable[[list[Crop]], list[Decoded]]) -> Decoded | str:
    try:
        return read([crop])[0]
    except (RuntimeError, ValueError, IndexError, MemoryError) as error:
        return f"the model failed: {str(error) or error!r}".splitlines()[0]


def _finish(part: Part, answers: list[Decoded | str], settings: Settings) -> tuple[list[Block], RegionReport]:
    texts, losses, warnings, layers = [], [], [], 0
    for crop, answer in zip(part.crops, answers, strict=True):
        if not isinstance(answer, str) and not answer.truncated:
            texts.append(answer.text)
            layers += answer.kept_layer
        elif crop.draft is not None and settings.text_layer is TextLayer.AUTO and not _is_rejected(answer):
            texts.append(crop.draft)  # unverified, and still more than nothing
            layers += 1
            warnings.append("the model gave no answer; the text layer is used unverified")
        else:
            losses.append(answer if isinstance(answer, str) else "the answer ran into the token limit")
    region = part.region
    if part.pieces and layers < len(answers):
        region = replace(region, lines=_lines_read(part.pieces, answers))
    elif region.kind is Kind.TABLE and layers < len(answers):
        region = replace(region, lines=())  # a layer that is not kept must not come back as the table's grid
    blocks = [block_of(region, "\n".join(texts))] if any(text.strip() for text in texts) else []
    warnings += [warning for block in blocks for warning in block.warnings]
    if answers and not blocks and not losses:
        warnings.append("nothing was read here")
    method = Method.LOST if losses else Method.LAYER if layers == len(answers) else Method.MODEL
    decoded = [answer for answer in answers if not isinstance(answer, str)]
    report = region_report(part.region, method, decoded, tuple(warnings + losses))
    writer = "text layer" if layers == len(answers) else "model"
    blocks = [replace(block, source=writer, confidence=report.confidence) for block in blocks]
    return blocks + ([lost_block(part.region, losses[0])] if losses else []), report


def _lines_read(pieces: Sequence[Line], answers: Sequence[Decoded | str]) -> tuple[Line, ...]:
    """The pieces with what was read of them."""
    return tuple(
        piece if answer.kept_layer else replace(piece, text=answer.text, spans=())
        for piece, answer in zip(pieces, answers, strict=True)
        if not isinstance(answer, str) and answer.text.strip()
    )


def _is_rejected(answer: Decoded | str) -> bool:
    """Whether the model, which failed to read the crop, could at least tell that its text layer is wrong."""
    return not isinstance(answer, str) and answer.agreement is not None and not answer.kept_layer
