"""A page -> what the model is to read of it: regions with their crops, pictures as files. No model takes part.

This is the work that knows the PDF, and the work that a hostile PDF can make hang or crash: `workers.py` has it done in
processes of its own, `LocalPages` does it in this one.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gravityocr_cli.asides import Aside, turned
from gravityocr_cli.cells import pieces_of
from gravityocr_cli.crops import crops_of, crops_of_pieces, is_read_as_rows, pieces_painted, png_of
from gravityocr_cli.document import Kind, Page, Region
from gravityocr_cli.pdf import LostPage, Sheet, Source
from gravityocr_cli.prepared import Facts, Part, Plan, Prepared
from gravityocr_cli.regions import regions_of
from gravityocr_cli.report import Method
from gravityocr_cli.ruled import rules_in
from gravityocr_cli.scans import read_rest, read_scan
from gravityocr_cli.settings import Settings
from gravityocr_models.layout import WEIGHTS

_FURNITURE = (Kind.HEADER, Kind.FOOTER)


class LocalPages:
    """A document taken apart in this process, which suffers whatever the document does to it."""

    def __init__(self, path: Path, settings: Settings, name: str = "") -> None:
        self._source = Source(path, settings.password, settings.max_pixels, name)
        self.facts = Facts(self._source.count, self._source.warnings, self._source.contents())

    def __enter__(self) -> "LocalPages":
        return self

    def __exit__(self, *fault: object) -> None:
        self._source.close()

    @property
    def ready(self) -> bool:
        return True

    def prepared(self, numbers: Sequence[int], plan: Plan) -> Iterator[Prepared]:
        return (prepare(sheet, plan) for sheet in self._source.sheets(numbers, plan.dpi))


def prepare(sheet: Sheet | LostPage, plan: Plan) -> Prepared:
    """Regions and crops of one rendered page."""
    if isinstance(sheet, LostPage):
        return Prepared(sheet.number, lost=sheet.reason)
    started = time.perf_counter()
    page = sheet.page
    try:
        sheet = laid_out(sheet, plan.detector)
        page = sheet.page
        parts = tuple(_parts(sheet, plan))
    except (ValueError, ArithmeticError, LookupError, MemoryError) as error:
        size = page.width, page.height
        return Prepared(page.number, (), sheet.seconds, sheet.warnings, f"cannot be laid out: {error!r}", size)
    seconds = sheet.seconds + time.perf_counter() - started
    return Prepared(page.number, parts, seconds, sheet.warnings, size=(page.width, page.height))


def laid_out(sheet: Sheet, detector: Path = WEIGHTS) -> Sheet:
    """The sheet as its painted text tells its layout; where there is none, as its pixels tell it, and upright."""
    if sheet.page.lines:
        found, warnings = read_rest(sheet.page, sheet.found, detector)
        return replace(sheet, found=found, warnings=(*sheet.warnings, *warnings))
    page, found, warnings = read_scan(sheet.page, detector)
    return replace(sheet, page=page, found=found, warnings=(*sheet.warnings, *warnings))


def _parts(sheet: Sheet, plan: Plan) -> Iterator[Part]:
    """Everything on the page in reading order; what stands on its side is read upright, in the place that it has."""
    left = list(sheet.asides)
    shown: list[tuple[Page, Region, Aside | None]] = []
    for region in regions_of(sheet.page, sheet.found):
        here = [each for each in left if region.box == each[0].box]
        left = [each for each in left if each not in here]
        shown += _upright_regions(here) if here else [(sheet.page, region, None)]
    for order, (page, region, aside) in enumerate([*shown, *_upright_regions(left)]):
        part = _part(page, replace(region, order=order), plan)
        if aside is not None:  # its box as the page has it; its lines stay as they are read
            box = turned(part.region.box, -aside.turn % 360, page.width, page.height)
            part = replace(part, region=replace(part.region, box=box))
        yield part


def _upright_regions(asides: Sequence[tuple[Aside, Sheet]]) -> list[tuple[Page, Region, Aside | None]]:
    return [(small.page, region, part) for part, small in asides for region in regions_of(small.page, small.found)]


def _part(page: Page, region: Region, plan: Plan) -> Part:
    if region.kind in _FURNITURE and not plan.headers_footers:
        return Part(region, method=Method.SKIPPED)
    if region.kind is Kind.TABLE:
        region = replace(region, rules=rules_in(page.pixels, page.dpi, region.box))
        if plan.limits.max_lines == 1:
            as_painted = is_read_as_rows(region, plan.trust_layer)
            pieces = pieces_painted(page, region.lines) if as_painted else pieces_of(page, region.box)
            if pieces:  # without any, its ink goes to the model as it is
                region = replace(region, lines=pieces) if as_painted else region
                return Part(region, crops_of_pieces(page, region, pieces, plan.limits), pieces)
    if region.kind is not Kind.PICTURE:
        return Part(region, crops_of(page, region, plan.limits, plan.trust_layer))
    if not plan.images:
        return Part(region, method=Method.SKIPPED)
    picture = png_of(page, region)
    return Part(region, picture=picture, method=Method.PICTURE if picture else Method.BLANK)
