"""The painted signs of a formula -> atoms: what is painted in pieces is one, accents sit on letters, words are one."""

import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from statistics import median

from gravityocr_models.formulas import ACCENTS, COMMANDS
from gravityocr_models.latex import FUNCTIONS
from gravityocr_models.mathsigns import SPELLED
from gravityocr_models.signs import Box, Sign, hull_of


class Kind(Enum):
    """What an atom is: a sign, a word, a delimiter, an operator that takes limits, or something built of others."""

    SIGN = auto()
    WORD = auto()
    FENCE = auto()
    OPERATOR = auto()
    BUILT = auto()


@dataclass(frozen=True, eq=False)
class Atom:
    """Something that a line of a formula holds, with its LaTeX. text: the sign or word that it is, else "".

    box: of its ink. baseline: its height. Both in points.
    """

    latex: str
    box: Box
    baseline: float
    size: float
    kind: Kind
    text: str = ""

    @property
    def x(self) -> float:
        """The middle of its ink."""
        return self.box.x

    @property
    def y(self) -> float:
        return self.box.y

    @property
    def is_tall(self) -> bool:
        """Whether it is a delimiter that has grown."""
        return self.kind is Kind.FENCE and self.box.height > 1.3 * self.size

    @property
    def hangs(self) -> bool:
        """Whether its own baseline says nothing: it is centred on the axis of its line."""
        return self.is_tall or self.text in _OPERATORS


AXIS = 0.25  # of the size: what fraction bars and large signs are centred on, over the baseline
WORD_GAP = 0.19  # of the size: less white is between letters of a word
_FULL = 0.85  # of the largest size: what is smaller is a script
_FENCES = frozenset("()[]{}|‖⟨⟩⌊⌋⌈⌉")
_OPERATORS = frozenset("∑∏∐⋃⋂⨁⨂⨀⋀⋁⨆∫∮")
_LIMITED = frozenset("lim limsup liminf max min sup inf det gcd Pr".split())
_SPACING_ACCENTS = dict(
    zip(
        "^ˆ~˜¯˙¨ˇ˘´`˚\u1dcd\u0360",
        r"\hat \hat \tilde \tilde \bar \dot \ddot \check \breve \acute \grave \mathring \widehat \widetilde".split(),
        strict=True,
    )
)
_STROKE = "\u0338"
_ACCENT_OF = {sign: command for command, sign in ACCENTS.items()} | _SPACING_ACCENTS
_BARE = frozenset(_ACCENT_OF) | {"′", ",", "."}  # what no accent stands on
_WIDE = {r"\hat": r"\widehat", r"\tilde": r"\widetilde", r"\bar": r"\overline", r"\vec": r"\overrightarrow"}
_SPELLED = {sign: f"{command}{{}}" for sign, command in _ACCENT_OF.items()} | {_STROKE: "/"} | SPELLED
_DOTLESS = {"ı": r"\imath", "ȷ": r"\jmath"}
_EXTENSION = "⎪"  # of a brace, whichever
_IN_PIECES = _FENCES | {_EXTENSION, "√"}
_LONG = {
    "-→": r"\longrightarrow", "=⇒": r"\Longrightarrow", "←-": r"\longleftarrow", "⇐=": r"\Longleftarrow",
    "←→": r"\longleftrightarrow", "⇐⇒": r"\Longleftrightarrow", "↦→": r"\mapsto", "→↦": r"\mapsto",
}  # fmt: skip


def atoms_of(signs: Sequence[Sign]) -> list[Atom]:
    """The atoms of a formula."""
    atoms = [_atom(sign) for sign in signs]
    for joined in (_without_pieces, _struck, _with_long_arrows, _stacked, _with_accents, _with_words):
        atoms = joined(atoms)
    return atoms


def built(latex: str, parts: Iterable[Atom], baseline: float, size: float, kind: Kind, *boxes: Box) -> Atom:
    """What parts, and perhaps rules, make."""
    return Atom(latex, hull_of([*(part.box for part in parts), *boxes]), baseline, size, kind)


def size_of(atoms: Iterable[Atom]) -> float:
    """The size of the largest."""
    return max(atom.size for atom in atoms)


def full_sized(atoms: Sequence[Atom], size: float) -> list[Atom]:
    """Those that are no scripts beside signs of this size."""
    return [atom for atom in atoms if atom.size > _FULL * size]


def baseline_of(atoms: Sequence[Atom]) -> float:
    """Of most of the largest signs."""
    return median(atom.baseline for atom in full_sized(atoms, size_of(atoms)))


def line_of(atom: Atom) -> float:
    """The baseline of the line that an atom is part of."""
    return atom.y + AXIS * atom.size if atom.hangs else atom.baseline


