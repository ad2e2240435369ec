"""Sheets: the colours of a page lead from its glyphs back to the letters of its source."""

import json
import re
import shutil
from itertools import islice
from pathlib import Path

import numpy as np
import pymupdf
import pytest

from gravityocr_models.records import Task
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.train import latexpages
from gravityocr_models.train.batch import IGNORE, token_places
from gravityocr_models.train.corpora import Corpora, Text
from gravityocr_models.train.curriculum import Stage
from gravityocr_models.train.data import samples
from gravityocr_models.train.sample import Sample
from gravityocr_models.train.sheets import (
    FORMULA,
    MOST_PIECES,
    SOURCE,
    Paragraph,
    colour_of,
    number_of,
    numbered,
    read_sheet,
    sources_of,
)
from gravityocr_models.weights import NANO

PROSE = Paragraph("prose", ("Let ", r"x_i\to\alpha", "-axis be\nmine, (", "y", ")."))
NEEDS_LATEX = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")


def test_units_are_words_and_formulas_with_what_stands_before_them() -> None:
    found = [("".join(p.text for p in unit.pieces), unit.space, number) for _, number, unit in numbered([PROSE])]
    assert found == [
        ("Let", "", 1), (r"x_{i}\rightarrow\alpha", " ", 2), ("-axis", "", 6), ("be", " ", 7), ("mine,", "\n", 8),
        ("(", " ", 9), ("y", "", 10), (").", "", 11),
    ]  # fmt: skip


@pytest.mark.parametrize("number", [1, 15, 16, 300, MOST_PIECES])
def test_colours_are_numbers_and_near_black(number: int) -> None:
    channels = [float(channel) for channel in colour_of(number).split()]
    assert max(channels) < 0.06
    assert number_of(*(round(255 * channel) for channel in channels)) == number
    assert number_of(0, 0, 16) == 0


def _painted(tmp_path: Path, paragraph: Paragraph, places: list[tuple[float, float, str]]) -> pymupdf.Page:
    """A page with each string at its place in the colour of its number, which counts from 1."""
    document = pymupdf.open()
    page = document.new_page(width=300, height=80)
    for number, (x, y, text) in enumerate(places, start=1):
        colour = tuple(map(float, colour_of(number).split()))
        page.insert_text((x, y), text, fontname="tiro", fontsize=11, color=colour)
    document.embfile_add(SOURCE, json.dumps([[(paragraph.look, paragraph.parts)]]).encode())
    document.save(tmp_path / "sheet.pdf")
    return pymupdf.open(tmp_path / "sheet.pdf")[0]


def test_a_formula_in_a_line_is_spelled_in_latex_and_points_at_its_glyphs(tmp_path: Path) -> None:
    paragraph = Paragraph("prose", ("see ", r"\alpha_i'", ", re-open"))
    page = _painted(
        tmp_path, paragraph, [(20, 30, "see"), (39, 30, "q"), (46, 33, "i"), (50, 30, ","), (56, 30, "re-")]
    )
    page.insert_text((20, 44), "open", fontname="tiro", fontsize=11, color=tuple(map(float, colour_of(5).split())))
    sheet = read_sheet(page, sources_of(page.parent)[0], 1.0)
    assert [["".join(word.letters) for word in line.words] for line in sheet.lines] == [
        ["see", r"$\alpha'_{i}$,", "re-"], ["open"],
    ]  # fmt: skip
    assert all(line.sound for line in sheet.lines)
    word = sheet.lines[0].words[1]
    shown = [glyph and glyph[0] for glyph in word.glyphs]
    assert shown == [None, *"α" * 7, None, None, "i", None, None, ","]
    assert len(word.boxes) == 3


def test_words_that_are_painted_otherwise_or_not_at_all_are_unsound(tmp_path: Path) -> None:
    page = _painted(tmp_path, Paragraph("prose", ("one two three",)), [(20, 30, "one"), (45, 30, "tvo")])
    sheet = read_sheet(page, sources_of(page.parent)[0], 1.0)
    assert [word.sound for word in sheet.lines[0].words] == [True, False, False]


def test_display_formulas_are_one_word_without_dollars(tmp_path: Path) -> None:
    page = _painted(tmp_path, Paragraph(FORMULA, ("", "a=b")), [(20, 30, "a"), (30, 30, "="), (40, 30, "b")])
    (line,) = read_sheet(page, sources_of(page.parent)[0], 1.0).lines
    assert ["".join(word.letters) for word in line.words] == ["a=b"]


