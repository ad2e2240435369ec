"""OmniDocBench: its JSON (v1.5 and v1.6) read, and a page's Markdown scored against it by the benchmark's measures.

The text of a page is compared block by block: the Markdown is cut at blank lines, and true and predicted blocks become
partners, where a block may be the partner of several that follow each other (a paragraph cut in two costs nothing).
The edit distance of a page is the sum of its pairs' edits over the sum of their longer lengths, on letters and digits
alone; a true block without a partner counts whole, a predicted one costs nothing, and captions, notes, running heads
and page numbers count neither way. Reading order is the edit distance of the partners' ranks. Tables are scored by
TEDS, display formulas by CDM (cdm.py) and by the similarity of their tokens. All are means over pages that have the
thing.

    Overall = ((1 - text edit) * 100 + TEDS * 100 + CDM * 100) / 3

Where LaTeX is missing there is no CDM, and Overall takes token similarity in its place: the remark under the table says
so. What differs from the benchmark's own program: a page without a prediction counts as one without text, where the
benchmark leaves it out; tables find their partners by TEDS; formulas are compared with formulas only, and a system of
equations as a whole, whoever writes its rows apart; and what cdm.py says.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rapidfuzz.distance import Levenshtein

from gravityocr_cli import cdm
from gravityocr_cli.errors import InputError
from gravityocr_cli.partners import Pair, partners
from gravityocr_cli.scoring import Case, Scored, Scores, Suite, mean
from gravityocr_models.folding import DISPLAY_MATH, FENCED, INLINE_MATH, without_comments
from gravityocr_models.latex import tokens
from gravityocr_models.metrics import fold_text, formula_similarity, order_distance, table_score
from gravityocr_models.teds import split_tables

TEXT = {"text_block", "title", "code_txt", "code_txt_caption", "reference"}
UNSCORED = {
    *("figure_caption", "figure_footnote", "table_caption", "table_footnote", "equation_caption", "page_footnote"),
    *("code_algorithm", "code_algorithm_caption", "header", "footer", "page_number"),
}


@dataclass(frozen=True)
class TrueBlock:
    """text: of a text block; LaTeX of a formula; HTML of a table. order: rank in reading order, None where unknown."""

    category: str
    text: str
    order: int | None = None


@dataclass(frozen=True)
class TruePage:
    """image: path as in the JSON. source: the kind of document, by which pages are counted."""

    image: str
    source: str
    blocks: tuple[TrueBlock, ...]

    @property
    def id(self) -> str:
        return Path(self.image).stem


COLUMNS = {
    "text_edit": "text edit",
    "order_edit": "order edit",
    "teds": "TEDS",
    "teds_structure": "TEDS-S",
    "cdm": "CDM",
    "formula": "formula",
}
_HEADINGS = {"table": "table", "equation_isolated": "formula"} | dict.fromkeys(UNSCORED, "not scored")


# ---------------------------------------------------------------- reading

_DELIMITED = re.compile(r"\s*(?:\$\$|\\\[|\$|\\\()\s*(.*?)\s*(?:\$\$|\\\]|\$|\\\))\s*", re.DOTALL)


def suite_of(path: Path) -> Suite:
    """The benchmark as cases, counted by the kind of document. Raises InputError."""
    cases = []
    for page in read_benchmark(path):
        shown = sorted((block for block in page.blocks if block.text), key=lambda block: block.order or 0)
        truth = tuple((_HEADINGS.get(block.category, "text"), block.text) for block in shown)
        cases.append(Case(page.id, page.source, _page_file(path.parent, page), truth, partial(score_page, page)))
    without = cdm.missing()
    remark = f"formula: token similarity; overall: with {f'it, no CDM: {without}' if without else 'CDM'}"
    return Suite(tuple(cases), COLUMNS, partial(overall, formula="formula" if without else "cdm"), remark)


def _page_file(folder: Path, page: TruePage) -> Path:
    """The page's picture, as the benchmark hands it out; its PDF where there is no picture."""
    picture, pdf = folder / "images" / Path(page.image).name, folder / "pdfs" / f"{page.id}.pdf"
    return pdf if pdf.is_file() and not picture.is_file() else picture


def read_benchmark(path: Path) -> list[TruePage]:
    """The pages of OmniDocBench.json, in its order. Raises InputError."""
    try:
        pages = [_page(record) for record in json.loads(path.read_text("utf-8"))]
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as fault:
        raise InputError(f"{path}: not a file of OmniDocBench ({fault!r})") from fault
    if not pages:
        raise InputError(f"{path}: no pages in it")
    return pages


