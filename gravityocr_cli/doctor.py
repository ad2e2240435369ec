"""`gravityocr doctor`: will conversions work here? Facts, then a page read from end to end, then every setting.

The page goes the way of every other: a worker renders it, the model reads its pixels. Its text layer isn't looked at.
"""

import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from gravityocr_cli import checkpoints, errors
from gravityocr_cli.configfile import Resolved
from gravityocr_cli.output import TextProduct
from gravityocr_cli.pipeline import convert, load_reader
from gravityocr_cli.settings import PageRanges, Settings, TextLayer
from gravityocr_cli.workers import Pool
from gravityocr_models import store

if TYPE_CHECKING:
    from gravityocr_models.engine import Engine

SENTENCE = "The quick brown fox"
_PACKAGES = (
    "gravityocr",
    "torch",
    "pymupdf",
    "pymupdf_layout",
    "numpy",
    "safetensors",
    "tokenizers",
    "huggingface_hub",
)


def run(resolved: Resolved) -> int:
    """Prints what it finds; returns 0 where conversions will work, else the exit code that they would end with."""
    print(f"python {platform.python_version()} on {platform.platform()}, {os.cpu_count()} cores")
    print("\n".join(f"{name} {_version(name)}" for name in _PACKAGES))
    for each in store.installed():
        wrong = checkpoints.faults(each.folder)
        print(f"model {each.name}: {each.folder} ({'; '.join(wrong) or 'as its checksums say'})")
    code = 0
    try:
        for line in _self_test(resolved.settings):
            print(line)
    except errors.GravityOcrError as error:
        print(f"gravityocr: {error}", file=sys.stderr)
        code = error.exit_code
    except Exception as error:  # whatever it is, it is what the reader of this wants to know
        print(f"gravityocr: unexpected error: {error!r}", file=sys.stderr)
        code = errors.GravityOcrError.exit_code
    print("\nsettings, and where each comes from:")
    for line in setting_lines(resolved):
        print(line)
    print("\nconversions will work" if code == 0 else "\nconversions will not work")
    return code


def setting_lines(resolved: Resolved) -> list[str]:
    """Every setting with its value and origin; a password only as being there."""
    rows = []
    for each in fields(Settings):
        value = getattr(resolved.settings, each.name)
        shown = "-" if value is None else "(set)" if each.name == "password" else str(value)
        rows.append((each.name.replace("_", "-"), shown, resolved.origins[each.name]))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"  {name:{widths[0]}}  {value:{widths[1]}}  {origin}" for name, value, origin in rows]


def _self_test(settings: Settings) -> Iterator[str]:
    settings = replace(settings, pages=PageRanges(), text_layer=TextLayer.OFF, timeout=None, password_file=None)
    started = time.perf_counter()
    reader: Engine = load_reader(settings)  # type: ignore[assignment]
    yield f"device: {reader.describe()}; the model loads in {time.perf_counter() - started:.1f} s"
    with tempfile.TemporaryDirectory(prefix="gravityocr-") as folder, Pool(1) as pool:
        path = Path(folder) / "self-test.pdf"
        path.write_bytes(one_line_pdf(SENTENCE))
        product, started = TextProduct(), time.perf_counter()
        pages = pool.open(path, settings, "the self-test page")
        report = convert(path, product, lambda: reader, settings, name="the self-test page", opened=pages)
    if report.lost_parts:
        what = next((page.lost for page in report.pages if page.lost), "the model gave no answer")
        raise errors.GravityOcrError(f"the self-test page is lost: {what}")
    yield f"self-test: {SENTENCE!r} was read as {product.text.strip()!r} in {time.perf_counter() - started:.1f} s"


def one_line_pdf(text: str) -> bytes:
    """A PDF with one page and one line of Helvetica on it."""
    content = b"BT /F1 14 Tf 72 700 Td (%s) Tj ET" % text.encode("ascii")
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    tail = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(data))
    return data + head + table + tail


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "is not installed"
