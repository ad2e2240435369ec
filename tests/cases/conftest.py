"""The inputs of CASES.md: each test builds its page with a few lines and is named after the fault.

Cases 22 (page limit), 23 (damaged files), 33 (equal names) and 34 (locale) belong to the command line: tests/cli.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from cli.conftest import FakeEngine, markdown_of, no_layout

__all__ = ["no_layout"]

Convert = Callable[..., str]


@pytest.fixture
def converted(tmp_path: Path) -> Convert:
    """converted(document) -> Markdown; the engine repeats drafts and says `canned` where it has none."""

    def convert(document: Any, canned: str = "", **settings: Any) -> str:
        path = tmp_path / "case.pdf"
        if isinstance(document, bytes):
            path.write_bytes(document)
        else:
            document.save(path)
        return markdown_of(path, FakeEngine(canned), **settings)

    return convert


def new_page(width: float = 612, height: float = 792) -> tuple[Any, Any]:
    """A document and its only page."""
    document = pymupdf.open()
    return document, document.new_page(width=width, height=height)


def raw_pdf(content: bytes, font: str, *more: str) -> bytes:
    """A one-page PDF with this content stream, where /F1 is the given font dictionary. more: objects 6, 7, ..."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        font.encode("latin-1"),
        *(each.encode("latin-1") for each in more),
    ]
    body = b"%PDF-1.4\n"
    places = []
    for number, each in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    return (
        body
        + head
        + table
        + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF"
        % (
            len(objects) + 1,
            len(body),
        )
    )


def paragraphs(markdown: str) -> list[str]:
    """The blocks of a Markdown file."""
    return [part for part in markdown.strip().split("\n\n") if part]


LOREM = (
    "The quick brown fox jumps over the lazy dog while seven wizards quietly boil the dark potion and "
    "nobody in the village knows what any of it may be good for at this late hour of the year. "
)
