"""Where to draw the line between text layers that are kept and those that are not.

    python benchmarks/layer_verdict.py FOLDER [CROPS]

For every region with a sound layer in the PDFs under FOLDER: the share of its tokens that the model agrees with, for
the layer as it is, for the same layer with every letter shifted by 1 (a broken ToUnicode table), with letters swapped
by a fixed table (a subset font without one), and for the layer of another region (text of another place). Then, for
some thresholds, the share of all tokens that lie in regions whose layer would be kept. The threshold that a checkpoint
states (`keep_above` in its preprocessor_config.json) should keep nearly all of the first and little of the others.
"""

import random
import string
import sys
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path

import numpy as np

from gravityocr_cli.bench import crops_in
from gravityocr_models.engine import Engine, Verdict, by_length, regions_of
from gravityocr_models.records import Crop
from gravityocr_models.speculate import Prompt, agreements

SHUFFLED = random.Random(0).sample(string.ascii_letters, len(string.ascii_letters))
CIPHER = str.maketrans(string.ascii_letters, "".join(SHUFFLED))
QUANTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
THRESHOLDS = (0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7)


def main(folder: Path, count: int) -> None:
    """Print both tables."""
    engine = Engine.load()
    judged = (
        crop for crop in crops_in(sorted(folder.rglob("*.pdf")), engine) if crop.draft and engine.can_judge(crop.draft)
    )
    crops = numbered(list(islice(judged, count)))
    prompts = engine.prompts(crops)
    texts = [crop.draft or "" for crop in crops]
    layers = {
        "as it is": texts,
        "shifted": ["".join(chr(ord(char) + 1) if char > " " else char for char in text) for text in texts],
        "ciphered": [text.translate(CIPHER) for text in texts],
        "of another region": texts[len(texts) // 2 :] + texts[: len(texts) // 2],
    }
    verdicts = {name: verdicts_of(engine, crops, prompts, layer) for name, layer in layers.items()}
    print(f"{len(crops)} crops of {len(regions_of(crops, range(len(crops))))} regions; share of tokens agreed with")
    print_row("layer", [f"{quantile} %" for quantile in QUANTILES])
    for name, found in verdicts.items():
        print_row(name, [f"{np.percentile([verdict.share for verdict in found], q):.3f}" for q in QUANTILES])
    print("share of tokens in kept layers, by threshold")
    print_row("layer", list(map(str, THRESHOLDS)))
    for name, found in verdicts.items():
        print_row(name, [f"{kept(found, threshold):.3f}" for threshold in THRESHOLDS])


def numbered(crops: list[Crop]) -> list[Crop]:
    """A region's key says nothing about its document: number the regions of all documents anew."""
    regions = groupby(crops, key=lambda crop: crop.region)
    return [replace(crop, region=(0, number)) for number, (_, group) in enumerate(regions) for crop in group]


def verdicts_of(engine: Engine, crops: list[Crop], prompts: list[Prompt], layer: list[str]) -> list[Verdict]:
    """What the model says of each region, were this its layer."""
    encode = engine.checkpoint.tokenizer.encode
    drafted = [replace(prompt, layer=tuple(encode(text))) for prompt, text in zip(prompts, layer, strict=True)]
    ordered = by_length(dict(enumerate(drafted)))
    agreed = dict(zip(ordered, agreements(engine.checkpoint.model, list(ordered.values())), strict=True))
    return [
        Verdict(sum(agreed[place] for place in places), sum(len(drafted[place].layer) for place in places))
        for places in regions_of(crops, range(len(crops)))
    ]


def kept(verdicts: list[Verdict], threshold: float) -> float:
    """Share of tokens whose region's layer holds."""
    held = sum(verdict.tokens for verdict in verdicts if verdict.holds(threshold))
    return held / sum(verdict.tokens for verdict in verdicts)


def print_row(name: str, cells: list[str]) -> None:
    print(f"{name:20}" + "".join(f"{cell:>8}" for cell in cells))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
