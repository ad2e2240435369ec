import os
from pathlib import Path

import pytest

from gravityocr_cli.errors import CannotWrite
from gravityocr_cli.output import FileProduct, to_utf8, write_atomically


def test_the_document_and_its_images_appear_together(tmp_path: Path) -> None:
    target = tmp_path / "new" / "paper.md"
    with FileProduct(target) as product:
        assert product.image("p1_r2.png", b"png") == "paper_images/p1_r2.png"
        product.write("# Ünï")
        product.write("code 字\n")
        assert not target.exists()
        assert not (tmp_path / "new" / "paper_images").exists()
    assert target.read_bytes() == "# Ünïcode 字\n".encode()
    assert (tmp_path / "new" / "paper_images" / "p1_r2.png").read_bytes() == b"png"
    assert sorted(os.listdir(tmp_path / "new")) == ["paper.md", "paper_images"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_run_that_fails_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "paper.md"
    target.write_text("old")

    def fail() -> None:
        with FileProduct(target) as product:
            product.image("p1_r2.png", b"png")
            product.write("half")
            raise error

    with pytest.raises(error):
        fail()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["paper.md"]


def test_no_images(tmp_path: Path) -> None:
    with FileProduct(tmp_path / "paper.md", images=False) as product:
        assert product.image("p1_r2.png", b"png") is None
    assert os.listdir(tmp_path) == ["paper.md"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to(tmp_path / "real.md")
    with FileProduct(tmp_path / "link.md") as product:
        product.write("new")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text() == "new"


def test_a_device_is_written_to(tmp_path: Path) -> None:
    with FileProduct(Path("/dev/null")) as product:
        product.write("gone")
    assert Path("/dev/null").is_char_device()


def test_what_cannot_be_written_is_one_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file" / "paper.md", tmp_path):
        with pytest.raises(CannotWrite) as caught, FileProduct(target):
            pass
        assert caught.value.exit_code == 5
    with pytest.raises(CannotWrite):
        write_atomically(tmp_path / "file" / "report.json", b"{}")


def test_write_atomically(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "report.json", b"{}")
    assert (tmp_path / "a" / "report.json").read_bytes() == b"{}"
    assert os.listdir(tmp_path / "a") == ["report.json"]


def test_any_string_is_utf8() -> None:
    assert to_utf8("字🎉") == "字🎉".encode()
    assert to_utf8("a\ud800b") == "a\ufffdb".encode()
    assert to_utf8("\ud83c\udf89") == "🎉".encode()
