"""Which documents an earlier run has finished: a marker for each, in `.gravityocr/` of the output folder.

A marker is written after the document's last file is in place, and holds digests of the input, of what shaped the
output and of every file written. Only where all of them still hold is a document finished: a file that merely exists
proves nothing. Markers hold no time and no machine: a resumed run ends with the same bytes as an undisturbed one.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gravityocr_cli.checkpoints import digest
from gravityocr_cli.output import write_atomically

FOLDER = ".gravityocr"


@dataclass(frozen=True)
class Marker:
    """The marker of one output. root: the folder of all outputs.

    source: digest of the input, taken before it was read. options: `Settings.options_hash`.
    """

    root: Path
    target: Path
    source: str
    options: str

    @property
    def path(self) -> Path:
        name = os.fsencode(self.target.name)
        short = self.target.name if len(name) < 250 else hashlib.sha256(name).hexdigest()
        return (self.root / FOLDER / self.target.relative_to(self.root)).with_name(f"{short}.json")

    def holds(self) -> bool:
        """Whether the output is there, whole, and of this input with these options."""
        try:
            record = json.loads(self.path.read_text("utf-8"))
            same = record["input"] == self.source and record["options"] == self.options
            files: dict[str, str] = record["files"]
            return same and all(digest(self.root / name) == expected for name, expected in files.items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False

    def write(self, files: Sequence[Path]) -> None:
        """Marks the document as finished. files: all that it consists of. Raises CannotWrite."""
        root = self.root.resolve()
        digests = {os.path.relpath(path.resolve(), root): digest(path) for path in sorted(files)}
        record = {"input": self.source, "options": self.options, "files": digests}
        write_atomically(self.path, json.dumps(record, indent=1) + "\n")
