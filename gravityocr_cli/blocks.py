"""(region, text) -> block: what a model's answer or the text layer's text needs before it is content, kind by kind.

Line breaks stay as painted, since only the whole document can say what they mean. A text region may turn out to be a
list; its block then says so in its region's kind.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile
from statistics import median, median_low

from gravityocr_cli import tables
from gravityocr_cli.document import Block, Kind, Line, Region
from gravityocr_cli.grid import rows_from_lines
from gravityocr_cli.hyphens import SOFT_HYPHEN
from gravityocr_cli.inlinemath import maths_in
from gravityocr_cli.lists import looks_like_list
from gravityocr_cli.ruled import rows_from_rules
from gravityocr_cli.settable import settable
from gravityocr_cli.textlayer import rows_of

_LIGATURES = str.maketrans({"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"})
_BREAKS = re.compile("\r\n|[\r\v\f\x85\u2028\u2029]")
_UNWANTED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b\u2060\ufeff\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SOFT_INSIDE = re.compile(f"{SOFT_HYPHEN}(?!\\s*(?:\n|$))")
_FENCE = re.compile(r"\s*```[^\n`]*\n(.*?)\n?```\s*", re.DOTALL)
_LOOSE_MATH = re.compile(r"(?<![\\$\w])\$[ \t]+([^$\n]*(?:\\[a-zA-Z]|[_^])[^$\n]*?)[ \t]+\$(?![$\d])")
_SHELLS = (
    re.compile(r"\$\$(.*)\$\$", re.DOTALL),
    re.compile(r"\\\[(.*)\\\]", re.DOTALL),
    re.compile(r"\\\((.*)\\\)", re.DOTALL),
    re.compile(r"\$([^$]*)\$", re.DOTALL),
    re.compile(r"\\begin\{(?:equation|displaymath|math)\*?\}(.*)\\end\{(?:equation|displaymath|math)\*?\}", re.DOTALL),
)
_NUMBER = r"\(\s*((?:[A-Z]\.?)?[0-9]{1,3}(?:[.\-][0-9]{1,3})*[a-z]?)\s*\)"
_TEXTED = rf"(?:\\(?:text|mathrm|textrm|mbox)\s*\{{\s*{_NUMBER}\s*\}}|{_NUMBER})"
_SPACED_NUMBER = re.compile(rf"((?:\\q?quad|\\hfill|\\eqno|\\hspace\{{[^}}]*\}}|\\[,;:!> ]|~|&|\s)+){_TEXTED}\s*$")
_AFTER_OPERATOR = re.compile(r"(?:^|[=+\-*/<>(,&{]|\\[a-zA-Z]+)\s*[a-zA-Z]?\s*$")
_SENTENCE_END = re.compile(r"[.?!:]['\"’”)\]]*\s*$")
_HEAD_END = re.compile(r"[^\W_][.:)]\s*$")
_SENTENCE_START = re.compile(r"\s*['\"‘“(\[]?[^\W_a-z]")


def block_of(region: Region, answer: str) -> Block:
    """The block of a region, from the model's answer or the text layer's text.

    answer: line breaks as painted; for a PICTURE, the image file's relative path.
    """
    if region.kind is Kind.PICTURE:
        return Block(region, answer)
    text = clean(answer)
    if region.kind is Kind.TEXT and looks_like_list(text):
        region = replace(region, kind=Kind.LIST)
    chatter = region.kind is Kind.TABLE and tables.has_table(text) and tables.text_around(text)
    return Block(region, _content(region, text), warnings=("text around the table left out",) if chatter else ())


def lost_block(region: Region, reason: str) -> Block:
    """The block that stands for a region that could not be read. reason: one line for the user."""
    return Block(region, "", lost=" ".join(clean(reason).split()) or "unknown reason")


def clean(text: str) -> str:
    """NFC without control bytes, ligature glyphs and zero-width signs; soft hyphens only where a line ends in one."""
    text = _UNWANTED.sub("", _BREAKS.sub("\n", text.translate(_LIGATURES)))
    return unicodedata.normalize("NFC", _SOFT_INSIDE.sub("", text))


def _content(region: Region, text: str) -> str:
    match region.kind:
        case Kind.CODE:
            return _code(text.replace(SOFT_HYPHEN, ""), region.lines)
        case Kind.FORMULA:
            return _formula(text.replace(SOFT_HYPHEN, ""))
        case Kind.TABLE:
            return _table(text.replace(SOFT_HYPHEN, ""), region)
        case Kind.LIST:
            return "\n".join(line.expandtabs(4).rstrip() for line in text.splitlines() if line.strip())
        case Kind.TITLE | Kind.HEADING:
            text = "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())
            # A model that knows Markdown may mark what the layout has said already.
            return text if region.lines else re.sub(r"^#{1,6}\s+", "", text)
        case _:
            paragraphs = re.split(r"\n[^\S\n]*\n\s*", _parted(text.strip(), region.lines))
            tidy = ("\n".join(" ".join(line.split()) for line in each.splitlines()) for each in paragraphs)
            return _with_settable_maths(_LOOSE_MATH.sub(r"$\1$", "\n\n".join(tidy)))


def _with_settable_maths(text: str) -> str:
    """The text, its inline mathematics as renderers can set it."""
    for start, end in reversed(list(maths_in(text))):
        bare = text[start:end].strip("$")
        mark = text[start : start + (end - start - len(bare)) // 2]
        text = f"{text[:start]}{mark}{settable(bare)}{mark}{text[end:]}"
    return text


def _parted(text: str, lines: Sequence[Line]) -> str:
    """The text with an empty line before each row that starts a paragraph: one that is indented and starts a sentence
    after one, one that stands clear of the row above, one whose first word had room on it, or one with a bold head."""
    rows, written = rows_of(lines), text.splitlines()
    if len(rows) < 3 or len(rows) != len(written):
        return text
    starts = _after_gaps(rows, written) | _indented(rows, written) | _after_room(rows, written) | _headed(rows, written)
    return "\n".join(f"\n{line}" if at in starts else line for at, line in enumerate(written))


def _indented(rows: Sequence[Sequence[Line]], written: Sequence[str]) -> set[int]:
    left = min(row[0].box.x0 for row in rows)
    indents = [(row[0].box.x0 - left) / row[0].size for row in rows]
    if len(rows) < 4 or sum(indent < 0.5 for indent in indents) < 0.6 * len(rows):
        return set()
    return {at for at in range(1, len(rows)) if 0.7 < indents[at] < 4 and _starts_sentence(written, at)}


def _after_gaps(rows: Sequence[Sequence[Line]], written: Sequence[str]) -> set[int]:
    """Rows under more white than the others, after a row that ends a sentence, stops short or is set larger."""
    tops, right = [min(line.box.y0 for line in row) for row in rows], max(row[-1].box.x1 for row in rows)
    pitches = [below - above for above, below in pairwise(tops)]
    usual = median_low(pitches)
    return {
        at
        for at, pitch in enumerate(pitches, start=1)
        if pitch > usual + 0.35 * rows[at][0].size
        and _SENTENCE_START.match(written[at])
        and (
            _SENTENCE_END.search(written[at - 1])
            or right - rows[at - 1][-1].box.x1 > 3 * rows[at][0].size
            or rows[at - 1][0].size - rows[at][0].size > 0.8  # a note under the text
        )
    }


def _after_room(rows: Sequence[Sequence[Line]], written: Sequence[str]) -> set[int]:
    """Rows that start a sentence with a word for which there was room on the row above; of text that is not centred."""
    left, right = [row[0].box.x0 for row in rows], [row[-1].box.x1 for row in rows]
    if sum(each - min(left) < rows[0][0].size for each in left) < 0.6 * len(rows):
        return set()
    return {
        at
        for at in range(1, len(rows))
        if _SENTENCE_START.match(written[at])
        and right[at - 1] + _width_of_first_word(rows[at][0]) + 1.5 * rows[at][0].size < max(right)
    }


def _headed(rows: Sequence[Sequence[Line]], written: Sequence[str]) -> set[int]:
    """Rows after a sentence that begin with `Lemma 3.1.` or `Keywords:` in bold."""
    return {
        at
        for at in range(1, len(rows))
        if _SENTENCE_END.search(written[at - 1])
        and rows[at][0].spans
        and rows[at][0].spans[0].style.bold
        and _HEAD_END.search(_bold_head(rows[at][0]))
    }


def _bold_head(line: Line) -> str:
    return "".join(span.text for span in takewhile(lambda span: span.style.bold or not span.text.strip(), line.spans))


def _width_of_first_word(line: Line) -> float:
    return line.box.width * len(line.text.split()[0]) / len(line.text)


def _starts_sentence(written: Sequence[str], at: int) -> bool:
    return _SENTENCE_END.search(written[at - 1]) is not None and _SENTENCE_START.match(written[at]) is not None


def _table(text: str, region: Region) -> str:
    if tables.has_table(text):
        return tables.to_html(tables.rows_from_html(text))
    if re.search(r"^\s*\|?\s*:?-{2,}:?\s*\|", text, re.MULTILINE):
        return tables.to_html(tables.rows_from_pipes(text))
    lines, rules = region.lines, region.rules
    return tables.to_html(rows_from_rules(lines, rules) or rows_from_lines(lines, rules) or tables.rows_from_text(text))


def _formula(text: str) -> str:
    """LaTeX without delimiters that renderers can set, an equation number at its end as \\tag{}."""
    text = "\n".join(line.strip() for line in text.splitlines() if line.strip())
    shelled = True
    while shelled:
        shelled = False
        for shell in _SHELLS:
            if match := shell.fullmatch(text):
                text, shelled = match[1].strip(), True
    match = _SPACED_NUMBER.search(text)
    if match and "\\tag" not in text:
        formula = text[: match.start()]
        if match[1].strip() or not _AFTER_OPERATOR.search(formula):  # a bare blank may stand in "= f (3)"
            text = f"{formula} \\tag{{{match[2] or match[3]}}}"
    return settable(text)


def _code(text: str, lines: Sequence[Line]) -> str:
    """Code with its line breaks. Indents and blank lines come from the page where the text is the text layer's."""
    if fenced := _FENCE.fullmatch(text):
        text = fenced[1]
    written = [line.expandtabs(4).rstrip() for line in text.splitlines()]
    rows = rows_of(lines)
    if rows and [_bare(line) for line in written] == [_bare("".join(line.text for line in row)) for row in rows]:
        written = _with_indents(rows)
    while written and not written[0].strip():
        written.pop(0)
    while written and not written[-1].strip():
        written.pop()
    return "\n".join(written)


def _with_indents(rows: Sequence[Sequence[Line]]) -> list[str]:
    advance = median(line.box.width / len(line.text) for row in rows for line in row if line.text) or 1.0
    left = min(row[0].box.x0 for row in rows)
    tops = [row[0].box.y0 for row in rows]
    pitches = [below - above for above, below in pairwise(tops)]
    pitch = min((each for each in pitches if each > 0), default=0.0)
    written: list[str] = []
    for index, row in enumerate(rows):
        if index and pitch:
            written += [""] * min(round(pitches[index - 1] / pitch) - 1, 2)
        text = ""
        for piece in row:
            column = round((piece.box.x0 - left) / advance)
            text += " " * max(column - len(text), 1 if text else 0) + _as_set(piece)
        written.append(text)
    return written


def _as_set(line: Line) -> str:
    """The line's text with its blanks as many as they were set, which align what code has in columns."""
    text = re.sub(r"\s", " ", "".join(span.text for span in line.spans)).strip()
    return text if _bare(text) == _bare(line.text) else line.text


def _bare(text: str) -> str:
    return "".join(text.split())
