"""Elements to one HTML page that stands alone: no script, no style sheet and no address but those of the document.

All text is escaped and tables are rebuilt from their cells, so that nothing in a document can act in a reader's
browser. Formulas stand as LaTeX between `\\(`, `\\)` and `\\[`, `\\]`, as KaTeX and MathJax find them.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from gravityocr_cli.assemble import assemble
from gravityocr_cli.document import PLAIN, Block, Style
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
from gravityocr_cli.inline import Runs, outside
from gravityocr_cli.inlinemath import maths_in
from gravityocr_cli.lists import Item
from gravityocr_cli.textlayer import is_safe_target

_STYLE = (
    "body{max-width:45rem;margin:2rem auto;padding:0 1rem;font-family:serif;line-height:1.5}"
    "table{border-collapse:collapse}td,th{border:1px solid #999;padding:.2rem .5rem;vertical-align:top}"
    "img{max-width:100%}pre{overflow-x:auto}aside{font-size:.9em}"
)


def write_html(
    pages: Iterable[tuple[int, Sequence[Block]]], title: str, contents: Sequence[tuple[int, str, int]] = ()
) -> Iterator[str]:
    """The page piece by piece. title: of the window. contents: the PDF's outline: level from 1, title, page from 1."""
    yield (
        f'<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n"
    )
    for element in assemble(pages, contents):
        if written := _write(element).replace(SOFT_HYPHEN, ""):
            yield f"{written}\n"
    yield "</body>\n</html>\n"


def _write(element: Element) -> str:
    match element:
        case Heading(level, text, runs):
            return f"<h{level}>{_inline(text, runs)}</h{level}>" if text else ""
        case Paragraph(text, runs=runs):
            return f"<p>{_inline(text, runs)}</p>"
        case Aside(text, runs):
            return f"<aside>{_inline(text, runs)}</aside>"
        case Note(label, text, runs):
            name = _name(label)
            return f'<aside id="note-{name}"><sup>{escape(label)}</sup> {_inline(text, runs)}</aside>'
        case ItemList(items):
            return _list(items)
        case Code(text):
            return f"<pre><code>{escape(text, quote=False)}</code></pre>"
        case Formula(latex):
            return f'<div class="math display">\\[{escape(latex, quote=False)}\\]</div>' if latex else ""
        case Table(markup, caption, caption_runs=runs):
            head = f"<caption>{_inline(caption, runs)}</caption>\n" if caption else ""
            return markup.replace("<table>\n", f"<table>\n{head}", 1)
        case Figure(path, caption, runs):
            image = f'<img src="{escape(path)}" alt="{escape(caption)}">' if path else ""
            under = f"<figcaption>{_inline(caption, runs)}</figcaption>" if caption else ""
            return f"<figure>{image}{under}</figure>" if image or under else ""
        case Lost(page, region, reason):
            return f'<p class="lost">page {page}, region {region}: not read ({escape(reason)})</p>'
        case PageBreak(page):
            return f'<span id="page-{page}"></span>'


def _inline(text: str, runs: Runs) -> str:
    """One line of text: mathematics marked as such, the rest with its styles."""
    maths = list(maths_in(text))
    places = [PLAIN] * len(text)
    for run in outside(maths, runs):
        places[run.start : run.end] = [run.style] * (run.end - run.start)
    written, at = "", 0
    for start, end in [*maths, (len(text), len(text))]:
        for style, group in groupby(range(at, start), key=lambda index: places[index]):
            indices = list(group)
            written += _styled(escape(text[indices[0] : indices[-1] + 1], quote=False), style)
        if start < end:
            latex = escape(text[start:end].strip("$"), quote=False)
            written += f'<span class="math inline">\\({latex}\\)</span>'
        at = end
    return written


def _styled(text: str, style: Style) -> str:
    if style.note:
        return f'<sup><a href="#note-{_name(style.note)}">{escape(style.note)}</a></sup>'
    tags = [
        ("code", style.code),
        ("sup", style.script == 1),
        ("sub", style.script == -1),
        ("em", style.italic),
        ("strong", style.bold),
    ]
    for tag, wanted in tags:
        text = f"<{tag}>{text}</{tag}>" if wanted else text
    return f'<a href="{escape(style.link)}">{text}</a>' if is_safe_target(style.link) else text


def _name(label: str) -> str:
    return re.sub(r"[^\w-]", lambda match: f"{ord(match[0]):x}", label)


def _list(items: Sequence[Item]) -> str:
    """Nested lists; a number stays the item's own."""
    written, tags = "", list[str]()
    for item in items:
        tag = "ol" if item.number else "ul"
        depth = min(item.depth, len(tags))
        while len(tags) > depth + 1:
            written += f"</li>\n</{tags.pop()}>"
        if len(tags) == depth + 1 and tags[-1] != tag:
            written += f"</li>\n</{tags.pop()}>\n"
        if len(tags) == depth + 1:
            written += "</li>\n"
        else:
            written += f"<{tag}>\n"
            tags.append(tag)
        value = f' value="{int(item.number[:-1])}"' if item.number else ""
        written += f"<li{value}>{_inline(item.text, item.runs)}"
    for tag in reversed(tags):
        written += f"</li>\n</{tag}>"
    return written
