"""How like the truth a page is: text, word bag, headings, tables (TEDS) and formulas, each from 0 to 1.

The definitions are those of shared/eval/README.md ("How a page is scored"), in the spirit of OmniDocBench. Both sides
are folded by the same function, so that a choice of markup costs nothing. No tensors: rewards, `gravityocr eval` and
`gravityocr bench` share this file.
"""

import html
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from apted import APTED, Config
from lxml import etree
from lxml import html as lxml_html
from rapidfuzz.distance import Levenshtein
from scipy.optimize import linear_sum_assignment

from gravityocr_models.latex import to_unicode, tokens

# ---------------------------------------------------------------- folding

# Spans are bounded, so that an opening mark repeated by a looping model doesn't make the search quadratic.
_DISPLAY = (
    r"(?<!\\)\$\$(.{1,9999}?)(?<!\\)\$\$|\\\[(.{1,9999}?)\\\]"
    r"|(\\begin\{([a-zA-Z]{1,30}\*?)\}.{1,9999}?\\end\{\4\})"
)
# As Pandoc pairs dollars: no blank inside the opening or closing one, no digit after, and never over an empty line.
_INLINE = r"(?<![\\$])\$(?![\s$])((?:[^$\\\n]|\\.|\n(?!\s*\n)){1,999}?)(?<!\s)\$(?![\d$])|\\\((.{1,999}?)\\\)"
_DISPLAY_MATH = re.compile(_DISPLAY, re.DOTALL)
_INLINE_MATH = re.compile(_INLINE, re.DOTALL)
_ANY_MATH = re.compile(f"{_DISPLAY}|{_INLINE}", re.DOTALL)