def _atom(sign: Sign) -> Atom:
    latex = _SPELLED.get(sign.text, sign.text)
    kind = Kind.SIGN
    if sign.text in _FENCES:
        kind = Kind.FENCE
    elif sign.text in _OPERATORS:
        kind = Kind.OPERATOR
    elif sign.alphabet == r"\mathrm":
        kind = Kind.WORD
    elif sign.alphabet:
        latex = f"{sign.alphabet}{{{latex}}}"
    return Atom(latex, sign.box, sign.origin[1], sign.size, kind, sign.text)


def _without_pieces(atoms: Sequence[Atom]) -> list[Atom]:
    """Tall delimiters that are painted in pieces, one over the other, as one."""
    out: list[Atom] = []
    for atom in sorted((atom for atom in atoms if atom.text in _IN_PIECES), key=lambda atom: atom.box.y0):
        at = next((at for at, other in enumerate(out) if _are_one(other, atom)), None)
        if at is None:
            out.append(atom)
        else:
            known = atom if out[at].text == _EXTENSION else out[at]
            out[at] = replace(known, box=hull_of([out[at].box, atom.box]))
    return [*(atom for atom in atoms if atom.text not in _IN_PIECES), *out]


def _are_one(upper: Atom, lower: Atom) -> bool:
    alike = upper.text == lower.text or _EXTENSION in (upper.text, lower.text)
    touching = -0.5 * lower.size < lower.box.y0 - upper.box.y1 < 0.08 * lower.size and lower.box.y1 > upper.box.y1
    return alike and touching and min(upper.box.x1, lower.box.x1) > max(upper.box.x0, lower.box.x0)


def _struck(atoms: Sequence[Atom]) -> list[Atom]:
    """Strokes one with what they strike out."""

    def is_struck(stroke: Atom, other: Atom) -> bool:
        near = 0.2 * other.size
        return _on_one_line(stroke, other) and other.box.x0 - near < stroke.x < other.box.x1 + near

    def struck(stroke: Atom, other: Atom) -> Atom:
        text = unicodedata.normalize("NFC", other.text + _STROKE)
        latex = COMMANDS.get(text) or (text if len(text) == 1 else rf"\not {other.latex}")
        return replace(other, latex=latex, text=text, kind=Kind.SIGN)

    def is_overlaid(slash: Atom, other: Atom) -> bool:
        composed = len(unicodedata.normalize("NFC", other.text + _STROKE)) == 1
        return composed and _on_one_line(slash, other) and other.box.x0 < slash.x < other.box.x1

    return _paired(_paired(atoms, _STROKE, is_struck, struck), "/", is_overlaid, struck)


def _stacked(atoms: Sequence[Atom]) -> list[Atom]:
    """A tilde over an equals sign, and dots over dots, as one."""

    def is_under(upper: Atom, lower: Atom) -> bool:
        across, down = abs(lower.x - upper.x) / upper.size, (lower.y - upper.y) / upper.size
        return lower.text == "=" and across < 0.1 and 0 < down < 0.5

    def congruent(upper: Atom, lower: Atom) -> Atom:
        return replace(lower, latex=r"\cong", text="≅", box=hull_of([upper.box, lower.box]))

    out = _paired(atoms, "∼", is_under, congruent)
    for dot in [atom for atom in out if atom.text == "."]:
        if dots := _falling(dot, [atom for atom in out if atom.text == "."]):
            upright = hull_of([each.box for each in dots]).width < 0.3 * dot.size
            whole = built(r"\vdots" if upright else r"\ddots", dots, dots[1].baseline, dot.size, Kind.SIGN)
            out = [*(atom for atom in out if atom not in dots), whole]
    return out


def _paired(
    atoms: Sequence[Atom], text: str, fits: Callable[[Atom, Atom], bool], joined: Callable[[Atom, Atom], Atom]
) -> list[Atom]:
    """The atoms; each with this text is joined to the nearest that fits, and stays where none does."""
    out = list(atoms)
    for mark in [atom for atom in atoms if atom.text == text]:
        fitting = [other for other in out if other is not mark and fits(mark, other)]
        if fitting and mark in out:  # and none has struck it out
            nearest = min(fitting, key=lambda other: abs(other.x - mark.x))
            out[out.index(nearest)] = joined(mark, nearest)
            out.remove(mark)
    return out


def _falling(dot: Atom, dots: Sequence[Atom]) -> list[Atom]:
    """Three full stops from this one on, each as far below the one before; else none."""
    found = [dot]
    while len(found) < 3:
        last = found[-1]
        below = [
            other for other in dots
            if 0.2 < (other.baseline - last.baseline) / dot.size < 0.6 and -0.05 < (other.x - last.x) / dot.size < 0.6
        ]  # fmt: skip
        if len(below) != 1:
            return []
        found += below
    return found


