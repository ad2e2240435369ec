"""Character detection matching (CDM): how alike two formulas look once LaTeX has set them, from 0 to 1.

The formula metric of OmniDocBench, after Wang et al. 2024 (arXiv 2409.03643) and the constants of its program. The
signs of both formulas become partners by the cheapest assignment, where another sign costs 1, another place up to 0.05
and another rank up to 0.15. A pair counts where the signs are the same and its place fits, within 20 pixels of 200 dpi,
one shift and scale that most pairs share. RANSAC finds that shift, and up to four more among what is left over, since a
line that is broken elsewhere moves all behind it. CDM = 2 TP / (2 TP + FP + FN).

The authors find their tokens in a picture, by colour. TeX's own output (DVI, by `pdflatex`) names each sign and its
place exactly, however it was typed, so nothing is drawn here, and whatever LaTeX takes can be scored. A sign is what
they call a token: letters whatever their alphabet, those of `\\sin` one by one, a root with its rule, a tall bracket
however many pieces it is put together from.

Their tolerance is wide: in 12 point type it is more than a single superscript stands above a subscript, so that x^2 for
x_2 costs nothing. Token similarity, which stands beside CDM in every table, sees it.
"""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path
from shutil import which

import numpy as np
from numpy.typing import NDArray

from gravityocr_cli.dvi import BLOT, SECONDS, Sign, metrics_of, read_dvi, whole
from gravityocr_models.latex import SYMBOLS
from gravityocr_models.sequences import assignment, f1

ANOTHER_SIGN, ANOTHER_PLACE, ANOTHER_RANK = 1.0, 0.05, 0.15
TOLERANCE = 20 * 72 / 200  # points, in 12 point type
ROUNDS, LEAST = 5, 2  # of RANSAC; so few pairs fit any shift and scale
MOST_FITS = 1000  # pairs of pairs that a round tries: all, for up to 45 signs
BATCH = 100  # formulas a run of LaTeX

Points = NDArray[np.float64]


# ---------------------------------------------------------------- scores


@cache
def missing() -> str:
    """Why there can be no CDM here; "" where it can be had."""
    if which("pdflatex") is None or which("kpsewhich") is None:
        return "LaTeX is not installed"
    return "" if typeset(["x"])[0] else "LaTeX sets no formulas (are amsmath and amssymb there?)"


def cdm_scores(pairs: Sequence[tuple[str, str]]) -> list[float | None]:
    """CDM of each (predicted, true) formula in LaTeX. None where LaTeX cannot set the truth; 0 for such a prediction.

    Call it where `missing` is "".
    """
    formulas = list(dict.fromkeys(formula for pair in pairs for formula in pair))
    signs = dict(zip(formulas, typeset(formulas), strict=True))
    return [cdm(signs[pred], signs[truth]) if signs[truth] else None for pred, truth in pairs]


def cdm(pred: Sequence[Sign], truth: Sequence[Sign]) -> float:
    """CDM of two formulas as set, the true one not empty."""
    if not pred:
        return 0.0
    pairs = assignment((-_costs(pred, truth)).tolist())
    ours, theirs = (np.array([_centre(sign) for sign in signs]) for signs in (pred, truth))
    fits = _fits(theirs[[t for _, t in pairs]], ours[[p for p, _ in pairs]])
    hits = sum(pred[p].name == truth[t].name for (p, t), fit in zip(pairs, fits, strict=True) if fit)
    return f1(hits, len(pred), len(truth))


def _costs(pred: Sequence[Sign], truth: Sequence[Sign]) -> Points:
    """What it costs to pair each predicted with each true sign, [predicted, true]."""
    other = np.array([[ours.name != theirs.name for theirs in truth] for ours in pred])
    place, rank = (
        np.abs(ours[:, None] - theirs).mean(-1)
        for ours, theirs in zip(_places_and_ranks(pred), _places_and_ranks(truth), strict=True)
    )
    return ANOTHER_SIGN * other + ANOTHER_PLACE * place + ANOTHER_RANK * rank  # type: ignore[no-any-return]


