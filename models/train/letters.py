"""Counts which letters follow which in the training texts, for nano to read by (`letters.py`).

python -m gravityocr_models.train.letters --data DATA [--weights models/weights/nano]
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from gravityocr_models import store
from gravityocr_models.letters import ORDER, STEPS, Letters, all_hashed
from gravityocr_models.train.corpora import load_corpora, of_split
from gravityocr_models.train.sample import ALPHABET

LEAST_SEEN = (1, 1, 2, 2, 3, 3)  # times that an n-gram of 1, 2... letters must occur


def counted(texts: Iterable[str]) -> Letters:
    """The n-grams of texts, blanks run together; characters that nano has not learned are as good as blanks."""
    chars = " " + "".join(sorted(ALPHABET))
    numbers = {char: number for number, char in enumerate(chars)}
    codes = np.array([numbers.get(char, 0) for text in texts for char in text + " "], np.uint64)
    codes = codes[~((codes == 0) & (np.append(1, codes[:-1]) == 0))]
    keys, scores = [], []
    for count in range(1, ORDER + 1):
        grams = all_hashed(codes, count)
        before = all_hashed(codes, count - 1)[: len(grams)]
        found, firsts, times = np.unique(grams, return_index=True, return_counts=True)
        contexts, together = np.unique(before, return_counts=True)
        of_all = together[np.searchsorted(contexts, before[firsts])]
        kept = times >= LEAST_SEEN[count - 1]
        keys.append(found[kept])
        scores.append(np.clip(np.log(of_all[kept] / times[kept]) * STEPS, 0, 255).round().astype(np.uint8))
    every, firsts = np.unique(np.concatenate(keys), return_index=True)
    return Letters(every, np.concatenate(scores)[firsts], chars)


def main() -> None:
    parser = argparse.ArgumentParser(description="count letters")
    parser.add_argument("--data", type=Path, required=True, help="folder of training corpora (see docs/training.md)")
    parser.add_argument("--weights", type=Path, default=store.NANO)
    options = parser.parse_args()
    prose = of_split(load_corpora(options.data), "train").prose
    counted(part for text in prose for part in text.parts).save(options.weights / store.LETTERS)
    store.write_sums(options.weights)


if __name__ == "__main__":
    main()