def _page(record: Mapping[str, Any]) -> TruePage:
    info = record["page_info"]
    boxes = {box["anno_id"]: box for box in record["layout_dets"] if not box.get("ignore")}
    blocks = [block for chain in _chains(boxes, record.get("extra") or {}) if (block := _block(chain)) is not None]
    return TruePage(info["image_path"], (info.get("page_attribute") or {}).get("data_source", "all"), tuple(blocks))


def _chains(boxes: Mapping[int, Mapping[str, Any]], extra: Mapping[str, Any]) -> list[list[Mapping[str, Any]]]:
    """Boxes, those of one cut-up paragraph together and in order."""
    chain_of = {number: [number] for number in boxes}
    for link in extra.get("relation") or []:
        ends = link["source_anno_id"], link["target_anno_id"]
        if link.get("relation_type") == "truncated" and all(end in boxes for end in ends):
            first, second = (chain_of[end] for end in ends)
            if first is not second:
                first += second
                chain_of |= dict.fromkeys(second, first)
    chains = {id(chain): chain for chain in chain_of.values()}
    return [sorted((boxes[number] for number in chain), key=_rank) for chain in chains.values()]


def _rank(box: Mapping[str, Any]) -> int:
    return int(box.get("order") or 0)


def _block(chain: Sequence[Mapping[str, Any]]) -> TrueBlock | None:
    first = chain[0]
    category = first["category_type"]
    field = {"table": "html", "equation_isolated": "latex"}.get(category, "text")
    if category not in TEXT | UNSCORED | {"table", "equation_isolated"}:
        return None
    content = "".join(box.get(field) or "" for box in chain)
    if category == "equation_isolated" and (bare := _DELIMITED.fullmatch(content)):
        content = bare[1]
    return TrueBlock(category, content, first.get("order"))


# ---------------------------------------------------------------- the Markdown's blocks


@dataclass(frozen=True)
class Piece:
    """A paragraph or formula of the Markdown. place: its rank on the page. text: letters and digits, or LaTeX."""

    place: int
    text: str
    formula: bool = False
    inline: bool = False


def pieces_of(markdown: str) -> list[Piece]:
    """Paragraphs and formulas in order, without the tables; an inline formula stands at its paragraph's place too."""
    _, rest = split_tables(without_comments(markdown))
    pieces: list[Piece] = []
    for place, (kind, text) in enumerate(_segments(rest)):
        if kind == "formula":
            pieces.append(Piece(place, text, formula=True))
            continue
        if kind == "prose":
            pieces += [
                Piece(place, (m[1] or m[2]).strip(), formula=True, inline=True) for m in INLINE_MATH.finditer(text)
            ]
        if letters := letters_of(text):
            pieces.append(Piece(place, letters))
    return pieces


def letters_of(text: str) -> str:
    """Folded text without blanks and signs: what the benchmark compares."""
    return re.sub(r"\W", "", fold_text(text))


def _segments(markdown: str) -> Iterator[tuple[str, str]]:
    """(prose, formula or code; text) in order."""
    at = 0
    for fence in FENCED.finditer(markdown):
        yield from _prose(markdown[at : fence.start()])
        yield "code", fence[0]
        at = fence.end()
    yield from _prose(markdown[at:])


def _prose(markdown: str) -> Iterator[tuple[str, str]]:
    at = 0
    for formula in DISPLAY_MATH.finditer(markdown):
        yield from (("prose", part) for part in _paragraphs(markdown[at : formula.start()]))
        yield "formula", (formula[1] or formula[2] or formula[3]).strip()
        at = formula.end()
    yield from (("prose", part) for part in _paragraphs(markdown[at:]))


def _paragraphs(markdown: str) -> Iterator[str]:
    for paragraph in re.split(r"\n[ \t]*\n", markdown):
        lines: list[str] = []
        for line in paragraph.split("\n"):
            if re.match(r"[ \t]*#{1,6}[ \t]", line):
                yield from ("\n".join(lines), line)
                lines = []
            else:
                lines.append(line)
        yield "\n".join(lines)


# ---------------------------------------------------------------- scores


Formulas = tuple[str, str]
"""LaTeX of what was predicted ("" for nothing) and of the truth; of several of either, one under the other."""
Ranked = tuple[int, int | None]
"""Place on the page, and rank in the truth."""


