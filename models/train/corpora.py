"""Where training text and pages come from: papers, formula images, prose, code and fonts, as one frozen `Corpora`.

Everything is optional: a folder that lacks a part, or a machine without the Debian documents, gives empty tuples, and
the generator of samples makes do with the rest. Nothing is downloaded. Each item carries the name of its document,
because documents are split between training and validation by name.
"""

import html
import random
import re
import subprocess
import tarfile
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from shutil import which
from typing import Literal

from gravityocr_models.train.dialect import UnknownSpelling, normal_latex

Split = Literal["train", "valid"]

DOCS = Path("/usr/share/doc")
SHEETS = Path.home() / ".cache/gravityocr/typeset"  # what latexpages.py has typeset
LANGUAGES = "en-US de-DE fr-FR es-ES it-IT pt-BR pl-PL cs-CZ da-DK sv-SE nb-NO nl-NL hr-HR ro-RO tr-TR ca-ES el-GR"
BANNED = ("amsldoc", "testmath", "beamer", "lshort", "debian-reference", "exam-zh")  # pages of the evaluation sets
NOT_TEXT_FONTS = re.compile(
    r"symbol|dingbat|math|D050000L|Z003|chorus|caps|dunh|unsl|hairline|thin|STIXSize|STIXInt|STIXVar|NonUni|_K\b|_RZ|_DR|_M\b",
    re.IGNORECASE,
)
FILES_OF_A_SET = 100  # some MB of text are more than a run of nano reads, and start-up stays short
FILES_OF_A_LANGUAGE = 12
MANUALS, LEAST_OF_A_MANUAL = 60, 100_000  # PDFs of TeX Live's documentation, and the least bytes of one
LONGEST_FORMULA = 300  # characters