_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
_COMMENT = re.compile(r"<!--.{0,9999}?-->", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)|<img\b[^>]*>", re.IGNORECASE)
_LINK = re.compile(r"(?<!!)\[([^\[\]]*)\]\([^()\s]*(?:\([^()]*\)[^()\s]*)*(?:\s+\"[^\"]*\")?\)")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^<>\s]+)>")
_FOOTNOTE = re.compile(r"\[\^([^\]\s]+)\]:?")
_INLINE_TAGS = "a abbr b big cite code del em font i ins kbd mark q s small span strong sub sup tt u var"
_BLOCK_TAGS = (
    "address article aside blockquote body br caption center col colgroup dd details div dl dt figcaption figure "
    "footer h1 h2 h3 h4 h5 h6 head header hr html li main nav ol p pre section summary table tbody td tfoot th thead "
    "tr ul"
)
_INLINE_TAG = re.compile(rf"</?(?:{'|'.join(_INLINE_TAGS.split())})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_BLOCK_TAG = re.compile(rf"</?(?:{'|'.join(_BLOCK_TAGS.split())})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_RULE = re.compile(r"^[ \t]*(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|={3,})$", re.MULTILINE)
_PIPE_RULE = re.compile(
    r"^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$|^[ \t]*\|[ \t]*:?-+:?[ \t]*\|$", re.M
)
_LINE_MARK = re.compile(r"^[ \t]*(?:>[ \t]*)*(?:#{1,6}[ \t]+|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?(?=\S))?", re.MULTILINE)
_EMPHASIS = re.compile(r"[*`|]|~~|(?<![^\W_])_+|_+(?![^\W_])")
_LEADERS = re.compile(r"\.{4,}|(?:\.[ \t]){3,}\.?")
_HYPHEN = re.compile(r"(?<=[^\W\d_])-\s*(?=[^\W\d_])")
# Han, kana, bopomofo, and their punctuation; full-width letters and digits are Latin in wide dress.
_CJK = "\u2e80-\u303f\u3040-\u30ff\u3100-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK += "\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\U00020000-\U0003ffff"
_BESIDE_CJK = re.compile(rf"(?<=[{_CJK}]) | (?=[{_CJK}])")
_WORD = re.compile(rf"[{_CJK}]|[^\s{_CJK}]+")
_UNIFIED = (
    dict.fromkeys(map(ord, "‘’‚‛′´ʼ＇"), "'")
    | dict.fromkeys(map(ord, "“”„‟″«»＂"), '"')
    | dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣－⁃"), "-")
    | dict.fromkeys(map(ord, "•◦‣▪▫■□●○◆◇►▶▸▹➢➤∙·⋅\u00ad\u200b\u200c\u200d\u2060\ufeff"), "")
    | {ord("∗"): "*", ord("∼"): "~", ord("∣"): "|"}
)


def fold_text(text: str) -> str:
    """Markdown, HTML or plain text as one line to compare.

    Markup, display maths, bullets and leaders are gone; quotes and dashes have one spelling; no hyphens between
    letters; one blank between words and none beside CJK characters.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _DISPLAY_MATH.sub("\n", _COMMENT.sub(" ", _FENCE.sub("", text)))
    text = _INLINE_MATH.sub(lambda m: to_unicode(html.unescape(m[1] or m[2])), text)
    # Escapes and entities first, marks after: truth is plain text, where a sign was never escaped to begin with.
    text = _ESCAPE.sub(r"\1", html.unescape(_AUTOLINK.sub(r"\1", _LINK.sub(r"\1", _IMAGE.sub(" ", text)))))
    text = _FOOTNOTE.sub(r" \1 ", _BLOCK_TAG.sub("\n", _INLINE_TAG.sub("", text)))
    text = _EMPHASIS.sub(_mark_to_blank, _LINE_MARK.sub("", _RULE.sub("", _PIPE_RULE.sub("", text))))
    text = _BESIDE_CJK.sub("", " ".join(text.translate(_UNIFIED).split()))
    text = unicodedata.normalize("NFKC", text).translate(_UNIFIED)
    text = re.sub("-+", "-", _LEADERS.sub(" ", text)).replace("''", '"')
    text = "".join(
        " " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c) not in ("Cc", "Co")
    )
    return " ".join(_BESIDE_CJK.sub("", _HYPHEN.sub("", text)).split())


def _mark_to_blank(mark: re.Match[str]) -> str:
    return " " if mark[0] == "|" else ""


# ---------------------------------------------------------------- text


def similarity(pred: Sequence[Hashable], truth: Sequence[Hashable]) -> float:
    """1 - Levenshtein distance / longer length; 1 for two empty sequences."""
    return float(Levenshtein.normalized_similarity(pred, truth))


def text_similarity(pred: str, truth: str) -> float:
    """`similarity` of two pages' folded characters, in reading order."""
    return similarity(fold_text(pred), fold_text(truth))


def bag_f1(pred: str, truth: str) -> float:
    """F1 of the words (CJK: characters) of two pages, whatever their order."""
    ours, theirs = (Counter(_WORD.findall(fold_text(text))) for text in (pred, truth))
    return _f1((ours & theirs).total(), ours.total(), theirs.total())


def _f1(common: float, ours: int, theirs: int) -> float:
    return 2 * common / (ours + theirs) if ours + theirs else 1.0


# ---------------------------------------------------------------- headings

_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$|<h[1-6]\b[^>]*>(.{0,999}?)</h[1-6]>", re.M | re.S | re.I
)
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,}).*?(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
HEADING_ALIKE = 0.8


def headings_of(markdown: str) -> list[str]:
    """Texts of the `#` and `<h1>` headings outside fenced code, as written."""
    return [(m[1] or m[2] or "").strip() for m in _HEADING.finditer(_FENCED.sub("", markdown))]


def heading_f1(pred: str, truth: Sequence[str]) -> float:
    """F1 of a page's headings against the true texts. Level is ignored; a pair counts when 80 % alike."""
    ours = headings_of(pred)
    alike = [[float(text_similarity(a, b) >= HEADING_ALIKE) for a in ours] for b in truth]
    return _f1(sum(best_pairs(alike)), len(ours), len(truth))


def best_pairs(scores: Sequence[Sequence[float]]) -> list[float]:
    """For each row the score of its partner, one column a row, so that the sum is largest; 0 for a row left alone."""
    found = [0.0] * len(scores)
    if scores and scores[0]:
        for row, column in zip(*linear_sum_assignment(np.asarray(scores), maximize=True), strict=True):
            found[row] = scores[row][column]
    return found


# ---------------------------------------------------------------- tables


@dataclass(frozen=True)
class Node:
    """A table, row or cell. text: folded; spans: (columns, rows) of a cell."""

    tag: str
    children: tuple["Node", ...] = ()
    text: str = ""
    spans: tuple[int, int] = (1, 1)

    @cached_property
    def size(self) -> int:
        return 1 + sum(child.size for child in self.children)


def table_tree(table: str) -> Node:
    """One HTML table as `table > tr > td`. Sections and `th` do not matter; a table in a cell is that cell's text."""
    root = lxml_html.fragment_fromstring(table, create_parent="div").find(".//table")
    if root is None:
        return Node("table")
    rows = [row for row in root.iter("tr") if next(row.iterancestors("table")) is root]
    return Node("table", tuple(Node("tr", tuple(map(_cell, row.xpath("./td|./th")))) for row in rows))


def _cell(cell: etree._Element) -> Node:
    inside = html.escape(cell.text or "", quote=False) + "".join(etree.tostring(c, encoding="unicode") for c in cell)
    return Node("td", (), fold_text(inside), (_span(cell, "colspan"), _span(cell, "rowspan")))


def _span(cell: etree._Element, name: str) -> int:
    value = cell.get(name, "1").strip()
    return int(value) if value.isdecimal() and int(value) > 0 else 1


class _Costs(Config):  # type: ignore[misc]
    """Edit costs of TEDS: 1 for a node too many or too few, a wrong tag or a wrong span; else the text's distance."""

    def __init__(self, structure_only: bool) -> None:
        self.structure_only = structure_only

    def rename(self, ours: Node, theirs: Node) -> float:
        if ours.tag != theirs.tag or ours.spans != theirs.spans:
            return 1.0
        return 0.0 if self.structure_only or ours.text == theirs.text else 1 - similarity(ours.text, theirs.text)

    def children(self, node: Node) -> tuple[Node, ...]:
        return node.children


def teds(pred_html: str, true_html: str, structure_only: bool = False) -> float:
    """1 - tree edit distance / nodes of the larger tree, for one HTML table each."""
    return _tree_similarity(table_tree(pred_html), table_tree(true_html), structure_only)


def _tree_similarity(ours: Node, theirs: Node, structure_only: bool) -> float:
    if ours == theirs:
        return 1.0
    distance = APTED(ours, theirs, _Costs(structure_only)).compute_edit_distance()
    return float(1 - distance / max(ours.size, theirs.size))


_TABLE_TAG = re.compile(r"<(/?)table\b[^>]*>", re.IGNORECASE)
_PIPE_ROW = re.compile(r"(?:[^|\\\n]|\\.)*\|")
_CELL_END = re.compile(r"(?<!\\)\|")


def tables_of(markdown: str) -> list[str]:
    """A page's tables as HTML: first the HTML ones as written (an unclosed one to the end), then the pipe tables."""
    found: list[str] = []
    depth = start = 0
    rest = markdown
    for tag in _TABLE_TAG.finditer(markdown):
        start = tag.start() if depth == 0 else start
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth == 0 and tag[1]:
            found.append(markdown[start : tag.end()])
    if depth:
        found.append(markdown[start:])
    for table in found:
        rest = rest.replace(table, "\n", 1)
    return found + _pipe_tables(_FENCED.sub("", rest))


def _pipe_tables(markdown: str) -> list[str]:
    found = []
    for is_row, lines in groupby(markdown.split("\n"), key=lambda line: bool(_PIPE_ROW.match(line))):
        block = list(lines)
        if is_row and len(block) > 1 and _PIPE_RULE.match(block[1]):
            rows = (_pipe_row(line) for line in block[:1] + block[2:])
            found.append(f"<table>{''.join(rows)}</table>")
    return found


def _pipe_row(line: str) -> str:
    cells = _CELL_END.split(line.strip().removeprefix("|"))
    cells = cells[:-1] if cells and not cells[-1].strip() else cells
    return f"<tr>{''.join(f'<td>{cell.strip()}</td>' for cell in cells)}</tr>"


@dataclass(frozen=True)
class TableScore:
    """Means over the true tables; surplus: predicted tables without a partner, which cost nothing."""

    teds: float
    teds_structure: float
    surplus: int


def table_score(pred: str, truth: Sequence[str]) -> TableScore:
    """A Markdown page's tables against the true HTML tables (at least one), each with the partner that is best."""
    ours, theirs = [table_tree(table) for table in tables_of(pred)], [table_tree(table) for table in truth]

    def mean(structure_only: bool) -> float:
        scores = best_pairs([[_tree_similarity(a, b, structure_only) for a in ours] for b in theirs])
        return sum(scores) / len(theirs)

    return TableScore(mean(False), mean(True), max(0, len(ours) - len(theirs)))


# ---------------------------------------------------------------- formulas


def formula_similarity(pred: str, truth: str) -> float:
    """`similarity` of two LaTeX formulas' normalised tokens."""
    return similarity(tokens(pred), tokens(truth))


def formulas_of(markdown: str) -> list[str]:
    """A page's formulas, display and inline, without delimiters, in order."""
    return [(m[1] or m[2] or m[3] or m[5] or m[6]).strip() for m in _ANY_MATH.finditer(_FENCED.sub("", markdown))]


def formula_score(pred: str, truth: Sequence[str]) -> float:
    """Mean over the true formulas (at least one) of the similarity to the partner found on the page; 0 for none."""
    ours, theirs = [tokens(formula) for formula in formulas_of(pred)], [tokens(formula) for formula in truth]
    return sum(best_pairs([[similarity(a, b) for a in ours] for b in theirs])) / len(theirs)
