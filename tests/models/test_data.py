"""Training samples: their text is what their pixels show, and they are the same from run to run."""

import io
import tarfile
from itertools import islice
from pathlib import Path

import numpy as np
import pymupdf
import pytest
from PIL import Image

from gravityocr_models.records import Task
from gravityocr_models.train import scanlook
from gravityocr_models.train.corpora import Corpora, Text, family_of, in_split, load_corpora, of_split
from gravityocr_models.train.curriculum import READING_FIRST, Stage, stage_at
from gravityocr_models.train.cuts import crops_of_page
from gravityocr_models.train.data import on_screen, samples, scanned
from gravityocr_models.train.pages import TextPage, read_page, read_word
from gravityocr_models.train.sample import ALPHABET, Sample
from gravityocr_models.train.typeset import formula_ink, story_pdf, typeset_formula

LINES = (
    "The quick brown fox jumps over",
    "the lazy dog, (twice) and re-",
    "turns: 3.14 = pi; A/B & C.",
    "Last line here!",
)
WORDS = Stage(words=1.0, lines=0.0, paragraphs=0.0, max_words=3)
ROWS = Stage(words=0.0, lines=1.0, paragraphs=0.0)
PARAGRAPHS = Stage(words=0.0, lines=0.0, paragraphs=1.0, max_lines=4)
PROSE = Text(
    "prose-doc", ("A first paragraph that tells a story of some length, again and again.", "Übung – naïve “quotes”.")
)


def _write_pdf(path: Path, lines: tuple[str, ...] = LINES, leading: float = 14.0) -> Path:
    with pymupdf.open() as document:
        page = document.new_page(width=260, height=120)
        for row, line in enumerate(lines):
            page.insert_text((20, 30 + row * leading), line, fontname="tiro", fontsize=11)
        document.save(path)
    return path


def _page(path: Path, scale: float = 1.0) -> TextPage:
    with pymupdf.open(path) as document:
        return read_page(document[0], scale, "docbank")


def _crops(page: TextPage, stage: Stage, times: int = 6) -> list[Sample]:
    rng = np.random.default_rng(3)
    return [crop for _ in range(times) for crop in crops_of_page(page, rng, stage)]


@pytest.fixture
def page(tmp_path: Path) -> TextPage:
    return _page(_write_pdf(tmp_path / "a.pdf"))


def test_page_is_read_line_by_line(page: TextPage) -> None:
    assert [" ".join("".join(word.letters) for word in line.words) for line in page.lines] == list(LINES)
    assert page.pixels.shape == (240, 520)
    assert all(line.sound for line in page.lines)


def test_line_crops_are_exactly_the_lines(page: TextPage) -> None:
    assert {crop.text for crop in _crops(page, ROWS)} == set(LINES)


def test_word_crops_are_runs_of_words(page: TextPage) -> None:
    texts = {crop.text for crop in _crops(page, WORDS)}
    assert len(texts) > 10
    assert {len(text.split(" ")) for text in texts} == {1, 2, 3}
    assert all(any(f" {text} " in f" {line} " for line in LINES) for text in texts)


def test_paragraph_crops_keep_line_breaks_and_hyphens(page: TextPage) -> None:
    texts = {crop.text for crop in _crops(page, PARAGRAPHS)}
    assert "\n".join(LINES[:2]) in texts
    assert "\n".join(LINES) in texts
    assert all(2 <= text.count("\n") + 1 <= 4 and text in "\n".join(LINES) for text in texts)


@pytest.mark.parametrize("scale", [0.85, 1.0, 1.2])
def test_glyphs_spell_the_text_and_lie_on_ink(tmp_path: Path, scale: float) -> None:
    for crop in _crops(_page(_write_pdf(tmp_path / "a.pdf"), scale), PARAGRAPHS):
        told = [glyph for glyph in crop.glyphs if glyph]
        assert "".join(char for char, _, _ in told) == "".join(crop.text.split())
        for _, x, y in told:
            near = crop.pixels[max(0, int(y) - 5) : int(y) + 6, max(0, int(x) - 4) : int(x) + 5]
            assert near.min() < 200


def test_centre_of_a_full_stop_is_its_dot(tmp_path: Path) -> None:
    page = _page(_write_pdf(tmp_path / "dot.pdf", ("one. two. six.",)))
    (x, y), *_ = [(x, y) for crop in _crops(page, ROWS) for char, x, y in filter(None, crop.glyphs) if char == "."]
    crop = _crops(page, ROWS)[0]
    assert crop.pixels[int(y), int(x)] < 128


