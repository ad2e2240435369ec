"""How high and wide the signs of formulas are in dozens of math fonts: the table of models/signshapes.py.

    python benchmarks/sign_shapes.py [FORMULAS] [SEED]

Measures glyphs of sheets that LaTeX has typeset (docs/training.md says how) and prints each sign, how far it reaches
over and under its baseline and how wide it is, in hundredths of the size: medians of what occurs three times or more.
"""

import sys
from collections import defaultdict

import numpy as np
import pymupdf

from gravityocr_cli.painted import formula_paint
from gravityocr_models.signs import Box
from gravityocr_models.train.corpora import SHEETS
from gravityocr_models.train.sheets import FORMULA, sources_of

SHEETS_READ = 14
LEAST = 3


def main(count: int, seed: int) -> None:
    """Print the table."""
    rng = np.random.default_rng(seed)
    files = sorted(SHEETS.glob("*.pdf"))
    measured: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for number in rng.choice(len(files), min(SHEETS_READ, len(files)), replace=False):
        with pymupdf.open(files[number]) as document:
            fitting = [at for at, page in enumerate(sources_of(document)) if page and page[0].look == FORMULA]
            for at in rng.permutation(fitting)[: count // SHEETS_READ].tolist():
                signs, _ = formula_paint(document[at], [Box(0, 0, *document[at].rect.br)])
                for sign in signs:
                    box, base, size = sign.box, sign.origin[1], sign.size
                    measured[sign.text].append(((base - box.y0) / size, (box.y1 - base) / size, box.width / size))
    for text, rows in sorted(measured.items()):
        if len(rows) >= LEAST:
            print(text, *(round(100 * float(value)) for value in np.median(rows, axis=0)))


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(*(numbers + [1_700, 0][len(numbers) :]))
