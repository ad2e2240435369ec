"""What happened to every page and region of a run: facts for `--report`, exit codes and the summary line."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from gravityocr_cli.document import Kind, Region
from gravityocr_models.records import Decoded

_TELLING = 40  # tokens of a page; fewer may be a stamp or a signature
_DOUBTFUL = 0.12  # share of what was read that may be wrong: scripts that look like Latin have 0.15, bad scans 0.05


class Method(StrEnum):
    """How a region got its content."""

    LAYER = "layer"
    MODEL = "model"
    PICTURE = "picture"
    BLANK = "blank"
    SKIPPED = "skipped"
    LOST = "lost"


@dataclass(frozen=True)
class RegionReport:
    """One region. box_pt: left, top, right, bottom in points. tokens and forwards count every crop of the region."""

    order: int
    kind: str
    box_pt: tuple[float, float, float, float]
    method: Method
    crops: int = 0
    tokens: int = 0
    forwards: int = 0
    confidence: float | None = None
    agreement: float | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class PageReport:
    """One page. prepare_s: rendering, layout and cutting; read_s: its share of the model's time. lost: why, or "".

    size_pt: width and height in points, None where the page could not be opened.
    """

    page: int
    prepare_s: float
    read_s: float = 0.0
    regions: tuple[RegionReport, ...] = ()
    warnings: tuple[str, ...] = ()
    lost: str = ""
    size_pt: tuple[float, float] | None = None

    @property
    def lost_parts(self) -> int:
        """Regions lost, and the page itself where it is lost."""
        return bool(self.lost) + sum(region.method is Method.LOST for region in self.regions)


@dataclass(frozen=True)
class DocumentReport:
    """One input. error: the one line shown to the user where the document failed, else "". skipped: why, or "".

    exit_code: what the run would have ended with, had this been its one input.
    content: the product itself where it has no file of its own to go to (`--json` without `-o`), else None.
    """

    source: str
    output: str
    seconds: float = 0.0
    pages: tuple[PageReport, ...] = ()
    warnings: tuple[str, ...] = field(default=())
    error: str = ""
    skipped: str = ""
    exit_code: int = 0
    content: str | None = None

    @property
    def lost_parts(self) -> int:
        return sum(page.lost_parts for page in self.pages)


def region_report(region: Region, method: Method, answers: list[Decoded], warnings: tuple[str, ...]) -> RegionReport:
    """The facts of one region from the answers to its crops."""
    tokens = sum(sum(answer.committed) for answer in answers)
    verdicts = [answer.agreement for answer in answers if answer.agreement is not None]
    box = region.box
    return RegionReport(
        order=region.order,
        kind=region.kind.value,
        box_pt=(round(box.x0, 1), round(box.y0, 1), round(box.x1, 1), round(box.y1, 1)),
        method=method,
        crops=len(answers),
        tokens=tokens,
        forwards=sum(answer.forwards for answer in answers),
        confidence=_mean([answer.confidence for answer in answers]),
        agreement=_mean(verdicts),
        warnings=warnings,
    )


def doubts(regions: Sequence[RegionReport]) -> list[str]:
    """What is to be said of a page on which too much of what the model read is expected to be wrong.

    Formulas don't count: with more signs to choose from the model is less sure of them.
    """
    read = [each for each in regions if each.method is Method.MODEL and each.kind != Kind.FORMULA]
    tokens = sum(each.tokens for each in read)
    wrong = sum(each.tokens * (1 - each.confidence) for each in read if each.confidence is not None)
    if tokens < _TELLING or wrong < _DOUBTFUL * tokens:
        return []
    share = f"{100 * wrong / tokens:.0f} % of what was read may be wrong"
    return [f"{share}: it is hard to read, or in a script that the model has not learned"]


def to_json(documents: list[DocumentReport], version: str) -> str:
    """The whole run as JSON, with the sums that a reader asks for first."""
    return json.dumps({"gravityocr": version, "documents": [_document(each) for each in documents]}, indent=1) + "\n"


def _document(report: DocumentReport) -> dict[str, Any]:
    record = asdict(report)
    record["lost_parts"] = report.lost_parts
    for page, entry in zip(report.pages, record["pages"], strict=True):
        tokens = sum(region.tokens for region in page.regions)
        forwards = sum(region.forwards for region in page.regions)
        entry["prepare_s"], entry["read_s"] = round(page.prepare_s, 3), round(page.read_s, 3)
        entry["tokens"], entry["forwards"] = tokens, forwards
        entry["tokens_per_forward"] = round(tokens / forwards, 2) if forwards else None
        entry["confidence"] = _mean([r.confidence for r in page.regions if r.confidence is not None])
    record["seconds"] = round(report.seconds, 3)
    if report.content is None:
        del record["content"]
    return record


def _mean(values: list[float]) -> float | None:
    return round(sum(values) / len(values), 4) if values else None