def test_margins_are_paper_and_between_2_and_10_pixels(page: TextPage) -> None:
    for crop in _crops(page, ROWS):
        rows, columns = np.nonzero((crop.pixels < 215).any(axis=1))[0], np.nonzero((crop.pixels < 215).any(axis=0))[0]
        for margin in (
            rows[0],
            columns[0],
            crop.pixels.shape[0] - 1 - rows[-1],
            crop.pixels.shape[1] - 1 - columns[-1],
        ):
            assert 0 <= margin <= 13  # descenders of a neighbour may show, and an outline is wider than its ink


def test_tight_lines_never_show_a_neighbours_text(tmp_path: Path) -> None:
    page = _page(_write_pdf(tmp_path / "tight.pdf", leading=5.0))
    assert not [crop for crop in _crops(page, ROWS) if crop.text in LINES[1:3]]


def test_hidden_text_and_text_under_a_picture_give_no_crop(tmp_path: Path) -> None:
    with pymupdf.open() as document:
        sheet = document.new_page(width=260, height=120)
        sheet.insert_text((20, 30), "invisible words", render_mode=3)
        sheet.insert_text((20, 60), "crossed out words")
        sheet.draw_line((15, 56), (150, 56))
        sheet.draw_line((15, 45), (150, 65))
        sheet.insert_text((20, 100), "seen words")
        document.save(tmp_path / "hidden.pdf")
    assert {crop.text for crop in _crops(_page(tmp_path / "hidden.pdf"), ROWS)} == {"seen words"}


def test_raised_marks_make_a_line_unsound(tmp_path: Path) -> None:
    with pymupdf.open() as document:
        sheet = document.new_page(width=260, height=120)
        end = 20 + pymupdf.get_text_length("mass of atom", "helv", 11)
        sheet.insert_text((20, 50), "mass of atom", fontsize=11)
        sheet.insert_text((end, 46), "12", fontsize=7)
        document.save(tmp_path / "raised.pdf")
    page = _page(tmp_path / "raised.pdf")
    assert {crop.text for crop in _crops(page, ROWS) if "atom" in crop.text} == set()
    assert "mass of" in {crop.text for crop in _crops(page, WORDS)}


def test_turned_pages_are_left_out(tmp_path: Path) -> None:
    with pymupdf.open(_write_pdf(tmp_path / "a.pdf")) as document:
        document[0].set_rotation(90)
        assert read_page(document[0], 1.0, "docbank").lines == ()


def test_samples_are_the_same_for_a_seed(tmp_path: Path) -> None:
    corpora = _corpora(tmp_path)
    stage = Stage(words=0.4, lines=0.3, paragraphs=0.3, scan=0.5)
    first, again, other = ([*islice(samples(corpora, seed, stage), 20)] for seed in (1, 1, 2))
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(first, again, strict=True))
    assert [(a.text, a.glyphs, a.source) for a in first] == [(b.text, b.glyphs, b.source) for b in again]
    assert [a.text for a in first] != [b.text for b in other]
    assert {a.source for a in first} == {"docbank", "story"}
    for sample in first:
        assert sample.pixels.dtype == np.uint8
        assert sample.pixels.ndim == 2
        assert sample.task is Task.TEXT
        assert ALPHABET.issuperset("".join(sample.text.split()))


def test_splits_share_no_document_and_no_font_family() -> None:
    corpora = Corpora(
        papers=tuple(Path(f"{i}.pdf") for i in range(400)),
        prose=tuple(Text(f"doc{i}", ("x",)) for i in range(400)),
        fonts=tuple(
            Path(f"Face{chr(97 + i % 26)}{chr(97 + i // 26)}-{style}.ttf")
            for i in range(400)
            for style in ("Bold", "R")
        ),
    )
    train, valid = of_split(corpora, "train"), of_split(corpora, "valid")
    assert not set(train.papers) & set(valid.papers)
    assert not {t.name for t in train.prose} & {t.name for t in valid.prose}
    assert not {family_of(f) for f in train.fonts} & {family_of(f) for f in valid.fonts}
    assert 0 < len(valid.papers) < 50
    assert len(train.papers) + len(valid.papers) == 400


