"""What a document is made of once its regions are joined: frozen records, in reading order, for every writer."""

from dataclasses import dataclass

from gravityocr_cli.document import Region
from gravityocr_cli.inline import Runs
from gravityocr_cli.lists import Item


@dataclass(frozen=True)
class Heading:
    """level: 1 to 6."""

    level: int
    text: str
    runs: Runs = ()


@dataclass(frozen=True)
class Paragraph:
    """Running text. first, last: the regions that it starts and ends in."""

    text: str
    first: Region
    last: Region
    runs: Runs = ()


@dataclass(frozen=True)
class ItemList:
    """A list; each item states its depth. region: where it ends."""

    items: tuple[Item, ...]
    region: Region


@dataclass(frozen=True)
class Code:
    """Lines of code, indents kept."""

    text: str


@dataclass(frozen=True)
class Formula:
    """Display mathematics: LaTeX without delimiters."""

    latex: str


@dataclass(frozen=True)
class Table:
    """html: a whole `table` element. region: where it ends."""

    html: str
    caption: str
    region: Region
    caption_runs: Runs = ()


@dataclass(frozen=True)
class Figure:
    """path: of the image, relative to the document; "" where no image is kept."""

    path: str
    caption: str
    caption_runs: Runs = ()


@dataclass(frozen=True)
class Aside:
    """Text outside the flow: a running header or footer, a caption without its figure, a note without its mark."""

    text: str
    runs: Runs = ()


@dataclass(frozen=True)
class Note:
    """A footnote. label: what its reference in the text (a run's `style.note`) calls it; unique in the document."""

    label: str
    text: str
    runs: Runs = ()


@dataclass(frozen=True)
class Lost:
    """A region that could not be read. page: from 1. region: its order on the page, from 0, as in the report."""

    page: int
    region: int
    reason: str


@dataclass(frozen=True)
class PageBreak:
    """Stands before the first element of page `page`, except before the document's first."""

    page: int


Element = Heading | Paragraph | ItemList | Code | Formula | Table | Figure | Aside | Note | Lost | PageBreak
