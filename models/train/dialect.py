"""One spelling of a formula: what nano answers, whatever its author typed.

Authors write `{a\\over b}`, `\\frac ab` or `\\dfrac{a}{b}`; a model that had to guess which would never be sure.
`spelled` reads a formula of maths mode, macros expanded, and gives the pieces of its one spelling; anything that it
doesn't know raises, and the formula is left out. Spelling a spelled formula changes nothing.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from gravityocr_models.latex import FUNCTIONS, INFIX, SYMBOLS, SYNONYMS

_TOKEN = re.compile(r"\\(?:begin|end)\s*\{[A-Za-z*]+\}|\\operatorname\*|\\[A-Za-z]+|\\[^A-Za-z]|\S")
_COMMENT = re.compile(r"(?<!\\)%.*")
_DROPPED = set(
    r"\, \; \: \! \> \quad \qquad \enspace \thinspace ~ \limits \nolimits \displaystyle \textstyle \scriptstyle "
    r"\scriptscriptstyle \nonumber \notag \strut \mathstrut \null \ensuremath \protect \allowbreak \hfill \hfil "
    r"\mathopen \mathclose \mathrel \mathbin \mathord \mathinner \mathop \big \Big \bigg \Bigg \bigl \Bigl \biggl "
    r"\Biggl \bigr \Bigr \biggr \Biggr \bigm \Bigm \/".split()
) | {r"\ "}
_DROPPED_WITH_ARGUMENT = {
    r"\label", r"\tag", r"\hspace", r"\vspace", r"\phantom", r"\hphantom", r"\vphantom", r"\mskip", r"\index",
}  # fmt: skip
_SWITCHES = {r"\rm": r"\mathrm", r"\bf": r"\mathbf", r"\cal": r"\mathcal", r"\it": r"\mathit", r"\sf": r"\mathsf",
             r"\tt": r"\mathtt", r"\mit": r"\mathit", r"\bfseries": r"\mathbf"}  # fmt: skip
_SAME = {left: right for left, right in SYNONYMS.items() if right not in (r"\mathbf", r"\mathcal", r"\ast", "-")} | {
    r"\bm": r"\boldsymbol", r"\pmb": r"\boldsymbol", r"\textit": r"\mathit", r"\textbf": r"\mathbf",
    r"\Bbb": r"\mathbb", r"\frak": r"\mathfrak", r"\sp": "^", r"\sb": "_", "−": "-", r"\hslash": r"\hbar",
    r"\colon": ":", r"\overset": r"\stackrel", r"\widebar": r"\overline", r"\dag": r"\dagger",
    r"\ddag": r"\ddagger", r"\longleftrightarrow": r"\leftrightarrow",
} | dict.fromkeys(
    r"\text \textrm \textnormal \mbox \hbox \operatorname \operatorname*".split(), r"\mathrm"
)  # fmt: skip
_ACCENTS = set(r"\hat \bar \tilde \vec \dot \ddot \check \breve \acute \grave \mathring".split())
_ALPHABETS = set(r"\mathrm \mathbf \mathcal \mathit \mathsf \mathtt \mathbb \mathfrak \mathscr \boldsymbol".split())
_ONE_ARGUMENT = (
    _ACCENTS
    | _ALPHABETS
    | set(
        r"\sqrt \overline \underline \widehat \widetilde \overbrace \underbrace \overrightarrow \overleftarrow \pmod "
        r"\substack \boxed \xrightarrow \xleftarrow".split()
    )
)
_PAINTED_LATE = {r"\underline", r"\underbrace", r"\boxed", r"\xrightarrow", r"\xleftarrow", r"\substack"}
_TWO_ARGUMENTS = {r"\frac", r"\binom", r"\stackrel", r"\underset"}
_FENCES = {
    "matrix": None, "pmatrix": ("(", ")"), "bmatrix": ("[", "]"), "Bmatrix": (r"\{", r"\}"), "vmatrix": ("|", "|"),
    "Vmatrix": (r"\Vert", r"\Vert"), "cases": (r"\{", "."),
}  # fmt: skip
_AS_ALIGNED = dict.fromkeys("align align* eqnarray eqnarray* split alignat* multline multline*".split(), "aligned")
_TRANSPARENT = {"equation", "equation*", "displaymath", "math", "gather", "gather*"}
_DELIMITERS = set(
    r"( ) [ ] / | . < > \{ \} \langle \rangle \lfloor \rfloor \lceil \rceil \Vert \backslash \uparrow "
    r"\downarrow".split()
)
_PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-*/=<>()[]|!?.,:;")
_KNOWN = (
    SYMBOLS.keys()
    | {f"\\{name}" for name in FUNCTIONS}
    | set(
        r"\{ \} \% \$ \# \_ \S \bmod \lesssim \gtrsim \square \Box \triangleq \bigtriangleup \bigtriangledown \lhd "
        r"\rhd \trianglelefteq \diamond \Diamond \bigstar \blacksquare \asymp \doteq \bowtie \uplus \sqcup \sqcap "
        r"\sqsubseteq \succeq \preceq \amalg \dashv \top \bot \flat \sharp \natural \clubsuit \rightharpoonup "
        r"\leftharpoonup \rightleftharpoons \twoheadrightarrow \rightsquigarrow \nearrow \searrow \swarrow \nwarrow "
        r"\updownarrow \Uparrow \Downarrow \nsubseteq \subsetneq \nmid \wr \varnothing \complement \beth \eth \digamma "
        r"\varkappa \nexists \because \therefore \ltimes \rtimes \circledast \boxtimes \boxplus \smile \frown "
        r"\measuredangle \bigodot \biguplus \bigsqcup \injlim \projlim \varliminf \varlimsup".split()
    )
)
_WITH_LIMITS = set(
    r"\sum \prod \coprod \bigcup \bigcap \bigoplus \bigotimes \bigodot \bigwedge \bigvee \bigsqcup \biguplus "
    r"\lim \limsup \liminf \max \min \sup \inf \det \gcd \Pr".split()
)


class UnknownSpelling(ValueError):
    """The formula holds something that this dialect doesn't know."""


