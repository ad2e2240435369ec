"""LaTeX maths as something to compare: tokens with the spelling differences taken out, or plain Unicode.

A formula can be written in many ways that print the same, and a page's text layer holds no LaTeX at all. Metrics and
rewards therefore compare `tokens` of two formulas, and `to_unicode` of inline maths with the letters of a page.
"""

import re
from collections.abc import Sequence

_GREEK = (
    "alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ "
    "mu μ nu ν xi ξ pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω "
    "Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω "
    "hbar ℏ ell ℓ Re ℜ Im ℑ aleph ℵ wp ℘ partial ∂ nabla ∇ infty ∞ emptyset ∅ imath ı jmath ȷ"
).split()
_SIGNS = (
    "times × cdot ⋅ div ÷ pm ± mp ∓ ast ∗ star ⋆ circ ∘ bullet ∙ oplus ⊕ ominus ⊖ otimes ⊗ odot ⊙ wedge ∧ vee ∨ "
    "cap ∩ cup ∪ setminus ∖ leq ≤ geq ≥ neq ≠ equiv ≡ approx ≈ sim ∼ simeq ≃ cong ≅ propto ∝ ll ≪ gg ≫ prec ≺ succ ≻ "
    "in ∈ ni ∋ notin ∉ subset ⊂ supset ⊃ subseteq ⊆ supseteq ⊇ perp ⊥ parallel ∥ vdash ⊢ models ⊨ "
    "rightarrow → leftarrow ← leftrightarrow ↔ Rightarrow ⇒ Leftarrow ⇐ Leftrightarrow ⇔ mapsto ↦ uparrow ↑ "
    "downarrow ↓ hookrightarrow ↪ forall ∀ exists ∃ neg ¬ sum ∑ prod ∏ coprod ∐ int ∫ iint ∬ iiint ∭ oint ∮ "
    "bigcup ⋃ bigcap ⋂ bigoplus ⨁ bigotimes ⨂ bigwedge ⋀ bigvee ⋁ ldots … cdots ⋯ vdots ⋮ ddots ⋱ prime ′ "
    "langle ⟨ rangle ⟩ lfloor ⌊ rfloor ⌋ lceil ⌈ rceil ⌉ surd √ angle ∠ triangle △ dagger † ddagger ‡ degree ° "
    "checkmark ✓ Vert ‖ backslash \\"
).split()
SYMBOLS = {f"\\{name}": sign for name, sign in zip((_GREEK + _SIGNS)[::2], (_GREEK + _SIGNS)[1::2], strict=True)}

# Two spellings of one thing: the left is read as the right.
SYNONYMS = {
    r"\le": r"\leq",
    r"\leqslant": r"\leq",
    r"\ge": r"\geq",
    r"\geqslant": r"\geq",
    r"\ne": r"\neq",
    r"\to": r"\rightarrow",
    r"\longrightarrow": r"\rightarrow",
    r"\gets": r"\leftarrow",
    r"\longleftarrow": r"\leftarrow",
    r"\iff": r"\Leftrightarrow",
    r"\Longleftrightarrow": r"\Leftrightarrow",
    r"\implies": r"\Rightarrow",
    r"\Longrightarrow": r"\Rightarrow",
    r"\longmapsto": r"\mapsto",
    r"\land": r"\wedge",
    r"\lor": r"\vee",
    r"\lnot": r"\neg",
    r"\owns": r"\ni",
    r"\dots": r"\ldots",
    r"\dotsc": r"\ldots",
    r"\dotso": r"\ldots",
    r"\dotsb": r"\cdots",
    r"\dotsm": r"\cdots",
    r"\lvert": "|",
    r"\rvert": "|",
    r"\vert": "|",
    r"\mid": "|",
    "∣": "|",
    r"\lVert": r"\Vert",
    r"\rVert": r"\Vert",
    r"\|": r"\Vert",
    r"\lbrace": r"\{",
    r"\rbrace": r"\}",
    r"\lbrack": "[",
    r"\rbrack": "]",
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
    r"\cfrac": r"\frac",
    r"\dbinom": r"\binom",
    r"\tbinom": r"\binom",
    r"\bf": r"\mathbf",
    r"\boldsymbol": r"\mathbf",
    r"\bm": r"\mathbf",
    r"\textbf": r"\mathbf",
    r"\cal": r"\mathcal",
    "*": r"\ast",
    "−": "-",
}
SYNONYMS |= {sign: command for command, sign in SYMBOLS.items()}

