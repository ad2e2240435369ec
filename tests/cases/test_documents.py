"""Cases 22, 23, 33 and 34: whole documents through the command line, whose model answers with the text layer."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fake_program
import pymupdf
import pytest
from cases.conftest import new_page, raw_pdf

from gravityocr_cli import cli


@pytest.fixture(autouse=True)
def nothing_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, fake in fake_program.FAKES.items():
        monkeypatch.setattr(name, fake)


def convert(*arguments: object) -> int:
    return cli.run(["convert", *map(str, arguments), "-q"])


def pages_saying(*texts: str) -> Any:
    document = pymupdf.open()
    for text in texts:
        document.new_page(width=300, height=300).insert_text((30, 60), text, fontsize=11)
    return document


def test_case_22_a_page_of_65000_operators_ends_within_its_limit(tmp_path: Path) -> None:
    """Read or lost, as fast as the machine is; what follows it is read in any case."""
    document = pages_saying("Many small boxes.", "The next page.")
    boxes = b"\n".join(b"%d %d 1 1 re f" % (index % 300, index // 650) for index in range(65_000))
    content = document.get_new_xref()
    document.update_object(content, "<<>>")
    document.update_stream(content, boxes)
    text = document[0].get_contents()[0]
    document.xref_set_key(document[0].xref, "Contents", f"[{content} 0 R {text} 0 R]")
    document.save(tmp_path / "boxes.pdf")
    code = convert(tmp_path / "boxes.pdf", "-o", tmp_path / "out.md", "--jobs", 1, "--page-timeout", 60)
    markdown = (tmp_path / "out.md").read_text()
    assert markdown.endswith("The next page.\n")
    assert (code, "Many small boxes." in markdown) == (0, True) or (code, "page 1" in markdown) == (7, True)


def damaged(folder: Path) -> dict[str, int]:
    """Writes a file for each fault; returns the exit code that each has to have alone."""
    folder.mkdir()
    document = pages_saying("One.", "Two.", "Three.")
    whole = document.tobytes()
    lock = {"encryption": pymupdf.PDF_ENCRYPT_AES_256, "owner_pw": "owner"}
    files = {
        "locked": (document.tobytes(**lock, user_pw="user"), 4),
        "owner-only": (document.tobytes(**lock, user_pw=""), 0),
        "empty": (b"", 3),
        "noise": (bytes((7 * index * index + 3 * index) % 256 for index in range(1024)), 3),
        "page": (b"<!DOCTYPE html><html><body>Sign in first</body></html>", 3),
        "half": (whole[: len(whole) // 2], 7),
        "no-eof": (whole[: whole.rindex(b"%%EOF")], 0),
        "no-xref": (whole.replace(b"xref\n0", b"xreX\n0"), 0),
        "no-pages": (raw_pdf(b"", "<<>>").replace(b"Kids[3 0 R]/Count 1", b"Kids[]/Count 0     "), 3),
    }
    document.update_object(document[1].xref, "null")
    files["hole"] = (document.tobytes(), 7)
    for name, (data, _) in files.items():
        (folder / f"{name}.pdf").write_bytes(data)
    return {name: code for name, (_, code) in files.items()}


def test_case_23_each_fault_has_its_own_name_and_hides_no_other(tmp_path: Path) -> None:
    expected = damaged(tmp_path / "in")
    arguments = (tmp_path / "in", "-o", tmp_path / "out", "--jobs", 0, "--report", tmp_path / "run.json")
    assert convert(*arguments) == 8
    report = json.loads((tmp_path / "run.json").read_text())
    by_name = {Path(each["source"]).stem: each for each in report["documents"]}
    assert {name: each["exit_code"] for name, each in by_name.items()} == expected
    messages = {name: each["error"].replace(f"{name}.pdf", "") for name, each in by_name.items() if each["error"]}
    assert len({messages[name] for name in ("locked", "empty", "noise", "no-pages")}) == 4
    assert by_name["half"]["warnings"]
    assert "not read" in (tmp_path / "out" / "half.md").read_text()
    assert by_name["no-xref"]["warnings"]
    for name in ("no-eof", "no-xref"):
        assert (tmp_path / "out" / f"{name}.md").read_text().split() == ["One.", "Two.", "Three."]
    one, lost, three = (tmp_path / "out" / "hole.md").read_text().strip().split("\n\n")
    assert (one, three) == ("One.", "Three.")
    assert lost.startswith("<!-- gravityocr: page 2")


@pytest.mark.parametrize("named", ["by folder", "by file"])
def test_case_33_equal_names_in_two_folders(tmp_path: Path, named: str) -> None:
    files = [tmp_path / "in" / folder / "README.pdf" for folder in "ab"]
    for path in files:
        path.parent.mkdir(parents=True)
        pages_saying(f"Folder {path.parent.name}.").save(path)
    inputs = [tmp_path / "in"] if named == "by folder" else files
    assert convert(*inputs, "-o", tmp_path / "out", "--jobs", 0) == 0
    written = {path.read_text() for path in (tmp_path / "out").rglob("*.md")}
    assert written == {"Folder a.\n", "Folder b.\n"}


def test_case_34_bytes_whatever_the_locale(tmp_path: Path) -> None:
    codes = b"<41> <D83DDE00>"
    cmap = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap 1 begincodespacerange <00> <FF> "
        b"endcodespacerange 1 beginbfchar " + codes + b" endbfchar endcmap end end"
    )
    stream = f"<</Length {len(cmap)}>>stream\n{cmap.decode()}\nendstream"
    font = "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>"
    emoji = pymupdf.open("pdf", raw_pdf(b"BT /F1 12 Tf 72 700 Td (A) Tj ET", font, stream))
    document, page = new_page()
    page.insert_text((72, 100), "漢字と仮名", fontname="japan", fontsize=12)
    document.insert_pdf(emoji)
    document.save(tmp_path / "signs.pdf")
    program = [sys.executable, fake_program.__file__, "convert", str(tmp_path / "signs.pdf"), "-q"]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    with open(tmp_path / "out.md", "wb") as out:
        done = subprocess.run(program, stdout=out, stderr=subprocess.PIPE, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.md").read_bytes() == "漢字と仮名\n\n😀\n".encode()
