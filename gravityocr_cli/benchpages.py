"""Whole pages for the benchmark: seconds by stage, plain against speculative, and Tesseract beside them."""

import io
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from PIL import Image

from gravityocr_cli.errors import InputError
from gravityocr_cli.output import TextProduct
from gravityocr_cli.pdf import LostPage, Source
from gravityocr_cli.pipeline import Reader, convert
from gravityocr_cli.settings import Decode, PageRanges, Settings
from gravityocr_cli.stopwatch import Stopwatch

TESSERACT = "tesseract"
STAGES = {
    "gravityocr_cli.pdf:Source._sheet": "render",
    "gravityocr_cli.pdf:_layout": "layout",
    "gravityocr_cli.prepare:regions_of": "layout",
    "gravityocr_cli.prepare:crops_of": "crops",
    "gravityocr_models.engine:Engine.prompts": "vision",
    "gravityocr_models.rounds:Runner.prefill": "prefill",
    "gravityocr_models.rounds:Runner.round": "decode",
    "gravityocr_cli.pipeline:_finish": "assembly",
}
REST = "rest"  # writing Markdown, and what lies between the stages


@dataclass(frozen=True)
class PageRow:
    """One way of reading all pages. seconds: of everything but loading the model. stages: seconds by stage."""

    way: str
    pages: int
    seconds: float
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def pages_per_second(self) -> float:
        return self.pages / self.seconds


Place = tuple[Path, int]
"""A document, and the number of one of its pages."""


def places_in(paths: Sequence[Path], most: int) -> list[Place]:
    """The first pages of each document in turn: page 1 of all, then page 2 of all, up to `most`."""
    counts: dict[Path, int] = {}
    for path in paths:
        try:
            with Source(path) as source:
                counts[path] = source.count
        except InputError:
            continue  # named where its crops were asked for
    numbers = range(1, max(counts.values(), default=0) + 1)
    return [(path, number) for number in numbers for path in paths if number <= counts.get(path, 0)][:most]


def page_rows(engine: Reader, places: Sequence[Place], settings: Settings) -> Iterator[PageRow]:
    """Plain, then speculative decoding of the same pages; then Tesseract, where it is installed."""
    if not places:
        return
    _read(engine, places[:1], settings)  # first calls are slow, and load the layout model
    for decode in (Decode.AR, Decode.SPECULATIVE):
        watch = Stopwatch()
        with watch.watching(STAGES):
            seconds = _read(engine, places, replace(settings, decode=decode))
        rest = seconds - sum(watch.seconds.values())
        yield PageRow(decode.value, len(places), seconds, watch.seconds | {REST: rest})
    if shutil.which(TESSERACT):
        yield PageRow(TESSERACT, len(places), sum(_tesseract(image) for image in _images(places, engine.dpi)))


def _read(engine: Reader, places: Sequence[Place], settings: Settings) -> float:
    started = time.perf_counter()
    for path, number in places:
        page = replace(settings, pages=PageRanges(((number, number),)))
        convert(path, TextProduct(), lambda: engine, page)
    return time.perf_counter() - started


def _images(places: Sequence[Place], dpi: float) -> Iterator[bytes]:
    """The pages as our model sees them, as PNG files; one that cannot be rendered is left out."""
    for path, number in places:
        with Source(path) as source:
            sheet = next(iter(source.sheets([number], dpi)))
        if not isinstance(sheet, LostPage):
            file = io.BytesIO()
            Image.fromarray(sheet.page.pixels).save(file, "PNG", dpi=(sheet.page.dpi, sheet.page.dpi), compress_level=1)
            yield file.getvalue()


def _tesseract(image: bytes) -> float:
    started = time.perf_counter()
    subprocess.run([TESSERACT, "stdin", "stdout"], input=image, capture_output=True, check=False)
    return time.perf_counter() - started
