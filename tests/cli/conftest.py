"""Fakes and small documents for the tests of the command line: no model, no network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from gravityocr_cli.output import TextProduct
from gravityocr_cli.pipeline import convert
from gravityocr_cli.settings import Settings
from gravityocr_models.records import Crop, Decoded, LayerUse, Rounds


@dataclass
class FakeEngine:
    """Reads a crop as its draft, or as `canned` where it has none. Keeps what it was asked to read."""

    canned: str = ""
    dpi: float = 144.0
    token_px: int = 16
    max_crop_tokens: int = 1024
    max_crop_lines: int = 6
    seen: list[Crop] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)

    def read(
        self,
        crops: Sequence[Crop],
        *,
        rounds: Rounds | None = None,
        layer: LayerUse = LayerUse.AUTO,
        block: int | None = None,
    ) -> list[Decoded]:
        self.seen += crops
        self.batches.append(len(crops))
        return [self._answer(crop, layer) for crop in crops]

    def _answer(self, crop: Crop, layer: LayerUse) -> Decoded:
        text = crop.draft if crop.draft is not None else self.canned
        kept = crop.draft is not None and layer is LayerUse.AUTO
        return Decoded(text, tuple(range(len(text))), (len(text) + 1,), 0.99, 1.0 if kept else None, kept)


@pytest.fixture
def no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Switches the layout analysis off (it takes most of a page's time): regions are grouped lines."""
    monkeypatch.setattr("gravityocr_cli.pdf._layout", lambda page: ((), ()))


Paint = Callable[[Any], None]


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def make_pdf(tmp_path: Path) -> Callable[..., Path]:
    """make_pdf(paint, ...) -> a PDF with a page for each function, which gets the pymupdf page to paint on."""

    def make(*paints: Paint, name: str = "made.pdf", width: float = 612, height: float = 792, **save: Any) -> Path:
        document = pymupdf.open()
        for paint in paints:
            paint(document.new_page(width=width, height=height))
        document.save(tmp_path / name, **save)
        return tmp_path / name

    return make


def markdown_of(path: Path, engine: FakeEngine, **settings: Any) -> str:
    """The Markdown of a document read by a fake engine."""
    product = TextProduct()
    convert(path, product, lambda: engine, Settings(**settings))
    return product.text
