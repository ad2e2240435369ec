"""One line of a formula -> LaTeX: what is raised or lowered, which delimiters pair, what is text, where gaps are."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from gravityocr_models.formulas import with_dots
from gravityocr_models.mathatoms import AXIS, WORD_GAP, Atom, Kind, full_sized, line_of, size_of
from gravityocr_models.signs import Box

_OPENING, _CLOSING, _EITHER = "([{⟨⌊⌈", ")]}⟩⌋⌉", "|‖"
_GROWN = 1.15  # sizes: a delimiter that is higher than usual
_QUAD = 1.0  # of the size: white that is more than the space around a relation
_RAISED = 0.1  # of the size: how far over the baseline a script's own is at least
_OFF_LINE, _OFF_AXIS = 0.15, 0.08  # of the size: how far off is what has the line's size, or a fraction's bar, at most
_OFF_MIDDLE = 0.3  # of the size: how far off the line's axis the middle of a delimiter or an operator is at most
_APART = 0.06  # of the size: white between scripts of which one follows the other
_OF_SCRIPT = 0.45  # of the size: how far off the line a script of a script on the other side is at most
_TINY = 0.6  # of the size: a script's script
_TIGHT = (".", "⋅", ",", ";")  # what no blank goes before
_PRIMES = re.compile(r"(?:\\prime ?|')+")


@dataclass(frozen=True)
class _Base:
    """What stands on the line (nothing, where a line begins with a script), with its scripts."""

    atom: Atom | None
    raised: list[Atom] = field(default_factory=list)
    sunk: list[Atom] = field(default_factory=list)

    @property
    def all(self) -> list[Atom]:
        return [*([self.atom] if self.atom else []), *self.raised, *self.sunk]


def row_latex(atoms: Sequence[Atom], blanks: bool = False) -> str:
    """LaTeX of the atoms of one line. blanks: where white is seen around a relation; LaTeX itself needs none."""
    plain = [atom for atom in atoms if atom.kind in (Kind.SIGN, Kind.WORD)] or atoms
    operators = [atom for atom in atoms if atom.kind is Kind.OPERATOR]
    if operators and all(_is_limit(atom, operators) for atom in plain):
        plain = operators
    size = size_of(plain)
    level = _level(full_sized(plain, size))
    sides = {atom: _side(atom, level, size) for atom in atoms}
    if all(sides.values()):
        sides = dict.fromkeys(atoms, 0)
    bases: list[_Base] = []
    for atom in sorted(atoms, key=lambda atom: atom.box.x0):
        side = sides[atom]
        if not side or not bases:
            bases.append(_Base(None if side else atom))
        if side:
            _add_script(bases[-1], atom, side, size, abs(level - atom.baseline) < _OF_SCRIPT * size)
    return with_dots(_run_in(_parts(bases, size, blanks)))


def _is_limit(atom: Atom, operators: Sequence[Atom]) -> bool:
    """Whether an atom is smaller than the operators and stands on no line of theirs."""
    small = not full_sized([atom], size_of(operators))
    return small and all(abs(line_of(each) - atom.baseline) > _RAISED * each.size for each in operators)


def _level(atoms: Sequence[Atom]) -> float:
    """The baseline of most, or of the first where as many are scripts that cannot be smaller."""
    standing = [atom for atom in atoms if atom.text != "′"] or atoms
    counts = Counter(round(line_of(atom), 1) for atom in sorted(standing, key=lambda atom: atom.box.x0))
    return max(counts, key=lambda level: counts[level])


def _side(atom: Atom, level: float, size: float) -> int:
    """1: raised, -1: sunk, 0: on the line of this baseline and size."""
    lift = (level - atom.baseline) / size
    full = bool(full_sized([atom], size))
    if atom.hangs or (atom.kind is Kind.FENCE and full):
        lift = (level - AXIS * size - atom.y) / size
        near = min(atom.box.height / 2 / size, _OFF_MIDDLE)
    elif atom.kind is Kind.BUILT:
        lift -= AXIS * (1 - atom.size / size)  # of what it is centred on
        near = 0.5 if full else _OFF_AXIS
    elif full:  # in a script's script all are of one size, scripts too
        near = _OFF_LINE
    else:
        return 1 if lift > _RAISED else -1
    return 0 if abs(lift) < near else 1 if lift > 0 else -1


def _add_script(base: _Base, atom: Atom, side: int, size: float, near: bool) -> None:
    """What is as small as a script's script goes with the script that it is nearest to, its neighbours with it.

    near: whether it is so little off the line that it may be a script of one on the line's other side.
    """
    scripts = [*base.raised, *base.sunk]
    if near and atom.size < _TINY * size and atom.kind is not Kind.BUILT and scripts:
        of_row = [other for other in scripts if other.size == atom.size and abs(other.baseline - atom.baseline) < 0.1]
        larger = [other for other in scripts if other.size > _TINY * size]
        nearest = min(of_row or larger or scripts, key=lambda other: _distance(other.box, atom.box))
        side = 1 if nearest in base.raised else -1
    (base.raised if side > 0 else base.sunk).append(atom)


def _distance(a: Box, b: Box) -> float:
    return max(0.0, a.x0 - b.x1, b.x0 - a.x1) + max(0.0, a.y0 - b.y1, b.y0 - a.y1)


def _parts(bases: Sequence[_Base], size: float, blanks: bool) -> list[str]:
    fences = _paired([base.atom for base in bases])
    parts: list[str] = []
    words = ""  # of a text that goes on
    end = None
    for at, base in enumerate(bases):
        gap = (base.atom.box.x0 - end) / size if base.atom and end is not None else 0.0
        blank = " " * (gap > WORD_GAP)
        word = base.atom is not None and base.atom.kind is Kind.WORD and (len(base.atom.text) > 1 or bool(words))
        if words and (gap > _QUAD or not word):
            parts.append(_text(words + blank * (gap <= _QUAD and not _is_operator(base.atom))))
            words = ""
        if gap > _QUAD:
            parts.append(r"\quad")
        elif blanks and blank and base.atom and not _is_tight(bases[at - 1].atom, base.atom):
            parts.append(" ")
        if word and base.atom:
            words += blank * (gap <= _QUAD and at > 0 and not _is_operator(bases[at - 1].atom)) + base.atom.text
        else:
            parts.append(fences.get(at) or (base.atom.latex if base.atom else "{}"))
        if words and (base.raised or base.sunk):
            parts.append(_text(words))
            words = ""
        parts.append(_scripts(base))
        end = max(atom.box.x1 for atom in base.all) if end is None else max(end, *(a.box.x1 for a in base.all))
    return [*parts, _text(words)]


def _is_tight(before: Atom | None, atom: Atom) -> bool:
    """Whether white between two is not to be seen: before punctuation, and between a letter and its bracket."""
    apart = _is_operator(before) or (before is not None and before.text in (",", ";", atom.text))
    return atom.text in _TIGHT or (atom.kind is Kind.FENCE and not apart)


def _is_operator(atom: Atom | None) -> bool:
    """Whether TeX itself puts white around it."""
    return atom is not None and atom.kind is Kind.SIGN and bool(atom.text) and not re.match(r"[\w,.;!?]", atom.text)


def _text(words: str) -> str:
    return "" if not words else rf"\text{{{words}}}" if " " in words else rf"\mathrm{{{words}}}"


def _scripts(base: _Base) -> str:
    raised, sunk = (row_latex(scripts) if scripts else "" for scripts in (base.raised, base.sunk))
    primes = ""
    if _PRIMES.fullmatch(raised):
        primes, raised = "'" * (raised.count("'") + raised.count(r"\prime")), ""
    low, high = f"_{{{sunk}}}" if sunk else "", f"^{{{raised}}}" if raised else ""
    if low and high and not (base.atom and base.atom.kind is Kind.OPERATOR):  # its limits needn't stand in one column
        if _follow(base.sunk, base.raised):
            return f"{primes}{high}{{}}{low}"
        if _follow(base.raised, base.sunk):
            return f"{primes}{low}{{}}{high}"
    return primes + low + high


def _follow(scripts: Sequence[Atom], others: Sequence[Atom]) -> bool:
    """Whether scripts stand wholly behind others, as tensors' indices do."""
    white = min(atom.box.x0 for atom in scripts) - max(atom.box.x1 for atom in others)
    return white > _APART * size_of(scripts)


def _paired(atoms: Sequence[Atom | None]) -> dict[int, str]:
    """Grown delimiters that belong together, as \\left and \\right, by place."""
    out: dict[int, str] = {}
    opened: list[tuple[int, Atom]] = []
    for at, atom in enumerate(atoms):
        if atom is None or atom.kind is not Kind.FENCE or atom.box.height <= _GROWN * atom.size:
            continue
        if opened and (atom.text in _CLOSING or (atom.text in _EITHER and opened[-1][1].text == atom.text)):
            start, other = opened.pop()
            out |= {start: rf"\left{other.latex}", at: rf"\right{atom.latex}"}
        elif atom.text in _OPENING or atom.text in _EITHER:
            opened.append((at, atom))
    return out


def _run_in(parts: Sequence[str]) -> str:
    """The parts in a row, with a blank where a command would run into a letter."""
    out = ""
    for part in parts:
        out += " " * bool(part[:1].isalpha() and re.search(r"\\[A-Za-z]+\Z", out)) + part
    return out
