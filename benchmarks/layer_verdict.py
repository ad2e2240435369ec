"""Where to draw the line between text layers that are kept and those that are not, and what reading few lines costs.

    python benchmarks/layer_verdict.py FOLDER [CROPS]

For every region with a sound layer in the PDFs under FOLDER: the share of its tokens that the model agrees with, for
the layer as it is, for the same layer with every letter shifted by 1 (a broken ToUnicode table), with letters swapped
by a fixed table (a subset font without one), and for the layer of another region (text of another place). Then, for
some thresholds, the share of all tokens that lie in regions whose layer would be kept. The threshold that a checkpoint
states (`keep_above` in its preprocessor_config.json) should keep nearly all of the first and little of the others.

Last, at that threshold: the share of false tokens that are kept where a page, a font, a region, half of one or a line
is false and the rest of its page true, if every line is read, and if verdict.py chooses what to read.
"""

import random
import string
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from gravityocr_cli.bench import crops_in
from gravityocr_models.engine import Engine, by_length, verdict_on
from gravityocr_models.records import Crop
from gravityocr_models.speculate import Prompt, agreements
from gravityocr_models.verdict import Verdict, grouped, judge, regions_of

SHUFFLED = random.Random(0).sample(string.ascii_letters, len(string.ascii_letters))
CIPHER = str.maketrans(string.ascii_letters, "".join(SHUFFLED))
QUANTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
THRESHOLDS = (0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7)


def main(folder: Path, count: int) -> None:
    """Print the tables."""
    engine = Engine.load()
    crops = list(islice(crops_of(folder, engine), count))
    prompts = engine.prompts(crops)
    texts = [crop.draft or "" for crop in crops]
    layers = {
        "as it is": texts,
        "shifted": ["".join(chr(ord(char) + 1) if char > " " else char for char in text) for text in texts],
        "ciphered": [text.translate(CIPHER) for text in texts],
        "of another region": texts[len(texts) // 2 :] + texts[: len(texts) // 2],
    }
    found = {name: verdicts_of(engine, prompts, layer) for name, layer in layers.items()}
    regions = regions_of(crops, range(len(crops)))
    pooled = {name: [sum_of(each[place] for place in region) for region in regions] for name, each in found.items()}
    print(f"{len(crops)} crops of {len(regions)} regions; share of tokens agreed with")
    print_row("layer", [f"{quantile} %" for quantile in QUANTILES])
    for name, verdicts in pooled.items():
        print_row(name, [f"{np.percentile([verdict.share for verdict in verdicts], q):.3f}" for q in QUANTILES])
    print("share of tokens in kept layers, by threshold")
    print_row("layer", list(map(str, THRESHOLDS)))
    for name, verdicts in pooled.items():
        print_row(name, [f"{kept(verdicts, threshold):.3f}" for threshold in THRESHOLDS])
    true, threshold = found.pop("as it is"), engine.conventions.keep_above
    parts = parts_of(crops)
    print("share of false tokens kept: every line read/some of them")
    print_row("false is", list(parts), 16)
    for name, false in found.items():
        print_row(name, [kept_lies(crops, true, false, part, threshold) for part in parts.values()], 16)
    _, read = judged(crops, range(len(crops)), true, threshold)
    print(f"pixels read {sum(crops[i].pixels.size for i in read) / sum(crop.pixels.size for crop in crops):.3f}")


def crops_of(folder: Path, engine: Engine) -> Iterator[Crop]:
    """Crops with a layer that can be judged; their pages are numbered anew, through all documents."""
    for number, path in enumerate(sorted(folder.rglob("*.pdf"))):
        for crop in crops_in([path], engine):
            if crop.draft and crop.region and engine.can_judge(crop.draft):
                page, order = crop.region
                page += 10_000 * number
                yield replace(crop, region=(page, order), font=crop.font and (page, crop.font[1]))


def verdicts_of(engine: Engine, prompts: list[Prompt], layer: list[str]) -> list[Verdict]:
    """What the model says of each crop, were this its layer."""
    encode = engine.checkpoint.tokenizer.encode
    drafted = [replace(prompt, layer=tuple(encode(text))) for prompt, text in zip(prompts, layer, strict=True)]
    ordered = by_length(dict(enumerate(drafted)))
    agreed = dict(zip(ordered, agreements(engine.checkpoint.model, list(ordered.values())), strict=True))
    return [verdict_on(prompt, agreed[place]) for place, prompt in enumerate(drafted)]


def sum_of(verdicts: Iterable[Verdict]) -> Verdict:
    agreed, tokens, unseen = zip(*((each.agreed, each.tokens, each.unseen) for each in verdicts), strict=True)
    return Verdict(sum(agreed), sum(tokens), sum(unseen))


def kept(verdicts: list[Verdict], threshold: float) -> float:
    """Share of tokens whose region's layer holds."""
    held = sum(verdict.tokens for verdict in verdicts if verdict.holds(threshold))
    return held / sum(verdict.tokens for verdict in verdicts)


def parts_of(crops: list[Crop]) -> dict[str, list[list[int]]]:
    """Places whose layers are false together, by what they are."""
    places = range(len(crops))
    regions = regions_of(crops, places)
    return {
        "a page": pages_of(crops),
        "a font": grouped(places, lambda place: crops[place].font),
        "a region": regions,
        "half a region": [region[: len(region) // 2] for region in regions if len(region) > 1],
        "a line": [[place] for place in places],
    }


def pages_of(crops: list[Crop]) -> list[list[int]]:
    return grouped(range(len(crops)), lambda place: (crops[place].region or (0, 0))[0])


def kept_lies(
    crops: list[Crop], true: list[Verdict], false: list[Verdict], parts: list[list[int]], threshold: float
) -> str:
    """The share of false tokens kept where one part after the other is false: every line read, and some."""
    pages = {place: page for page in pages_of(crops) for place in page}
    unknown = [replace(crop, font=None) for crop in crops]  # of which every line is read
    held = [0, 0]
    for part in parts:
        said = {place: false[place] if place in part else true[place] for place in pages[part[0]]}
        for at, some in enumerate((unknown, crops)):
            verdicts, _ = judged(some, said, said, threshold)
            held[at] += sum(
                said[place].tokens for place in part if place in verdicts and verdicts[place].holds(threshold)
            )
    total = sum(false[place].tokens for part in parts for place in part)
    return "/".join(f"{tokens / total:.3f}" for tokens in held)


def judged(
    crops: list[Crop], places: Iterable[int], said: Mapping[int, Verdict] | list[Verdict], threshold: float
) -> tuple[dict[int, Verdict], set[int]]:
    """The verdict on each place's region, and the places read for it. said: what the model says of each, if read."""
    read: set[int] = set()

    def answer(some: list[int]) -> dict[int, Verdict]:
        read.update(some)
        return {place: said[place] for place in some}

    return judge(crops, list(places), threshold, answer), read


def print_row(name: str, cells: list[str], width: int = 8) -> None:
    print(f"{name:20}" + "".join(f"{cell:>{width}}" for cell in cells))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
