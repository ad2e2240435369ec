"""Painted lines to running text: which line ends get a blank, which hyphens were only typesetting.

A hyphen at a line end is ambiguous, and no rule of spelling settles it. The document itself often does: a word that
stands un-broken elsewhere ("algorithms", "blood-feeding") shows how its author spells it. So callers collect the words
of the pages seen so far with `words_in` and hand the counts to `join`. The rules below speak only where the document is
silent.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from gravityocr_cli.inlinemath import is_broken_formula

SOFT_HYPHEN = "\u00ad"
_HYPHENS = ("-", "\u2010")
_FRAGMENT = r"[^\W_]+(?:['’\-\u2010][^\W_]+)*"
_WORD = re.compile(_FRAGMENT)
_HEAD = re.compile(rf"({_FRAGMENT})[-\u2010]$")
_BROKEN = re.compile(rf"({_FRAGMENT}[-\u2010])[ ]([^\W\d_]+)")
_IDENTIFIER = re.compile(r"\w_$")
_LETTER_AND_DASH = re.compile(r"\w[-\u2010]?[-–—]$")
_WIDE = re.compile(
    r"[\u3000-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_WIDE_MARK = re.compile(r"[\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]")
# After one of these a hyphen belongs to the first of two words that share their second half: "mid- to late".
_SUSPENDERS = frozenset("and or to nor versus und oder bis bzw et ou".split())
# Prefixes that English hyphenates whatever follows.
_HYPHENATED = frozenset("self well quasi".split())
# Words that English writes solid with what follows: "overcome", "therefore", "performed", "cannot".
_SOLID = frozenset("over under out some any every where there here with through after fore per not for can all".split())
# Where an address may be cut without a sign of its own, and what its other half looks like.
_ADDRESS = re.compile(r"(?:://\S*[/_=&?#%]|[\w.]@)$")
_ADDRESS_REST = re.compile(r"[^\s/.\-_=&?#%0-9]*[/.\-_=&?#%0-9]\S")


def words_in(lines: Iterable[str]) -> Iterator[str]:
    """The folded words of painted lines in order, hyphenated compounds whole and in parts; broken words left out."""
    broken = False
    for line in lines:
        words = [_fold(word) for word in _WORD.findall(line)]
        if broken:
            words = words[1:]
        broken = line.rstrip().endswith((*_HYPHENS, SOFT_HYPHEN))
        for word in words[:-1] if broken else words:
            yield word
            if "-" in word:
                yield from word.split("-")


def join_lines(lines: Iterable[str], seen: Mapping[str, int]) -> str:
    """Painted lines as one line of text. seen: how often each folded word stood un-broken (see `words_in`)."""
    text = ""
    for line in lines:
        text = join(text, " ".join(line.split()), seen)
    return text


def join(left: str, right: str, seen: Mapping[str, int]) -> str:
    """Running text and what follows after a line break, as one text. Either may be empty."""
    if not left or not right:
        return left + right
    if left.endswith(SOFT_HYPHEN):
        return left.rstrip(SOFT_HYPHEN) + right
    if is_broken_formula(left, right):
        return f"{left[:-1]} {right[1:]}"
    if head := _HEAD.search(left):
        return _join_at_hyphen(left, head[1], right, seen)
    in_address = _ADDRESS.search(left) and _ADDRESS_REST.match(right)
    in_name = _IDENTIFIER.search(left) and right[0].isalnum()  # gcm_ | aes_encrypt
    if in_address or in_name or _LETTER_AND_DASH.search(left) or _joins_wide(left[-1], right[0]):
        return left + right
    return f"{left} {right}"


def unbroken(text: str, seen: Mapping[str, int]) -> str:
    """A table's text, in which lines have been joined by blanks, with the words whole that they broke."""
    return _BROKEN.sub(lambda match: join(match[1], match[2], seen), text)


def ends_broken(text: str) -> bool:
    """Whether the text ends in the middle of a word."""
    return text.endswith(SOFT_HYPHEN) or _HEAD.search(text) is not None


def is_wide(character: str) -> bool:
    """Whether the character is of a script that is set without blanks (Chinese, Japanese)."""
    return _WIDE.match(character) is not None


def _joins_wide(before: str, after: str) -> bool:
    if _WIDE_MARK.match(before) or _WIDE_MARK.match(after):
        return True
    return is_wide(before) and is_wide(after)


def _join_at_hyphen(left: str, head: str, right: str, seen: Mapping[str, int]) -> str:
    match = _WORD.match(right)
    if match is None:
        return left + right
    tail = match[0]
    whole, compound = _fold(head + tail), _fold(f"{head}-{tail}")
    if seen.get(whole, 0) > seen.get(compound, 0):
        return left[:-1] + right
    if compound in seen:
        return left + right
    if tail in _SUSPENDERS:
        return f"{left} {right}"
    return left + right if _keeps_hyphen(left, head, tail, seen) else left[:-1] + right


def _keeps_hyphen(left: str, head: str, tail: str, seen: Mapping[str, int]) -> bool:
    """Whether the hyphen is spelling and not typesetting, for a word that the document has nowhere else."""
    last, first = _fold(head).split("-")[-1], _fold(tail).split("-")[0]
    if not tail[0].islower() and not is_wide(tail[0]):
        return True  # Anglo-American, COVID-19
    if len(last) == 1 or last[-1].isdigit() or last in _HYPHENATED:
        return True  # n-tridecanal, 2-dimensional, self-made
    if "://" in left.split()[-1] or left.split()[-1].startswith("--"):
        return True  # --num-callers
    if last not in seen or first not in seen:
        return False
    chained = "-" in head or "-" in tail  # state-of-the-art
    return chained or (min(len(last), len(first)) > 2 and last not in _SOLID)  # cross-entropy, fine-tuning


def _fold(word: str) -> str:
    return word.replace("\u2010", "-").casefold()
