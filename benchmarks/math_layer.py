"""How well formulas are told from what they are painted with.

    python benchmarks/math_layer.py [FORMULAS] [SEED]

Takes display formulas of sheets that LaTeX has typeset (docs/training.md says how), in dozens of math fonts, and
compares what mathlayout.py makes of their glyphs and rules with their source. No model takes part.
"""

import sys
import time

import numpy as np
import pymupdf

from gravityocr_cli.painted import formula_paint
from gravityocr_models.mathlayout import latex_of
from gravityocr_models.metrics import formula_similarity
from gravityocr_models.signs import Box
from gravityocr_models.train.corpora import SHEETS
from gravityocr_models.train.dialect import normal_latex
from gravityocr_models.train.sheets import FORMULA, sources_of

SHEETS_READ = 8
WORST = 10


def main(count: int, seed: int) -> None:
    """Print the figures, and the worst formulas."""
    rng = np.random.default_rng(seed)
    files = sorted(SHEETS.glob("*.pdf"))
    found: list[tuple[float, str, str]] = []
    seconds = 0.0
    for number in rng.choice(len(files), min(SHEETS_READ, len(files)), replace=False):
        with pymupdf.open(files[number]) as document:
            sources = sources_of(document)
            fitting = [at for at, page in enumerate(sources) if page and page[0].look == FORMULA]
            for at in rng.permutation(fitting)[: count // SHEETS_READ].tolist():
                started = time.perf_counter()
                read = latex_of(*formula_paint(document[at], [Box(0, 0, *document[at].rect.br)]))
                seconds += time.perf_counter() - started
                truth = normal_latex(sources[at][0].parts[1])
                found.append((formula_similarity(read, truth), truth, read))
    scores = [score for score, _, read in found if read]
    exact = sum(score == 1 for score in scores) / len(scores)
    print(
        f"{len(found)} formulas, {len(found) - len(scores)} in unknown signs; of the others similarity "
        f"{np.mean(scores):.3f}, exact {exact:.3f}; {1000 * seconds / len(found):.0f} ms each"
    )
    for score, truth, read in sorted(row for row in found if row[2])[:WORST]:
        print(f"{score:.2f}\n  {truth}\n  {read}")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(*(numbers + [400, 0][len(numbers) :]))
