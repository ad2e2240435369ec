"""The detector's training data and loop: labels, samples, scores, start, resumption."""

import argparse
import gzip
import json
from pathlib import Path

import numpy as np
import pymupdf.layout  # adds Page.get_layout
import pytest
import torch
from PIL import Image

from gravityocr_models.layout import LABELS, Found
from gravityocr_models.train.layout import training
from gravityocr_models.train.layout.drawn import KINDS, drawn_pages
from gravityocr_models.train.layout.labels import Labelled, Painted, area, common, true_regions, unlabelled_ink
from gravityocr_models.train.layout.look import Placing, Shown, shown
from gravityocr_models.train.layout.pages import evaluation_page, load_page, tasks, write_page
from gravityocr_models.train.layout.score import average_precision, covered, recall
from gravityocr_models.train.layout.start import DOCLAYNET, ours
from gravityocr_models.yolo import Yolo

PARAGRAPH = (100.0, 100.0, 300.0, 160.0)


def lines_in(box: tuple[float, float, float, float], mono: bool = False) -> list[Painted]:
    return [Painted((box[0], y, box[2], y + 10), mono) for y in np.arange(box[1], box[3], 12.0)]


class TestTrueRegions:
    def test_an_analysed_page_keeps_its_labels(self) -> None:
        found = true_regions([(PARAGRAPH, "section-header")], lines_in(PARAGRAPH))
        assert [each.label for each in found] == ["heading"]

    def test_a_sure_class_overrules_the_analysis(self) -> None:
        found = true_regions([(PARAGRAPH, "text")], lines_in(PARAGRAPH), runs=[(PARAGRAPH, "caption")])
        assert [each.label for each in found] == ["caption"]

    def test_black_text_overrules_nothing(self) -> None:
        found = true_regions([(PARAGRAPH, "table")], lines_in(PARAGRAPH), runs=[(PARAGRAPH, "paragraph")])
        assert [each.label for each in found] == ["table"]

    def test_monospaced_text_is_code(self) -> None:
        found = true_regions([(PARAGRAPH, "text")], lines_in(PARAGRAPH, mono=True))
        assert [each.label for each in found] == ["code"]

    def test_a_page_that_mixes_code_into_a_paragraph_is_given_up(self) -> None:
        lines = lines_in((100, 100, 300, 130)) + lines_in((100, 136, 300, 160), mono=True)
        assert true_regions([(PARAGRAPH, "text")], lines) == ()

    def test_a_box_that_cuts_its_last_line_grows(self) -> None:
        (found,) = true_regions([((100, 100, 300, 156), "text")], lines_in((100, 100, 310, 160)))
        assert found.box == (100, 100, 310, 158)

    def test_an_image_outside_every_box_is_a_picture(self) -> None:
        found = true_regions([(PARAGRAPH, "text")], lines_in(PARAGRAPH), images=[(100, 200, 300, 400)])
        assert {each.label for each in found} == {"text", "picture"}

    def test_text_within_a_picture_is_no_region(self) -> None:
        found = true_regions([((50, 50, 400, 400), "picture"), (PARAGRAPH, "text")], [])
        assert [each.label for each in found] == ["picture"]

    def test_listings_that_follow_each_other_are_one(self) -> None:
        below = (100.0, 164.0, 300.0, 200.0)
        lines = lines_in(PARAGRAPH, mono=True) + lines_in(below, mono=True)
        found = true_regions([(PARAGRAPH, "text"), (below, "text")], lines)
        assert [each.label for each in found] == ["code"]

    def test_a_number_is_part_of_its_formula(self) -> None:
        formula, number = (200.0, 100.0, 400.0, 130.0), (50.0, 108.0, 65.0, 120.0)
        (found,) = true_regions([(number, "formula"), (formula, "formula")], [])
        assert found.box == (50, 100, 400, 130)

    def test_formulas_of_two_columns_stay_two(self) -> None:
        left, right = (50.0, 100.0, 250.0, 130.0), (300.0, 100.0, 500.0, 130.0)
        assert len(true_regions([(left, "formula"), (right, "formula")], [])) == 2

    def test_a_tall_sign_does_not_widen_a_formula(self) -> None:
        formula = (200.0, 100.0, 400.0, 130.0)
        (found,) = true_regions([(formula, "formula")], [Painted((200, 90, 210, 138), False)])
        assert found.box == formula

    def test_a_lone_mark_is_no_region(self) -> None:
        assert true_regions([((100, 100, 105, 108), "text")], []) == ()


def test_ink_outside_all_regions_is_counted() -> None:
    grey = np.full((200, 200), 255, np.uint8)
    grey[20:40, 20:120] = 0
    grey[150:160, 20:70] = 0
    assert unlabelled_ink(grey, [Labelled("text", (10, 10, 60, 20))], 2.0) == pytest.approx(0.2)


