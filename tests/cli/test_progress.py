import io
import json
from typing import Any

import pytest

from gravityocr_cli.progress import Log, Tally
from gravityocr_cli.report import DocumentReport, PageReport
from gravityocr_cli.settings import LogFormat, Settings

WHOLE = DocumentReport("a.pdf", "a.md", 1.0, (PageReport(1, 0.5),))
LOSSES = DocumentReport(
    "b.pdf", "b.md", 1.0, (PageReport(1, 0.5), PageReport(2, 0.1, lost="it crashed")), ("repaired",)
)
FAILED = DocumentReport("c.pdf", "c.md", error="c.pdf: no such file")
SKIPPED = DocumentReport("d.pdf", "d.md", skipped="its output exists")


def told(capsys: Any, **settings: Any) -> list[str]:
    tally = Tally(seconds=2.0)
    with Log(Settings(**settings), 4) as log:
        log.page_of("a.pdf")(PageReport(1, 0.5), 3)
        for each in (WHOLE, LOSSES, FAILED, SKIPPED):
            log.document(each.source, each)
            tally.add(each)
        log.summary(tally)
    output = capsys.readouterr()
    assert output.out == ""
    return str(output.err).splitlines()


def test_plain_lines_when_not_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys) == [
        "a.pdf: page 1 of 3 pages, 0.50 s",
        "gravityocr: b.pdf: repaired",
        "gravityocr: b.pdf: page 2 is lost: it crashed",
        "gravityocr: c.pdf: no such file",
        "gravityocr: d.pdf: skipped: its output exists",
        "gravityocr: 4 documents: 1 converted, 1 with losses, 1 failed, 1 skipped;"
        " 3 pages in 2.0 s, 1.50 pages a second",
    ]


def test_quiet_is_errors_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, quiet=True) == ["gravityocr: c.pdf: no such file"]


def test_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    events = [json.loads(line) for line in told(capsys, log_format=LogFormat.JSON)]
    assert [event["event"] for event in events if event["event"] != "document"] == [
        "page",
        "warning",
        "warning",
        "error",
        "skipped",
        "summary",
    ]
    assert events[-1] | {"time": ""} == {
        "time": "",
        "event": "summary",
        "converted": 1,
        "partial": 1,
        "failed": 1,
        "skipped": 1,
        "pages": 3,
        "seconds": 2.0,
    }


def test_a_bar_on_a_terminal_and_a_table_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    tally = Tally(seconds=2.0)
    with Log(Settings(), 2) as log:
        log.page_of("[bold]odd[/].pdf")(PageReport(1, 0.5), 3)
        log.document("b.pdf", LOSSES)
        tally.add(LOSSES)
        log.summary(tally)
    shown = screen.getvalue()
    assert "[bold]odd[/].pdf" in shown
    assert "b.pdf: page 2 is lost: it crashed" in shown
    assert "with losses" in shown
