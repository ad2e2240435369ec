"""What an answer says of each of its glyphs beside their names: see `glyphs.Tag`."""

import re

from gravityocr_models.formulas import SCRIPT
from gravityocr_models.glyphs import ALL_TAGS, Tag
from gravityocr_models.records import Task
from gravityocr_models.train.sample import Glyph, Sample

_ARGUMENTS = {
    r"\frac": (Tag.UPPER, Tag.LOWER), r"\binom": (Tag.UPPER, Tag.LOWER), r"\sqrt": (Tag.ROOTED,),
    r"\stackrel": (Tag.RAISED, Tag(0)), r"\underset": (Tag.SUNK, Tag(0)), "^": (Tag.RAISED,), "_": (Tag.SUNK,),
    r"\overline": (Tag.LINED,), r"\mathbf": (Tag.BOLD,), r"\boldsymbol": (Tag.BOLD,),
}  # fmt: skip
_STRUCTURE = re.compile(
    r"\\\\|\\[{}_]|(\\(?:frac|binom|sqrt|stackrel|underset|overline|mathbf|boldsymbol)(?![A-Za-z])|\^|_)"
)
_SIGN = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL)


def char_tags(sample: Sample) -> list[Tag]:
    """The tags of each character of the text, blanks behind left out."""
    text = sample.text
    tags = [Tag(0)] * len(text)
    dollars = unpainted_dollars(sample)
    if sample.task is Task.FORMULA:
        _mark(text, 0, len(text), Tag.MATH, tags)
    for start, end in zip(dollars[::2], dollars[1::2], strict=False):
        _mark(text, start + 1, end, Tag.MATH, tags)
    return tags


def glyph_at(sample: Sample) -> dict[int, Glyph | None]:
    """The glyph of each non-blank character, by place in the text; ValueError where their numbers differ."""
    inked = [number for number, char in enumerate(sample.text) if not char.isspace()]
    return dict(zip(inked, sample.glyphs, strict=True))


def unpainted_dollars(sample: Sample) -> list[int]:
    """Where formulas in a line begin and end."""
    return [number for number, glyph in glyph_at(sample).items() if sample.text[number] == "$" and glyph is None]


def tags_of(sample: Sample, token_px: int) -> dict[Glyph, tuple[Tag, Tag]]:
    """For each glyph its tags, and those of them that are known.

    A blank behind is not known where markup is in between, and within formulas, whose blanks are not painted. Nor is
    the weight of prose.
    """
    text, tags, glyphs, dollars = sample.text, char_tags(sample), glyph_at(sample), unpainted_dollars(sample)
    found: dict[Glyph, tuple[Tag, Tag]] = {}
    for number, glyph in glyphs.items():
        if glyph:
            after = number + 1 + (number + 1 in dollars)  # a dollar that closes or opens a formula is no markup here
            blank = not text[after : after + 1].strip()
            within = tags[number] and not (after == len(text) or after > number + 1)
            known = not within if sample.task is Task.TEXT else blank or glyphs.get(after) is not None
            right = Tag(Tag.RIGHT * (glyph[1] % token_px >= token_px / 2))
            unknown = Tag.BLANK * (not known) | Tag.BOLD * (Tag.MATH not in tags[number])
            found[glyph] = tags[number] | right | Tag.BLANK * blank, ALL_TAGS & ~unknown
    return found


def _mark(text: str, start: int, end: int, base: Tag, tags: list[Tag]) -> None:
    """Set the tags of text[start:end], which is LaTeX in nano's dialect."""
    tags[start:end] = [base] * (end - start)
    at = start
    while found := _STRUCTURE.search(text, at, end):
        at = found.end()
        for tag in _ARGUMENTS.get(found[1] or "", ()):
            if text[at : at + 1] == "[":
                at = text.find("]", at, end) + 1 or end
            close = _close(text, at, end)
            _mark(text, at, close, base | tag | Tag.INNER * bool(base & tag & SCRIPT), tags)
            at = close


def _close(text: str, at: int, end: int) -> int:
    """Where the argument that begins at `at` ends: behind its closing brace, or behind one sign."""
    depth = 0
    for sign in _SIGN.finditer(text, at, end):
        depth += (sign[0] == "{") - (sign[0] == "}")
        if depth <= 0:
            return sign.end()
    return end
