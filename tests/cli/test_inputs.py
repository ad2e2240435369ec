import io
import os
import threading
from pathlib import Path

import pytest

from gravityocr_cli.errors import EmptyInput, InputError, UsageError
from gravityocr_cli.inputs import Job, keep_apart, on_disk, plan_run


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
    touch(tmp_path, "a.pdf", "a.md", "a_images/p1_r1.png", "a_images/scan.png", "b_images/p1_r1.png")
    touch(tmp_path, "out/c.pdf", "out/.gravityocr/x.pdf")
    found = {"a.md", "a_images/scan.md", "b_images/p1_r1.md"}
    assert set(targets(tmp_path, output=tmp_path / "out").values()) == found
    assert set(targets(tmp_path, output=tmp_path).values()) == found | {"out/c.md"}


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
    assert plan_run(["..pdf"], "new/", ".md").jobs[0].target == Path("new/document.md")
    assert plan_run(["...pdf"], "new/", ".md").jobs[0].target == Path("new/...md")
    assert target(str(tmp_path)) == tmp_path / "a.md"
    assert plan_run(["-"], str(tmp_path), ".md").jobs == (Job("-", tmp_path / "stdin.md"),)
    assert plan_run(["-"], None, ".md").jobs[0].name == "<stdin>"


def test_outputs_that_cannot_take_the_inputs(tmp_path: Path) -> None:
    touch(tmp_path, "in/a.pdf", "file")
    for inputs, output in [(["a.pdf", "b.pdf"], None), ([str(tmp_path / "in")], "-"), (["-", "-"], "out")]:
        with pytest.raises(UsageError):
            plan_run(inputs, output, ".md")
    with pytest.raises(UsageError, match="this is none"):
        plan_run([str(tmp_path / "in")], str(tmp_path / "file"), ".md")
    for inputs, output in [([""], "out"), (["a.pdf", ""], "out"), (["a.pdf"], "")]:  # an unset variable, not a folder
        with pytest.raises(UsageError, match="is empty"):
            plan_run(inputs, output, ".md")
    assert len(plan_run(["a.pdf", "b.pdf"], None, ".md", need_output=False).jobs) == 2


def test_a_folder_with_nothing_to_read_is_a_failed_input_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    touch(tmp_path, "in/a.pdf", "in/shut/b.pdf", "empty/notes.txt")
    scandir = os.scandir

    def guarded(path: str) -> object:
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr("os.scandir", guarded)
    plan = plan_run([str(tmp_path / "empty"), str(tmp_path / "in")], str(tmp_path / "out"), ".md")
    assert [(job.target is None, job.fault) for job in plan.jobs] == [
        (True, f"{tmp_path}/empty: no PDF or image in this folder"),
        (False, ""),
        (True, f"{tmp_path}/in/shut: the folder cannot be read (permission denied)"),
    ]


def test_no_output_takes_the_place_of_an_input(tmp_path: Path) -> None:
    touch(tmp_path, "a.pdf", "b.pdf")
    (tmp_path / "link").symlink_to(tmp_path / "a.pdf")

    def planned(output: str, report: str | None = None) -> None:
        jobs = plan_run([str(tmp_path / "a.pdf")], str(tmp_path / output), ".md").jobs
        keep_apart(jobs, tmp_path / report if report else None)

    planned("a.md", "run.json")
    for output, report in [("a.pdf", None), ("link", None), ("a.md", "link"), ("a.md", "a.md")]:
        with pytest.raises(UsageError, match=r"this is an input|the output is to go there"):
            planned(output, report)


def test_names_too_long_for_what_stands_beside_an_output_are_cut(tmp_path: Path) -> None:
    touch(tmp_path, *(f"in/{letter * 251}.pdf" for letter in "ab"))
    names = list(targets(tmp_path / "in", output=tmp_path / "out").values())
    assert len(set(names)) == 2
    assert [name[:25] for name in names] == ["a" * 25, "b" * 25]
    assert max(map(len, names)) < 100


def test_what_no_library_can_open_by_its_name_gets_another(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.pdf"))
    odd.write_bytes(b"data")
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"through a pipe",))
    writer.start()
    for source, data in [(odd, b"data"), (tmp_path / "pipe", b"through a pipe")]:
        job = Job(str(source), None)
        assert not job.in_place
        with on_disk(job) as path:
            assert str(path).isprintable()
            assert path.read_bytes() == data
        assert not path.exists()
    writer.join()


def test_standard_input_becomes_a_file_that_goes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        def __init__(self, data: bytes) -> None:
            self.buffer = io.BytesIO(data)

    monkeypatch.setattr("sys.stdin", Stdin(b"%PDF-1.7 and more"))
    with on_disk(Job("-", None)) as path:
        assert path.read_bytes() == b"%PDF-1.7 and more"
    assert not path.exists()
    monkeypatch.setattr("sys.stdin", Stdin(b""))
    with pytest.raises(EmptyInput, match="<stdin>"), on_disk(Job("-", None)):
        pass
    monkeypatch.setattr("tempfile.tempdir", "/proc/none")
    with pytest.raises(InputError, match="<stdin>: cannot be read by way of a temporary file"), on_disk(Job("-", None)):
        pass
    with on_disk(Job("some.pdf", None)) as path:
        assert path == Path("some.pdf")
