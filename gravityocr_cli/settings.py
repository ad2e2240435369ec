"""What a user can set, as one frozen record that validates itself; help texts live beside the fields.

Imports only the standard library: `--help` reads the texts and must answer at once.
"""

from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path

from gravityocr_cli.errors import UsageError


class TextLayer(StrEnum):
    AUTO = "auto"
    DRAFT = "draft"
    OFF = "off"


class Decode(StrEnum):
    AUTO = "auto"
    SPECULATIVE = "speculative"
    AR = "ar"


@dataclass(frozen=True)
class PageRanges:
    """1-based inclusive ranges; an upper end of None means the last page. No ranges: every page."""

    ranges: tuple[tuple[int, int | None], ...] = ()

    @staticmethod
    def parse(text: str) -> "PageRanges":
        """`1,3-5,8-end` -> ranges. Raises UsageError for anything else, page 0 and backward ranges included."""
        return PageRanges(tuple(_range(part.strip()) for part in text.split(",")))

    def of(self, count: int) -> tuple[int, ...]:
        """The page numbers, ascending, each once, in a document of `count` pages. Raises UsageError past its end."""
        if not self.ranges:
            return tuple(range(1, count + 1))
        wanted: set[int] = set()
        for first, last in self.ranges:
            if max(first, last or first) > count:
                raise UsageError(f"--pages asks for page {max(first, last or first)}; the document has {count}")
            wanted.update(range(first, (last or count) + 1))
        return tuple(sorted(wanted))


def _range(part: str) -> tuple[int, int | None]:
    low, dash, high = part.partition("-")
    open_end = dash and high == "end"
    if not (low.isdecimal() and (not dash or open_end or high.isdecimal())):
        raise UsageError(f"--pages: {part!r} is not a page or a range such as 3, 3-5 or 8-end")
    first = int(low)
    last = None if open_end else int(high) if dash else first
    if first < 1 or (last is not None and last < first):
        raise UsageError(f"--pages: {part!r} is not a range of pages counted from 1")
    return first, last


@dataclass(frozen=True)
class Settings:
    """How documents are converted."""

    pages: PageRanges = field(
        default=PageRanges(), metadata={"help": "Pages to convert, counted from 1: 1,3-5,8-end. Default: all."}
    )
    text_layer: TextLayer = field(
        default=TextLayer.AUTO,
        metadata={
            "help": "auto: keep the PDF's own text where the model agrees with it; draft: use it only to decode faster,"
            " the output equals off; off: read pixels alone."
        },
    )
    decode: Decode = field(
        default=Decode.AUTO,
        metadata={"help": "auto and speculative: draft and verify; ar: one token a forward. Same text."},
    )
    block: int | None = field(
        default=None, metadata={"help": "Tokens drafted at once. Default: what the model was trained with."}
    )
    model: Path | None = field(default=None, metadata={"help": "Folder of a checkpoint. Default: the built-in model."})
    device: str = field(default="auto", metadata={"help": "auto, cpu, cuda or cuda:N."})
    dtype: str = field(default="auto", metadata={"help": "auto, float32, bfloat16 or float16."})
    page_break: str | None = field(
        default=None, metadata={"help": "Text between pages; {page} is the number of the page that begins."}
    )
    images: bool = field(default=True, metadata={"help": "Write pictures as files beside the Markdown."})
    headers_footers: bool = field(default=False, metadata={"help": "Keep running headers, footers and page numbers."})
    password: str | None = field(default=None, repr=False, metadata={"help": "Password of an encrypted PDF."})

    def __post_init__(self) -> None:
        if self.block is not None and not 1 <= self.block <= 256:
            raise UsageError(f"--block must be from 1 to 256, not {self.block}")
        if self.dtype not in ("auto", "float32", "bfloat16", "float16"):
            raise UsageError(f"--dtype: unknown type {self.dtype!r}")
        if self.device.split(":")[0] not in ("auto", "cpu", "cuda", "mps"):
            raise UsageError(f"--device: unknown device {self.device!r}")


def help_of(name: str) -> str:
    """The help text of a field of Settings."""
    return next(str(each.metadata["help"]) for each in fields(Settings) if each.name == name)
