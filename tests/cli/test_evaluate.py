"""`gravityocr eval` on made-up pages with a made-up converter."""

import json
import re
from pathlib import Path

import pytest
from cli.conftest import FakeEngine
from PIL import Image

from gravityocr_cli import evaluate
from gravityocr_cli.errors import CannotWrite, InputError, MissingInput, UsageError
from gravityocr_cli.evalpages import suite_of, without_furniture
from gravityocr_cli.scoring import Case, Reading, Result, by_category, score_all

TABLE = "<table><tr><td>a</td><td>b</td></tr></table>"  # 4 nodes


def write_page(folder: Path, page: str, category: str, **truth: object) -> None:
    (folder / page).mkdir(parents=True)
    Image.new("RGB", (60, 80), "white").save(folder / page / "page.png")
    record = {"id": page, "category": category, "kind": "scan", "tests": None, **truth}
    (folder / page / "truth.json").write_text(json.dumps(record), "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_page(tmp_path, "one", "plain", text="kitten", furniture=["page 7"], headings=["Title"])
    write_page(tmp_path, "two", "plain", text="b a", text_order_reliable=False, tables=[TABLE])
    tests = [
        {"id": "t1", "type": "math", "math": "x^2", "pdf": "a.pdf", "page": 1},
        {"id": "t2", "type": "absent", "text": "head"},
        {"id": "t3", "type": "present", "text": "nothing such"},
        {"id": "t4", "type": "table", "cell": "a", "right": "b"},
    ]
    write_page(tmp_path, "zwei", "maths", text=None, formulas=["x^2", r"\le"], tests=tests)
    return tmp_path


ANSWERS = {
    "one": "# Title\n\npage 7\n\nsitten",
    "two": f"a b\n\n{TABLE}\n\n{TABLE}",
    "zwei": "Let $x^{2}$",
}


def convert(case: Case) -> Reading:
    return Reading(ANSWERS[case.page.parent.name])


def score(folder: Path) -> list[Result]:
    return list(score_all(suite_of(folder), convert))


def known(result: Result) -> dict[str, float]:
    return {name: value for name, value in result.scores.items() if value is not None}


def test_each_page_is_scored_on_the_truth_that_it_has(folder: Path) -> None:
    one, two, zwei = score(folder)
    # without "page 7": "Title sitten" against "kitten", 12 characters, six to delete and one to replace
    assert known(one) == {"text": pytest.approx(1 - 7 / 12), "bag_f1": 0, "headings": 1}
    assert one.overall == one.scores["text"]
    # "a b a b a b" against "b a": two of six words, both of the truth's
    assert known(two) == {"bag_f1": 2 * 2 / 8, "teds": 1, "teds_structure": 1}
    assert (two.notes["surplus_tables"], two.overall) == (1, 1)
    assert known(zwei) == {"math": 0.5, "tests": 0.5}
    assert zwei.notes["failed_tests"] == ["t3", "t4"]


def test_a_page_that_fails_counts_nought_and_the_rest_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def failing(case: Case) -> Reading:
        if case.id != "one":
            raise OSError("no such luck")
        return convert(case)

    one, two, zwei = score_all(suite_of(folder), failing)
    assert two.error == "OSError: no such luck"
    assert known(two) == {"bag_f1": 0, "teds": 0, "teds_structure": 0}
    assert known(zwei) == {"math": 0, "tests": 0}  # not even the test that something is absent
    assert one.scores["headings"] == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"^2/3 two 0\.0 in \d+\.\d s OSError: no such luck$", shown.err, re.MULTILINE)


def test_means_count_only_pages_with_truth(folder: Path) -> None:
    rows = by_category(suite_of(folder), score(folder))
    assert list(rows) == ["maths", "plain", "total"]
    count, maths = rows["maths"]
    assert (count, maths["math"], maths["tests"], maths["text"], maths["overall"]) == (1, 0.5, 0.5, None, 0.5)
    count, plain = rows["plain"]
    assert count == 2
    assert plain["bag_f1"] == pytest.approx((0 + 0.5) / 2)
    assert plain["text"] == pytest.approx(5 / 12)
    count, total = rows["total"]
    assert count == 3
    assert total["overall"] == pytest.approx((5 / 12 + 1 + 0.5) / 3)


