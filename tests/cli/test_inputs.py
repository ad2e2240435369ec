import io
import os
from pathlib import Path

import pytest

from gravityocr_cli.errors import EmptyInput, InputError, UsageError
from gravityocr_cli.inputs import Job, on_disk, plan_run


def touch(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")


def targets(*inputs: object, output: Path) -> dict[str, str]:
    plan = plan_run([str(each) for each in inputs], str(output), ".md")
    return {job.source: os.path.relpath(job.target, output) for job in plan.jobs if job.target}


def test_a_folder_keeps_its_tree_and_same_stems_stay_apart(tmp_path: Path) -> None:
    touch(
        tmp_path / "in", "b.pdf", "a.PDF", "a.png", "sub/a.pdf", "sub/deep/x.y.pdf", "notes.txt", ".hidden.pdf", "A.pdf"
    )
    found = targets(tmp_path / "in", output=tmp_path / "out")
    assert {os.path.relpath(source, tmp_path / "in"): target for source, target in found.items()} == {
        "A.pdf": "A.md",
        "a.PDF": "a-2.md",
        "a.png": "a-3.md",
        "b.pdf": "b.md",
        "sub/a.pdf": "sub/a.md",
        "sub/deep/x.y.pdf": "sub/deep/x.y.md",
    }


def test_what_an_earlier_run_wrote_is_no_input(tmp_path: Path) -> None:
    touch(tmp_path, "a.pdf", "a.md", "a_images/p1_r1.png", "b_images/scan.png", "out/c.pdf", "out/.gravityocr/x.pdf")
    assert set(targets(tmp_path, output=tmp_path / "out").values()) == {"a.md", "b_images/scan.md"}
    assert set(targets(tmp_path, output=tmp_path).values()) == {"a.md", "b_images/scan.md", "out/c.md"}


def test_links_to_folders_are_not_followed(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.pdf", "elsewhere/b.pdf")
    (tmp_path / "in" / "round").symlink_to(tmp_path / "in")
    (tmp_path / "in" / "away").symlink_to(tmp_path / "elsewhere")
    assert set(targets(tmp_path / "in", output=tmp_path / "out").values()) == {"a.md"}


def test_files_and_folders_together(tmp_path: Path) -> None:
    touch(tmp_path, "one/a.pdf", "two/a.pdf", "a.pdf")
    found = targets(tmp_path / "one", tmp_path / "two", tmp_path / "a.pdf", output=tmp_path / "out")
    assert list(found.values()) == ["a.md", "a-2.md", "a-3.md"]


def test_where_one_input_goes(tmp_path: Path) -> None:
    def target(output: str | None) -> Path | None:
        return plan_run(["a.pdf"], output, ".md").jobs[0].target

    assert target(None) is None
    assert target("-") is None
    assert target("x.txt") == Path("x.txt")
    assert target("new/") == Path("new/a.md")
    assert target(str(tmp_path)) == tmp_path / "a.md"
    assert plan_run(["-"], str(tmp_path), ".md").jobs == (Job("-", tmp_path / "stdin.md"),)
    assert plan_run(["-"], None, ".md").jobs[0].name == "<stdin>"


def test_outputs_that_cannot_take_the_inputs(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.pdf", "file")
    (tmp_path / "empty").mkdir()
    for inputs, output in [(["a.pdf", "b.pdf"], None), ([str(tmp_path / "in")], "-"), (["-", "-"], "out")]:
        with pytest.raises(UsageError):
            plan_run(inputs, output, ".md")
    with pytest.raises(UsageError, match="this is none"):
        plan_run([str(tmp_path / "in")], str(tmp_path / "file"), ".md")
    with pytest.raises(InputError, match="no PDF or image"):
        plan_run([str(tmp_path / "empty")], "out", ".md")
    assert len(plan_run(["a.pdf", "b.pdf"], None, ".md", need_output=False).jobs) == 2


def test_standard_input_becomes_a_file_that_goes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        def __init__(self, data: bytes) -> None:
            self.buffer = io.BytesIO(data)

    monkeypatch.setattr("sys.stdin", Stdin(b"%PDF-1.7 and more"))
    with on_disk("-") as path:
        assert path.read_bytes() == b"%PDF-1.7 and more"
    assert not path.exists()
    monkeypatch.setattr("sys.stdin", Stdin(b""))
    with pytest.raises(EmptyInput, match="<stdin>"), on_disk("-"):
        pass
    with on_disk("some.pdf") as path:
        assert path == Path("some.pdf")
