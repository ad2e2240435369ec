"""LaTeX that KaTeX and MathJax can set.

A renderer that meets one fault shows nothing of the formula, or its source in red. So what a model left open is closed,
what closes nothing goes, and commands that renderers lack get the nearest that they have. A formula without faults
comes out as it went in.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_DELIMITER = (
    r"(?:[()\[\]|/.<>]|\\(?:[{}|]|[lr](?:angle|brace|brack|floor|ceil|vert|Vert|group|moustache)(?![a-zA-Z])"
    r"|(?:vert|Vert|backslash|langle|rangle|[uU]p(?:down)?arrow|[dD]ownarrow)(?![a-zA-Z])))"
)
_TOKEN = re.compile(
    r"\\(?:begin|end)\s*\{[^{}]*\}"
    rf"|\\(?:left|right|middle)(?![a-zA-Z])(?:\s*{_DELIMITER})?"
    r"|\\(?:text(?:rm|bf|it|sf|tt|normal)?|mbox|hbox)\s*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
    r"|\\(?:p?matrix|cases|eqalign)\s*\{"
    r"|\\sqrt\s*\[[^\[\]]*\]|\\[a-zA-Z]+\*?|\\.|\s+|'+|.",
    re.DOTALL,
)
_DROPPED = re.compile(
    r"\\(?:label|vspace\*?|cline|cite|ref|eqref)\s*\{[^{}]*\}|\\vskip\s*[-\d.]+\s*[a-z]{2}"
    r"|\\(?:begin|end)\s*\{(?:equation|displaymath|math|subequations)\*?\}"
)
_SIZE = re.compile(r"(\\(?:hspace\*?|kern|mkern|hskip|raisebox|rule|\\\s*(?=\[)))\s*([{\[])([^{}\[\]]*)(?=[}\]])")
_IS_SIZE = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:pt|mm|cm|in|ex|em|mu|pc|bp|dd|cc|nd|nc|sp)")
_ARRAY = re.compile(r"(\\begin\{d?array\})(?:\s*\{((?:[^{}]|\{[^{}]*\})*)\})?")
_BLANK_END = re.compile(r"(?<!\\)(?:\\ |\s)+$")
_TAG = re.compile(r"\s*\\tag\*?\s*\{([^{}]*)\}")
_RESPELLED = {
    r"\cr": r"\\", r"\newline": r"\\", r"\sp": "^", r"\sb": "_", r"\slash": "/", r"\*": "", r"\hfill": r"\quad",
    r"\hfil": r"\quad", r"\eqno": r"\quad", r"\leqno": r"\quad", r"\boldmath": "", r"\unboldmath": "", r"\mit": "",
    r"\sl": "", r"\protect": "", r"\ensuremath": "", r"\noindent": "", r"\smallskip": "", r"\medskip": "",
    r"\bigskip": "", r"\l": r"\text{ł}", r"\L": r"\text{Ł}", r"\o": r"\text{ø}", r"\O": r"\text{Ø}", r"\j": r"\jmath",
    r"\i": r"\imath", r"\mbox": r"\text", r"\left": r"\left.", r"\right": r"\right.", r"\middle": "|", r"\begin": "",
    r"\end": "", r"\tag": "", r"\label": "", "\\": "",
    "#": r"\#", "%": r"\%", "$": "",
}  # fmt: skip
_INNER = {
    "align": "aligned", "eqnarray": "aligned", "flalign": "aligned", "alignat": "alignedat", "gather": "gathered",
    "multline": "gathered", "tabular": "array",
}  # fmt: skip
_ENVIRONMENTS = frozenset(
    "matrix pmatrix bmatrix Bmatrix vmatrix Vmatrix smallmatrix subarray array darray cases dcases rcases drcases "
    "aligned alignedat gathered split CD".split()
)
_ONE = (
    "sqrt hat bar vec tilde dot ddot acute grave check breve widehat widetilde overline underline overbrace underbrace "
    "overrightarrow overleftarrow mathbf mathrm mathcal mathbb mathsf mathit mathtt mathfrak mathscr boldsymbol bm "
    "operatorname phantom mathop mathrel mathbin"
)
_ARGUMENTS = {rf"\{name}": 1 for name in _ONE.split()} | {
    rf"\{name}": 2 for name in "frac dfrac tfrac cfrac binom stackrel overset underset".split()
}


@dataclass
class _Level:
    """Something open. until: the token that closes it, as far as it tells; "" for a group that was added around a
    command which is an argument, and which ends with that command's own. close: what is written to close it.

    scripts: those of the last atom. wanted: arguments that the last command or script still lacks.
    """

    until: str = ""
    close: str = ""
    scripts: str = ""
    wanted: int = 0

    @property
    def has_columns(self) -> bool:
        return "\\end" in self.close


def settable(latex: str) -> str:
    """The formula, without delimiters, as a renderer can set it; its numbers, if any, as one at its end."""
    latex = _DROPPED.sub("", latex)
    tags = _TAG.findall(latex)
    latex = _SIZE.sub(_size, _TAG.sub("", latex))
    latex = "".join(_balanced([_respelled(token) for token in _TOKEN.findall(latex)]))
    latex = _BLANK_END.sub("", _ARRAY.sub(_array, latex)).lstrip()
    return f"{latex} \\tag{{{', '.join(tags)}}}" if tags and latex else latex


def _size(match: re.Match[str]) -> str:
    """A length with the blanks gone that tokenised LaTeX has; nothing where it is no length, but brackets that begin a
    line stay."""
    size = "".join(match[3].split())
    if _IS_SIZE.fullmatch(size):
        return f"{match[1]}{match[2]}{size}"
    return f"{match[1]}{{}}[{match[3]}" if match[2] == "[" else f"{match[1]}{{0em"


def _array(match: re.Match[str]) -> str:
    """The beginning of an array with a column specification that renderers know."""
    known = "".join(re.findall(r"[lcr|:]", re.sub(r"[@!><pm]\s*\{[^{}]*\}", "", match[2] or "")))
    return f"{match[1]}{{{known or 'c'}}}"


def _respelled(token: str) -> str:
    if match := re.match(r"\\(begin|end)\s*\{\s*([^{}*]*)\*?\s*\}", token):
        name = _INNER.get(match[2].strip(), match[2].strip())
        return f"\\{match[1]}{{{name if name in _ENVIRONMENTS else 'aligned'}}}"
    if match := re.match(r"\\(text\w*|mbox|hbox)\s*\{(.*)\}", token, re.DOTALL):
        content = match[2] if match[2].count("$") % 2 == 0 else match[2].replace("$", "")
        content = content.replace(r"\boldmath", "")
        content = content if "$" in content else re.sub(r"(?<!\\)([_&#%])", r"\\\1", content).replace("^", "")
        return f"\\{'text' if match[1] == 'mbox' else match[1]}{{{content}}}"
    return _RESPELLED.get(token, token)


def _balanced(tokens: Sequence[str]) -> list[str]:
    """The tokens with nothing left open, nothing closed twice, no argument missing and no two scripts in one place."""
    levels, out, loose = [_Level()], list[str](), False
    for token in tokens:
        level = levels[-1]
        if not token or token.isspace():
            out.append(token)
        elif opened := _opened(token):
            _count(level, token)
            levels.append(opened)
            out.append(opened.close.replace("\\end", "\\begin") if opened.has_columns else token)
        elif token == "}" or re.match(r"\\(?:end|right)(?![a-zA-Z])", token):
            out += _closed(levels, token)
        elif token == "&":
            loose = loose or len(levels) == 1
            out.append(token if level.has_columns or len(levels) == 1 else " ")
        elif token == r"\\":
            out += [*_missing(level), token]
        elif token in "^_" or token[0] == "'":
            out += [*_scripted(level, token[0]), token]
        else:
            bare = token.startswith("\\middle") and level.until != "\\right"
            if level.wanted and _arguments(token):
                _count(level, token := "{" + token)
                levels.append(level := _Level("", "}"))
            out.append(token[7:].strip() if bare else token)
            _count(level, token.removeprefix("{"))
        while len(levels) > 1 and not levels[-1].until and not levels[-1].wanted:
            out.append(levels.pop().close)
    while len(levels) > 1:
        out += [*_missing(levels[-1]), levels.pop().close]
    out += _missing(levels[0])
    return [r"\begin{aligned}", *out, r"\end{aligned}"] if loose else out


def _opened(token: str) -> _Level | None:
    """What the token opens."""
    if token == "{":
        return _Level("}", "}")
    if match := re.fullmatch(r"\\(matrix|pmatrix|cases|eqalign)\s*\{", token):
        name = "aligned" if match[1] == "eqalign" else match[1]
        return _Level("}", f"\\end{{{name}}}")
    if token.startswith("\\begin"):
        return _Level(end := token.replace("\\begin", "\\end"), end)
    return _Level("\\right", "\\right.") if re.match(r"\\left(?![a-zA-Z])", token) else None


def _closed(levels: list[_Level], token: str) -> Iterator[str]:
    """What is written where the token closes something; its levels go."""
    until = "\\right" if token.startswith("\\right") else token
    if all(level.until != until for level in levels):
        if until == "\\right":  # its delimiter is seen on the page
            yield token.removeprefix(until).strip(" .")
        return
    while True:
        level = levels.pop()
        yield from _missing(level)
        if level.until == until:
            yield level.close if token == until else token
            return
        yield level.close


def _missing(level: _Level) -> Iterator[str]:
    """Empty groups for the arguments that the level still lacks."""
    yield from ["{}"] * level.wanted
    level.wanted, level.scripts = 0, ""


def _scripted(level: _Level, mark: str) -> Iterator[str]:
    """What has to stand before a script: something for it to stand on, where its place is taken."""
    yield from ["{}"] * level.wanted
    taken = mark in level.scripts or (mark == "'" and "^" in level.scripts)
    if taken:
        yield "{}"
    level.scripts = mark if taken else level.scripts + mark
    level.wanted = 0 if mark == "'" else 1


def _count(level: _Level, token: str) -> None:
    """Takes the token for an argument that is wanted, or for the next atom."""
    if level.wanted:
        level.wanted -= 1
    else:
        level.scripts = ""
    level.wanted += _arguments(token)


def _arguments(token: str) -> int:
    """How many arguments the command needs."""
    return _ARGUMENTS.get(token.partition("[")[0].rstrip(), 0)