def test_valid_samples_come_from_valid_documents(tmp_path: Path) -> None:
    (tmp_path / "docbank").mkdir()
    for split, line in (("train", "training words only"), ("valid", "validation words only")):
        name = next(f"p{i}" for i in range(1000) if in_split(f"p{i}", "valid") == (split == "valid"))
        _write_pdf(tmp_path / "docbank" / f"{name}.pdf", (line,))
    corpora = load_corpora(tmp_path, system=False)
    assert {s.text for s in islice(samples(corpora, 1, ROWS, split="valid"), 5)} == {"validation words only"}
    assert {s.text for s in islice(samples(corpora, 1, ROWS), 5)} == {"training words only"}


def test_nothing_to_cut_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no crops"):
        next(samples(load_corpora(tmp_path, system=False), 1, ROWS))


def test_story_pages_hold_readable_text_in_many_looks() -> None:
    corpora = Corpora(prose=(PROSE,), code=(Text("code", ("def f(x):\n    return x\n",)),))
    rng = np.random.default_rng(5)
    for _ in range(4):
        with pymupdf.open("pdf", story_pdf(corpora, rng)) as document:
            page = read_page(document[0], 1.0, "story")
        assert sum(line.sound for line in page.lines) > 5


def test_formula_samples_show_the_cropped_sheet(tmp_path: Path) -> None:
    (tmp_path / "formula_crops/images").mkdir(parents=True)
    sheet = np.full((400, 300), 255, np.uint8)
    sheet[100:150, 50:250] = 0
    Image.fromarray(sheet).save(tmp_path / "formula_crops/images/f.png")
    (tmp_path / "formula_crops/formulas.tsv").write_text("f\tx = \\frac {a} { b }\\label{eq:1}\nmissing\ty\n")
    corpora = load_corpora(tmp_path, system=False)
    assert [latex for _, latex in corpora.formulas] == [r"x=\frac{a}{b}"]
    assert formula_ink(corpora.formulas[0][0]).shape == (50, 200)
    sample = next(samples(corpora, 1, Stage(words=1.0, lines=0.0, paragraphs=0.0, formulas=1.0)))
    assert (sample.task, sample.text, sample.glyphs) == (Task.FORMULA, r"x=\frac{a}{b}", ())
    assert 30 < sample.pixels.shape[0] < 65


def test_formulas_without_an_image_are_typeset() -> None:
    drawn = typeset_formula(r"\frac{a}{b}+\sqrt{x}", 11, 144, "cm")
    assert drawn is not None
    assert drawn.min() < 60 < 250 < drawn.max()
    assert 20 < drawn.shape[0] < 60
    assert typeset_formula(r"\begin{array}{c}a\end{array}", 11, 144, "cm") is None
    sample = next(
        samples(Corpora(latex=("a+b", "c", "d^{2}")), 1, Stage(words=1.0, lines=0.0, paragraphs=0.0, formulas=1.0))
    )
    assert sample.text in ("a+b", "c", "d^{2}")


def test_blanks_that_the_layer_lacks_are_seen_as_gaps(tmp_path: Path) -> None:
    with pymupdf.open() as document:
        sheet = document.new_page(width=260, height=120)
        sheet.insert_text((20, 50), "no", fontsize=11)
        sheet.insert_text((20 + pymupdf.get_text_length("no", "helv", 11) + 2.6, 50), "blank", fontsize=11)
        document.save(tmp_path / "gap.pdf")
    assert {crop.text for crop in _crops(_page(tmp_path / "gap.pdf"), ROWS)} == {"no blank"}


def test_tex_accents_and_ligatures_become_letters() -> None:
    box = (0.0, 0.0, 5.0, 8.0)
    after = (5.0, 0.0, 9.0, 8.0)
    assert read_word(["¨", "o", "ﬃ"], [box, box, after], True).letters == ("ö", "f", "f", "i")
    assert not read_word(["¨", "o"], [box, after], True).sound
    assert not read_word(["a", "\ue049"], [box, after], True).sound


def test_toned_samples_keep_their_shape(page: TextPage) -> None:
    looks = [scanlook.toned(page.pixels, np.random.default_rng(seed)) for seed in range(30)]
    assert {look.shape for look in looks} == {page.pixels.shape}
    assert any(scanlook.paper(look) < 110 for look in looks)
    assert all(int(look.max()) - int(look.min()) > 90 for look in looks)


