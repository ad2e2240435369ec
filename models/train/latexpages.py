"""Typeset pages and formulas in bulk with LaTeX, for the trainer to cut crops from (sheets.py says how they are read).

    python -m gravityocr_models.train.latexpages --data DATA [--sheets 200] [--out ~/.cache/gravityocr/typeset]

Each sheet is one document of small pages in one of some sixty font packages. Sheets that are there already are kept, so
a run that was stopped goes on. Needs pdflatex (Debian: texlive-latex-extra, texlive-science, texlive-fonts-recommended,
and cm-super, texlive-plain-generic and texlive-fonts-extra for most of the fonts); font packages that are missing are
left out.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from shutil import which

import numpy as np
import pymupdf

from gravityocr_models.train.corpora import SHEETS, Corpora, Split, in_split, load_corpora, of_split
from gravityocr_models.train.dialect import UnknownSpelling, written
from gravityocr_models.train.sheets import FORMULA, MOST_PIECES, SOURCE, Paragraph, Unit, colour_of, numbered, units
from gravityocr_models.train.typeset import heading, listing, made_up, pick, salted

Rng = np.random.Generator

FORMULA_PAGES, TEXT_PAGES = 240, 60  # of a sheet
LONG_FORMULA, LONG_SHARE = 80, 0.7  # characters as typed; most formulas of a paper's text are a letter or two
SECONDS_A_SHEET = 900  # seconds are enough on an idle machine
FACES = tuple(
    "lmodern mathptmx mathpazo newtxtext,newtxmath newpxtext,newpxmath libertine,eulervm kpfonts fourier stix stix2 "
    "XCharter,newtxmath bookman newcent,fouriernc tgpagella,mathpazo tgtermes,mathptmx tgschola,fouriernc tgbonum "
    "tgheros tgadventor cmbright pxfonts txfonts [math]iwona [math]kurier [math]anttor arev [charter]mathdesign "
    "concmath crimson,newtxmath cochineal,newtxmath ebgaramond sourceserifpro noto lato roboto opensans "
    "merriweather PTSerif cabin plex-serif plex-sans bera librebaskerville librecaslon FiraSans sourcesanspro Alegreya "
    "domitian erewhon,newtxmath fbb,newtxmath heuristica quattrocento raleway ETbb,newtxmath spectral tinos arimo "
    "carlito caladea bitter montserrat nunito gentium libertinus chancery,mathpazo CrimsonPro,eulervm".split()
)
_SANS = re.compile(r"tgheros|tgadventor|lato|roboto|opensans|cabin|sans|Sans|raleway|arimo|carlito|montserrat|nunito")
_SIZES = {8: 9.5, 9: 11, 10: 12, 11: 13.6, 12: 14.5, 14: 17}  # points: leading
_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "'": r"\textquotesingle{}",
    '"': r"\textquotedbl{}", "`": r"\textasciigrave{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "€": r"\texteuro{}", "×": r"\texttimes{}", "±": r"\textpm{}", "−": r"\textminus{}",
    "-": "-{}", ",": ",{}",
} | {char: f"\\{char}" for char in "{}$&#_%"}  # fmt: skip
_SETTABLE = frozenset(map(chr, [*range(0x20, 0x7F), *range(0xA1, 0x180)])) - set("\xad¤¦ª²³¹º¼½¾¯´¸¨ĦħĿŀŉŦŧſ") | set(
    "“”‘’„‚–—…•†‡€−"
)
_PREAMBLE = r"""\documentclass{article}
\usepackage[T1]{fontenc}\usepackage[utf8]{inputenc}\usepackage{lmodern,amsmath,amssymb,textcomp}
%s
\hbadness10000\vbadness10000\hfuzz1000pt\vfuzz1000pt\binoppenalty10000\relpenalty10000\emergencystretch3em
\def\C#1{\pdfliteral direct{#1 rg #1 RG}}
\pdfhorigin20bp\pdfvorigin20bp
\def\page#1{\pdfpagewidth\dimexpr\wd0+40bp\pdfpageheight\dimexpr\ht0+\dp0+40bp\typeout{@page #1}\shipout\box0 }
\begin{document}
"""


def face_code(face: str) -> str:
    """Preamble lines that choose a face: packages joined by commas, an option of all in brackets before them."""
    option, names = re.fullmatch(r"(\[.*\])?(.*)", face).groups()  # type: ignore[union-attr]
    code = "".join(f"\\usepackage{option or ''}{{{name}}}" for name in names.split(","))
    return code + (r"\renewcommand*\familydefault{\sfdefault}" if _SANS.search(names) else "")


@cache
def faces(split: Split) -> tuple[str, ...]:
    """The faces that are installed and belong to the split."""
    wanted = [face for face in FACES if in_split(face, split)]
    return tuple(face for face in wanted if all(map(_installed, re.sub(r"\[.*\]", "", face).split(","))))


def _installed(package: str) -> bool:
    return subprocess.run(["kpsewhich", f"{package}.sty"], capture_output=True).returncode == 0


def sheet_pages(corpora: Corpora, rng: Rng) -> list[tuple[Paragraph, ...]]:
    """What a sheet is to hold: pages of one formula each, and pages of text."""
    pages: list[tuple[Paragraph, ...]] = []
    long = [formula for formula in corpora.latex if len(formula) > LONG_FORMULA] or corpora.latex
    while corpora.latex and len(pages) < FORMULA_PAGES:
        paragraph = Paragraph(FORMULA, ("", pick(long if rng.random() < LONG_SHARE else corpora.latex, rng)))
        if _can_be_set(paragraph):
            pages.append((paragraph,))
    return pages + [_text_page(corpora, rng) for _ in range(TEXT_PAGES if corpora.prose or corpora.science else 0)]


def _text_page(corpora: Corpora, rng: Rng) -> tuple[Paragraph, ...]:
    """Paragraphs of many looks, from a few places of the corpora."""
    page: list[Paragraph] = []
    room = int(rng.integers(600, 2500))
    while room > 0:
        science = corpora.science and (not corpora.prose or rng.random() < 0.6)
        text = pick(corpora.science if science else corpora.prose, rng)
        start = int(rng.integers(len(text.parts)))
        for part in text.parts[start : start + int(rng.integers(1, 5))]:
            for paragraph in _paragraphs(part, bool(science), corpora, rng):
                if _can_be_set(paragraph):
                    page.append(paragraph)
                    room -= sum(map(len, paragraph.parts)) + 40
    numbers = [first + sum(piece.inked for piece in unit.pieces) for _, first, unit in numbered(page)]
    return tuple(page) if max(numbers) <= MOST_PIECES else _text_page(corpora, rng)


def _paragraphs(part: str, science: bool, corpora: Corpora, rng: Rng) -> list[Paragraph]:
    """A part of a document as a paragraph, a heading, list items, an entry of a bibliography, or a listing instead."""
    kind = rng.random()
    if science:
        return [Paragraph("item" if kind < 0.15 else "prose", tuple(re.split(r"\$", part)))]
    if kind < 0.12:
        return [Paragraph("heading", (heading(part, rng),))]
    if kind < 0.3:
        marks = pick(
            (("•",) * 9, ("–",) * 9, *(tuple(f % n for n in range(1, 10)) for f in ("%d.", "(%d)", "[%d]"))), rng
        )
        points = re.split(r"(?<=[,;.]) ", part)[: int(rng.integers(1, 5))]
        return [
            Paragraph("item", (f"{mark} {salted(point, rng)}",)) for mark, point in zip(marks, points, strict=False)
        ]
    if kind < 0.38 and corpora.code:
        return [Paragraph("code", (listing(pick(pick(corpora.code, rng).parts, rng), rng),))]
    if kind < 0.46:
        return [Paragraph("prose", (" ".join(made_up(rng) for _ in range(int(rng.integers(4, 20)))),))]
    return [Paragraph("prose", (salted(part, rng),))]


def _can_be_set(paragraph: Paragraph) -> bool:
    if len(paragraph.parts) % 2 == 0 and paragraph.look != FORMULA:
        return False
    if not all(_SETTABLE.issuperset(part.replace("\n", "")) for part in paragraph.parts[::2]):
        return False
    try:
        return bool(list(units(paragraph)))
    except UnknownSpelling:
        return False


def latex_of(face: str, pages: Sequence[Sequence[Paragraph]], rng: Rng) -> str:
    """The whole document."""
    body = "".join(_page_code(number, page, rng) for number, page in enumerate(pages))
    return _PREAMBLE % face_code(face) + body + "\\end{document}\n"


def _page_code(number: int, page: Sequence[Paragraph], rng: Rng) -> str:
    marked = [""] * len(page)
    for block, first, unit in numbered(page):
        marked[block] += _space_code(unit.space) + _unit_code(unit, first)
    if page[0].look == FORMULA:
        style = r"\displaystyle" if rng.random() < 0.8 else r"\textstyle"
        formula = marked[0].replace("$", f"${style} ", 1)
        size = pick((10, 10, 11, 12), rng)
        return f"\\setbox0\\hbox{{\\fontsize{{{size}}}{{12}}\\selectfont{formula}}}\\page{{{number}}}\n"
    size = pick(tuple(_SIZES), rng)
    setting = (
        f"\\hsize{rng.uniform(140, 430):.0f}bp\\parindent{pick((0, 0, 12), rng)}pt\\parskip{pick((0, 0, 4), rng)}pt"
        f"\\fontsize{{{size}}}{{{_SIZES[size] * rng.uniform(0.97, 1.25):.1f}}}\\selectfont"
        + (r"\raggedright " if rng.random() < 0.15 else r"\relax ")
    )
    body = "".join(_look_code(paragraph.look, code, rng) for paragraph, code in zip(page, marked, strict=True))
    return f"\\setbox0\\vbox{{{setting}\n{body}}}\\page{{{number}}}\n"


def _look_code(look: str, code: str, rng: Rng) -> str:
    if look == "heading":
        style = pick((r"\large\bfseries ", r"\Large\bfseries ", r"\bfseries ", r"\large\itshape "), rng)
        return f"{{\\medskip\\noindent\\raggedright{style}{code}\\par\\smallskip}}\n"
    if look == "item":
        return f"{{\\leftskip2em\\noindent\\hskip-1.4em\\relax {code}\\par}}\n"
    if look == "code":
        return f"{{\\ttfamily\\raggedright\\noindent {code}\\par}}\n"
    style = pick(("", "", "", "", r"\itshape ", r"\bfseries ", r"\small "), rng)
    return f"{{{style}{code}\\par}}\n"


def _space_code(space: str) -> str:
    """A blank; in listings a new line with its indent, or several blanks."""
    if "\n" in space:
        return rf"\par\noindent\kern{0.525 * len(space.rpartition(chr(10))[2]):.3f}em\relax "
    return r"\ " * len(space) if len(space) > 1 else space and " "


def _unit_code(unit: Unit, first: int) -> str:
    def mark(number: int) -> str:
        return rf"\C{{{colour_of(first + number)}}}"

    if unit.formula:
        return f"${written(unit.pieces, mark)}$"
    return mark(0) + "".join(_SPECIAL.get(char, char) for char in unit.pieces[0].text)


def make_sheet(corpora: Corpora, split: Split, seed: int, target: Path) -> int:
    """Compile one sheet; returns how many of its pages are good. Raises RuntimeError where LaTeX gives no document."""
    rng = np.random.default_rng(seed)
    pages = sheet_pages(of_split(corpora, split), rng)
    code = latex_of(pick(faces(split), rng), pages, rng)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sheet.tex").write_text(code, encoding="utf-8")
        command = ["pdflatex", "-interaction=batchmode", "sheet.tex"]
        no_bitmaps = os.environ | {"MKTEXPK": "0"}  # a font without outlines would be drawn dot by dot, for minutes
        subprocess.run(command, cwd=folder, env=no_bitmaps, capture_output=True, timeout=SECONDS_A_SHEET, check=False)
        log = (Path(folder) / "sheet.log").read_text("latin-1")
        if not (Path(folder) / "sheet.pdf").exists():
            raise RuntimeError(
                f"pdflatex: {next((line for line in log.splitlines() if line.startswith('!')), log[-500:])}"
            )
        good = _good_pages(log)
        with pymupdf.open(Path(folder) / "sheet.pdf") as document:
            if len(document) != len(pages):
                raise RuntimeError(f"{len(document)} pages of {len(pages)}")
            kept = [[(p.look, p.parts) for p in page] if n in good else [] for n, page in enumerate(pages)]
            document.embfile_add(SOURCE, json.dumps(kept, ensure_ascii=False).encode())
            fresh = target.with_suffix(".new")
            document.save(fresh, garbage=3, deflate=True, use_objstms=True)
    os.replace(fresh, target)
    return len(good)


def _good_pages(log: str) -> set[int]:
    """Pages before which, since the page before, LaTeX reported no error."""
    good, faults = set(), 0
    for error, page in re.findall(r"^(?:(!)|@page (\d+))", log, re.MULTILINE):
        if error:
            faults += 1
        else:
            good |= set() if faults else {int(page)}
            faults = 0
    return good


def main() -> None:
    parser = argparse.ArgumentParser(description="typeset pages and formulas with LaTeX")
    parser.add_argument("--data", type=Path, required=True, help="folder of training corpora (see docs/training.md)")
    parser.add_argument("--sheets", type=int, default=200, help="for training; a twentieth as many for validation")
    parser.add_argument("--out", type=Path, default=SHEETS)
    options = parser.parse_args()
    if which("pdflatex") is None:
        raise SystemExit("pdflatex is missing")
    corpora = load_corpora(options.data)
    options.out.mkdir(parents=True, exist_ok=True)
    for split, seed in _wanted(options.sheets):
        target = options.out / f"{split}-{seed:05}.pdf"
        if not target.exists():
            try:
                print(f"{target.name}: {make_sheet(corpora, split, seed, target)} pages", flush=True)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{target.name}: {error}", flush=True)


def _wanted(sheets: int) -> Iterator[tuple[Split, int]]:
    yield from (("valid", seed) for seed in range(-(-sheets // 20)))
    yield from (("train", seed) for seed in range(100_000, 100_000 + sheets))


if __name__ == "__main__":
    main()