INFIX = {r"\over": r"\frac", r"\choose": r"\binom"}
# Said to the typesetter, not to the reader: spaces, sizes, upright text, style.
_SILENT = set(
    r"\, \; \: \! \> \  \quad \qquad \enspace \thinspace \thinmuskip ~ & \\ \left \right \middle \limits \nolimits "
    r"\displaystyle \textstyle \scriptstyle \scriptscriptstyle \nonumber \notag \mathrm \text \textrm \textnormal "
    r"\mathit \textit \it \rm \mbox \hbox \operatorname \operatorname* \mathop \mathrel \mathbin \mathord \mathopen "
    r"\mathclose \mathstrut \strut \big \Big \bigg \Bigg \bigl \Bigl \biggl \Biggl \bigr \Bigr \biggr \Biggr \bigm "
    r"\Bigm \hline \protect \ensuremath".split(" ")
) | {r"\ "}
_NULL_DELIMITER = re.compile(r"\\(?:left|right)\s*\.")
_WITH_ARGUMENT = re.compile(r"\\(?:label|tag\*?|hspace\*?|vspace\*?|phantom|hphantom|vphantom|kern|mkern)\s*\{[^{}]*\}")
_ALIGNMENT = re.compile(
    r"\\(?:begin|end)\s*\{(?:equation|align|aligned|alignat|alignedat|split|gather|gathered|multline|eqnarray|"
    r"displaymath|math|flalign)\*?\}(?:\{\d+\})?"
)
_FENCED = {"p": "()", "b": "[]", "B": (r"\{", r"\}"), "v": "||", "V": (r"\Vert ", r"\Vert ")}
_MATRIX = re.compile(
    r"\\(begin|end)\s*\{([pbBvV])matrix\*?\}|\\(begin|end)\s*\{(?:array|cases|dcases)\}(?:\s*\{[^{}]*\})?"
)
_PRIMES = re.compile("['′]+")
_TOKEN = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\operatorname\*|\\[A-Za-z]+|\\[^A-Za-z]|\S")


def tokens(formula: str) -> tuple[str, ...]:
    """The formula as LaTeX tokens without what doesn't print.

    Spaces, sizes of delimiters, upright-text commands, labels, alignment marks and braces go; synonyms, Unicode signs,
    matrices and TeX's own fractions get one spelling; of a sub- and a superscript the subscript comes first.
    """
    formula = _ALIGNMENT.sub(" ", _WITH_ARGUMENT.sub(" ", _NULL_DELIMITER.sub(" ", formula)))
    formula = _MATRIX.sub(_bare_matrix, formula)
    formula = _PRIMES.sub(lambda primes: "^{" + r"\prime " * len(primes[0]) + "}", formula)
    spelled: list[str] = []
    for token in _commands_first(_TOKEN.findall(formula)):
        if token not in _SILENT:
            spelled.append(SYNONYMS.get(token, re.sub(r"\s", "", token)))
    return tuple(token for token in _subscript_first(spelled) if token not in "{}")


def _bare_matrix(edge: re.Match[str]) -> str:
    """`\\begin{pmatrix}`, `\\begin{array}{cc}` and `\\begin{cases}` as what they print: delimiters around a matrix."""
    side = edge[1] or edge[3]
    matrix = rf"\{side}{{matrix}}"
    if edge[2]:
        first, last = _FENCED[edge[2]]
        return first + matrix if side == "begin" else matrix + last
    return (r"\{" if "cases" in edge[0] and side == "begin" else "") + matrix