@pytest.mark.parametrize("degrees", [0.0, 3.0, -2.0])
def test_boxes_move_with_their_pixels(degrees: float) -> None:
    grey = np.full((300, 200), 255, np.uint8)
    grey[100:140, 50:150] = 0
    placing = Placing(0.8, degrees, 12.0, 7.0)
    rows, columns = np.nonzero(placing.pixels(grey, (320, 240)) < 128)
    ink = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
    assert placing.box((50, 100, 150, 140)) == pytest.approx(ink, abs=1.5)


def test_samples_keep_their_ink_inside_their_regions() -> None:
    rng = np.random.default_rng(0)
    grey = np.full((800, 600), 255, np.uint8)
    grey[200:400, 100:500] = 0
    page = Shown(grey, (Labelled("picture", (100, 200, 500, 400)),))
    for _ in range(8):
        sample = shown(page, (640, 480), rng)
        assert sample.grey.shape == (640, 480)
        for region in sample.regions:
            x0, y0, x1, y1 = region.box
            assert 0 <= x0 < x1 <= 480
            assert 0 <= y0 < y1 <= 640
            inside = np.zeros(sample.grey.shape, bool)
            inside[int(y0) : int(y1), int(x0) : int(x1)] = True
            assert abs(np.median(sample.grey[inside]) - np.median(sample.grey[~inside])) > 40


class TestScores:
    TRUTH = (Labelled("text", (0, 0, 100, 50)), Labelled("text", (0, 100, 100, 150)))

    def test_everything_found_is_one(self) -> None:
        found = [Found("text", each.box, 0.9) for each in self.TRUTH]
        assert average_precision([(found, self.TRUTH)], "text") == pytest.approx(1.0)

    def test_a_double_is_false(self) -> None:
        box = self.TRUTH[0].box
        found = [Found("text", box, 0.9), Found("text", box, 0.8), Found("text", self.TRUTH[1].box, 0.7)]
        assert average_precision([(found, self.TRUTH)], "text") == pytest.approx((1 + 2 / 3) / 2)

    def test_half_found_is_half(self) -> None:
        found = [Found("text", self.TRUTH[0].box, 0.9), Found("text", (200, 200, 300, 300), 0.2)]
        assert average_precision([(found, self.TRUTH)], "text") == pytest.approx(0.5)

    def test_a_label_that_no_page_has_is_no_number(self) -> None:
        assert np.isnan(average_precision([((), self.TRUTH)], "table"))

    def test_recall_does_not_ask_for_the_label(self) -> None:
        found = [Found("table", (0, 0, 100, 50), 0.9), Found("text", (0, 100, 100, 120), 0.9)]
        assert recall([(found, self.TRUTH)]) == 0.5
        assert recall([(found, self.TRUTH)], 0.3) == 1.0


def test_lines_are_counted_by_the_boxes_that_hold_them() -> None:
    lines = [(0.0, 0.0, 100.0, 10.0), (0.0, 20.0, 100.0, 30.0), (0.0, 40.0, 100.0, 50.0)]
    boxes = [(0.0, 0.0, 80.0, 35.0), (0.0, 18.0, 100.0, 32.0), (0.0, 40.0, 60.0, 50.0)]
    assert covered(lines, boxes) == [1, 2, 0]
    assert covered(lines, boxes, 0.5) == [1, 2, 1]
    assert covered([(0.0, 0.0, 0.0, 10.0)], boxes) == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_pages_say_what_stands_where(kind: str) -> None:
    (first, second), (again, _) = (list(drawn_pages(kind, 2, 72.0)) for _ in range(2))
    assert np.array_equal(first.shown.grey, again.shown.grey)
    assert first.shown.regions != second.shown.regions
    assert {each.label for each in first.shown.regions} <= set(LABELS)
    assert unlabelled_ink(first.shown.grey, first.shown.regions, 1.0) < (0.7 if kind == "slide" else 0.01)
    for line in first.lines:  # in exactly one region, but for what stands above a font's letters
        held = [each for each in first.shown.regions if common(line, each.box) > 0.4 * area(line)]
        assert len(held) == 1