@dataclass(frozen=True)
class Piece:
    """A stretch of the spelling. inked: whether it is a sign of its own on the page, painted before what follows it, as
    `x`, `\\alpha` and `\\hat{x}` are; braces, scripts and `\\frac` are not."""

    text: str
    inked: bool = False


def spelled(formula: str) -> tuple[Piece, ...]:
    """The pieces of the formula's one spelling. Raises UnknownSpelling."""
    tokens = [_SAME.get(token, token) for token in _TOKEN.findall(_COMMENT.sub("", formula))]
    return tuple(_Reader(tokens).all())


def normal_latex(formula: str) -> str:
    """The formula's one spelling. Raises UnknownSpelling."""
    return written(spelled(formula))


def written(pieces: Iterable[Piece], mark: Callable[[int], str] | None = None) -> str:
    """LaTeX of the pieces, blanks only where a command would run into a letter.

    mark: LaTeX without any effect on the layout to stand before the n-th inked piece, such as a change of colour.
    """
    texts: list[str] = []
    number = 0
    for piece in pieces:
        if piece.inked and mark:
            # An upper limit is painted before its operator, whose mark must be in the operator's own box.
            inside = piece.text in _WITH_LIMITS
            texts.append(rf"\mathop{{{mark(number)}{piece.text}}}" if inside else mark(number) + piece.text)
        else:
            texts.append(piece.text)
        number += piece.inked
    return "".join(
        text + " " if after[:1].isalpha() and re.search(r"\\[A-Za-z]+\Z", text) else text
        for text, after in pairwise([*texts, ""])
    )