def test_code_of_a_page_escapes_prose_and_marks_every_piece() -> None:
    rng = np.random.default_rng(0)
    code = latexpages.latex_of("lmodern", [(Paragraph("prose", ("50% of ", "x_1", " & “more”")),)], rng)
    assert r"\usepackage{lmodern}" in code
    assert r"50\% \C{.000 .000 .008}of $\C{.000 .000 .012}x_{\C{.000 .000 .016}1}$ \C{.000 .000 .020}\&" in code


def test_pages_with_errors_are_left_out() -> None:
    log = "@page 0\n! Undefined control sequence.\nl.9 x\n@page 1\n@page 2\n! Missing $ inserted.\n"
    assert latexpages._good_pages(log) == {0, 2}


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpora = Corpora(
        latex=(r"\sum_{n=1}^{\infty} \frac{x_n}{2} \le \hat\alpha", r"\left\{ \sqrt{y'} \right\}"),
        prose=(Text("a", ("The quick efficient fox offers 100% of its <lazy> dogs, again and again; it's so.",)),),
        science=(
            Text("b", (r"Let $f(x)=\overline{x}^2$ be a map. Then $f$ is $\frac{1}{2}$-flat on the affine line.",)),
        ),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latexpages, "FORMULA_PAGES", 6)
        patch.setattr(latexpages, "TEXT_PAGES", 4)
        patch.setattr(latexpages, "faces", lambda split: ("lmodern",))
        patch.setattr(latexpages, "of_split", lambda corpora, split: corpora)
        target = tmp_path_factory.mktemp("sheets") / "train-00001.pdf"
        assert latexpages.make_sheet(corpora, "train", 1, target) == 10
    return target


@NEEDS_LATEX
def test_every_page_that_latex_makes_can_be_read_back(sheet: Path) -> None:
    with pymupdf.open(sheet) as document:
        sources = sources_of(document)
        for page, source in zip(document, sources, strict=True):
            lines = read_sheet(page, source, 1.0).lines
            assert lines
            assert all(line.sound for line in lines), [line for line in lines if not line.sound]


def _drawn(sheet: Path, count: int, **shares: float) -> list[Sample]:
    stage = Stage(**{"words": 0.0, "lines": 1.0, "paragraphs": 0.0, "sheets": 1.0, "papers": 0.0} | shares)  # type: ignore[arg-type]
    return list(islice(samples(Corpora(sheets=(sheet,)), 1, stage), count))


@NEEDS_LATEX
def test_formulas_of_sheets_point_at_ink(sheet: Path) -> None:
    tokenizer = Tokenizer.load(NANO / "tokenizer.json")
    found = _drawn(sheet, 12, formulas=1.0)
    assert {sample.text for sample in found} == {
        r"\sum_{n=1}^{\infty}\frac{x_{n}}{2}\leq\hat{\alpha}", r"\left\{\sqrt{y'}\right\}",
    }  # fmt: skip
    for sample in found:
        assert sample.task is Task.FORMULA
        assert len(sample.glyphs) == len("".join(sample.text.split()))
        for glyph in filter(None, sample.glyphs):
            x, y = round(glyph[1]), round(glyph[2])
            assert sample.pixels[max(0, y - 8) : y + 9, max(0, x - 5) : x + 6].min() < 200
        grid = (-(-sample.pixels.shape[0] // 16), -(-sample.pixels.shape[1] // 16))
        places = token_places(sample, tokenizer.spans(sample.text), grid, 16)
        assert sum(place != IGNORE for place in places) >= 0.3 * len(places)


@NEEDS_LATEX
def test_lines_of_sheets_hold_prose_and_formulas(sheet: Path) -> None:
    texts = [sample.text for sample in _drawn(sheet, 30)]
    assert any(r"$\frac{1}{2}$-flat" in text for text in texts)
    assert any("efficient" in text for text in texts)
    assert not [text for text in texts if re.sub(r"\$\d", "", text).count("$") % 2]  # prices have one


@NEEDS_LATEX
def test_what_latex_lacks_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latexpages, "_PREAMBLE", latexpages._PREAMBLE.replace("lmodern", "nosuchpackage"))
    monkeypatch.setattr(latexpages, "FORMULA_PAGES", 1)
    monkeypatch.setattr(latexpages, "TEXT_PAGES", 0)
    monkeypatch.setattr(latexpages, "faces", lambda split: ("mathpazo",))
    monkeypatch.setattr(latexpages, "of_split", lambda corpora, split: corpora)
    with pytest.raises(RuntimeError, match=r"nosuchpackage.* not found"):
        latexpages.make_sheet(Corpora(latex=(r"\frac{1}{2}",)), "train", 1, tmp_path / "sheet.pdf")
