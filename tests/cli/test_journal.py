import os
from dataclasses import replace
from pathlib import Path

import pytest

from gravityocr_cli.journal import Marker
from gravityocr_cli.output import FileProduct
from gravityocr_cli.settings import Decode, Settings, TextLayer


@pytest.fixture
def marker(tmp_path: Path) -> Marker:
    (tmp_path / "sub" / "a_images").mkdir(parents=True)
    (tmp_path / "sub" / "a.md").write_text("text")
    (tmp_path / "sub" / "a_images" / "p1_r1.png").write_bytes(b"png")
    marker = Marker(tmp_path, tmp_path / "sub" / "a.md", "input", "options")
    marker.write([marker.target, tmp_path / "sub" / "a_images" / "p1_r1.png"])
    return marker


def test_a_marker_holds_while_everything_is_as_it_was(marker: Marker) -> None:
    assert marker.holds()
    assert os.path.relpath(marker.path, marker.root) == ".gravityocr/sub/a.md.json"
    assert not replace(marker, source="other").holds()
    assert not replace(marker, options="other").holds()
    assert not replace(marker, target=marker.root / "b.md").holds()


@pytest.mark.parametrize("fault", ["changed", "cut", "gone", "picture gone", "marker cut", "marker of another kind"])
def test_a_file_that_merely_exists_proves_nothing(marker: Marker, fault: str) -> None:
    picture = marker.root / "sub" / "a_images" / "p1_r1.png"
    if fault == "changed":
        marker.target.write_text("test")
    elif fault == "cut":
        marker.target.write_text("")
    elif fault == "gone":
        marker.target.unlink()
    elif fault == "picture gone":
        picture.unlink()
    elif fault == "marker cut":
        marker.path.write_bytes(marker.path.read_bytes()[:40])
    else:
        marker.path.write_text('{"input": "input", "options": "options", "files": [1]}')
    assert not marker.holds()


def test_a_name_as_long_as_names_can_be(tmp_path: Path) -> None:
    target = tmp_path / f"{'字' * 84}.md"
    with FileProduct(target) as product:
        product.write("text")
    marker = Marker(tmp_path, target, "input", "options")
    marker.write(product.files)
    assert marker.holds()
    assert sorted(os.listdir(tmp_path)) == [".gravityocr", target.name]


def test_markers_are_the_same_from_run_to_run(marker: Marker) -> None:
    first = marker.path.read_bytes()
    marker.write([marker.root / "sub" / "a_images" / "p1_r1.png", marker.target])
    assert marker.path.read_bytes() == first
    assert str(marker.root).encode() not in first


def test_the_options_hash_knows_what_shapes_the_output() -> None:
    plain = Settings().options_hash("model")
    assert (
        Settings(decode=Decode.AR, block=8, jobs=3, password="x", timeout=9, verbose=True).options_hash("model")
        == plain
    )
    assert Settings(text_layer=TextLayer.OFF).options_hash("model") != plain
    assert Settings(images=False).options_hash("model") != plain
    assert Settings().options_hash("other model") != plain