class _Reader:
    """Recursive descent over the tokens of a formula. `at` is the next token."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self.tokens, self.at = tokens, 0

    def all(self) -> list[Piece]:
        pieces = self.row(set())
        if self.at < len(self.tokens):
            raise UnknownSpelling(f"unexpected {self.tokens[self.at]}")
        if not any(piece.inked for piece in pieces):
            raise UnknownSpelling("nothing to see")
        return pieces

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        token = self.peek()
        if not token:
            raise UnknownSpelling("unfinished")
        self.at += 1
        return token

    def row(self, ends: set[str]) -> list[Piece]:
        """Everything up to one of the ends, which is left to the caller. `\\over` and font switches reach to there."""
        pieces: list[Piece] = []
        while (token := self.peek()) and token not in ends:
            if token in INFIX:
                self.take()
                return [Piece(INFIX[token]), *_braced(pieces), *_braced(self.row(ends))]
            if token in _SWITCHES:
                self.take()
                return pieces + _styled(_SWITCHES[token], self.row(ends))
            pieces += self.scripted()
        return pieces

    def scripted(self) -> list[Piece]:
        """A nucleus with its scripts, the lower one first; primes stay before the upper one's place."""
        nucleus = [] if self.peek() in ("_", "^", "'") else self.nucleus()
        scripts: dict[str, list[Piece]] = {}
        primes = 0
        while (token := self.peek()) in ("_", "^", "'"):
            self.take()
            if token == "'":
                primes += 1
                continue
            script = self.argument()
            marks = [piece.text for piece in script]
            if token == "^" and marks and set(marks) <= {r"\prime", "'"}:
                primes += len(marks)
            elif token in scripts:
                raise UnknownSpelling("double script")
            else:
                scripts[token] = script
        if not (scripts or primes):
            return nucleus
        if primes and "^" in scripts:
            scripts["^"] = [Piece(r"\prime", True)] * primes + scripts["^"]
            primes = 0
        base = nucleus if nucleus and _is_atom(nucleus) else _braced(nucleus)
        out = [*base[:-1], Piece(base[-1].text + "'" * primes, base[-1].inked)] if primes else base
        for token in ("_", "^"):
            if token in scripts:
                out = [*out, Piece(token), *_braced(scripts[token])]
        return out

    def nucleus(self) -> list[Piece]:
        token = self.take()
        if token == "{":
            inside = self.row({"}"})
            self.take()
            return inside
        if token in _DROPPED:
            return []
        if token in _DROPPED_WITH_ARGUMENT:
            self.skip_argument()
            return []
        if token in (r"\left", r"\right", r"\middle"):
            return self.fence(token)
        if token == r"\not":
            return [Piece(token + self.take(), True)]
        if token.startswith(r"\begin"):
            return self.environment(token[6:].strip()[1:-1])
        if token in _TWO_ARGUMENTS:
            return [Piece(token), *_braced(self.argument()), *_braced(self.argument())]
        if token in _ONE_ARGUMENT:
            return self.command(token)
        if token in _PLAIN or token in _KNOWN:
            return [Piece(token, True)]
        raise UnknownSpelling(f"unknown {token}")

    def fence(self, token: str) -> list[Piece]:
        delimiter = self.take()
        if delimiter not in _DELIMITERS:
            raise UnknownSpelling(f"{token}{delimiter}")
        if token != r"\left":
            return [_fence(token, delimiter)]
        inside = self.row({r"\right"})
        self.take()
        return [_fence(token, delimiter), *inside, *self.fence(r"\right")]

    def argument(self) -> list[Piece]:
        """What stands in braces, or one token."""
        while self.peek() in _DROPPED:
            self.take()
        return self.nucleus()

    def skip_argument(self) -> None:
        if self.peek() == "*":
            self.take()
        depth = 0
        while True:
            token = self.take()
            depth += (token == "{") - (token == "}")
            if depth <= 0:
                return

    def command(self, token: str) -> list[Piece]:
        if token == r"\sqrt" and self.peek() == "[":
            self.take()
            degree = self.row({"]"})
            self.take()
            return [Piece(token, True), Piece("["), *degree, Piece("]"), *_braced(self.argument())]
        argument = self.argument()
        if token in _ALPHABETS:
            return _styled(token, argument)
        if token in _ACCENTS and _is_symbol(argument):
            return [Piece(f"{token}{{{argument[0].text}}}", True)]
        return [Piece(token, token not in _PAINTED_LATE), *_braced(argument)]

    def environment(self, name: str) -> list[Piece]:
        """Matrices and cases are arrays between fences, every alignment is `aligned`; one row of it needs none."""
        name = _AS_ALIGNED.get(name, name)
        if name not in {"array", "aligned", "gathered", "smallmatrix"} | _FENCES.keys() | _TRANSPARENT:
            raise UnknownSpelling(f"environment {name}")
        columns = "".join(re.findall("[lcr]", "".join(self.column_spec()))) if name == "array" else ""
        rows = self.grid()
        if name in _TRANSPARENT or (name == "aligned" and len(rows) == 1):
            if len(rows) > 1:
                raise UnknownSpelling(f"rows in {name}")
            return [piece for cell in rows[0] for piece in cell]
        fences = _FENCES.get(name)
        if name in _FENCES:
            name, columns = "array", ("l" if name == "cases" else "c") * max(map(len, rows))
        out = [Piece(f"\\begin{{{name}}}" + (f"{{{columns}}}" if columns else ""))]
        for number, row in enumerate(rows):
            out += [Piece(r"\\")] if number else []
            if number and row[0] and row[0][0].text == "[":
                raise UnknownSpelling("a row that begins like the height of a row")
            for column, cell in enumerate(row):
                out += [Piece("&")] if column else []
                out += cell
        out.append(Piece(f"\\end{{{name}}}"))
        return [_fence(r"\left", fences[0]), *out, _fence(r"\right", fences[1])] if fences else out

    def column_spec(self) -> list[str]:
        start = self.at
        self.skip_argument()
        return list(self.tokens[start : self.at])

    def grid(self) -> list[list[list[Piece]]]:
        """Rows of cells up to the environment's end, which is taken; empty rows at the end go."""
        rows: list[list[list[Piece]]] = [[]]
        while True:
            while self.peek() == r"\hline":
                self.take()
            rows[-1].append(self.row({"&", r"\\", r"\cr"} | {t for t in self.tokens if t.startswith(r"\end")}))
            token = self.take()
            if token in (r"\\", r"\cr"):
                if self.peek() == "[":
                    while self.take() != "]":
                        pass
                rows.append([])
            elif token != "&":
                break
        while len(rows) > 1 and not any(rows[-1]):
            rows.pop()
        return rows


