"""OmniDocBench on hand-made pages: reading its JSON, partners, and every measure by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from gravityocr_cli import cdm
from gravityocr_cli.errors import InputError
from gravityocr_cli.omnidocbench import (
    TrueBlock,
    TruePage,
    overall,
    pieces_of,
    read_benchmark,
    score_page,
    suite_of,
)
from gravityocr_cli.scoring import Reading, by_category, score_all

TABLE = "<table><tr><td>a</td><td>b</td></tr></table>"
FIRST, SECOND = "The quick brown fox jumps over dogs", "Pack my box with five dozen jugs"


@pytest.fixture(autouse=True)
def without_latex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cdm, "missing", lambda: "LaTeX is not installed")


def box(number: int, category: str, order: int | None, **content: Any) -> dict[str, Any]:
    return {"category_type": category, "anno_id": number, "order": order, "ignore": False, "poly": [0] * 8, **content}


def write_benchmark(folder: Path, *pages: dict[str, Any]) -> Path:
    path = folder / "OmniDocBench.json"
    path.write_text(json.dumps(pages), "utf-8")
    return path


def record(name: str, source: str, *boxes: dict[str, Any], relation: Any = ()) -> dict[str, Any]:
    info = {"image_path": f"{name}.jpg", "page_no": 0, "page_attribute": {"data_source": source, "language": "en"}}
    return {"layout_dets": list(boxes), "page_info": info, "extra": {"relation": list(relation)}}


def scores(markdown: str, *blocks: TrueBlock) -> dict[str, float]:
    scored = score_page(TruePage("a.jpg", "book", blocks), markdown).scores
    return {name: value for name, value in scored.items() if value is not None}


def test_reading_joins_cut_up_paragraphs_and_leaves_out_what_is_not_scored(tmp_path: Path) -> None:
    cut = {"source_anno_id": 3, "target_anno_id": 1, "relation_type": "truncated"}
    caption = {"source_anno_id": 4, "target_anno_id": 5, "relation": "parent_son"}
    path = write_benchmark(
        tmp_path,
        record(
            "p1",
            "book",
            box(1, "text_block", 2, text="tail"),
            box(2, "title", 0, text="Title"),
            box(3, "text_block", 1, text="head "),
            box(4, "table", 3, html=TABLE, latex="no"),
            box(5, "table_caption", None, text="Table 1"),
            box(6, "equation_isolated", 5, latex="$$ x $$"),
            box(7, "abandon", None, text="scribble"),
            box(8, "text_block", 9, text="ignored") | {"ignore": True},
            box(9, "figure", 6),
            relation=[cut, caption],
        ),
    )
    (page,) = read_benchmark(path)
    assert (page.id, page.source) == ("p1", "book")
    assert set(page.blocks) == {
        TrueBlock("equation_isolated", "x", 5),
        TrueBlock("table", TABLE, 3),
        TrueBlock("table_caption", "Table 1", None),
        TrueBlock("title", "Title", 0),
        TrueBlock("text_block", "head tail", 1),
    }


def test_three_parts_of_a_paragraph_are_one(tmp_path: Path) -> None:
    links = [{"source_anno_id": a, "target_anno_id": b, "relation_type": "truncated"} for a, b in ((1, 2), (3, 2))]
    boxes = [box(number, "text_block", number, text=str(number)) for number in (1, 2, 3)]
    (page,) = read_benchmark(write_benchmark(tmp_path, record("p", "book", *boxes, relation=links)))
    assert page.blocks == (TrueBlock("text_block", "123", 1),)


@pytest.mark.parametrize("content", ["{", "{}", "[1]", '[{"layout_dets": []}]', "[]"])
def test_what_is_no_benchmark_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "OmniDocBench.json").write_text(content, "utf-8")
    with pytest.raises(InputError):
        read_benchmark(tmp_path / "OmniDocBench.json")


def test_pieces() -> None:
    page = f"# Head\ntext *one*\n\nA $y$ b\n\n$$\nx = 1\n$$\nmore\n\n{TABLE}\n\n"
    page += "```\n# code\n\n$z$\n```\n\n<!-- lost -->\n\n---"
    assert [(piece.text, piece.formula) for piece in pieces_of(page)] == [
        ("Head", False),
        ("textone", False),
        ("y", True),
        ("Ayb", False),
        ("x = 1", True),
        ("more", False),
        ("codez", False),
    ]
    places = [piece.place for piece in pieces_of(page)]
    assert places == sorted(places)
    assert places[2] == places[3]


def test_text_edit_is_summed_over_the_page_before_the_ratio_is_taken() -> None:
    truth = TrueBlock("text_block", "abcdefghij", 1), TrueBlock("text_block", "klmno", 2)
    assert scores("abcdefghij\n\nklmno", *truth) == {"text_edit": 0, "order_edit": 0}
    assert scores("abcdefghiX\n\nklmno", *truth)["text_edit"] == pytest.approx(1 / 15)
    # the second paragraph is missing: its five letters, and its rank
    assert scores("abcdefghij", *truth) == {"text_edit": pytest.approx(5 / 15), "order_edit": 1 / 2}
    # a paragraph too many costs nothing
    assert scores("abcdefghij\n\nklmno\n\nuvwxyz", *truth)["text_edit"] == 0
    # a longer answer counts by its own length
    assert scores("abcdefghijXX\n\nklmno", *truth)["text_edit"] == pytest.approx(2 / 17)
    assert scores("", *truth) == {"text_edit": 1, "order_edit": 1}


def test_signs_blanks_and_markup_do_not_count_and_case_does() -> None:
    truth = TrueBlock("text_block", "Ab-c, (d) $x_1$.", 1)
    assert scores("**A b c** d x1", truth)["text_edit"] == 0
    assert scores("ab c d x1", truth)["text_edit"] == pytest.approx(1 / 6)


def test_swapped_paragraphs_cost_order_and_not_text() -> None:
    truth = [TrueBlock("text_block", text, rank) for rank, text in enumerate((FIRST, SECOND, "Sphinx of quartz"), 1)]
    found = scores(f"{SECOND}\n\n{FIRST}\n\nSphinx of quartz", *truth)
    assert found == {"text_edit": 0, "order_edit": pytest.approx(2 / 3)}


def test_a_paragraph_cut_in_two_or_joined_costs_nothing() -> None:
    whole = TrueBlock("text_block", f"{FIRST} {SECOND}", 1)
    assert scores(f"{FIRST}\n\n{SECOND}", whole) == {"text_edit": 0, "order_edit": 0}
    parts = TrueBlock("text_block", FIRST, 1), TrueBlock("text_block", SECOND, 2)
    assert scores(f"{FIRST} {SECOND}", *parts) == {"text_edit": 0, "order_edit": 0}


def test_captions_and_running_heads_count_neither_way() -> None:
    truth = [
        TrueBlock("header", "Journal of Nothing", None),
        TrueBlock("text_block", FIRST, 1),
        TrueBlock("figure_caption", "Figure 1: a fox", 2),
    ]
    for markdown in (FIRST, f"Journal of Nothing\n\n{FIRST}\n\nFigure 1: a fox", f"Figure 1: a fox\n\n{FIRST}"):
        assert scores(markdown, *truth) == {"text_edit": 0, "order_edit": 0}
    assert scores("Journal of Nothing", truth[0]) == {}


def test_tables_missing_surplus_and_merged() -> None:
    table = TrueBlock("table", TABLE, 1)
    assert scores(TABLE, table) == {"teds": 1, "teds_structure": 1}
    assert scores("a b", table) == {"teds": 0, "teds_structure": 0}
    merged = "<table><tr><td colspan=2>a</td></tr></table>"  # wrong span and a cell missing, of four nodes
    assert scores(merged, table)["teds"] == pytest.approx(1 - 2 / 4)
    surplus = score_page(TruePage("a", "b", (table,)), TABLE + merged)
    assert (surplus.scores["teds"], surplus.notes["surplus_tables"]) == (1, 1)
    # two true tables, one found
    assert scores(TABLE, table, TrueBlock("table", "<table><tr><td>zz</td></tr></table>", 2))["teds"] == 1 / 2


def test_formulas_and_their_place_in_the_order() -> None:
    truth = TrueBlock("text_block", FIRST, 1), TrueBlock("equation_isolated", r"\frac{a}{b} = c", 2)
    assert scores(f"{FIRST}\n\n$$\\frac ab=c$$", *truth) == {"text_edit": 0, "order_edit": 0, "formula": 1}
    assert scores(f"\\[\\frac{{a}}{{b}} = c\\]\n\n{FIRST}", *truth)["order_edit"] == 1
    # an inline formula may be the partner; one token of five is wrong
    assert scores(f"{FIRST}\n\nso $\\frac{{a}}{{b}} = d$", *truth)["formula"] == pytest.approx(4 / 5)
    assert scores(FIRST, *truth) == {"text_edit": 0, "order_edit": 1 / 2, "formula": 0}


def test_a_system_of_equations_may_be_written_in_rows_or_as_one() -> None:
    rows = r"a_1 + b = c", r"\sqrt{d} - e = f", r"g \cdot h = 0"
    whole = r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"
    apart = "\n\n".join(f"$${row}$$" for row in rows)
    assert scores(apart, TrueBlock("equation_isolated", whole, 1)) == {"formula": 1, "order_edit": 0}
    truth = [TrueBlock("equation_isolated", row, rank) for rank, row in enumerate(rows)]
    assert scores(f"$${whole}$$", *truth) == {"formula": 1, "order_edit": 0}
    # one row of three is lost: two right, one alone
    assert scores("\n\n".join(f"$${row}$$" for row in rows[:2]), *truth)["formula"] == pytest.approx(2 / 3)
    # inline formulas are no parts of a lost one
    assert scores("with $a_1$, $b$ and $c$", truth[0])["formula"] < 0.8


def test_cdm_takes_partners_as_they_stand_under_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def scored(pairs: list[tuple[str, str]]) -> list[float | None]:
        asked.extend(pairs)
        return [0.5, None, 1.0][: len(pairs)]

    monkeypatch.setattr(cdm, "missing", lambda: "")
    monkeypatch.setattr(cdm, "cdm_scores", scored)
    blocks = [TrueBlock("equation_isolated", code, rank) for rank, code in enumerate(("a_1+b", "c=d", r"\sqrt{e}"))]
    found = scores("$$a_1 + b \\\\ c = d$$\n\nand $\\sqrt e$", *blocks)
    assert asked == [(r"a_1 + b \\ c = d", r"a_1+b \\ c=d"), (r"\sqrt e", r"\sqrt{e}")]
    assert (found["cdm"], found["formula"]) == (0.5, 1)  # a truth that LaTeX cannot set is left out


def test_overall_is_the_benchmarks_and_needs_all_three() -> None:
    assert overall({"text_edit": 0.1, "teds": 0.8, "cdm": 0.6, "formula": 0.2}) == pytest.approx((90 + 80 + 60) / 300)
    assert overall({"text_edit": 0.1, "teds": 0.8, "cdm": None, "formula": 0.2}) is None


def test_the_table_says_which_formula_score_is_in_overall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_benchmark(tmp_path, record("p1", "book", box(1, "text_block", 1, text="abc")))
    some = {"text_edit": 0.1, "teds": 0.8, "cdm": 0.6, "formula": 0.3}
    without = suite_of(path)
    assert "no CDM: LaTeX is not installed" in without.remark
    assert without.overall(some) == pytest.approx((90 + 80 + 30) / 300)
    monkeypatch.setattr(cdm, "missing", lambda: "")
    assert suite_of(path).remark.endswith("with CDM")
    assert suite_of(path).overall(some) == pytest.approx((90 + 80 + 60) / 300)


def test_means_are_over_pages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_benchmark(
        tmp_path,
        record("p1", "book", box(1, "text_block", 1, text="abcdefghij"), box(2, "table", 2, html=TABLE)),
        record("p2", "book", box(1, "text_block", 1, text="ab"), box(2, "equation_isolated", 2, latex="x")),
        record("p3", "note", box(1, "text_block", 1, text="cd")),
    )
    (tmp_path / "pdfs").mkdir()
    (tmp_path / "pdfs" / "p1.pdf").touch()
    suite = suite_of(path)
    assert [case.page.name for case in suite.cases] == ["p1.pdf", "p2.jpg", "p3.jpg"]
    answers = {"p1": f"abcdefghij\n\n{TABLE}", "p2": "ab\n\n$$y$$", "p3": "xy"}
    rows = by_category(suite, list(score_all(suite, lambda case: Reading(answers[case.id]))))
    count, book = rows["book"]
    # p1 is right; of p2 the text is right, the formula is not; a page counts once, however long it is
    assert (count, book["text_edit"], book["teds"], book["formula"]) == (2, 0, 1, 0)
    assert book["overall"] == pytest.approx((1 + 1 + 0) / 3)
    assert rows["total"][1]["text_edit"] == pytest.approx((0 + 0 + 1) / 3)
    assert "overall" not in capsys.readouterr().out