def _with_long_arrows(atoms: Sequence[Atom]) -> list[Atom]:
    """Arrows that are painted as shaft and head as one."""
    out: list[Atom] = []
    for atom in sorted(atoms, key=lambda atom: (round(atom.baseline), atom.box.x0)):
        before = out[-1] if out else None
        if before is None or not _on_one_line(before, atom) or atom.box.x0 - before.box.x1 > 0.02 * atom.size:
            out.append(atom)
        elif before.text + atom.text in _LONG:
            latex = _LONG[before.text + atom.text]
            out[-1] = replace(before, latex=latex, box=hull_of([before.box, atom.box]), text=atom.text)
        elif before.text == atom.text in ("-", "=") and atom.box.x0 < before.box.x1:  # more of the shaft
            out[-1] = replace(before, box=hull_of([before.box, atom.box]))
        elif atom.text not in ("-", "=") or before.text not in ("→", "⇒") or atom.x > before.box.x1:
            out.append(atom)  # all but a shaft that its head hides
    return out


def _with_accents(atoms: Sequence[Atom]) -> list[Atom]:
    """Accents one with what stands under them."""
    out = list(atoms)
    accents = [atom for atom in atoms if atom.text in _ACCENT_OF]
    for accent in sorted(accents, key=lambda atom: -atom.box.y1):  # one over the other, from the lowest
        under = [atom for atom in out if atom.text not in _BARE and _is_under(accent, atom)]
        if not under:
            continue
        top = min(under, key=lambda atom: atom.box.y0 - accent.box.y1 + abs(atom.x - accent.x))
        covered = [
            atom for atom in under
            if accent.box.x0 - 0.5 < atom.x < accent.box.x1 + 0.5 and abs(atom.baseline - top.baseline) < 0.2 * top.size
        ]  # fmt: skip
        covered = sorted(covered, key=lambda atom: atom.x) if len(covered) > 1 else [top]
        command = _ACCENT_OF[accent.text]
        if len(covered) > 1 or accent.box.width > 0.62 * accent.size:
            command = _WIDE.get(command, command)
        inner = "".join(_DOTLESS.get(atom.text, atom.latex) for atom in covered)
        whole = built(f"{command}{{{inner}}}", [accent, *covered], top.baseline, top.size, Kind.SIGN)
        out = [*(atom for atom in out if atom is not accent and atom not in covered), whole]
    return out


def _is_under(accent: Atom, atom: Atom) -> bool:
    size = accent.size
    down = -0.12 * size < atom.box.y0 - accent.box.y1 < 0.4 * size
    across = atom.box.x0 - 0.1 * size < accent.x < atom.box.x1 + 0.25 * size
    return down and (across or accent.box.x0 < atom.x < accent.box.x1)


def _with_words(atoms: Sequence[Atom]) -> list[Atom]:
    """Upright letters side by side as words; those that name functions as operators or signs."""
    letters = _side_by_side(atoms, WORD_GAP, lambda left, right: True)
    parts = {("lim", "sup"), ("lim", "inf")}  # with a thin blank between
    words = _side_by_side(letters, 0.35, lambda left, right: (left, right) in parts)
    return [_named(atom) if atom.kind is Kind.WORD else atom for atom in words]


def _side_by_side(atoms: Sequence[Atom], white: float, fits: Callable[[str, str], bool]) -> list[Atom]:
    """The atoms, words with less white than this between them joined where their texts fit."""
    out: list[Atom] = []
    for atom in sorted(atoms, key=lambda atom: (round(atom.baseline), atom.box.x0)):
        before = out[-1] if out else atom
        alike = before.kind is atom.kind is Kind.WORD and before.size == atom.size and _on_one_line(before, atom)
        near = -0.3 < (atom.box.x0 - before.box.x1) / atom.size < white
        if out and alike and near and fits(before.text, atom.text):
            out[-1] = replace(before, text=before.text + atom.text, box=hull_of([before.box, atom.box]))
        else:
            out.append(atom)
    return out


def _named(word: Atom) -> Atom:
    if word.text not in FUNCTIONS:
        return replace(word, latex=rf"\mathrm{{{word.text}}}")
    kind = Kind.OPERATOR if word.text in _LIMITED else Kind.SIGN
    return replace(word, latex=r"\bmod" if word.text == "mod" else f"\\{word.text}", kind=kind)


def _on_one_line(a: Atom, b: Atom) -> bool:
    return abs(a.baseline - b.baseline) < 0.1 * a.size