def test_furniture_may_stay_or_go(tmp_path: Path) -> None:
    write_page(tmp_path, "a", "c", text="body text", furniture=["Running head", "12"])
    case = suite_of(tmp_path).cases[0]
    for answer in ("body text", "Running head\n\nbody text\n\n**12**"):
        assert case.score(answer).scores["text"] == 1
    assert without_furniture("12 apples\n12", ["12"]) == "12 apples"


def test_ready_made_markdown(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ready = tmp_path / "ready"
    ready.mkdir()
    (ready / "zwei.md").write_text(r"$x^2$ and $\leq$", "utf-8")
    assert evaluate.run(folder, as_json=True, predictions=ready) == 7
    one, _, zwei = json.loads(capsys.readouterr().out)["pages"]
    assert zwei["scores"]["math"] == 1
    assert one["error"].startswith("FileNotFoundError")
    assert one["scores"]["text"] == 0


def test_run_prints_one_json(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(evaluate, "_pipeline", lambda settings: convert)
    assert evaluate.run(folder, text_layer="auto", limit=2, as_json=True) == 0
    result = json.loads(capsys.readouterr().out)
    assert [page["id"] for page in result["pages"]] == ["one", "two"]
    assert result["total"]["teds"] == 1
    assert result["categories"]["plain"]["text"] == pytest.approx(5 / 12, abs=1e-4)
    assert result["pages"][0]["scores"]["overall"] == pytest.approx(5 / 12, abs=1e-4)
    assert result["pages"][1]["surplus_tables"] == 1


def test_run_prints_a_table_and_says_when_a_page_was_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evaluate, "_pipeline", lambda settings: lambda case: 1 / 0)
    assert evaluate.run(folder, text_layer="auto", limit=None, as_json=False) == 7
    shown = capsys.readouterr()
    assert "total" in shown.out
    assert "tests" in shown.out
    assert "ZeroDivisionError" in shown.err


def test_the_pipeline_is_run_with_the_settings_and_its_regions_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_page(tmp_path, "a", "c", text="seen")
    picture = Image.new("RGB", (600, 800), "white")
    picture.paste("black", (100, 100, 300, 120))
    picture.save(tmp_path / "a" / "page.png")
    engine = FakeEngine("seen")
    monkeypatch.setattr(evaluate, "load_reader", lambda settings: engine)
    report = tmp_path / "report.html"
    assert evaluate.run(tmp_path, text_layer="off", limit=None, as_json=True, report_html=report) == 0
    assert json.loads(capsys.readouterr().out)["total"]["text"] == 1
    assert re.search(r"<rect [^>]*stroke=", report.read_text("utf-8"))
    with pytest.raises(CannotWrite):
        evaluate.run(tmp_path, as_json=True, report_html=tmp_path / "a" / "page.png" / "r.html")


def test_formula_images_are_read_by_the_engine_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "crops").mkdir()
    picture = Image.new("L", (200, 50), 255)
    picture.paste(0, (20, 10, 180, 40))
    picture.save(tmp_path / "crops" / "f1.png")
    (tmp_path / "formulas.tsv").write_text('name\tlatex\nf1\tx^2 "\nf2\ty\n', "utf-8")
    monkeypatch.setattr(evaluate, "load_reader", lambda settings: FakeEngine('x^{2}"'))
    assert evaluate.run(tmp_path, as_json=True) == 7  # f2 has no image
    result = json.loads(capsys.readouterr().out)
    assert result["total"]["exact"] == 0.5
    with pytest.raises(UsageError):
        evaluate.run(tmp_path, predictions=tmp_path)


def test_nothing_to_score_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingInput):
        evaluate.suite_of(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no folder in it has a truth\.json"):
        evaluate.suite_of(tmp_path)
    write_page(tmp_path, "a", "c", tests=[{"id": "x", "type": "baseline"}])
    with pytest.raises(InputError, match="unknown type 'baseline'"):
        evaluate.suite_of(tmp_path)
    (tmp_path / "a" / "page.png").unlink()
    with pytest.raises(InputError, match="neither"):
        evaluate.suite_of(tmp_path)
    (tmp_path / "a" / "truth.json").write_text("{", "utf-8")
    (tmp_path / "a" / "page.png").touch()
    with pytest.raises(InputError, match="not a truth file"):
        evaluate.suite_of(tmp_path)