_PARAGRAPH = re.compile(r"<(p|li|dd)\b[^>]*>(.*?)</\1>", re.DOTALL)
_LISTING = re.compile(r"<pre\b[^>]*>(.*?)</pre>", re.DOTALL)
_BREAK = re.compile(r"</?(?:p|li|dd|dt|div|br|ul|ol|table|tr|td|pre)\b[^>]*>")
_TAG = re.compile(r"<[^>]+>")
_COMMENT = re.compile(r"(?<!\\)%.*")
_STYLED = re.compile(r"\\(?:emph|textit|textbf|textsc|text|it|bf|em)\s*\{([^{}]*)\}")
_REFERENCE = re.compile(r"\\(?:ref|eqref|cite|citep|citet)(?:\[[^\]]*\])?\{[^{}]*\}")
_MACRO = re.compile(
    r"\\(?:def|(?:re)?newcommand\*?)\s*\{?(\\[A-Za-z]+)\}?\s*\{((?:[^{}#]|\{(?:[^{}#]|\{[^{}#]*\})*\})*)\}"
)
_DISPLAY = re.compile(
    r"\\\[(.*?)\\\]|\$\$(.*?)\$\$|(\\begin\{(?:equation|align|gather|eqnarray)\*?\}.*?\\end\{(?:equation|align|gather|eqnarray)\*?\})",
    re.DOTALL,
)
_INLINE = re.compile(r"(?<![\\$])\$([^$]+)\$(?!\$)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


@dataclass(frozen=True)
class Text:
    """One document's text: paragraphs, or for code whole listings with their line breaks."""

    name: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class Corpora:
    """Everything that samples are made of.

    papers: born-digital PDFs. sheets: PDFs that latexpages.py has typeset. formulas: (image path, LaTeX). latex:
    formulas to be typeset, spelled in any way. prose, code: text to be typeset. science: prose with formulas between
    dollars. fonts: font files, Latin.
    """

    papers: tuple[Path, ...] = ()
    sheets: tuple[Path, ...] = ()
    formulas: tuple[tuple[Path, str], ...] = ()
    latex: tuple[str, ...] = ()
    prose: tuple[Text, ...] = ()
    code: tuple[Text, ...] = ()
    science: tuple[Text, ...] = ()
    fonts: tuple[Path, ...] = ()


def load_corpora(root: Path, system: bool = True) -> Corpora:
    """Corpora of a folder with docbank/*.pdf, formula_crops/ and text/*.tar.gz (each optional).

    system: add the documents under /usr/share/doc, the installed fonts and the typeset sheets. Takes a few seconds with
    everything there.
    """
    prose: list[Text] = []
    science: list[Text] = []
    latex = list(_formula_list(root / "text/im2latex_formulas.tar.gz"))
    for name, source in _latex_sources(root / "text"):
        prose.append(Text(name, tuple(_latex_prose(source))))
        science.append(Text(name, tuple(_latex_science(source))))
        latex += _latex_formulas(source)
    code: list[Text] = []
    for path in _system_pages() if system else ():
        prose_text, code_text = _texts_of_page(path)
        prose.append(prose_text)
        code.append(code_text)
    return Corpora(
        papers=(*sorted((root / "docbank").glob("*.pdf")), *(_manuals() if system else ())),
        sheets=tuple(sorted(SHEETS.glob("*.pdf"))) if system else (),
        formulas=tuple(_formulas(root / "formula_crops")),
        latex=tuple(dict.fromkeys(latex)),
        prose=tuple(text for text in prose if text.parts),
        code=tuple(text for text in code if text.parts),
        science=tuple(text for text in science if text.parts),
        fonts=_fonts() if system else (),
    )


def of_split(corpora: Corpora, split: Split) -> Corpora:
    """The documents, formulas and fonts of one split: about 5 % by name are `valid`, and occur in no other."""
    return Corpora(
        papers=tuple(path for path in corpora.papers if in_split(path.stem, split)),
        sheets=tuple(path for path in corpora.sheets if path.name.startswith(split)),
        formulas=tuple(item for item in corpora.formulas if in_split(item[0].stem, split)),
        latex=tuple(latex for latex in corpora.latex if in_split(latex, split)),
        prose=tuple(text for text in corpora.prose if in_split(text.name, split)),
        code=tuple(text for text in corpora.code if in_split(text.name, split)),
        science=tuple(text for text in corpora.science if in_split(text.name, split)),
        fonts=tuple(path for path in corpora.fonts if in_split(family_of(path), split)),
    )


def in_split(name: str, split: Split) -> bool:
    """Whether a document of this name belongs to the split; depends on nothing but the name."""
    return (zlib.crc32(name.encode()) % 20 == 0) == (split == "valid")


@cache
def family_of(font: Path) -> str:
    """The part of a font's file name that its weights and sizes share: `NotoSans-Bold.ttf` -> `NotoSans`."""
    stem = re.split(r"[-_.]", font.name)[0]
    return re.sub(r"\d+$", "", stem)


def _banned(path: Path) -> bool:
    return any(word in path.name.lower() for word in BANNED)


def _system_pages() -> Iterator[Path]:
    """HTML pages of each installed document set, a bounded choice that is the same on every run."""
    sets = [
        (DOCS / "python3.11-doc/html", "*/*.html", FILES_OF_A_SET),
        (DOCS / "anarchism/html", "*.html", FILES_OF_A_SET),
    ]
    sets += [
        (DOCS / "debian-handbook/html" / language, "*.html", FILES_OF_A_LANGUAGE) for language in LANGUAGES.split()
    ]
    for folder, pattern, most in sets:
        found = sorted(path for path in folder.glob(pattern) if not _banned(path) and path.stat().st_size > 12_000)
        yield from random.Random(len(found)).sample(found, min(most, len(found)))


def _manuals() -> list[Path]:
    """A bounded choice of TeX Live's documentation, the same on every run, without the evaluation pages."""
    found = sorted((DOCS / "texlive-doc").glob("**/*.pdf"))
    found = [path for path in found if not _banned(path) and path.stat().st_size > LEAST_OF_A_MANUAL]
    return random.Random(len(found)).sample(found, min(MANUALS, len(found)))


def _texts_of_page(path: Path) -> tuple[Text, Text]:
    """Prose and listings of one HTML page; the name is that of the page, without its language."""
    page = path.read_text("utf-8", errors="replace")
    prose = (_plain(match[2]) for match in _PARAGRAPH.finditer(_LISTING.sub(" ", page)))
    code = (html.unescape(_TAG.sub("", match[1])).strip("\n") for match in _LISTING.finditer(page))
    name = f"{path.parent.name}/{path.stem}"
    return (
        Text(name, tuple(part for part in prose if len(part) > 60)),
        Text(name, tuple(part for part in code if "\n" in part)),
    )


def _plain(markup: str) -> str:
    text = html.unescape(_TAG.sub("", _BREAK.sub(" ", markup))).replace("¶", "")
    return unicodedata.normalize("NFC", " ".join(text.split()))


def _latex_sources(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and text of LaTeX files, without comments and with the macros of their archive expanded."""
    for archive in sorted([*folder.glob("*_tex.tar.gz"), *folder.glob("*_latex.tar.gz")]):
        with tarfile.open(archive) as files:
            found = [
                (m.name, files.extractfile(m)) for m in files if m.name.endswith(".tex") and not _banned(Path(m.name))
            ]
            texts = {name: _COMMENT.sub("", file.read().decode("utf-8", "replace")) for name, file in found if file}
        macros = dict(pair for text in texts.values() for pair in _MACRO.findall(text))
        for name in sorted(texts)[:FILES_OF_A_SET]:
            yield name, _expanded(texts[name], macros)


def _expanded(source: str, macros: dict[str, str]) -> str:
    """The source with macros that take no argument written out, those within macros too."""
    for _ in range(2):
        source = re.sub(r"\\[A-Za-z]+", lambda word: macros.get(word[0], word[0]), source)
    return source


def _latex_formulas(source: str) -> Iterator[str]:
    """Formulas in lines and displayed, spelled as their author did."""
    displays = ("".join(match.groups("")) for match in _DISPLAY.finditer(source))
    inline = (match[1] for match in _INLINE.finditer(_DISPLAY.sub(" ", source)))
    for formula in (*displays, *inline):
        if len(flat := " ".join(formula.split())) <= LONGEST_FORMULA:
            yield flat


def _latex_prose(source: str) -> Iterator[str]:
    """Sentences that hold no formula."""
    for paragraph in _plain_paragraphs(source):
        for sentence in _SENTENCE.split(paragraph):
            if len(sentence) > 40 and not set(sentence) & set("$\\{}&_^#@"):
                yield sentence


def _latex_science(source: str) -> Iterator[str]:
    """Runs of sentences whose only markup is formulas between dollars, and that hold one."""
    for paragraph in _plain_paragraphs(_DISPLAY.sub(r"\\display ", source)):
        for good, run in groupby(_SENTENCE.split(paragraph), key=_is_prose_with_formulas):
            text = " ".join(run)
            if good and "$" in text and len(text) > 40:
                yield text


def _is_prose_with_formulas(sentence: str) -> bool:
    outside = _INLINE.sub("", sentence)
    return not set(outside) & set("$\\{}&_^#@") and len(outside.split()) > 3


def _number_for(reference: re.Match[str]) -> str:
    return str(zlib.crc32(reference[0].encode()) % 90 + 1)


def _plain_paragraphs(source: str) -> Iterator[str]:
    source = _STYLED.sub(r"\1", _REFERENCE.sub(_number_for, source))
    source = source.replace("``", "“").replace("''", "”").replace("---", "—").replace("--", "–").replace("~", " ")
    for paragraph in source.split("\n\n"):
        yield " ".join(paragraph.split())


def _formulas(folder: Path) -> Iterator[tuple[Path, str]]:
    table = folder / "formulas.tsv"
    if not table.exists():
        return
    for row in table.read_text("utf-8").split("\n"):
        name, _, latex = row.partition("\t")
        path = folder / "images" / f"{name}.png"
        if latex and path.exists():
            with suppress(UnknownSpelling):
                yield path, normal_latex(latex)


def _formula_list(archive: Path) -> Iterator[str]:
    """Formulas of im2latex's validation and test lists; its small lists are left out, they touch our evaluation set."""
    if archive.exists():
        with tarfile.open(archive) as files:
            for member in (m for m in files if m.name.endswith(".formulas.norm.txt")):
                if (stream := files.extractfile(member)) is not None:
                    rows = stream.read().decode("utf-8", errors="replace").split("\n")
                    yield from (row for row in rows if 0 < len(re.sub(r"\s", "", row)) <= LONGEST_FORMULA)


def _fonts() -> tuple[Path, ...]:
    """Installed fonts with Latin letters, fit for text; empty where fontconfig is missing."""
    if which("fc-list") is None:
        return ()
    listing = subprocess.run(["fc-list", ":lang=en", "file"], capture_output=True, text=True, check=True).stdout
    paths = sorted({Path(row.split(":")[0].strip()) for row in listing.splitlines()})
    return tuple(p for p in paths if p.suffix in (".otf", ".ttf") and not NOT_TEXT_FONTS.search(p.name))
