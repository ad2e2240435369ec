"""Elements to Markdown: the only file that writes Markdown syntax.

The dialect is CommonMark with HTML tables and dollar mathematics. Painted text is literal text: whatever a Markdown
reader would take for syntax gets a backslash, and nothing else does, so that prose stays readable in the source.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from urllib.parse import quote

from gravityocr_cli.assemble import assemble
from gravityocr_cli.document import Block
from gravityocr_cli.elements import (
    Aside,
    Code,
    Element,
    Figure,
    Formula,
    Heading,
    ItemList,
    Lost,
    PageBreak,
    Paragraph,
    Table,
)
from gravityocr_cli.hyphens import SOFT_HYPHEN
from gravityocr_cli.lists import Item

_ALT_LENGTH = 120
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_TAG_OPENS = re.compile(r"<(?=[a-zA-Z/!?])")
_ENTITY = re.compile(r"&(?=#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[a-zA-Z][a-zA-Z0-9]{1,31};)")
_RUN = re.compile(r"\*+|_+|~+")
_BLOCK_START = re.compile(
    r"(?P<at>)(?:#{1,6}(?=\s|$)|[>|]|[-+*](?=\s|$)|\[[ xX]\](?=\s|$)|\[[^\]]*\]:|`{3}|~{3}|([-_*])(?:\s*\2){2,}\s*$)"
    r"|[0-9]{1,9}(?P<after>)[.)](?=\s|$)"
)
_MATH = re.compile(r"(?<![\\$a-zA-Z0-9])(\$\$(?!\$)([^$]+)\$\$(?!\$)|\$(?![\s$])([^$]*[^\s$\\])\$(?![0-9$]))")
_COMMAND = re.compile(r"\\(?:[a-zA-Z]+|[^a-zA-Z\s])")
_GROUP = re.compile(r"\{[^{}]*\}")


def write_markdown(pages: Iterable[tuple[int, Sequence[Block]]], page_break: str | None = None) -> Iterator[str]:
    """The document piece by piece; joined, the pieces are the file.

    pages: number and blocks in reading order, page by page; read only as far as the next piece needs it.
    page_break: written before every page but the first, as Markdown, `{page}` being the page's number.
    """
    first = True
    for element in assemble(pages):
        written = _tidy(_write(element, page_break))
        if written:
            yield written if first else f"\n{written}"
            first = False


def _tidy(text: str) -> str:
    """NFC, no soft hyphen left, one line break at the end; "" stays ""."""
    text = unicodedata.normalize("NFC", text.replace(SOFT_HYPHEN, "")).rstrip()
    return f"{text}\n" if text else ""


def _write(element: Element, page_break: str | None) -> str:
    match element:
        case Heading(level, text):
            return "#" * level + " " + _escape_heading(text) if text else ""
        case Paragraph(text) | Aside(text):
            return escape(text)
        case ItemList(items):
            return _list(items)
        case Code(text):
            return _code(text)
        case Formula(latex):
            return f"$$\n{_display(latex)}\n$$" if latex else ""
        case Table(markup, caption):
            return "\n\n".join(part for part in (escape(caption), markup) if part)
        case Figure(path, caption):
            image = f"![{_alt(caption)}]({_destination(path)})" if path else ""
            return "\n\n".join(part for part in (image, escape(caption)) if part)
        case Lost(page, region, reason):
            return f"<!-- gravityocr: page {page}, region {region}: not read ({_in_comment(reason)}) -->"
        case PageBreak(page):
            return "" if page_break is None else page_break.replace("{page}", str(page))


def escape(text: str, at_start: bool = True, in_label: bool = False) -> str:
    """One line of literal text as Markdown; inline mathematics (`$x_1$`) stays what it is.

    at_start: the text starts a block, so its first characters could be taken for a heading, a list, a quote.
    in_label: the text stands between brackets, where there is no mathematics and no bracket may end the label.
    """
    text = " ".join(text.split())
    maths = [] if in_label else list(_maths(text))
    inside = frozenset(chain.from_iterable(range(start, end) for start, end in maths))
    acting = {*_acting_runs(text), *_acting_marks(text), *_acting_dollars(text)} - inside
    if in_label:
        acting.update(at for at, each in enumerate(text) if each in "[]" or (each == "\\" and at == len(text) - 1))
    if at_start and (match := _BLOCK_START.match(text)) and 0 not in inside:
        acting.add(match.start("at") if match["at"] is not None else match.start("after"))
    written = []
    for at, character in enumerate(text):
        if at in inside:
            opens_tag = character == "<" and _TAG_OPENS.match(text, at)
            written.append("< " if opens_tag else character)  # the same mathematics, but never a tag
        else:
            written.append(f"\\{character}" if at in acting else character)
    return "".join(written)


def _acting_runs(text: str) -> Iterator[int]:
    """Where `*`, `_` and `~` would mark emphasis: runs that may open, with one after them that may close."""
    openers: dict[str, list[range]] = {}
    closers: dict[str, list[range]] = {}
    for run in _RUN.finditer(text):
        mark = run[0][0]
        before = text[run.start() - 1] if run.start() else " "
        after = text[run.end()] if run.end() < len(text) else " "
        word = mark == "_"  # inside a word an underscore is only itself
        if not after.isspace() and not (word and before.isalnum()):
            openers.setdefault(mark, []).append(range(*run.span()))
        if not before.isspace() and not (word and after.isalnum()):
            closers.setdefault(mark, []).append(range(*run.span()))
    for mark, opening in openers.items():
        closing = closers.get(mark, [])
        if closing and opening[0].start < closing[-1].start:
            yield from chain.from_iterable(opening)
            yield from chain.from_iterable(closing)


def _acting_marks(text: str) -> Iterator[int]:
    """Where tags, entities, links, code spans and backslashes would act."""
    yield from (match.start() for match in chain(_TAG_OPENS.finditer(text), _ENTITY.finditer(text)))
    yield from (at for at, each in enumerate(text[:-1]) if each == "\\" and text[at + 1] in _PUNCTUATION)
    yield from (at for at, each in enumerate(text) if each == "[" and "](" in text[at:])
    if text.count("`") > 1:
        yield from (at for at, each in enumerate(text) if each == "`")


def _maths(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each piece of inline mathematics, dollars included."""
    at = 0
    while match := _MATH.search(text, at):
        if _is_math(match[2] or match[3]):
            yield match.span()
            at = match.end()
        else:
            at = match.start() + 1  # its second dollar may be another's first


