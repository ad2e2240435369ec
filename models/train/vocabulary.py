"""Train nano's tokenizer: byte-level BPE over prose, code, LaTeX and HTML tables.

    python -m gravityocr_models.train.vocabulary DATA models/weights/nano/tokenizer.json

Changing it makes all earlier weights worthless, so it is run once a vocabulary, not once a training.
"""

import random
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pymupdf
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from gravityocr_models.records import Task
from gravityocr_models.train.corpora import Corpora, load_corpora
from gravityocr_models.train.dialect import UnknownSpelling, normal_latex

SIZE = 2048
END, MASK, IMAGE, IMAGE_START, IMAGE_END = "<|end|>", "<|mask|>", "<|image|>", "<|image_start|>", "<|image_end|>"
SPECIAL = [END, MASK, IMAGE, IMAGE_START, IMAGE_END, *Task]
# A word with its blank, a LaTeX command, an HTML tag, one digit, or a run of marks.
PIECES = r" ?\\[A-Za-z]+|</?[a-z]+>?| ?[\p{L}\p{M}]+| ?\p{N}| ?[^\s\p{L}\p{M}\p{N}<\\]+|\s+|."
CHARACTERS_OF = {"papers": 3_000_000, "prose": 1_200_000, "code": 300_000, "latex": 2_500_000, "tables": 1_500_000}
# Each gets a piece of its own, however rare it is in the corpora: one glyph, one token.
LETTERS = (
    "".join(map(chr, [*range(0xA1, 0x100), *range(0x391, 0x3CA)])).replace("\xad", "")
    + "ĀāĂăĄąĆćČčĎďĐđĒēĘęĚěĞğĪīİıŁłŃńŇňŌōŐőŒœŘřŚśŞşŠšŢţŤťŪūŮůŰűŹźŻżŽž"
    + "–—‘’“”„…•†‡€→≤≥≠≈×−∞∂∑∫√∈′"
)
LETTER_COUNT = 3_000


def train(root: Path) -> Tokenizer:
    """A tokenizer of SIZE pieces, special tokens first, from the corpora under `root` and the system's documents."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PIECES), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=12,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(root), trainer)
    return tokenizer


def _texts(root: Path) -> Iterator[str]:
    rng = random.Random(0)
    corpora = load_corpora(root)
    prose = [part for text in corpora.prose for part in text.parts]
    code = [part for text in corpora.code for part in text.parts]
    papers = [page.get_text(flags=0) for path in corpora.papers for page in pymupdf.open(path).pages()]
    sources = {"papers": papers, "prose": prose, "code": code, "latex": _latex(corpora), "tables": prose}
    yield from (f"{letter}\n" * LETTER_COUNT for letter in LETTERS)
    for name, parts in sources.items():
        rng.shuffle(parts)
        left = CHARACTERS_OF[name]
        while left > 0 and parts:
            part = _table(parts, rng) if name == "tables" else parts.pop()
            left -= len(part)
            yield part


def _latex(corpora: Corpora) -> list[str]:
    """Formulas as nano is to spell them."""
    found: list[str] = []
    for formula in corpora.latex:
        with suppress(UnknownSpelling):
            found.append(normal_latex(formula))
    return found


def _table(parts: list[str], rng: random.Random) -> str:
    """A small HTML table of numbers and words, for the sake of its markup."""
    words = rng.choice(parts).split()
    width = rng.randint(2, 5)

    def cell() -> str:
        if rng.random() < 0.5:
            return f"{rng.uniform(-50, 1000):.{rng.randint(0, 3)}f}"
        return " ".join(words[rng.randrange(len(words)) :][: rng.randint(0, 3)])

    rows = [[cell() for _ in range(width)] for _ in range(rng.randint(2, 6))]
    body = "".join("<tr>" + "".join(f"<td>{text}</td>" for text in row) + "</tr>" for row in rows)
    spans = f'<tr><td colspan="{width}">{cell()}</td></tr><tr><td rowspan="2">{cell()}</td></tr>'
    return f"<table>{spans}{body}</table>"


if __name__ == "__main__":
    target = Path(sys.argv[2])
    target.parent.mkdir(parents=True, exist_ok=True)
    train(Path(sys.argv[1])).save(str(target))
