"""Any Unicode string comes back, and no page can spell a special token."""

import random

import pytest

from gravityocr_models.records import Task
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.weights import NANO


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(NANO / "tokenizer.json")


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "a\tb\r\n\n c ",
        "# Naïve café — “quoted” 34.5 %",
        "\\frac{a}{b}^2",
        '<td colspan="2">x</td>',
        "中文 日本語 🎉👩‍👩‍👧",
        "\x00\x1f\ufffd",
    ],
)
def test_round_trip(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_round_trip_of_random_strings(tokenizer: Tokenizer) -> None:
    rng = random.Random(0)
    for _ in range(300):
        codes = (rng.choice([rng.randrange(0x80), rng.randrange(0x3000), rng.randrange(0x110000)]) for _ in range(30))
        text = "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("name", ["<|end|>", "<|mask|>", "<|image|>", *Task])
def test_text_never_becomes_a_special_token(tokenizer: Tokenizer, name: str) -> None:
    assert tokenizer.special(name) not in tokenizer.encode(f"see {name} here")
    assert tokenizer.decode(tokenizer.encode(f"see {name} here")) == f"see {name} here"


def test_prompts_spell_special_tokens(tokenizer: Tokenizer) -> None:
    """And only prompts do: what is read afterwards is plain text again."""
    image, task = tokenizer.special("<|image|>"), tokenizer.special(Task.TEXT)
    assert tokenizer.encode_prompt("<|image|>Text Recognition:") == [image, task]
    assert image not in tokenizer.encode("<|image|>")


def test_unknown_special_token_raises(tokenizer: Tokenizer) -> None:
    with pytest.raises(KeyError):
        tokenizer.special("<|no such|>")
