"""PDFs and images made to do harm, through the whole command: a loss that is told of, and no file but the output."""

import ast
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fake_program
import pymupdf
import pytest

from gravityocr_cli import cli


@pytest.fixture
def converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Callable[[Path], tuple[int, str, str]]:
    """converted(path) -> exit code, Markdown, standard error. Fails where anything but the Markdown was written."""
    monkeypatch.setattr("gravityocr_cli.run.load_reader", lambda settings: fake_program.FakeReader())
    monkeypatch.setattr("gravityocr_cli.pdf._layout", fake_program.faulty_layout)

    def convert(path: Path) -> tuple[int, str, str]:
        out = tmp_path / "deep" / "out"
        before = set(tmp_path.rglob("*"))
        code = cli.run(["convert", str(path), "-o", str(out / "a.md"), "--jobs", "0", "-q"])
        written = {str(each.relative_to(tmp_path)) for each in set(tmp_path.rglob("*")) - before}
        assert written <= {"deep", "deep/out", "deep/out/a.md"}
        return code, (out / "a.md").read_text() if (out / "a.md").exists() else "", capsys.readouterr().err

    return convert


def page_tree_that_holds_itself(document: Any) -> None:
    page = document.page_xref(0)
    _, parent = document.xref_get_key(page, "Parent")
    tree = int(parent.split()[0])
    document.xref_set_key(tree, "Kids", f"[{tree} 0 R {page} 0 R]")
    document.xref_set_key(tree, "Count", "2")


def outline_that_holds_itself(document: Any) -> None:
    root, item = document.get_new_xref(), document.get_new_xref()
    page = document.page_xref(0)
    document.update_object(root, f"<</First {item} 0 R/Last {item} 0 R/Count 1>>")
    document.update_object(
        item, f"<</Title(a)/Parent {root} 0 R/First {item} 0 R/Next {item} 0 R/Dest[{page} 0 R/Fit]>>"
    )
    document.xref_set_key(document.pdf_catalog(), "Outlines", f"{root} 0 R")


def drawing_that_draws_itself(document: Any) -> None:
    form, page = document.get_new_xref(), document[0]
    document.update_object(
        form, f"<</Type/XObject/Subtype/Form/BBox[0 0 300 300]/Resources<</XObject<</X {form} 0 R>>>>>>"
    )
    document.update_stream(form, b"/X Do")
    resources = int(document.xref_get_key(page.xref, "Resources")[1].split()[0])
    document.xref_set_key(resources, "XObject", f"<</X {form} 0 R>>")
    (content,) = page.get_contents()
    document.update_stream(content, document.xref_stream(content) + b" /X Do")


def scripts_and_commands(document: Any) -> None:
    act = "<</S/JavaScript/JS(this.submitForm\\('http://127.0.0.1:9/'\\))/Next<</S/Launch/F(/bin/sh)>>>>"
    document.xref_set_key(document.pdf_catalog(), "OpenAction", act)
    document.xref_set_key(document.page_xref(0), "AA", "<</O<</S/URI/URI(http://127.0.0.1:9/)>>>>")


def attachments_that_climb(document: Any) -> None:
    name = "../../evil.txt"
    document.embfile_add(name, b"evil", filename=name, ufilename=name)
    document[0].add_file_annot((-50, -50), b"evil", filename=name)


def arrays_without_end(document: Any) -> None:
    (content,) = document[0].get_contents()
    document.update_stream(content, b"[" * 100_000)


def a_page_like_a_thread(document: Any) -> None:
    document.xref_set_key(document.page_xref(0), "MediaBox", "[0 0 300 99999999999999]")


@pytest.mark.parametrize(
    ("harm", "code"),
    [
        (page_tree_that_holds_itself, 7),
        (outline_that_holds_itself, 0),
        (drawing_that_draws_itself, 0),
        (scripts_and_commands, 0),
        (attachments_that_climb, 0),
        (arrays_without_end, 7),
        (a_page_like_a_thread, 7),
    ],
)
def test_harm_comes_to_nothing(converted: Any, tmp_path: Path, harm: Callable[[Any], None], code: int) -> None:
    with pymupdf.open() as document:
        document.new_page(width=300, height=300).insert_text((30, 60), "Honest words.", fontsize=11)
        harm(document)
        document.save(tmp_path / "a.pdf")
    found, text, err = converted(tmp_path / "a.pdf")
    assert (found, err) == (code, "")
    assert ("Honest words." in text) == (code == 0)
    assert ("not read (cannot be rendered: " in text) == (code == 7)


def test_an_image_that_claims_ten_thousand_million_pixels(converted: Any, tmp_path: Path) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 0, 0, 0, 0)
    image = (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )
    (tmp_path / "a.png").write_bytes(image)
    code, text, err = converted(tmp_path / "a.png")
    assert (code, text) == (3, "")
    assert err == f"gravityocr: {tmp_path}/a.png: the image has more pixels than any page needs\n"


def test_names_of_documents_stay_in_the_output_folder(converted: Any, tmp_path: Path) -> None:
    with pymupdf.open() as document:
        document.new_page(width=300, height=300).insert_text((30, 60), "Honest words.", fontsize=11)
        for name in ("...pdf", "..pdf", "%2e%2e%2fa.pdf"):
            document.save(tmp_path / name)
    for name, output in (("...pdf", "...md"), ("..pdf", "document.md"), ("%2e%2e%2fa.pdf", "%2e%2e%2fa.md")):
        assert cli.run(["convert", str(tmp_path / name), "-o", f"{tmp_path}/out/", "--jobs", "0", "-q"]) == 0
        assert output in os.listdir(tmp_path / "out")


def test_no_file_that_is_loaded_can_act() -> None:
    """Pickles come only from our own workers, torch.load takes tensors alone (its default), nothing is evaluated."""
    root = Path(__file__).parents[2]
    for path in [*(root / "gravityocr_cli").rglob("*.py"), *(root / "models").rglob("*.py")]:
        tree = ast.parse(path.read_text("utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        assert not names & {"pickle", "marshal", "shelve", "joblib"} or path.name in ("worker.py", "workers.py"), path
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            function = ast.unparse(call.func)
            assert function not in ("eval", "exec", "os.system", "os.popen"), path
            assert function != "torch.load" or "weights_only=False" not in map(ast.unparse, call.keywords), path