def test_doclaynet_weights_are_put_in_our_order() -> None:
    stored = {"classes": torch.arange(11.0), "stem": torch.ones(16, 3, 3, 3)}
    state = ours(stored, {"classes": torch.empty(12), "stem": torch.empty(16, 1, 3, 3)})
    assert [DOCLAYNET[int(index)] for index in state["classes"]] == [
        "text" if label == "code" else label for label in LABELS
    ]
    assert torch.equal(state["stem"], torch.full((16, 1, 3, 3), 3.0))


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Two pages of two documents that fall into both splits."""
    grey = np.full((800, 566), 255, np.uint8)
    grey[135:215, 135:400] = 0
    for name in ("paper0_1", "paper44_1"):
        facts = {"width": 595.0, "height": 842.0, "lines": [], "images": [], "runs": []}
        box = [edge * 842 / 800 for edge in (135, 135, 400, 215)]
        (tmp_path / f"{name}.json").write_text(json.dumps({**facts, "boxes": [[*box, "text"]]}))
        Image.fromarray(grey).save(tmp_path / f"{name}.png")
    return tmp_path


def test_a_stored_page_is_loaded_in_pixels(pages: Path) -> None:
    page = load_page(pages / "paper0_1.json")
    assert page is not None
    assert page.regions[0].label == "text"
    assert page.regions[0].box == pytest.approx((135, 135, 400, 215))


def test_a_page_with_ink_that_nobody_labelled_is_passed_over(pages: Path) -> None:
    path = pages / "paper0_1.json"
    facts = json.loads(path.read_text())
    path.write_text(json.dumps({**facts, "boxes": [[0, 0, 595, 100, "text"]]}))
    assert load_page(path) is None


def test_a_drawn_page_is_analysed_once_and_read_back(tmp_path: Path) -> None:
    words = "A paragraph of a page that is long enough to be one, set in lines that fill the measure. " * 8
    document = pymupdf.open()
    page = document.new_page()
    page.insert_htmlbox(pymupdf.Rect(72, 72, 500, 700), f"<h2>1 Introduction</h2><p>{words}</p><p>{words}</p>")
    write_page(page, [], tmp_path / "drawn_1.json")
    read = load_page(tmp_path / "drawn_1.json")
    assert read is not None
    assert read.grey.shape == (800, 566)
    assert [each.label for each in read.regions].count("text") == 2


def test_pages_with_a_layout_file_are_read_in_pixels(tmp_path: Path) -> None:
    words = "A paragraph of a page that is long enough to be one, set in lines that fill the measure. " * 8
    document = pymupdf.open()
    page = document.new_page()
    page.insert_htmlbox(pymupdf.Rect(72, 72, 500, 700), f"<p>{words}</p>")
    document.save(tmp_path / "page.pdf")
    (tmp_path / "layout.json").write_text(json.dumps({"runs": [[72, 72, 500, 160, "caption"]]}))
    read = evaluation_page(tmp_path, 144)
    assert read.grey.shape == (1684, 1190)
    assert [each.label for each in read.regions] == ["caption"]
    assert read.regions[0].box[0] == pytest.approx(144, abs=8)

    Image.new("L", (200, 100)).save(tmp_path / "page.jpg")
    boxes = [[10, 10, 50, 20, "title"], [10, 30, 50, 40, "figure"], [10, 45, 50, 50, "text"]]
    (tmp_path / "layout.json").write_text(json.dumps({"width": 100, "height": 50, "boxes": boxes}))
    read = evaluation_page(tmp_path, 144)
    assert [each.label for each in read.regions] == ["heading", "picture", "text"]
    assert read.regions[0].box == (20, 20, 100, 40)


def test_pages_come_by_turns_and_those_with_floats_first(tmp_path: Path) -> None:
    papers = tmp_path / "docbank"
    papers.mkdir()
    plain, floating = {"runs": [[0, 0, 1, 1, "paragraph"]]}, {"runs": [[0, 0, 1, 1, "figure"]]}
    for name in ("a", "b"):
        (papers / f"{name}.pdf").touch()
        (papers / f"{name}.json.gz").write_bytes(gzip.compress(json.dumps([plain, floating, plain]).encode()))
    document = pymupdf.open()
    document.new_page()
    for name in ("manual.pdf", "amsldoc.pdf"):
        document.save(tmp_path / name)
    order = [(path.stem, number) for path, number, _ in tasks(tmp_path, tmp_path)]
    assert order[0] == ("a", 1)
    assert "amsldoc" not in {name for name, _ in order}
    assert ("manual", 0) in order


def test_a_run_goes_on_where_it_was_saved(pages: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    run = training.Run.on(Yolo(len(LABELS)))
    page = load_page(pages / "paper0_1.json")
    assert page is not None
    small = Shown(page.grey[100:228, 100:228].copy(), (Labelled("text", (35, 35, 128, 115)),))
    loss = training.loss_of(run.network)
    batch = training.tensors([small])
    losses = [sum(run.learn(batch, loss)) for _ in range(12)]
    assert losses[-1] < losses[0]
    run.save(tmp_path)
    again = training.Run.on(Yolo(len(LABELS)))
    again.load(tmp_path)
    assert again.step == 12
    assert sum(again.learn(batch, training.loss_of(again.network))) == pytest.approx(sum(run.learn(batch, loss)))


def test_documents_are_split_whole(pages: Path) -> None:
    train, valid = (training.page_files(pages, split) for split in ("train", "valid"))
    assert {path.stem for path in train} | {path.stem for path in valid} == {"paper0_1", "paper44_1"}
    assert train
    assert valid


def test_training_for_no_time_writes_the_state_and_validates(
    pages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = tmp_path / "state"
    state.mkdir()
    training.train(argparse.Namespace(pages=pages, state=state, start=None, minutes=0, batch=1, held_out=1))
    assert (state / "ema.safetensors").exists()
    assert "mAP50" in capsys.readouterr().out