def score_page(page: TruePage, markdown: str) -> Scored:
    """One page's Markdown against its truth."""
    pieces = pieces_of(markdown)
    paragraphs = [piece for piece in pieces if not piece.formula]
    texts = [block for block in page.blocks if block.category in TEXT | UNSCORED and letters_of(block.text)]
    formulas = [block for block in page.blocks if block.category == "equation_isolated" and tokens(block.text)]
    tables = [block.text for block in page.blocks if block.category == "table" and block.text]
    unscored = frozenset(number for number, block in enumerate(texts) if block.category in UNSCORED)
    ours, theirs = [piece.text for piece in paragraphs], [letters_of(block.text) for block in texts]
    pairs = partners(theirs, ours, unscored)
    matched, ranked = _formulas(formulas, [piece for piece in pieces if piece.formula and tokens(piece.text)])
    ranked += [(paragraphs[pair.pred[0]].place, texts[t].order) for pair in pairs if pair.pred for t in pair.truth]
    scored = [block for number, block in enumerate(texts) if number not in unscored] + formulas
    true_order = sorted(block.order for block in scored if block.order is not None)
    order = [rank for _, rank in sorted((place, rank) for place, rank in ranked if rank is not None)]
    found = table_score(markdown, tables) if tables else None
    scores = {
        "text_edit": _text_edit(pairs, theirs, ours) if pairs else None,
        "order_edit": order_distance(order, true_order) if true_order else None,
        "teds": found.teds if found else None,
        "teds_structure": found.teds_structure if found else None,
        "cdm": None if cdm.missing() else mean(cdm.cdm_scores(matched)),
        "formula": mean([formula_similarity(ours, theirs) for ours, theirs in matched]),
    }
    return Scored(scores, {"surplus_tables": found.surplus if found else 0})


def _text_edit(pairs: Sequence[Pair], truth: Sequence[str], pred: Sequence[str]) -> float:
    edits = longest = 0
    for pair in pairs:
        ours, theirs = "".join(pred[p] for p in pair.pred), "".join(truth[t] for t in pair.truth)
        edits += Levenshtein.distance(ours, theirs)
        longest += max(len(ours), len(theirs))
    return edits / longest


def _formulas(truth: Sequence[TrueBlock], found: Sequence[Piece]) -> tuple[list[Formulas], list[Ranked]]:
    """The true formulas with their partners, and the ranks of those that have one.

    A display formula is the first choice, an inline one serves where there is none.
    """
    code: dict[str, str] = {}
    theirs = [_coded(block.text, code) for block in truth]
    display, inline = ([piece for piece in found if piece.inline == kind] for kind in (False, True))
    ours, aside = ([_coded(piece.text, code) for piece in pieces] for pieces in (display, inline))
    matched: list[Formulas] = []
    ranked: list[Ranked] = []

    def match(true: Sequence[int], pieces: Sequence[Piece]) -> None:
        matched.append((_rows([piece.text for piece in pieces]), _rows([truth[t].text for t in true])))
        ranked.extend((pieces[0].place, truth[t].order) for t in true if pieces)

    pairs = partners(theirs, ours)
    alone = [pair.truth[0] for pair in pairs if not pair.pred]
    for pair in pairs:
        if pair.pred:
            match(pair.truth, [display[p] for p in pair.pred])
    for pair in partners([theirs[t] for t in alone], aside):
        one_each = len(pair.truth) == len(pair.pred) == 1
        for t in pair.truth:
            match([alone[t]], [inline[p] for p in pair.pred] if one_each else [])
    return matched, ranked


def _rows(formulas: Sequence[str]) -> str:
    """Formulas as the rows of one."""
    return r" \\ ".join(formulas)


def _coded(formula: str, code: dict[str, str]) -> str:
    """A formula's tokens as one character each; `code` gives every token its own and grows."""
    return "".join(code.setdefault(token, chr(0x10000 + len(code))) for token in tokens(formula))


def overall(scores: Scores, formula: str = "cdm") -> float | None:
    """The benchmark's Overall, from 0 to 1; None unless the text edit, TEDS and the score named `formula` are known."""
    edit, teds, formulas = (scores.get(name) for name in ("text_edit", "teds", formula))
    return None if edit is None or teds is None or formulas is None else ((1 - edit) + teds + formulas) / 3