def test_latex_sources_give_prose_science_and_formulas(tmp_path: Path) -> None:
    source = rb"""\newcommand{\Spec}{\mathrm{Spec}} \def\affine{\Spec A}

This \emph{sentence} is long enough to stay -- as prose. But $\affine$ is a formula. % and this is a comment

Here an unknown \macro spoils the sentence. Then \[ x = 1 \] is displayed.
"""
    (tmp_path / "text").mkdir()
    with tarfile.open(tmp_path / "text/a_tex.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("a/b.tex")
        member.size = len(source)
        archive.addfile(member, io.BytesIO(source))
    corpora = load_corpora(tmp_path, system=False)
    prose = "This sentence is long enough to stay – as prose."
    assert [part for text in corpora.prose for part in text.parts if "$" in part or part == prose] == [prose]
    assert [part for text in corpora.science for part in text.parts] == [
        prose + r" But $\mathrm{Spec} A$ is a formula."
    ]
    assert corpora.latex == ("x = 1", r"\mathrm{Spec} A")


def test_ligatures_that_the_font_spells_out_share_their_box() -> None:
    """MuPDF gives all the width to the first letter then; lines with such letters were never learned."""
    word = read_word(["o", "f", "f"], [(0.0, 0.0, 5.0, 8.0), (5.0, 0.0, 11.0, 8.0), (11.0, 0.0, 11.0, 8.0)], True)
    assert word.boxes == ((0.0, 0.0, 5.0, 8.0), (5.0, 0.0, 8.0, 8.0), (8.0, 0.0, 11.0, 8.0))


def test_stage_goes_from_lines_to_paragraphs_and_tables() -> None:
    stages = [stage_at(samples) for samples in (0, READING_FIRST, 10**7)]
    assert [stage.paragraphs > 0 for stage in stages] == [stage.tables > 0 for stage in stages] == [False, False, True]
    assert all(stage.formulas for stage in stages)
    assert stage_at(READING_FIRST - 1) != stages[1]
    with pytest.raises(ValueError, match="add up"):
        Stage(words=0.5, lines=0.0, paragraphs=0.0)


@pytest.mark.parametrize("seed", range(12))
def test_scan_look_keeps_shape_and_type_and_changes_pixels(page: TextPage, seed: int) -> None:
    pixels = page.pixels[:101, :333]
    before = pixels.copy()
    seen = scanlook.scan_look(pixels, np.random.default_rng(seed), degrees=1.0)
    assert seen.shape == pixels.shape
    assert seen.dtype == np.uint8
    assert np.array_equal(pixels, before)
    assert not np.array_equal(seen, pixels)
    assert seen.mean() > 120  # still a light sheet


def test_skewed_points_follow_the_pixels() -> None:
    pixels = np.full((101, 301), 255, np.uint8)
    pixels[20:23, 250:253] = 0
    turned = scanlook.skew(pixels, 2.0)
    rows, columns = np.nonzero(turned < 128)
    x, y = scanlook.skewed_point(251.5, 21.5, 2.0, (101, 301))
    assert abs(columns.mean() + 0.5 - x) < 0.7
    assert abs(rows.mean() + 0.5 - y) < 0.7


def test_scanned_samples_keep_glyphs_inside(page: TextPage) -> None:
    rng = np.random.default_rng(1)
    for crop in _crops(page, ROWS):
        seen = scanned(crop, rng)
        assert seen.text == crop.text
        assert seen.pixels.shape[1] == crop.pixels.shape[1]
        assert all(
            0 <= x < seen.pixels.shape[1] and 0 <= y < seen.pixels.shape[0] for _, x, y in filter(None, seen.glyphs)
        )


def test_samples_on_screens_are_soft_and_keep_their_glyphs_on_their_ink(page: TextPage) -> None:
    rng = np.random.default_rng(1)
    for crop in _crops(page, ROWS):
        seen = on_screen(crop, rng)
        scale = seen.pixels.shape[1] / crop.pixels.shape[1]
        assert 0.69 < scale <= 1
        assert abs(seen.pixels.shape[0] - scale * crop.pixels.shape[0]) < 1
        steps = [np.abs(np.diff(pixels.astype(int))).max() for pixels in (crop.pixels, seen.pixels)]
        assert steps[1] < steps[0]
        for before, after in zip(crop.glyphs, seen.glyphs, strict=True):
            assert (before is None) is (after is None)
            if before and after:
                assert after[0] == before[0]
                assert after[1:] == pytest.approx((before[1] * scale, before[2] * scale), abs=1)


def _corpora(tmp_path: Path) -> Corpora:
    name = next(f"p{i}" for i in range(99) if in_split(f"p{i}", "train"))
    assert in_split(PROSE.name, "train")
    return Corpora(papers=(_write_pdf(tmp_path / f"{name}.pdf"),), prose=(PROSE,))