def _fence(side: str, delimiter: str) -> Piece:
    return Piece(side + delimiter, delimiter != ".")


def _braced(pieces: list[Piece]) -> list[Piece]:
    return [Piece("{"), *pieces, Piece("}")]


def _is_symbol(pieces: list[Piece]) -> bool:
    """Whether this is one painted sign."""
    return len(pieces) == 1 and pieces[0].inked and not pieces[0].text.startswith((r"\left", r"\right", r"\sqrt"))


def _is_atom(pieces: list[Piece]) -> bool:
    """Whether a script attaches to all of it without braces: one sign, or one command or pair of fences around it."""
    if len(pieces) <= 1:
        return True
    if pieces[0].text.startswith(r"\left"):
        depth = [piece.text.startswith(r"\left") - piece.text.startswith(r"\right") for piece in pieces]
        return all(sum(depth[: end + 1]) > 0 for end in range(len(depth) - 1))
    if pieces[0].text.startswith(r"\begin"):
        return False
    if pieces[0].text in _TWO_ARGUMENTS | _ONE_ARGUMENT and pieces[1].text in "{[":
        wanted = 2 if pieces[0].text in _TWO_ARGUMENTS else 1
        depth = [(piece.text == "{") - (piece.text == "}") for piece in pieces]
        ends = sum(1 for end in range(1, len(depth)) if depth[end] < 0 and sum(depth[: end + 1]) == 0)
        return ends == wanted and pieces[-1].text == "}"
    return False


def _styled(command: str, pieces: list[Piece]) -> list[Piece]:
    """Letters in another alphabet: one sign is one piece with its command. Upright names of functions are commands."""
    name = "".join(piece.text for piece in pieces)
    if command == r"\mathrm" and name in FUNCTIONS:
        return [Piece(f"\\{name}", True)]
    if not pieces:
        return []
    if _is_symbol(pieces) and "{" not in pieces[0].text:
        return [Piece(f"{command}{{{pieces[0].text}}}", True)]
    return [Piece(command), *_braced(pieces)]
