"""Elements to Markdown: the only file that writes Markdown syntax.

The dialect is CommonMark with HTML tables and dollar mathematics. Painted text is literal text: whatever a Markdown
reader would take for syntax gets a backslash, and nothing else does, so that prose stays readable in the source.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
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
    Note,
    PageBreak,
    Paragraph,
    Table,
)
from gravityocr_cli.hyphens import SOFT_HYPHEN
from gravityocr_cli.inline import Run, Runs, outside
from gravityocr_cli.inlinemath import maths_in
from gravityocr_cli.lists import Item
from gravityocr_cli.pipes import to_pipes
from gravityocr_cli.settings import Math, Tables
from gravityocr_models.latex import to_unicode

_ALT_LENGTH = 120
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_TAG_OPENS = re.compile(r"<(?=[a-zA-Z/!?])")
_ENTITY = re.compile(r"&(?=#[0-9]{1,7};|#[xX][0-9a-fA-F]{1,6};|[a-zA-Z][a-zA-Z0-9]{1,31};)")
_RUN = re.compile(r"\*+|_+|~+")
_BLOCK_START = re.compile(
    r"(?P<at>)(?:#{1,6}(?=\s|$)|[>|]|[-+*](?=\s|$)|\[[^\]]*\]:|`{3}|~{3}|([-_*])(?:\s*\2){2,}\s*$)"
    r"|[0-9]{1,9}(?P<after>)[.)](?=\s|$)"
)


@dataclass(frozen=True)
class _Forms:
    """How to write what can be written in several ways."""

    page_break: str | None
    tables: Tables
    math: Math


def write_markdown(
    pages: Iterable[tuple[int, Sequence[Block]]],
    page_break: str | None = None,
    tables: Tables = Tables.HTML,
    math: Math = Math.DOLLAR,
    contents: Sequence[tuple[int, str, int]] = (),
) -> Iterator[str]:
    """The document piece by piece; joined, the pieces are the file.

    pages: number and blocks in reading order, page by page; read only as far as the next piece needs it.
    page_break: written before every page but the first, as Markdown, `{page}` being the page's number.
    contents: the PDF's own outline, as level from 1, title, and page from 1.
    """
    first, forms = True, _Forms(page_break, tables, math)
    for element in assemble(pages, contents):
        written = _tidy(_write(element, forms))
        if written:
            yield written if first else f"\n{written}"
            first = False


def _tidy(text: str) -> str:
    """NFC, no soft hyphen left, one line break at the end; "" stays ""."""
    text = unicodedata.normalize("NFC", text.replace(SOFT_HYPHEN, "")).rstrip()
    return f"{text}\n" if text else ""


def _write(element: Element, forms: _Forms) -> str:
    math = forms.math
    match element:
        case Heading(level, text, runs):
            return "#" * level + " " + _escape_heading(text, runs, math) if text else ""
        case Paragraph(text, runs=runs) | Aside(text, runs):
            return escape(text, runs=runs, math=math)
        case Note(label, text, runs):
            return f"[^{label}]: {escape(text, runs=runs, math=math)}"
        case ItemList(items):
            return _list(items, math)
        case Code(text):
            return _code(text)
        case Formula(latex):
            return _display(latex, math)
        case Table(markup, caption, caption_runs=runs):
            pipes = None if forms.tables is Tables.HTML else to_pipes(markup, forms.tables is Tables.PIPE)
            return "\n\n".join(part for part in (escape(caption, runs=runs, math=math), pipes or markup) if part)
        case Figure(path, caption, runs):
            image = f"![{_alt(caption)}]({_destination(path)})" if path else ""
            return "\n\n".join(part for part in (image, escape(caption, runs=runs, math=math)) if part)
        case Lost(page, region, reason):
            return f"<!-- gravityocr: page {page}, region {region}: not read ({_in_comment(reason)}) -->"
        case PageBreak(page):
            return "" if forms.page_break is None else forms.page_break.replace("{page}", str(page))


def escape(text: str, at_start: bool = True, in_label: bool = False, runs: Runs = (), math: Math = Math.DOLLAR) -> str:
    """One line of literal text as Markdown; inline mathematics (`$x_1$`) stays what it is.

    at_start: the text starts a block, so its first characters could be taken for a heading, a list, a quote.
    in_label: the text stands between brackets, where there is no mathematics and no bracket may end the label.
    runs: its styled stretches; what of them reaches into mathematics is not styled.
    """
    if " ".join(text.split()) != text:
        text, runs = " ".join(text.split()), ()
    maths = [] if in_label else list(maths_in(text))
    inside = frozenset(chain.from_iterable(range(start, end) for start, end in maths))
    acting = {*_acting_runs(text), *_acting_marks(text), *_acting_dollars(text)} - inside
    if in_label:
        acting.update(at for at, each in enumerate(text) if each in "[]" or (each == "\\" and at == len(text) - 1))
    if at_start and (match := _BLOCK_START.match(text)) and 0 not in inside:
        acting.add(match.start("at") if match["at"] is not None else match.start("after"))
    runs = outside(maths, runs)
    acting.update(at for at in _beside_marks(text, runs) if at not in inside)
    written: list[str] = []
    for at, character in enumerate(text):
        if at in inside:
            opens_tag = character == "<" and _TAG_OPENS.match(text, at)
            written.append("< " if opens_tag else character)  # the same mathematics, but never a tag
        else:
            written.append(f"\\{character}" if at in acting else character)
    for start, end in maths if math is Math.BRACKET else ():
        width = 2 if text.startswith("$$", start) else 1
        written[start : start + width] = ["\\["[: 2 * width] if width == 2 else "\\("] + [""] * (width - 1)
        written[end - width : end] = ["\\]" if width == 2 else "\\)"] + [""] * (width - 1)
    return _styled(text, written, 0, len(text), runs)


def _beside_marks(text: str, runs: Runs) -> Iterator[int]:
    """What would act only because styles bring marks of their own: stars beside emphasis, brackets in a link."""
    if runs:
        edges = {edge for run in runs for edge in (run.start, run.end)}
        inside = re.compile(r"(?<=[^\W_])_+(?=[^\W_])")  # a snake_case word that no mark cuts stays readable
        safe = {at for word in inside.finditer(text) for at in range(*word.span()) if edges.isdisjoint((at, at + 1))}
        yield from (at for at, each in enumerate(text) if each in "*_~`\\" and at not in safe)
    for run in runs:
        if run.style.link:
            yield from range(max(run.start - 1, 0), run.start) if text[run.start - 1 : run.start] == "!" else ()
            yield from (at for at in range(run.start, run.end) if text[at] in "[]")


_LEVELS = ("link", "bold", "italic", "script", "code", "note")  # outermost first


def _styled(text: str, written: Sequence[str], start: int, end: int, runs: Runs, level: int = 0) -> str:
    """The characters [start, end), as `written`, within the marks of their runs, those of one level around the next."""
    if level == len(_LEVELS) or not runs:
        return "".join(written[start:end])
    out, at = "", start
    for first, last, value, inner in _stretches(text, runs, _LEVELS[level]):
        out += "".join(written[at:first])
        body = _styled(text, written, first, last, inner, level + 1)
        alone = _stands_alone(text, first, last, runs)
        out += _marked(_LEVELS[level], value, body, text[first:last], alone) if value else body
        at = last
    return out + "".join(written[at:end])


def _stretches(text: str, runs: Runs, field: str) -> Iterator[tuple[int, int, str | int | bool, Runs]]:
    """Start, end, value and runs of each stretch in which the field is the same, blanks between its runs included."""
    group: list[Run] = []
    for run in runs:
        value = getattr(run.style, field)
        together = group and value == getattr(group[-1].style, field) and not text[group[-1].end : run.start].strip()
        if group and not together:
            yield group[0].start, group[-1].end, getattr(group[0].style, field), tuple(group)
            group = []
        group.append(run)
    if group:
        yield group[0].start, group[-1].end, getattr(group[0].style, field), tuple(group)


def _stands_alone(text: str, start: int, end: int, runs: Runs) -> bool:
    """Whether stars around the stretch are sure to be read as emphasis: nothing but blanks or points touches it."""
    touching = any(run.end == start or run.start == end for run in runs)
    split = any(start <= run.start and run.end <= end and (run.start, run.end) != (start, end) for run in runs)
    before, after = text[start - 1 : start], text[end : end + 1]
    return not touching and not split and not before.isalnum() and not after.isalnum() and before + after != "**"


def _marked(field: str, value: str | int | bool, body: str, literal: str, alone: bool) -> str:
    match field:
        case "link":
            return f"[{body}]({_address(str(value))})"
        case "bold":
            return f"**{body}**" if alone else f"<b>{body}</b>"
        case "italic":
            return f"*{body}*" if alone else f"<i>{body}</i>"
        case "script":
            return f"<sup>{body}</sup>" if value == 1 else f"<sub>{body}</sub>"
        case "code":
            return _code_span(literal)
        case _:
            return f"[^{value}]"


def _code_span(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


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


def _acting_dollars(text: str) -> Iterator[int]:
    """A dollar alone is a dollar. Two in a paragraph pair in one reader or another."""
    dollars = [at for at, each in enumerate(text) if each == "$"]
    return iter(dollars if len(dollars) > 1 else [])


def _escape_heading(text: str, runs: Runs, math: Math) -> str:
    """A heading's text: no block starts in it, but hashes at its end would be taken for its fence."""
    return re.sub(r"(^|\s)(#+)$", r"\1\\\2", escape(text, at_start=False, runs=runs, math=math))