def _places_and_ranks(signs: Sequence[Sign]) -> tuple[Points, Points]:
    """Sides of the boxes in shares of the whole formula's width and height, [n, 4]; ranks in shares of 1, [n, 1]."""
    sides = np.array([(sign.box.x0, sign.box.y0, sign.box.x1, sign.box.y1) for sign in signs])
    start, end = sides[:, :2].min(0), sides[:, 2:].max(0)
    places = (sides - np.tile(start, 2)) / np.tile(np.maximum(end - start, 1.0), 2)
    return places, np.arange(len(signs))[:, None] / len(signs)


def _centre(sign: Sign) -> tuple[float, float]:
    return sign.box.x, sign.box.y


def _fits(source: Points, target: Points) -> NDArray[np.bool_]:
    """Which points of `target` [n, 2] are where a shift and scale of `source` [n, 2] puts them, in points."""
    if len(source) <= LEAST:
        return np.ones(len(source), dtype=bool)
    fits = np.zeros(len(source), dtype=bool)
    for _ in range(ROUNDS):
        left = np.flatnonzero(~fits)
        if len(left) <= LEAST:
            break
        fits[left[_largest_fit(source[left], target[left])]] = True
    return fits


def _largest_fit(source: Points, target: Points) -> NDArray[np.bool_]:
    """The points that go along with the best shift and scale of those that two points each suggest."""
    pairs = np.array(list(combinations(range(len(source)), 2)))
    if len(pairs) > MOST_FITS:
        pairs = np.random.default_rng(0).choice(pairs, MOST_FITS, replace=False)
    before, after = source[pairs], target[pairs]
    lengths, wanted = (np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) for ends in (before, after))
    scales = np.where(lengths > 0, wanted / np.maximum(lengths, 1e-9), 1.0)[:, None, None]
    moved = (source - before.mean(1, keepdims=True)) * scales + after.mean(1, keepdims=True)
    errors = np.linalg.norm(moved - target, axis=-1)
    near = errors < TOLERANCE
    best = np.lexsort((np.where(near, errors, 0).sum(1), -near.sum(1)))[0]
    return near[best]  # type: ignore[no-any-return]


# ---------------------------------------------------------------- LaTeX

_PREAMBLE = r"""\documentclass[12pt]{article}
\usepackage{amsmath,amssymb}
\IfFileExists{mathrsfs.sty}{\usepackage{mathrsfs}}{}\IfFileExists{bm.sty}{\usepackage{bm}}{}
\hbadness10000\vbadness10000\hfuzz\maxdimen\vfuzz\maxdimen
\begin{document}
"""
_COMMENT = re.compile(r"(?<!\\)%.*")
_NUMBERING = re.compile(r"\\(?:label|tag\*?)\s*\{[^{}]*\}|\\(?:nonumber|notag)(?![A-Za-z])")
_ENVIRONMENT = re.compile(r"\\(begin|end)\s*\{([A-Za-z]+\*?)\}")
_INNER = dict.fromkeys("split align eqnarray flalign".split(), "aligned") | {"alignat": "alignedat"}
_INNER |= dict.fromkeys("multline gather equation displaymath math".split(), "gathered")
_KNOWN_ENVIRONMENTS = set(
    "aligned alignedat gathered array tabular matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix cases "
    "subarray".split()
)
# What reaches beyond a formula: into its neighbours, into files, or on for ever.
_REACHING = re.compile(
    r"\\(?:[egx]?def|let|futurelet|global\w*|long|outer|input|include\w*|openin|openout|read|write|immediate|csname|"
    r"catcode|loop|repeat|\w*newcommand|\w*newenvironment|providecommand|DeclareMathOperator|newcount|count\w*|shipout|"
    r"setbox|box\d*|\w*group|verb|special|endinput|bye|stop|dump|everymath|everydisplay|aftergroup|afterassignment|batchmode|"
    r"\w+stopmode|scrollmode|usepackage|documentclass|document|end(?!\s*\{))(?![A-Za-z])|\^\^"
)
_BRACKETS = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+|\\.|[{}$]", re.DOTALL)
LAST_LETTER = 0x24F  # of those that LaTeX knows how to set
_COMMANDS = {sign: f"{command} " for command, sign in SYMBOLS.items() if not sign.isascii()} | {"−": "-", "\xa0": " "}


