import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pymupdf
import pytest

from gravityocr_cli import errors, pipeline
from gravityocr_cli.document import Kind, Line, Region, Span
from gravityocr_cli.output import FileProduct, TextProduct
from gravityocr_cli.pipeline import _finish, convert
from gravityocr_cli.prepare import LocalPages
from gravityocr_cli.prepared import Part
from gravityocr_cli.report import Method, PageReport
from gravityocr_cli.settings import Decode, PageRanges, Settings, TextLayer
from gravityocr_models.records import Crop, Decoded, LayerUse, Rounds
from gravityocr_models.signs import Box

MakePdf = Callable[..., Path]
pytestmark = pytest.mark.usefixtures("no_layout")


def page(text: str) -> Callable[[Any], None]:
    return lambda page: page.insert_text((72, 100), text, fontsize=11)


def run(path: Path, engine: Any, **settings: Any) -> tuple[str, Any]:
    product = TextProduct()
    report = convert(path, product, lambda: engine, Settings(**settings))
    return product.text, report


def test_pages_come_in_order_and_are_read_together(make_pdf: MakePdf, engine: Any) -> None:
    done: list[tuple[PageReport, int]] = []
    product = TextProduct()
    path = make_pdf(*(page(f"Page number {i} ends here.") for i in range(5)))
    report = convert(path, product, lambda: engine, Settings(), lambda page, total: done.append((page, total)))
    assert product.text.split("\n\n")[0] == "Page number 0 ends here."
    assert [product.text.index(f"number {i}") for i in range(5)] == sorted(
        product.text.index(f"number {i}") for i in range(5)
    )
    assert engine.batches == [5]
    assert [(page.page, total) for page, total in done] == [(i, 5) for i in range(1, 6)]
    assert report.lost_parts == 0
    assert [region.method for each in report.pages for region in each.regions] == [Method.LAYER] * 5