def _commands_first(tokens: Sequence[str]) -> list[str]:
    """`a \\over b` as `\\frac a b`: the command goes to where its group begins."""
    out: list[str] = []
    starts = [0]
    for token in tokens:
        if token in INFIX:
            out.insert(starts[-1], INFIX[token])
            continue
        out.append(token)
        if token in ("{", r"\left") or token.startswith(r"\begin"):
            starts.append(len(out) + (token == r"\left"))  # whose delimiter follows
        elif (token in ("}", r"\right") or token.startswith(r"\end")) and len(starts) > 1:
            starts.pop()
        elif token in ("&", r"\\"):
            starts[-1] = len(out)
    return out


def _subscript_first(spelled: Sequence[str]) -> list[str]:
    """`^a_b` as `_b^a`, wherever the two stand side by side."""
    close = _closing(spelled)

    def ordered(at: int, end: int) -> list[str]:
        out: list[str] = []
        while at < end:
            middle = min(close[at + 1] + 1, end) if spelled[at] == "^" and at + 1 < end else end
            if middle + 1 < end and spelled[middle] == "_":
                after = min(close[middle + 1] + 1, end)
                out += [*ordered(middle, after), "^", *ordered(at + 1, middle)]
                at = after
            else:
                out.append(spelled[at])
                at += 1
        return out

    return ordered(0, len(spelled))


def _closing(spelled: Sequence[str]) -> list[int]:
    """For each place where the argument that begins there ends: itself, or its closing brace (the end, if none)."""
    close = list(range(len(spelled)))
    opened: list[int] = []
    for at, token in enumerate(spelled):
        if token == "{":
            opened.append(at)
        elif token == "}" and opened:
            close[opened.pop()] = at
    for at in opened:
        close[at] = len(spelled)
    return close


FUNCTIONS = (
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh coth log ln lg exp lim limsup liminf sup inf max min "
    "det dim ker deg gcd arg hom Pr mod"
).split()
_PLAIN = {f"\\{name}": name for name in FUNCTIONS} | {
    r"\bmod": "mod",
    r"\{": "{",
    r"\}": "}",
    r"\%": "%",
    r"\$": "$",
    r"\&": "&",
    r"\#": "#",
    r"\_": "_",
    r"\Vert": "‖",
    r"\quad": " ",
    r"\qquad": " ",
    r"\ ": " ",
    "~": " ",
    r"\\": " ",
    r"\sqrt": "√",
    "^": "",
    "_": "",
    "{": "",
    "}": "",
    "&": "",
}
_FRACTION = re.compile(r"\\[dtc]?frac\s*(?:\{([^{}]*)\}|(\w))\s*(?:\{([^{}]*)\}|(\w))")
_UNICODE_TOKEN = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}|\\[A-Za-z]+|\\[^A-Za-z]|\s+|.", re.DOTALL)


def to_unicode(formula: str) -> str:
    """The formula as a reader would type it without LaTeX: `x_i^2 \\le \\frac{a}{b}` as `xi2 ≤ a/b`."""
    formula = _WITH_ARGUMENT.sub("", _NULL_DELIMITER.sub("", formula))
    while (flat := _FRACTION.sub(lambda m: f"{m[1] or m[2] or ''}/{m[3] or m[4] or ''}", formula)) != formula:
        formula = flat
    out: list[str] = []
    letter_command = False  # TeX takes the blanks after a command for its end; after a sign they may stay
    for token in _UNICODE_TOKEN.findall(formula):
        if token.isspace() and letter_command:
            continue
        word = token[0] == "\\" and token[1:].isalpha()
        known = _PLAIN.get(token)
        if known is None:
            name = SYNONYMS.get(token, token) if word or token == r"\|" else token
            known = SYMBOLS.get(name, "" if name[0] == "\\" else name)
        out.append(known)
        letter_command = word and token not in _PLAIN and (known == "" or known.isalpha())
    return "".join(out)