def _list(items: Sequence[Item], math: Math) -> str:
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
        lines.append(" " * sum(widths[:depth]) + f"{marker} {escape(item.text, runs=item.runs, math=math)}")
        widths[depth:], styles[depth:] = [len(marker) + 1], [style]
    return "\n".join(lines)


def _code(text: str) -> str:
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _display(latex: str, math: Math) -> str:
    """A display: LaTeX on one line, so that none of it starts a block, without what an HTML reader calls a tag."""
    line = re.sub(r"^([-+])\s+", r"\1", " ".join(latex.split()).strip("$ "))
    line = _TAG_OPENS.sub("< ", line)
    if not line:
        return ""
    return f"$$\n{line}\n$$" if math is Math.DOLLAR else f"\\[\n{line}\n\\]"


def _alt(caption: str) -> str:
    """The caption as alternative text, its maths as it is said where nothing is typeset."""
    text = " ".join(caption.split())
    for start, end in reversed(list(maths_in(text))):
        text = text[:start] + to_unicode(text[start:end].strip("$")) + text[end:]
    if len(text) > _ALT_LENGTH:
        text = text[:_ALT_LENGTH].rsplit(" ", 1)[0] + " …"
    return escape(text, at_start=False, in_label=True)


def _destination(path: str) -> str:
    """A relative path as a link target that no normalisation changes."""
    return _address(path.replace("%", "%25")) if unicodedata.is_normalized("NFC", path) else quote(path)


def _address(target: str) -> str:
    """A link target; what is encoded in it stays so."""
    return re.sub(r"[\s()<>\\\"]", lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), target)


def _in_comment(reason: str) -> str:
    return re.sub(r"-(?=-)", "- ", " ".join(reason.split())).replace(">", "")
