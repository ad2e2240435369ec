"""A folder in one run against its documents one after the other: what a model that is loaded once is worth.

    python benchmarks/throughput.py                               40 one-page PDFs with the shipped model; on idle cores
    python benchmarks/throughput.py --documents 4 --fake --jobs 1     to see that it works

One JSON line. The bar: one run with two workers is at least 1.6 times as fast, and writes the same bytes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from soak import ROOT, write_documents


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--rows", type=int, default=20, help="lines of text on a page")
    parser.add_argument("--jobs", type=int, default=2, help="of the one run; the others have a page each")
    parser.add_argument("--fake", action="store_true", help="without a model")
    options = parser.parse_args()
    program = [str(ROOT / "tests" / "fake_program.py")] if options.fake else ["-m", "gravityocr_cli"]
    command = [sys.executable, *program, "convert", "-q"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_documents(place / "in", options.documents, 1, options.rows)
        together = seconds([*command, place / "in", "-o", f"{place}/together/", "--jobs", str(options.jobs)])
        alone = sum(seconds([*command, each, "-o", f"{place}/alone/"]) for each in sorted((place / "in").iterdir()))
        same = tree(place / "together") == tree(place / "alone")
    gain = alone / together
    facts = {"documents": options.documents, "together_s": round(together, 1), "alone_s": round(alone, 1)}
    print(json.dumps(facts | {"gain": round(gain, 2), "same_bytes": same}))
    return int(gain < 1.6 or not same)


def seconds(command: Sequence[str | Path]) -> float:
    """How long a command takes. Raises CalledProcessError where it fails."""
    started = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - started


def tree(root: Path) -> dict[str, bytes]:
    """Every file of a folder but the markers of finished documents: those know which folder run they belong to."""
    files = (path for path in root.rglob("*") if path.is_file() and ".gravityocr" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


if __name__ == "__main__":
    sys.exit(main())
