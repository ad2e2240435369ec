"""What a user can set, as one frozen record that validates itself; help texts and checks live beside the fields.

A field `text_layer` is the flag `--text-layer`, the variable `GRAVITYOCR_TEXT_LAYER` and the key `text-layer` of a
configuration file (`configfile.py` merges the three). Imports only the standard library: `--help` reads the texts and
must answer at once.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from gravityocr_cli.errors import UsageError


class TextLayer(StrEnum):
    AUTO = "auto"
    DRAFT = "draft"
    OFF = "off"


class Decode(StrEnum):
    AUTO = "auto"
    SPECULATIVE = "speculative"
    AR = "ar"


class Format(StrEnum):
    MD = "md"
    JSON = "json"
    HTML = "html"


class Tables(StrEnum):
    HTML = "html"
    PIPE = "pipe"
    AUTO = "auto"


class Math(StrEnum):
    DOLLAR = "dollar"
    BRACKET = "bracket"


class LogFormat(StrEnum):
    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class PageRanges:
    """1-based inclusive ranges; an upper end of None means the last page. No ranges: every page."""

    ranges: tuple[tuple[int, int | None], ...] = ()

    @staticmethod
    def parse(text: str) -> "PageRanges":
        """`1,3-5,8-end` -> ranges. Raises ValueError for anything else, page 0 and backward ranges included."""
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

    def __str__(self) -> str:
        return ",".join(str(a) if a == b else f"{a}-{b or 'end'}" for a, b in self.ranges) or "all"


def _range(part: str) -> tuple[int, int | None]:
    low, dash, high = part.partition("-")
    open_end = dash and high == "end"
    if not (low.isdecimal() and (not dash or open_end or high.isdecimal())):
        raise ValueError(f"{part!r} is not a page or a range such as 3, 3-5 or 8-end")
    first = int(low)
    last = None if open_end else int(high) if dash else first
    if first < 1 or (last is not None and last < first):
        raise ValueError(f"{part!r} is not a range of pages counted from 1")
    return first, last


def _number(kind: Callable[[Any], Any], low: float, high: float) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            if isinstance(value, bool):
                raise ValueError
            number = kind(value)
            exact = isinstance(value, str) or number == value
        except (ValueError, TypeError, OverflowError):
            exact, number = False, 0
        if not exact or not low <= number <= high:
            what = "a whole number" if kind is int else "a number"
            raise ValueError(f"must be {what} from {low:g} to {high:g}, not {value!r}")
        return number

    return read


def _choice(kind: type[StrEnum]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if value not in list(kind):
            raise ValueError(f"must be one of {', '.join(kind)}, not {value!r}")
        return kind(value)

    return read


def _switch(value: Any) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in words:
        raise ValueError(f"must be true or false, not {value!r}")
    return words[value.lower()]


def _matching(pattern: str, what: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.DOTALL):
            raise ValueError(f"must be {what}, not {value!r}")
        return value

    return read


def _pages(value: Any) -> PageRanges:
    return value if isinstance(value, PageRanges) else PageRanges.parse(_matching(".+", "page ranges")(value))


def _secret(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a text")  # and not which: it is never shown
    return value


def _about(read: Callable[[Any], Any], text: str, shapes: bool = False) -> dict[str, Any]:
    """read: checks a value from anywhere, or turns its text form into it; raises ValueError. shapes: see Settings."""
    return {"help": text, "read": read, "shapes": shapes}


@dataclass(frozen=True)
class Settings:
    """How documents are converted. A field that `shapes` the output is part of the options hash."""

    pages: PageRanges = field(
        default=PageRanges(), metadata=_about(_pages, "Pages to convert, counted from 1: 1,3-5,8-end.", shapes=True)
    )
    format: Format = field(default=Format.MD, metadata=_about(_choice(Format), "What to write.", shapes=True))
    text_layer: TextLayer = field(
        default=TextLayer.AUTO,
        metadata=_about(
            _choice(TextLayer),
            "auto: keep the PDF's own text where the model agrees with it; draft: use it only to decode faster,"
            " the output equals off; off: read pixels alone.",
            shapes=True,
        ),
    )
    tables: Tables = field(
        default=Tables.HTML,
        metadata=_about(
            _choice(Tables), "How Markdown shows tables; auto: as pipe tables where they are simple.", shapes=True
        ),
    )
    math: Math = field(
        default=Math.DOLLAR, metadata=_about(_choice(Math), r"Formulas as $..$ or as \(..\).", shapes=True)
    )
    decode: Decode = field(
        default=Decode.AUTO,
        metadata=_about(_choice(Decode), "auto and speculative: draft and verify; ar: one token a forward. Same text."),
    )
    block: int | None = field(
        default=None,
        metadata=_about(_number(int, 1, 256), "Tokens drafted at once. Without it: what the model was trained with."),
    )
    model: str = field(
        default="auto",
        metadata=_about(
            _matching(r".+", "a name"),
            "auto (the best that is here and fits the device), nano (built in), a folder, or a hub id.",
            shapes=True,
        ),
    )
    device: str = field(
        default="auto",
        metadata=_about(
            _matching(r"auto|cpu|mps|cuda(:\d+)?", "auto, cpu, mps, cuda or cuda:N"), "auto, cpu, mps, cuda, cuda:N."
        ),
    )
    dtype: str = field(
        default="auto",
        metadata=_about(
            _matching("auto|float32|bfloat16|float16", "auto, float32, bfloat16 or float16"),
            "auto, float32, bfloat16 or float16.",
            shapes=True,
        ),
    )
    page_break: str | None = field(
        default=None,
        metadata=_about(
            _matching(".*", "a text"), "Text between pages; {page} is the number of the page that begins.", shapes=True
        ),
    )
    images: bool = field(
        default=True, metadata=_about(_switch, "Write pictures as files beside the Markdown.", shapes=True)
    )
    headers_footers: bool = field(
        default=False, metadata=_about(_switch, "Keep running headers, footers and page numbers.", shapes=True)
    )
    password: str | None = field(
        default=None,
        repr=False,
        metadata=_about(
            _secret,
            "Password of an encrypted PDF. Other users of the machine can see it in the list of processes: prefer"
            " GRAVITYOCR_PASSWORD or --password-file.",
        ),
    )
    password_file: Path | None = field(
        default=None,
        metadata=_about(
            lambda value: Path(_matching(".+", "a path")(str(value))), "File whose first line is the password."
        ),
    )
    jobs: int | None = field(
        default=None,
        metadata=_about(
            _number(int, 0, 256),
            "Processes that take PDFs apart. Default: by the number of CPU cores. 0: none; then a page that hangs or"
            " crashes takes the run with it.",
        ),
    )
    timeout: float | None = field(
        default=None,
        metadata=_about(_number(float, 0.1, 1e7), "Most seconds for a document; pages not reached by then are lost."),
    )
    layout_model: str = field(
        default="auto",
        metadata=_about(
            _matching(r".+", "a file"),
            "What finds regions on scans: auto (built in), or a layout.onnx made of a DocLayout-YOLO checkpoint.",
            shapes=True,
        ),
    )
    page_timeout: float = field(
        default=120.0,
        metadata=_about(
            _number(float, 0.1, 1e6), "Most seconds to render a page and find its regions; then it is lost."
        ),
    )
    max_pixels: int = field(
        default=24_000_000,
        metadata=_about(
            _number(int, 10_000, 500_000_000), "Most pixels of a rendered page; larger ones are scaled.", shapes=True
        ),
    )
    resume: bool = field(
        default=False,
        metadata=_about(_switch, "Skip what an earlier run finished: same input, options, model and output."),
    )
    overwrite: bool = field(
        default=True, metadata=_about(_switch, "Replace outputs that exist; else their inputs are skipped.")
    )
    offline: bool = field(default=False, metadata=_about(_switch, "Refuse every network connection."))
    log_format: LogFormat = field(
        default=LogFormat.TEXT, metadata=_about(_choice(LogFormat), "Standard error as text or as JSON lines.")
    )
    quiet: bool = field(default=False, metadata=_about(_switch, "No progress and no warnings."))
    verbose: bool = field(default=False, metadata=_about(_switch, "A line for every page."))

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if value is None and each.default is None:
                continue
            try:
                object.__setattr__(self, each.name, each.metadata["read"](value))
            except ValueError as error:
                raise UsageError(f"{flag_of(each.name)}: {error}") from None

    def options_hash(self, *more: str) -> str:
        """A digest of what is set here and shapes the output, and of `more` (program, model)."""
        values = [f"{each.name}={getattr(self, each.name)}" for each in fields(self) if each.metadata["shapes"]]
        return hashlib.sha256("\0".join([*values, *more]).encode()).hexdigest()


_FIELDS = {each.name: each for each in fields(Settings)}
NAMES = tuple(_FIELDS)


def read_value(name: str, value: object) -> Any:
    """The value of a field, from its text or TOML form. Raises ValueError with a reason that never shows a password."""
    return _FIELDS[name].metadata["read"](value)


def flag_of(name: str) -> str:
    """The command line's name of a field."""
    return "--no-overwrite" if name == "overwrite" else "--" + name.replace("_", "-")


def help_of(name: str) -> str:
    """The help text of a field of Settings, with its default."""
    default = _FIELDS[name].default
    shown = "" if default is None or isinstance(default, bool) else f" [default: {default}]"
    return f"{_FIELDS[name].metadata['help']}{shown}"
