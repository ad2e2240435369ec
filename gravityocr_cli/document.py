"""The records that pages pass through, and the one place that states their units and coordinate frames.

Points are 1/72 inch in the page as displayed: CropBox applied, /Rotate applied, origin at the top left, y down.
Pixels are the same frame times dpi / 72.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gravityocr_cli.ink import Mask, ink_of
from gravityocr_models.signs import Box, Sign, hull_of


class Kind(StrEnum):
    """What a region is."""

    TITLE = "title"
    HEADING = "heading"
    TEXT = "text"
    LIST = "list"
    CAPTION = "caption"
    FOOTNOTE = "footnote"
    CODE = "code"
    TABLE = "table"
    FORMULA = "formula"
    PICTURE = "picture"
    HEADER = "header"
    FOOTER = "footer"


@dataclass(frozen=True)
class Style:
    """How text is set. script: 1 raised, -1 lowered. link: where it leads, or "". note: its footnote's label, or ""."""

    bold: bool = False
    italic: bool = False
    code: bool = False
    script: int = 0
    link: str = ""
    note: str = ""


PLAIN = Style()


@dataclass(frozen=True)
class Span:
    """A stretch of a line in one style. text: as painted, blanks included."""

    text: str
    style: Style = PLAIN


@dataclass(frozen=True)
class Link:
    """A place on the page that leads somewhere."""

    box: Box
    target: str


@dataclass(frozen=True)
class Tick:
    """A check box or a radio button of a form, and whether it is on."""

    box: Box
    on: bool


@dataclass(frozen=True)
class Line:
    """One painted line of the text layer. text: as painted, without a line break. size: font size in points.

    spans: the same text by style; empty where all of it is plain. font: what most of it is set in, as the file names
    it; "" where that says nothing about what is seen.
    """

    box: Box
    text: str
    size: float
    bold: bool = False
    mono: bool = False
    spans: tuple[Span, ...] = ()
    font: str = ""


@dataclass(frozen=True)
class Page:
    """One rasterised page. number: from 1. pixels: uint8 [H, W, 3], RGB, at `dpi`. lines: painted, visible text.

    signs, bars: what formulas are painted with, signs and thin level rules; empty where none was found.
    """

    number: int
    width: float
    height: float
    dpi: float
    pixels: NDArray[np.uint8]
    lines: tuple[Line, ...] = ()
    signs: tuple[Sign, ...] = ()
    bars: tuple[Box, ...] = ()

    @cached_property
    def ink(self) -> Mask:
        """The pixels that stand out from the paper, bool [H, W], read only."""
        ink = ink_of(self.pixels)
        ink.setflags(write=False)
        return ink


@dataclass(frozen=True)
class Region:
    """A place on a page. order: its rank in reading order, from 0. lines: the text layer's lines inside it.

    rules: the lines drawn between the cells of a TABLE, as thin boxes.
    """

    page: int
    order: int
    kind: Kind
    box: Box
    lines: tuple[Line, ...] = ()
    rules: tuple[Box, ...] = ()

    def with_lines(self, lines: Iterable[Line]) -> "Region":
        """The region of these lines alone; its box is theirs."""
        lines = tuple(lines)
        return replace(self, box=hull_of([line.box for line in lines]), lines=lines)


@dataclass(frozen=True)
class Block:
    """A region with its content.

    text: plain text, line breaks as painted (TEXT-like kinds), LaTeX without delimiters (FORMULA), HTML (TABLE), or
        the image file's relative path (PICTURE).
    lost: why the region could not be read, else "".
    source: who wrote the text: "model", "text layer", "picture", or "" where nobody said. confidence: 0..1, or None.
    """

    region: Region
    text: str
    lost: str = ""
    warnings: tuple[str, ...] = field(default=())
    source: str = ""
    confidence: float | None = None
