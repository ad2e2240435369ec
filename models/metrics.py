"""How like the truth a page is: text, word bag, headings, tables (TEDS) and formulas, each from 0 to 1.

The definitions are those of the evaluation set's README ("How a page is scored"), in the spirit of OmniDocBench. No
tensors: rewards, `gravityocr eval` and `gravityocr bench` share this file, which gathers folding.py, sequences.py and
teds.py.
"""

import re
from collections import Counter
from collections.abc import Sequence

from gravityocr_models.folding import ANY_MATH, WORD, fold_text, without_code
from gravityocr_models.latex import to_unicode, tokens
from gravityocr_models.sequences import best_pairs, bleu4, f1, order_distance, similarity
from gravityocr_models.teds import TableScore, table_score, tables_of, teds

__all__ = [
    "TableScore",
    "bag_f1",
    "best_pairs",
    "bleu4",
    "fold_text",
    "formula_score",
    "formula_similarity",
    "formulas_of",
    "heading_f1",
    "headings_of",
    "order_distance",
    "signs_alike",
    "similarity",
    "table_score",
    "tables_of",
    "teds",
    "text_similarity",
]


def text_similarity(pred: str, truth: str) -> float:
    """`similarity` of two pages' folded characters, in reading order."""
    return similarity(fold_text(pred), fold_text(truth))


def bag_f1(pred: str, truth: str) -> float:
    """F1 of the words (CJK: characters) of two pages, whatever their order."""
    ours, theirs = (Counter(WORD.findall(fold_text(text))) for text in (pred, truth))
    return f1((ours & theirs).total(), ours.total(), theirs.total())


_HEADING = re.compile(
    r"^ {0,3}#{1,6}[ \t]+(.+?)(?:[ \t]+#+)?[ \t]*$|<h[1-6]\b[^>]*>(.{0,999}?)</h[1-6]>", re.M | re.S | re.I
)
HEADING_ALIKE = 0.8


def headings_of(markdown: str) -> list[str]:
    """Texts of the `#` and `<h1>` headings outside fenced code, as written."""
    return [(m[1] or m[2] or "").strip() for m in _HEADING.finditer(without_code(markdown))]


def heading_f1(pred: str, truth: Sequence[str]) -> float:
    """F1 of a page's headings against the true texts. Level is ignored; a pair counts when 80 % alike."""
    ours = headings_of(pred)
    alike = [[float(text_similarity(a, b) >= HEADING_ALIKE) for a in ours] for b in truth]
    return f1(sum(best_pairs(alike)), len(ours), len(truth))


def signs_alike(one: str, other: str) -> float:
    """`similarity` of two formulas' letters and digits, wherever they stand; of all signs where one has none."""
    signs = [[sign for sign in to_unicode(formula) if not sign.isspace()] for formula in (one, other)]
    letters = [[sign for sign in each if sign.isalnum()] for each in signs]
    return similarity(*(letters if all(letters) else signs))


def formula_similarity(pred: str, truth: str) -> float:
    """`similarity` of two LaTeX formulas' normalised tokens."""
    return similarity(tokens(pred), tokens(truth))


def formulas_of(markdown: str) -> list[str]:
    """A page's formulas, display and inline, without delimiters, in order."""
    return [(m[1] or m[2] or m[3] or m[5] or m[6]).strip() for m in ANY_MATH.finditer(without_code(markdown))]


def formula_score(pred: str, truth: Sequence[str]) -> float:
    """Mean over the true formulas (at least one) of the similarity to the partner found on the page; 0 for none."""
    ours, theirs = [tokens(formula) for formula in formulas_of(pred)], [tokens(formula) for formula in truth]
    return sum(best_pairs([[similarity(a, b) for a in ours] for b in theirs])) / len(theirs)
