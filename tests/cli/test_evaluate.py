"""`gravityocr eval` on made-up pages with a made-up converter."""

import json
import re
from pathlib import Path

import pytest

from gravityocr_cli import evaluate
from gravityocr_cli.errors import InputError, MissingInput
from gravityocr_cli.evaluate import (
    Scores,
    by_category,
    read_pages,
    score_markdown_folder,
    score_page,
    score_pages,
    without_furniture,
)

TABLE = "<table><tr><td>a</td><td>b</td></tr></table>"  # 4 nodes


def write_page(folder: Path, page: str, category: str, **truth: object) -> None:
    (folder / page).mkdir(parents=True)
    (folder / page / "page.png").touch()
    record = {"id": page, "category": category, "kind": "scan", "tests": None, **truth}
    (folder / page / "truth.json").write_text(json.dumps(record), "utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_page(tmp_path, "one", "plain", text="kitten", furniture=["page 7"], headings=["Title"])
    write_page(tmp_path, "two", "plain", text="b a", text_order_reliable=False, tables=[TABLE])
    write_page(tmp_path, "zwei", "maths", text=None, formulas=["x^2", r"\le"])
    return tmp_path


ANSWERS = {
    "one": "# Title\n\npage 7\n\nsitten",
    "two": f"a b\n\n{TABLE}\n\n{TABLE}",
    "zwei": "$x^{2}$",
}


def convert(path: Path) -> str:
    return ANSWERS[path.parent.name]


def test_each_page_is_scored_on_the_truth_that_it_has(folder: Path) -> None:
    one, two, zwei = score_pages(read_pages(folder), convert)
    # without "page 7": "Title sitten" against "kitten", 12 characters, six to delete and one to replace
    assert one.scores.text == pytest.approx(1 - 7 / 12)
    assert one.scores.bag_f1 == 0
    assert one.scores.headings == 1
    assert (one.scores.teds, one.scores.math) == (None, None)
    assert one.scores.overall == one.scores.text
    # "a b a b a b" against "b a": two of six words, both of the truth's
    assert two.scores == Scores(bag_f1=2 * 2 / 8, teds=1, teds_structure=1)
    assert (two.surplus_tables, two.scores.overall) == (1, 1)
    assert zwei.scores == Scores(math=0.5)


def test_a_page_that_fails_counts_nought_and_the_rest_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def failing(path: Path) -> str:
        if path.parent.name == "two":
            raise OSError("no such luck")
        return convert(path)

    one, two, zwei = score_pages(read_pages(folder), failing)
    assert two.error == "OSError: no such luck"
    assert two.scores == Scores(bag_f1=0, teds=0, teds_structure=0)
    assert (one.scores.headings, zwei.scores.math) == (1, 0.5)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(r"^2/3 two 0\.0 in \d+\.\d s OSError: no such luck$", shown.err, re.MULTILINE)


def test_means_count_only_pages_with_truth(folder: Path) -> None:
    rows = by_category(list(score_pages(read_pages(folder), convert)))
    assert list(rows) == ["maths", "plain", "total"]
    assert rows["maths"] == (1, Scores(math=0.5))
    count, plain = rows["plain"]
    assert count == 2
    assert plain.bag_f1 == pytest.approx((0 + 0.5) / 2)
    assert plain.text == pytest.approx(5 / 12)
    count, total = rows["total"]
    assert count == 3
    assert total.overall == pytest.approx((5 / 12 + 1 + 0.5) / 3)


def test_furniture_may_stay_or_go(tmp_path: Path) -> None:
    write_page(tmp_path, "a", "c", text="body text", furniture=["Running head", "12"])
    pages = read_pages(tmp_path)
    for answer in ("body text", "Running head\n\nbody text\n\n**12**"):
        assert score_page(answer, pages[0][1]).scores.text == 1
    assert without_furniture("12 apples\n12", ["12"]) == "12 apples"


def test_ready_made_markdown(folder: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    ready.mkdir()
    (ready / "zwei.md").write_text(r"$x^2$ and $\leq$", "utf-8")
    one, _, zwei = score_markdown_folder(folder, ready)
    assert zwei.scores.math == 1
    assert one.error.startswith("FileNotFoundError")
    assert one.scores.text == 0


def test_run_prints_one_json(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(evaluate, "_pipeline", lambda text_layer: convert)
    assert evaluate.run(folder, text_layer="auto", limit=2, as_json=True) == 0
    result = json.loads(capsys.readouterr().out)
    assert [page["id"] for page in result["pages"]] == ["one", "two"]
    assert result["total"]["teds"] == 1
    assert result["categories"]["plain"]["text"] == pytest.approx(5 / 12, abs=1e-4)
    assert result["pages"][0]["scores"]["overall"] == pytest.approx(5 / 12, abs=1e-4)


def test_run_prints_a_table_and_says_when_a_page_was_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evaluate, "_pipeline", lambda text_layer: lambda path: 1 / 0)
    assert evaluate.run(folder, text_layer="auto", limit=None, as_json=False) == 7
    shown = capsys.readouterr()
    assert "total" in shown.out
    assert "plain" in shown.out
    assert "ZeroDivisionError" in shown.err


def test_nothing_to_score_is_said(tmp_path: Path) -> None:
    with pytest.raises(MissingInput):
        read_pages(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"no folder in it has a truth\.json"):
        read_pages(tmp_path)
    write_page(tmp_path, "a", "c")
    (tmp_path / "a" / "page.png").unlink()
    with pytest.raises(InputError, match="neither"):
        read_pages(tmp_path)
    (tmp_path / "a" / "truth.json").write_text("{", "utf-8")
    (tmp_path / "a" / "page.png").touch()
    with pytest.raises(InputError, match="not a truth file"):
        read_pages(tmp_path)