def _acting_dollars(text: str) -> Iterator[int]:
    """A dollar alone is a dollar. Two in a paragraph pair in one reader or another."""
    dollars = [at for at, each in enumerate(text) if each == "$"]
    return iter(dollars if len(dollars) > 1 else [])


def _is_math(content: str) -> bool:
    """Whether what stands between dollars is LaTeX and not a price list.

    With commands and groups taken out, mathematics has no words left: a run of letters longer than a function's name
    says that the dollars are money or a shell's. Without any sign of LaTeX only single letters and numbers pass.
    """
    if "`" in content:
        return False
    commands = re.search(r"\\[a-zA-Z]", content) is not None
    bare = _COMMAND.sub(" ", content)
    while (shorter := _GROUP.sub(" ", bare)) != bare:
        bare = shorter
    longest = max((len(run) for run in re.findall(r"[^\W\d_]+", bare)), default=0)
    if commands:
        return longest <= 3
    if re.search(r"[_^{]", content):
        return longest <= 2
    return longest <= 1 and re.match(r"[\w(\[|+\-−.<>=≤≥±~]", content) is not None


def _escape_heading(text: str) -> str:
    """A heading's text: no block starts in it, but hashes at its end would be taken for its fence."""
    return re.sub(r"(^|\s)(#+)$", r"\1\\\2", escape(text, at_start=False))


def _list(items: Sequence[Item]) -> str:
    lines: list[str] = []
    widths: list[int] = []  # marker widths of the open items, outermost first
    styles: list[str] = []
    for item in items:
        if not item.text:
            continue
        depth = min(item.depth, len(widths))
        marker = item.number or "-"
        style = marker[-1]
        goes_on = depth < len(styles) and styles[depth] == style
        # Only a list from 1 may follow a line of text; another number would be read as that line's continuation.
        if lines and item.number and not goes_on and int(item.number[:-1]) != 1:
            lines.append("")
        lines.append(" " * sum(widths[:depth]) + f"{marker} {escape(item.text)}")
        widths[depth:], styles[depth:] = [len(marker) + 1], [style]
    return "\n".join(lines)


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _display(latex: str) -> str:
    """LaTeX on one line, so that no line of it starts a block, and without anything that an HTML reader calls a tag."""
    line = re.sub(r"^([-+])\s+", r"\1", " ".join(latex.split()).strip("$ "))
    return _TAG_OPENS.sub("< ", line)


def _alt(caption: str) -> str:
    text = " ".join(caption.split())
    if len(text) > _ALT_LENGTH:
        text = text[:_ALT_LENGTH].rsplit(" ", 1)[0] + " …"
    return escape(text, at_start=False, in_label=True)


def _destination(path: str) -> str:
    """A relative path as a link target that no normalisation changes."""
    if not unicodedata.is_normalized("NFC", path):
        return quote(path)
    return re.sub(r"[\s()<>\\%\"]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), path)


def _in_comment(reason: str) -> str:
    return re.sub(r"-(?=-)", "- ", " ".join(reason.split())).replace(">", "")
