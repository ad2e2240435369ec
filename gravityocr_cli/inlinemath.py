"""Inline mathematics in running text: which dollars enclose LaTeX, and which are money."""

import re
import unicodedata
from collections.abc import Iterator

from gravityocr_models.latex import FUNCTIONS

_MATH = re.compile(r"(?<![\\$a-zA-Z0-9])(\$\$(?!\$)([^$]+)\$\$(?!\$)|\$(?![\s$])([^$]*[^\s$\\])\$(?![0-9$]))")
_DOLLARS = re.compile(r"\$[^$]+\$")
_BROKEN_OFF = re.compile(
    r"(?<![\\$])\$([^$]*(?:[=<>+\-−]|\\(?:in|leq(?:slant)?|geq(?:slant)?|sim|simeq|approx|equiv|propto|neq|ll|gg|to|"
    r"mapsto|rightarrow|subset|subseteq|times|cdot|pm|cup|cap|setminus)))\$$"
)
_RELATION = re.compile(r"[=<>]|\\(?:leq|geq|neq|approx|equiv|sim|in|subset\w*|rightarrow|propto|ll|gg)(?![a-z])")
_COMMAND = re.compile(r"\\(?:[a-zA-Z]+|[^a-zA-Z\s])")
_GROUP = re.compile(r"\{[^{}]*\}")


def maths_in(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each piece of inline mathematics, dollars included."""
    at = 0
    while match := _MATH.search(text, at):
        if is_math(match[2] or match[3]):
            yield match.span()
            at = match.end()
        else:
            at = match.start() + 1  # its second dollar may be another's first


def is_math(content: str) -> bool:
    """Whether what stands between dollars is LaTeX and not a price list.

    With commands and groups taken out, mathematics has no words left: a run of letters longer than a function's name
    says that the dollars are money or a shell's. Without any sign of LaTeX only single letters and numbers pass.
    """
    if "`" in content:
        return False
    commands = re.search(r"\\[a-zA-Z]", content) is not None
    bare = _COMMAND.sub(" ", content)
    while (shorter := _GROUP.sub(" ", bare)) != bare:
        bare = shorter
    if "{" in bare or "}" in bare:
        return False  # of a program
    longest = max((len(run) for run in re.findall(r"[^\W\d_]+", bare)), default=0)
    if commands or re.search(r"[_^]\{", content):
        return longest <= 3
    if re.search(r"[_^{]", content):
        return longest <= 2
    return longest <= 1 and re.match(r"[\w(\[|+\-−.<>=≤≥±~]", content) is not None


def is_broken_formula(left: str, right: str) -> bool:
    """Whether two lines end and begin with maths that is one formula, broken behind a relation or an operator."""
    maths = _BROKEN_OFF.search(left)
    return maths is not None and is_math(maths[1]) and re.match(r"\$[^$\s]", right) is not None


def is_formula(text: str) -> bool:
    """Whether a painted text is nothing but a formula: a relation or a large sign, letters, and no word of a language.

    Its maths may be LaTeX between dollars already.
    """
    bare = _DOLLARS.sub("", text)
    if bare != text:
        return not re.search(r"\w", bare) and _RELATION.search(text) is not None
    words = re.findall(r"[^\W\d_]+", text)
    said = all(len(word) <= 2 or word in FUNCTIONS for word in words)
    signs = any(sign in "=<>" or (unicodedata.category(sign) == "Sm" and sign not in "+±×−") for sign in text)
    return said and signs and bool(words) and len(text) < 200 and not re.search(r"[;{}\\#$&@_\"]", text)