def test_the_window_is_bounded_in_pages_and_in_crops(
    make_pdf: MakePdf, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_pdf(*(page(f"Page {i}.") for i in range(7)))
    monkeypatch.setattr(pipeline, "WINDOW_CROPS", 3)
    run(path, engine)
    assert engine.batches == [3, 3, 1]
    monkeypatch.setattr(pipeline, "WINDOW_CROPS", 100)
    monkeypatch.setattr(pipeline, "WINDOW_PAGES", 5)
    engine.batches.clear()
    run(path, engine)
    assert engine.batches == [5, 2]


def test_pages_are_read_while_the_next_one_is_prepared(make_pdf: MakePdf, engine: Any) -> None:
    class Slow(LocalPages):
        """Has pages at hand in pairs."""

        asked = 0

        @property
        def ready(self) -> bool:
            self.asked += 1
            return self.asked % 2 == 1

    path = make_pdf(*(page(f"Page {i}.") for i in range(5)))
    convert(path, TextProduct(), lambda: engine, Settings(), opened=Slow(path, Settings()))
    assert engine.batches == [2, 2, 1]


def test_only_the_pages_asked_for(make_pdf: MakePdf, engine: Any) -> None:
    path = make_pdf(*(page(f"Page {i}.") for i in range(1, 6)))
    text, report = run(path, engine, pages=PageRanges.parse("2,4-end"))
    assert [each.page for each in report.pages] == [2, 4, 5]
    assert "Page 1." not in text
    with pytest.raises(errors.UsageError):
        run(path, engine, pages=PageRanges.parse("6"))


def test_the_settings_reach_the_engine(make_pdf: MakePdf, engine: Any) -> None:
    asked: list[dict[str, Any]] = []
    drafts: list[str | None] = []

    class Asked:
        dpi, token_px, max_crop_tokens, max_crop_lines = 144.0, 16, 1024, 6

        def read(self, crops: Sequence[Crop], **options: Any) -> list[Decoded]:
            asked.append(options)
            drafts.extend(crop.draft for crop in crops)
            return engine.read(crops)  # type: ignore[no-any-return]

    path = make_pdf(page("Some words."))
    run(path, Asked(), decode=Decode.AR, text_layer=TextLayer.OFF, block=8)
    run(path, Asked(), text_layer=TextLayer.DRAFT)
    assert asked == [
        {"rounds": Rounds.PLAIN, "layer": LayerUse.OFF, "block": 8},
        {"rounds": None, "layer": LayerUse.DRAFT, "block": None},
    ]
    assert drafts == [None, "Some words."]


def test_a_lost_page_is_named_and_the_others_are_kept(
    make_pdf: MakePdf, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    render = pymupdf.Page.get_pixmap

    def broken(page: Any, *args: Any, **kwargs: Any) -> Any:
        if page.number == 1:
            raise RuntimeError("bad stream")
        return render(page, *args, **kwargs)

    monkeypatch.setattr(pymupdf.Page, "get_pixmap", broken)
    text, report = run(make_pdf(page("One."), page("Two."), page("Three.")), engine)
    assert "One." in text
    assert "Three." in text
    assert "<!-- gravityocr: page 2" in text
    assert "bad stream" in text
    assert [each.lost_parts for each in report.pages] == [0, 1, 0]


class Failing:
    """Fails on crops whose draft holds `word`: by raising, or by an answer that ran away."""

    dpi, token_px, max_crop_tokens, max_crop_lines = 144.0, 16, 1024, 6

    def __init__(self, engine: Any, word: str, raises: bool, agreement: float | None = None) -> None:
        self.engine, self.word, self.raises, self.agreement = engine, word, raises, agreement

    def read(self, crops: Sequence[Crop], **options: Any) -> list[Decoded]:
        bad = [self.word in (crop.draft or "") for crop in crops]
        if any(bad) and self.raises:
            raise RuntimeError("out of memory")
        answers = self.engine.read(crops)
        failed = {"truncated": True, "kept_layer": False, "agreement": self.agreement}
        return [replace(answer, **failed) if b else answer for answer, b in zip(answers, bad, strict=True)]


@pytest.mark.parametrize("raises", [True, False])
def test_a_crop_that_fails_is_lost_alone(make_pdf: MakePdf, engine: Any, raises: bool) -> None:
    path = make_pdf(page("One."), page("Two."), page("Three."))
    text, report = run(path, Failing(engine, "Two", raises), text_layer=TextLayer.DRAFT)
    assert "One." in text
    assert "Three." in text
    assert "Two." not in text
    assert "<!-- gravityocr: page 2, region 0: not read" in text
    assert [each.lost_parts for each in report.pages] == [0, 1, 0]
    assert report.pages[1].regions[0].warnings


def test_where_the_layer_may_be_kept_it_stands_in_for_a_failed_answer(make_pdf: MakePdf, engine: Any) -> None:
    text, report = run(make_pdf(page("Two.")), Failing(engine, "Two", False))
    assert text.strip() == "Two."
    assert "unverified" in report.pages[0].regions[0].warnings[0]
    assert report.lost_parts == 0


def test_a_layer_that_was_found_wrong_never_stands_in(make_pdf: MakePdf, engine: Any) -> None:
    text, report = run(make_pdf(page("Two.")), Failing(engine, "Two", False, agreement=0.01))
    assert text.startswith("<!-- gravityocr: page 1, region 0: not read")
    assert report.lost_parts == 1


def test_a_blank_page_asks_the_model_nothing(make_pdf: MakePdf, engine: Any) -> None:
    text, report = run(make_pdf(lambda page: None), engine)
    assert text.strip() == ""
    assert engine.seen == []
    assert report.lost_parts == 0


def test_pictures_become_files_with_names_of_their_own(make_pdf: MakePdf, engine: Any, tmp_path: Path) -> None:
    def paint(page: Any) -> None:
        page.insert_text((72, 100), "A figure follows.", fontsize=11)
        page.draw_rect((100, 300, 300, 450), fill=(0.2, 0.3, 0.2))

    with FileProduct(tmp_path / "out" / "doc.md") as product:
        convert(make_pdf(paint, paint), product, lambda: engine, Settings())
    text = (tmp_path / "out" / "doc.md").read_text()
    names = sorted(os.listdir(tmp_path / "out" / "doc_images"))
    assert names == ["p1_r1.png", "p2_r1.png"]
    assert all(f"doc_images/{name}" in text for name in names)


def test_running_heads_are_dropped_unless_wanted(make_pdf: MakePdf, engine: Any) -> None:
    def paint(page: Any) -> None:
        page.insert_text((72, 100), "Body text.", fontsize=11)
        page.insert_text((20, 500), "sideways stamp", fontsize=11, rotate=90)

    text, report = run(make_pdf(paint), engine)
    assert text.strip() == "Body text."
    assert Method.SKIPPED in [region.method for region in report.pages[0].regions]
    text, _ = run(make_pdf(paint), engine, headers_footers=True)
    assert "stamp" in text


def test_an_unreadable_document_never_loads_the_model(tmp_path: Path) -> None:
    def never() -> Any:
        raise AssertionError("the model was loaded")

    with pytest.raises(errors.MissingInput):
        convert(tmp_path / "none.pdf", TextProduct(), never, Settings())


def test_a_table_whose_layer_lies_keeps_its_grid() -> None:
    """What was read stands where the painted lines do, in the model's words and without the layer's styles."""
    lines = tuple(Line(Box(x, y, x + 30, y + 10), "lie", 10.0, spans=(Span("lie"),)) for y in (0, 20) for x in (0, 100))
    region = Region(1, 0, Kind.TABLE, Box(0, 0, 130, 30), lines)
    crops = tuple(Crop(np.zeros((20, 60, 3), np.uint8), draft="lie") for _ in lines)
    part = Part(region, crops, lines)
    read = [Decoded(text, (1,), (1,), 0.9, agreement=0.0) for text in ("a", "b", "c", "d")]
    ((block,), _) = _finish(part, list(read), Settings())
    assert block.text == "<table>\n<tr><td>a</td><td>b</td></tr>\n<tr><td>c</td><td>d</td></tr>\n</table>"
    ((kept,), report) = _finish(part, [replace(each, text="lie", kept_layer=True) for each in read], Settings())
    assert (kept.text.count("lie"), report.method) == (4, Method.LAYER)


def test_a_region_of_which_nothing_was_read_is_reported() -> None:
    part = Part(Region(1, 0, Kind.TEXT, Box(0, 0, 130, 30)), (Crop(np.zeros((20, 60, 3), np.uint8)),))
    blocks, report = _finish(part, [Decoded("", (), (1,), 0.9)], Settings())
    assert (blocks, report.warnings) == ([], ("nothing was read here",))
    assert _finish(part, [Decoded("word", (1,), (2,), 0.9)], Settings())[1].warnings == ()