def typeset(formulas: Sequence[str]) -> list[tuple[Sign, ...]]:
    """The signs of each formula in TeX's order; none where LaTeX cannot set it.

    What TeX mends, such as unknown commands, is left to it, as in the authors' program; brackets left open are not.
    """
    codes = {number: code for number, formula in enumerate(formulas) if (code := _code(formula))}
    numbers = list(codes)
    pages: dict[int, tuple[Sign, ...]] = {}
    for start in range(0, len(numbers), BATCH):
        pages |= _pages({number: codes[number] for number in numbers[start : start + BATCH]})
    return [whole(pages.get(number, ())) for number in range(len(formulas))]


def _code(formula: str) -> str:
    """The formula as LaTeX for between two dollars; "" for what may not be set beside others."""
    code = _NUMBERING.sub(" ", _COMMENT.sub(" ", formula)).replace("\n", " ").strip()
    code = _ENVIRONMENT.sub(lambda m: f"\\{m[1]}{{{_INNER.get(m[2].rstrip('*'), m[2])}}}", code)
    unknown = {name for _, name in _ENVIRONMENT.findall(code)} - _KNOWN_ENVIRONMENTS
    if unknown or _REACHING.search(code) or not _is_closed(code):
        return ""
    code = "".join(_COMMANDS.get(char) or (_blot(char) if ord(char) > LAST_LETTER else char) for char in code)
    return f"\\begin{{aligned}}{code}\\end{{aligned}}" if _has_rows(code) else code


def _blot(char: str) -> str:
    """A square that goes by the name of a character for which TeX has no glyph, such as one of Chinese."""
    return f"\\hbox{{\\special{{{BLOT}{char}}}\\vrule height.8em depth.2em width1em}}"


def _is_closed(code: str) -> bool:
    """Whether braces, environments, `\\left` and dollars are closed in the order in which they were opened."""
    opened: list[str] = []
    for token in _BRACKETS.findall(code):
        end = {"}": "{", r"\right": r"\left", "$": "$"}.get(token) or (
            token.replace("end", "begin", 1) if token.startswith(r"\end{") else ""
        )
        if end and opened and opened[-1] == end:
            opened.pop()
        elif token in ("{", "$", r"\left") or token.startswith(r"\begin{"):
            opened.append(token)
        elif end:
            return False
    return not opened


def _has_rows(code: str) -> bool:
    """Whether the formula is cut in rows or columns outside of any environment."""
    outside = depth = 0
    for token in re.findall(r"\\(?:begin|end)(?![A-Za-z])|\\.|[{}&]", code, re.DOTALL):
        depth += (token in ("{", r"\begin")) - (token in ("}", r"\end"))
        outside += not depth and token in ("&", r"\\")
    return outside > 0


def _pages(codes: Mapping[int, str]) -> dict[int, tuple[Sign, ...]]:
    """What TeX ships for each; where it stumbles over one, the others are set without it."""
    pages = _run(codes)
    if len(pages) == len(codes) or len(codes) == 1:
        return pages
    numbers = list(codes)
    half = len(numbers) // 2
    parts = [_pages({number: codes[number] for number in part}) for part in (numbers[:half], numbers[half:])]
    return parts[0] | parts[1]


def _run(codes: Mapping[int, str]) -> dict[int, tuple[Sign, ...]]:
    """One document with a page a formula; empty where TeX took too long.

    The formulas may come from anywhere: TeX starts no program, and reads and writes in a folder of its own.
    """
    body = "".join(
        f"\\setbox0\\hbox{{$\\displaystyle {code}$}}\\count0={number}\\shipout\\box0\n"
        for number, code in codes.items()
    )
    barred = os.environ | {"openin_any": "p", "openout_any": "p", "MKTEXTFM": "0"}
    command = "pdflatex -no-shell-escape -interaction=batchmode -output-format=dvi page.tex".split()
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "page.tex").write_text(f"{_PREAMBLE}{body}\\end{{document}}\n", "utf-8")
        try:
            subprocess.run(command, cwd=folder, env=barred, capture_output=True, timeout=SECONDS, check=False)
            return read_dvi((Path(folder) / "page.dvi").read_bytes(), metrics_of)
        except (subprocess.TimeoutExpired, OSError):
            return {}
