"""Which fonts are a typewriter's: by what the file says of them, by their names, and by widths that are all one."""

import re
from collections import defaultdict
from functools import lru_cache
from typing import Any

_MONO = 8  # bit of a span's `flags`
_NAME = re.compile(
    r"typewriter|mono(?!type)|nimbusmon|courier|(?:cm|sf|ec|la)tt\d|(?:t1?|p)xb?tt|consol|menlo|monaco|inconsolata|"
    r"andale|letter ?gothic|cascadia|(?:source|fira) ?code|code ?pro",
    re.IGNORECASE,
)
_NARROW, _WIDE = frozenset("fijlrtI1.,;:"), frozenset("mwMWOQCDG@")
_ENOUGH = 8  # different letters
_SAME = 0.02  # of the size


def is_mono(span: dict[str, Any]) -> bool:
    """Whether a span of a "rawdict" is set in typewriter type."""
    return bool(span["flags"] & _MONO) or _is_mono_name(span["font"])


@lru_cache(4096)
def _is_mono_name(font: str) -> bool:
    return _NAME.search(font.rpartition("+")[2]) is not None  # without what tells one subset from another


def with_typewriters(raw: dict[str, Any]) -> dict[str, Any]:
    """The "rawdict" of a page; spans in fonts that nothing but their letters' widths tells are flagged as such."""
    spans = [span for block in raw["blocks"] for line in block.get("lines", ()) for span in line["spans"]]
    unknown = [span for span in spans if not is_mono(span)]
    widths = defaultdict[str, dict[str, float]](dict)
    for span in unknown:
        known = widths[span["font"]]
        for char in span["chars"]:
            if char["c"].isascii() and not char["c"].isspace():
                known.setdefault(char["c"], (char["bbox"][2] - char["bbox"][0]) / span["size"])
    fonts = {font for font, known in widths.items() if _are_of_one_width(known)}
    for span in unknown:
        if span["font"] in fonts:
            span["flags"] |= _MONO
    return raw


def _are_of_one_width(widths: dict[str, float]) -> bool:
    """widths: of each letter, by the font's size."""
    if len(widths) < _ENOUGH or not _NARROW.intersection(widths) or not _WIDE.intersection(widths):
        return False
    return max(widths.values()) - min(widths.values()) < _SAME < min(widths.values())
