import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
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
        write_atomically(tmp_path / "file" / "report.json", "{}")


def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "paper.md").write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        for piece in ("x" * 1001, "x" * 100_000):  # one that waits in a buffer to the end, and one that does not
            with pytest.raises(CannotWrite, match="file too large"), FileProduct(tmp_path / "paper.md") as product:
                product.write(piece)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert os.listdir(tmp_path) == ["paper.md"]
    assert (tmp_path / "paper.md").read_text() == "old"


@pytest.mark.parametrize("moved", [True, False])
def test_a_folder_that_goes_away_meanwhile(tmp_path: Path, moved: bool) -> None:
    def fail() -> None:
        with FileProduct(tmp_path / "out" / "paper.md") as product:
            product.write("half")
            if moved:
                (tmp_path / "out").rename(tmp_path / "elsewhere")
            else:
                shutil.rmtree(tmp_path / "out")
            product.image("p1_r2.png", b"png")

    with pytest.raises(CannotWrite, match="no such file"):
        fail()
    if moved:  # what was staged there goes when the output is written again
        with FileProduct(tmp_path / "elsewhere" / "paper.md") as product:
            product.write("whole")
        assert os.listdir(tmp_path / "elsewhere") == ["paper.md"]


def test_a_read_only_file_system_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> str:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with pytest.raises(CannotWrite, match="read-only file system"), FileProduct(tmp_path / "paper.md"):
        pass


@pytest.mark.parametrize("moment", ["write", "fsync", "replace"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_kill_while_writing_leaves_the_old_file_or_the_new_one(tmp_path: Path, moment: str, times: int) -> None:
    (tmp_path / "paper.md").write_text("old")
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom gravityocr_cli.output import FileProduct\n"
        f"real, left = getattr(os, {moment!r}), [{times}]\n"
        "def deadly(*arguments):\n    left[0] -= 1\n    done = real(*arguments)\n"
        "    return done if left[0] else os.kill(os.getpid(), signal.SIGKILL)\n"
        f"os.{moment} = deadly\n"
        "with FileProduct(Path(sys.argv[1])) as product:\n    product.image('p1_r2.png', b'png')\n"
        "    product.write('new')\n    os.write(2, b'.')\n    os.write(2, b'.')\n"
    )
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "paper.md"], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert (tmp_path / "paper.md").read_text() == ("new" if (moment, times) == ("replace", 2) else "old")
    with FileProduct(tmp_path / "paper.md") as product:  # what the killed run had staged goes now
        product.write("newer")
    assert {"paper.md"} <= set(os.listdir(tmp_path)) <= {"paper.md", "paper_images"}


def test_write_atomically(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "report.json", "{}")
    assert (tmp_path / "a" / "report.json").read_bytes() == b"{}"
    assert os.listdir(tmp_path / "a") == ["report.json"]
    write_atomically(Path("/dev/null"), "{}")
    assert Path("/dev/null").is_char_device()


def test_two_runs_that_write_the_same_file_do_not_meet(tmp_path: Path) -> None:
    with FileProduct(tmp_path / "a.json") as slow:
        slow.write("sl")
        write_atomically(tmp_path / "a.json", "fast")
        slow.write("ow")
    assert (tmp_path / "a.json").read_text() == "slow"
    assert os.listdir(tmp_path) == ["a.json"]


def test_any_string_is_utf8() -> None:
    assert to_utf8("字🎉") == "字🎉".encode()
    assert to_utf8("a\ud800b") == "a\ufffdb".encode()
    assert to_utf8("\ud83c\udf89") == "🎉".encode()
