"""One document, from its pages to its Markdown: composes the stages and holds a window of pages, never the document.

Crops of several pages are read together, because an engine is fast on many crops and slow on few. What fails, fails
small: a crop, a region or a page becomes a placeholder and an entry in the report, and the rest goes on.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from gravityocr_cli.blocks import block_of, lost_block
from gravityocr_cli.crops import Limits, crops_of, png_of
from gravityocr_cli.document import Block, Box, Kind, Page, Region
from gravityocr_cli.errors import ModelError
from gravityocr_cli.markdown import write_markdown
from gravityocr_cli.output import Product
from gravityocr_cli.pdf import LostPage, Sheet, Source
from gravityocr_cli.regions import regions_of
from gravityocr_cli.report import DocumentReport, Method, PageReport, RegionReport, region_report
from gravityocr_cli.settings import Decode, Settings, TextLayer
from gravityocr_models.records import Crop, Decoded, LayerUse, Rounds

WINDOW_CROPS = 128
WINDOW_PAGES = 16
_FURNITURE = (Kind.HEADER, Kind.FOOTER)


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
        rounds: Rounds = Rounds.FUSED,
        layer: LayerUse = LayerUse.AUTO,
        block: int | None = None,
    ) -> list[Decoded]: ...


def limits_of(reader: Reader) -> Limits:
    """How large a crop the engine takes."""
    return Limits(reader.token_px, reader.max_crop_tokens, reader.max_crop_lines)


Progress = Callable[[PageReport, int], None]
"""Told of every page done, and of how many there are."""


@dataclass(frozen=True)
class _Part:
    """A region on its way: its crops, or the block it already is (a picture), or neither (blank, furniture)."""

    region: Region
    crops: tuple[Crop, ...] = ()
    block: Block | None = None
    method: Method = Method.BLANK


@dataclass(frozen=True)
class _Prepared:
    """A page whose crops are cut; its own pixels are gone."""

    number: int
    parts: tuple[_Part, ...]
    seconds: float
    warnings: tuple[str, ...] = ()
    lost: str = ""


def convert(
    path: Path,
    product: Product,
    reader: Callable[[], Reader],
    settings: Settings,
    progress: Progress = lambda page, total: None,
    output: str = "-",
) -> DocumentReport:
    """Converts one document and returns what happened to it.

    reader: gives the engine; asked only once the document has proved readable. Raises the error that names the fault
    where the document as a whole cannot be read.
    """
    started = time.perf_counter()
    reports: list[PageReport] = []
    with Source(path, settings.password) as source:
        numbers = settings.pages.of(source.count)
        engine = reader()

        def pages() -> Iterator[tuple[int, Sequence[Block]]]:
            for report, blocks in read_pages(source.sheets(numbers, engine.dpi), engine, settings, product):
                reports.append(report)
                progress(report, len(numbers))
                yield report.page, blocks

        for piece in write_markdown(pages(), settings.page_break):
            product.write(piece)
    return DocumentReport(str(path), output, time.perf_counter() - started, tuple(reports), source.warnings)


def load_reader(settings: Settings) -> Reader:
    """The engine that the settings ask for. Raises ModelError."""
    try:
        from gravityocr_models.engine import Engine

        return Engine.load(settings.model, settings.device, settings.dtype)
    except (OSError, ValueError, LookupError, RuntimeError) as error:
        place = settings.model or "the built-in model"
        raise ModelError(f"{place}: cannot be loaded ({error})") from error


def read_pages(
    sheets: Iterable[Sheet | LostPage], reader: Reader, settings: Settings, product: Product
) -> Iterator[tuple[PageReport, list[Block]]]:
    """Pages in the order they come, each with its blocks; up to a window of pages is held."""
    window: list[_Prepared] = []
    for sheet in sheets:
        window.append(_prepare(sheet, reader, settings, product))
        crops = sum(len(part.crops) for page in window for part in page.parts)
        if crops >= WINDOW_CROPS or len(window) >= WINDOW_PAGES:
            yield from _read(window, reader, settings)
            window = []
    yield from _read(window, reader, settings)


def _prepare(sheet: Sheet | LostPage, reader: Reader, settings: Settings, product: Product) -> _Prepared:
    if isinstance(sheet, LostPage):
        return _Prepared(sheet.number, (), 0.0, lost=sheet.reason)
    started = time.perf_counter()
    page, limits = sheet.page, limits_of(reader)
    try:
        parts = tuple(_part(page, region, limits, settings, product) for region in regions_of(page, sheet.found))
    except (ValueError, ArithmeticError, LookupError, MemoryError) as error:
        return _Prepared(page.number, (), sheet.seconds, sheet.warnings, f"cannot be laid out: {error!r}")
    return _Prepared(page.number, parts, sheet.seconds + time.perf_counter() - started, sheet.warnings)


def _part(page: Page, region: Region, limits: Limits, settings: Settings, product: Product) -> _Part:
    if region.kind in _FURNITURE and not settings.headers_footers:
        return _Part(region, method=Method.SKIPPED)
    if region.kind is not Kind.PICTURE:
        return _Part(region, crops_of(page, region, limits, settings.text_layer is TextLayer.AUTO))
    data = png_of(page, region) if settings.images else None
    if data is None:
        return _Part(region, method=Method.BLANK if settings.images else Method.SKIPPED)
    link = product.image(f"p{page.number}_r{region.order}.png", data)
    if link is None:
        return _Part(region, method=Method.SKIPPED)
    return _Part(region, block=Block(region, link), method=Method.PICTURE)


def _read(window: list[_Prepared], reader: Reader, settings: Settings) -> Iterator[tuple[PageReport, list[Block]]]:
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
            part_blocks, report = _finish(part, [next(answers) for _ in part.crops], settings)
            blocks += part_blocks
            regions.append(report)
        if page.lost:
            blocks.append(lost_block(Region(page.number, 0, Kind.TEXT, Box(0, 0, 0, 0)), page.lost))
        yield PageReport(page.number, page.seconds, seconds * count, tuple(regions), page.warnings, page.lost), blocks


def _answers(crops: list[Crop], reader: Reader, settings: Settings) -> list[Decoded | str]:
    """An answer to every crop, or why there is none."""
    rounds = Rounds.PLAIN if settings.decode is Decode.AR else Rounds.FUSED
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


def _finish(part: _Part, answers: list[Decoded | str], settings: Settings) -> tuple[list[Block], RegionReport]:
    if not part.crops:
        return ([part.block] if part.block else []), region_report(part.region, part.method, [], ())
    texts, losses, warnings, layers = [], [], [], 0
    for crop, answer in zip(part.crops, answers, strict=True):
        if not isinstance(answer, str) and not answer.truncated:
            texts.append(answer.text)
            layers += answer.kept_layer
        elif crop.draft is not None and settings.text_layer is TextLayer.AUTO:
            texts.append(crop.draft)  # unverified, and still more than nothing
            layers += 1
            warnings.append("the model gave no answer; the text layer is used unverified")
        else:
            losses.append(answer if isinstance(answer, str) else "the answer ran into the token limit")
    region = part.region
    if region.kind is Kind.TABLE and layers < len(answers):
        region = replace(region, lines=())  # a layer that is not kept must not come back as the table's grid
    blocks = [block_of(region, "\n".join(texts))] if any(text.strip() for text in texts) else []
    warnings += [warning for block in blocks for warning in block.warnings]
    blocks += [lost_block(part.region, losses[0])] if losses else []
    method = Method.LOST if losses else Method.LAYER if layers == len(answers) else Method.MODEL
    decoded = [answer for answer in answers if not isinstance(answer, str)]
    return blocks, region_report(part.region, method, decoded, tuple(warnings + losses))
