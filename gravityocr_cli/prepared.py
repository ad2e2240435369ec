"""What the preparation of pages takes and gives, here and across processes. Knows nothing of how it is done.

Kept apart because PyMuPDF and its layout model take a second to import, and only who opens a document needs them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol

from gravityocr_cli.crops import Limits
from gravityocr_cli.document import Line, Region
from gravityocr_cli.errors import ModelError
from gravityocr_cli.report import Method
from gravityocr_cli.settings import Settings, TextLayer
from gravityocr_models.layout import WEIGHTS
from gravityocr_models.records import Crop

OUT_OF_TIME = "not reached within the document's time limit"


@dataclass(frozen=True)
class Plan:
    """What pages are prepared for: an engine's dpi and crop limits, and the settings that matter before the model.

    detector: the file that regions on scans are found with.
    """

    dpi: float
    limits: Limits
    trust_layer: bool
    images: bool
    headers_footers: bool
    detector: Path


@dataclass(frozen=True)
class Part:
    """A region on its way: its crops, or its picture as a PNG file, or neither (blank, furniture).

    pieces: where the crops stand, when each is a piece of a table's text.
    """

    region: Region
    crops: tuple[Crop, ...] = ()
    pieces: tuple[Line, ...] = ()
    picture: bytes | None = None
    method: Method = Method.BLANK


@dataclass(frozen=True)
class Prepared:
    """A page whose crops are cut; its own pixels are gone. size: width and height in points, None where unknown.

    lost: why there are no parts, else "".
    """

    number: int
    parts: tuple[Part, ...] = ()
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    lost: str = ""
    size: tuple[float, float] | None = None


@dataclass(frozen=True)
class Facts:
    """What is known of a document once it is open. count: pages. contents: its outline: level from 1, title, page."""

    count: int
    warnings: tuple[str, ...] = ()
    contents: tuple[tuple[int, str, int], ...] = ()


class Pages(Protocol):
    """An open document, wherever it is taken apart. Use as a context."""

    @property
    def facts(self) -> Facts:
        """Waits until the document is open. Raises the error that names why it cannot be opened."""

    def prepared(self, numbers: Sequence[int], plan: Plan) -> Iterator[Prepared]:
        """The pages with these numbers (from 1), in this order; one that cannot be prepared is lost, not an error."""

    @property
    def ready(self) -> bool:
        """Whether the next of the prepared pages is at hand, or nobody works on it meanwhile."""

    def __enter__(self) -> "Pages": ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def plan_of(dpi: float, limits: Limits, settings: Settings) -> Plan:
    """The plan that follows from an engine's needs and the settings. ModelError for a detector that is not there."""
    trust = settings.text_layer is TextLayer.AUTO
    detector = WEIGHTS if settings.layout_model == "auto" else Path(settings.layout_model)
    if not detector.is_file() and detector != WEIGHTS:
        raise ModelError(f"{detector}: no such layout model")
    return Plan(dpi, limits, trust, settings.images, settings.headers_footers, detector)


@dataclass(frozen=True)
class Request:
    """Open the document, and prepare a page of it. page: None to open it alone; 0: the first that is asked for.

    limit: seconds that both may take. plan: None only where page is.
    """

    path: Path
    name: str
    settings: Settings
    limit: float
    page: int | None = None
    plan: Plan | None = None


@dataclass(frozen=True)
class Answer:
    """What came of a request. peak: most memory of the process so far, in MiB."""

    facts: Facts
    page: Prepared | None
    peak: float
