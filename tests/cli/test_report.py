import json
from dataclasses import replace

from gravityocr_cli.document import Kind, Region
from gravityocr_cli.report import DocumentReport, Method, PageReport, doubts, region_report, to_json
from gravityocr_models.records import Decoded
from gravityocr_models.signs import Box

REGION = Region(2, 4, Kind.TEXT, Box(10.04, 20, 30, 40))


def test_a_region_sums_its_crops() -> None:
    answers = [Decoded("ab", (1, 2), (2, 1), 0.9, 1.0, True), Decoded("c", (3,), (1, 1), 0.7, None)]
    report = region_report(REGION, Method.MODEL, answers, ("odd",))
    assert (report.crops, report.tokens, report.forwards) == (2, 5, 4)
    assert (report.confidence, report.agreement) == (0.8, 1.0)
    assert report.box_pt == (10.0, 20, 30, 40)


def test_the_whole_run_as_json() -> None:
    region = region_report(REGION, Method.LAYER, [Decoded("ab", (1, 2), (3,), 0.9, 1.0, True)], ())
    lost = region_report(REGION, Method.LOST, [], ("the model failed",))
    pages = (PageReport(1, 0.5, 0.25, (region, lost)), PageReport(2, 0.1, lost="cannot be rendered"))
    (document,) = json.loads(to_json([DocumentReport("a.pdf", "a.md", 1.0, pages)], "0.1"))["documents"]
    assert document["lost_parts"] == 2
    first, second = document["pages"]
    assert (first["tokens"], first["forwards"], first["tokens_per_forward"]) == (3, 1, 3.0)
    assert first["regions"][0]["method"] == "layer"
    assert first["confidence"] == 0.9
    assert second["lost"] == "cannot be rendered"
    assert second["tokens_per_forward"] is None


def test_a_page_of_which_much_may_be_wrong_says_so() -> None:
    read = [Decoded("ab", (1, 2), (30,), sure) for sure in (0.7, 0.99)]
    doubtful, clear = (region_report(REGION, Method.MODEL, [answer], ()) for answer in read)
    formula = replace(doubtful, kind="formula")
    assert doubts([doubtful, clear]) == [
        "16 % of what was read may be wrong: it is hard to read, or in a script that the model has not learned"
    ]
    assert doubts([clear, clear, formula]) == []
    assert doubts([doubtful]) == []  # a stamp, a signature
    assert doubts([replace(doubtful, method=Method.LAYER)] * 2) == []
