"""Where to draw the line between text layers that are kept and those that are not.

    python benchmarks/layer_verdict.py FOLDER [LIMIT]

For every region with a sound layer in the PDFs under FOLDER: the share of its tokens that the model agrees with, for
the layer as it is, for the same layer with every letter shifted by 1 (a broken ToUnicode table), with letters swapped
by a fixed table (a subset font without one), and for the layer of another region (text of another place). The threshold
in models/engine.py should keep nearly all of the first and none of the others.
"""

import random
import string
import sys
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np

from gravityocr_cli.bench import crops_in
from gravityocr_models.engine import Engine
from gravityocr_models.records import Crop

SHUFFLED = random.Random(0).sample(string.ascii_letters, len(string.ascii_letters))
CIPHER = str.maketrans(string.ascii_letters, "".join(SHUFFLED))


def main(folder: Path, limit: int) -> None:
    engine = Engine.load()
    found = [crop for crop in crops_in(folder, engine) if crop.draft and engine.can_judge(crop.draft)][:limit]
    regions = groupby(found, key=lambda crop: crop.region)  # a key says nothing about the document: number them anew
    crops = [replace(crop, region=(0, number)) for number, (_, group) in enumerate(regions) for crop in group]
    lies = {
        "as it is": [crop.draft for crop in crops],
        "shifted": ["".join(chr(ord(c) + 1) if c > " " else c for c in crop.draft or "") for crop in crops],
        "ciphered": [(crop.draft or "").translate(CIPHER) for crop in crops],
        "of another region": [crops[(place + len(crops) // 2) % len(crops)].draft for place in range(len(crops))],
    }
    print(f"{len(crops)} crops of {len({crop.region for crop in crops})} regions; share of tokens agreed with")
    print(f"{'layer':20}" + "".join(f"{f'{q} %':>8}" for q in (0, 1, 5, 25, 50, 75, 95, 99, 100)))
    for name, texts in lies.items():
        shares = by_region(engine, [replace(crop, draft=text) for crop, text in zip(crops, texts, strict=True)])
        print(f"{name:20}" + "".join(f"{np.percentile(shares, q):8.3f}" for q in (0, 1, 5, 25, 50, 75, 95, 99, 100)))


def by_region(engine: Engine, crops: list[Crop]) -> list[float]:
    """Each region's agreement once."""
    return list({crops[place].region: verdict.share for place, verdict in engine.verdicts(crops).items()}.values())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
