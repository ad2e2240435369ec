"""The signs and rules that a formula is painted with -> its LaTeX.

A PDF says of each sign what it is and exactly where it stands, which is more than any model sees. Structure follows
from places, as in the baseline trees of Zanibbi et al. (2002): rules part fractions and cover roots, from the narrowest
out; what stands over and under a large operator are its limits; rows between tall delimiters are a matrix; what is
small and off the baseline is a script (`mathrows.py`).
"""

import re
from collections.abc import Iterator, Sequence
from statistics import median

from gravityocr_models.mathatoms import (
    AXIS,
    Atom,
    Kind,
    atoms_of,
    baseline_of,
    built,
    full_sized,
    line_of,
    size_of,
)
from gravityocr_models.mathrows import row_latex
from gravityocr_models.signs import UNSOUND, Box, Sign, hull_of

MOST_SIGNS, MOST_BARS = 800, 200
# All in sizes of the signs that they are about.
_BAR_GAP, _PART_GAP = 0.65, 0.3  # most white between a bar and what it parts, and within that
_LINE_GAP = 0.3  # most white between an overline or underline and what it is drawn to
_LIMIT_GAP, _LIMIT_OFF = 0.8, 0.25  # most white between an operator and its limit, and how far off its middle that is
_SLANTED, _SLANT = "∫∮", 0.15  # operators whose limits follow their slant, and how much further that takes them
_LIMIT_WHITE = 0.3, 0.16  # that parts a limit from the next operator's, where that stands apart, and where it is close
_TALL, _GROWN = 1.6, 1.1  # least height of a matrix's delimiters, and of one that is set small
_COLUMN_GAP = 0.75  # least white between columns
_LINE = 0.95  # least distance of baselines
_NUMBER_GAP, _STOP_GAP = 1.2, 0.4  # least white before an equation's number, and behind what ends the equation

_PARTNERS = dict(zip("([{⟨⌊⌈|‖", ")]}⟩⌋⌉|‖", strict=True))
_MATRICES = {"(": "pmatrix", "[": "bmatrix", "{": "Bmatrix", "|": "vmatrix", "‖": "Vmatrix"}
_ARROWS = {"→": r"\xrightarrow", "←": r"\xleftarrow"}
_NUMBER = re.compile(r"\(((?:[A-Za-z]{1,2}\.?)?\d{1,3}(?:[.-]\d{1,3})*[a-z]?'?)\)")


def latex_of(signs: Sequence[Sign], bars: Sequence[Box]) -> str:
    """The displayed formula; "" where a sign is unknown, there is none, or there are more than a formula has."""
    if not _is_readable(signs, bars):
        return ""
    atoms, number = _numbered(atoms_of(signs))
    try:
        return _block(_with_bars(atoms, bars)) + (rf"\tag{{{number}}}" if number else "")
    except RecursionError:  # scripts of scripts without end are no formula
        return ""


def inline_latex(signs: Sequence[Sign], bars: Sequence[Box]) -> str:
    """The formula within a line of text; "" where `latex_of` gives nothing, or it has more than one line."""
    if not _is_readable(signs, bars):
        return ""
    atoms = _with_matrices(_with_limits(_with_bars(atoms_of(signs), bars)))
    return row_latex(atoms, blanks=True).strip() if len(_lines(atoms)) == 1 else ""


def _is_readable(signs: Sequence[Sign], bars: Sequence[Box]) -> bool:
    known = all(UNSOUND not in sign.text for sign in signs)
    return known and 0 < len(signs) <= MOST_SIGNS and len(bars) <= MOST_BARS


def _numbered(atoms: Sequence[Atom]) -> tuple[list[Atom], str]:
    """The atoms without the equation's number, and the number, or "": it stands behind all, or ends one of the rows."""
    ends = max((atom.box.x1 for atom in atoms), default=0.0)
    last = [atom for atom in atoms if atom.text == ")" and atom.box.x1 > ends - 1]
    found = [(row, number) for atom in last for row, number in [_number_of_row(atom, atoms)] if number]
    if len(found) != 1:  # two equations of one display have a number each
        return list(atoms), ""
    row, number = found[0]
    return [atom for atom in atoms if atom not in row], number


def _number_of_row(end: Atom, atoms: Sequence[Atom]) -> tuple[list[Atom], str]:
    """What makes the number that ends a row, behind white, and the number; else nothing."""
    row = sorted((a for a in atoms if abs(a.baseline - end.baseline) < 0.1 * end.size), key=lambda atom: atom.box.x0)
    before = max((a.box.x1 for a in atoms if a.box.y0 < end.baseline < a.box.y1 and a not in row), default=-1e9)
    for at in range(len(row) - 1, -1, -1):
        left = max([before, *(atom.box.x1 for atom in row[:at])])
        behind_stop = at > 0 and row[at - 1].text in (",", ".", ";")
        if row[at].box.x0 - left > (_STOP_GAP if behind_stop else _NUMBER_GAP) * end.size:
            number = _NUMBER.fullmatch("".join(atom.text for atom in row[at:]))
            return (row[at:], number[1]) if number else ([], "")
    return [], ""


def _with_bars(atoms: Sequence[Atom], bars: Sequence[Box]) -> list[Atom]:
    """The atoms; those that a rule parts, covers or underlines put together, from the narrowest rule to the widest."""
    out, left = list(atoms), sorted(bars, key=lambda bar: bar.width)
    while left:
        bar = left.pop(0)
        parts, whole = _root(bar, out) or _parted(bar, out, left) or ([], None)
        if whole:
            out = [*(atom for atom in out if atom not in parts), whole]
    return out


def _root(bar: Box, atoms: Sequence[Atom]) -> tuple[list[Atom], Atom] | None:
    """The radical that a rule belongs to, with what it stands over."""
    for radical in atoms:
        near = 0.15 * radical.size
        if radical.text == "√" and abs(radical.box.x1 - bar.x0) < near and abs(radical.box.y0 - bar.y0) < near:
            break
    else:
        return None
    under = [
        atom for atom in atoms
        if atom is not radical and bar.x0 - 0.5 <= atom.x <= bar.x1 + 0.5
        and bar.y0 - 0.5 < atom.y < radical.box.y1 + 0.1 * atom.size
    ]  # fmt: skip
    degree = [
        atom for atom in atoms
        if atom.size < 0.75 * radical.size and radical.box.x0 < atom.x < bar.x0 and atom not in under
        and -0.3 * radical.size < atom.box.y0 - radical.box.y0 and atom.box.y1 < radical.box.y1 - 0.3 * radical.size
    ]  # fmt: skip
    latex = r"\sqrt" + (f"[{_block(degree)}]" if degree else "") + f"{{{_block(under)}}}"
    parts = [radical, *degree, *under]
    baseline, size = (baseline_of(under), size_of(under)) if under else (radical.baseline, radical.size)
    kind = Kind.BUILT if all(atom.kind is Kind.BUILT for atom in under) else Kind.SIGN
    return parts, built(latex, parts, baseline, min(size, radical.size), kind, bar)  # a radical itself may be larger


def _parted(bar: Box, atoms: Sequence[Atom], others: Sequence[Box]) -> tuple[list[Atom], Atom] | None:
    """What a rule parts, or else lies over or under."""
    above, below = (_chain(bar, atoms, others, side) for side in (-1, 1))
    if above and below and _is_centred(bar, above, below):
        size = max(size_of(above), size_of(below))
        latex = rf"\frac{{{_block(above)}}}{{{_block(below)}}}"
        parts = [*above, *below]
        return parts, built(latex, parts, bar.y0 + AXIS * size, size, Kind.BUILT, bar)
    for parts, command, white in (
        (below, r"\overline", min((atom.box.y0 for atom in below), default=0.0) - bar.y1),
        (above, r"\underline", bar.y0 - max((atom.box.y1 for atom in above), default=0.0)),
    ):
        if parts and white < _LINE_GAP * size_of(parts):
            latex = f"{command}{{{_block(parts)}}}"
            return parts, built(latex, parts, baseline_of(parts), size_of(parts), Kind.SIGN, bar)
    return None


def _chain(bar: Box, atoms: Sequence[Atom], others: Sequence[Box], side: int) -> list[Atom]:
    """What stands over (-1) or under (1) a rule, up to the next white, the next row or the next rule."""
    stops = [
        other.y0 for other in others
        if min(other.x1, bar.x1) > max(other.x0, bar.x0) and side * (other.y0 - bar.y0) > 0.5
    ]  # fmt: skip
    span = [
        atom for atom in atoms
        if bar.x0 - 0.3 <= atom.x <= bar.x1 + 0.3 and side * (atom.y - bar.y0) > 0
        and not any(side * (atom.y - stop) > 0 for stop in stops)
    ]  # fmt: skip
    edge, chain = bar.y0, list[Atom]()
    for atom in sorted(span, key=lambda atom: atom.box.y0 if side > 0 else -atom.box.y1):
        white = side * ((atom.box.y0 if side > 0 else atom.box.y1) - edge)
        if white > (_PART_GAP if chain else _BAR_GAP) * atom.size or (chain and _is_other_row(atom, chain)):
            break
        chain.append(atom)
        edge = max(edge, atom.box.y1) if side > 0 else min(edge, atom.box.y0)
    return chain


def _is_other_row(atom: Atom, chain: Sequence[Atom]) -> bool:
    """Whether an atom stands on another baseline than the largest of those that it follows, and is no script."""
    main = max(chain, key=lambda other: other.size)
    simple = {atom.kind, main.kind} <= {Kind.SIGN, Kind.WORD}
    off = abs(atom.baseline - main.baseline) > 0.62 * max(main.size, atom.size)
    return simple and off and bool(full_sized([atom], main.size))


def _is_centred(bar: Box, above: Sequence[Atom], below: Sequence[Atom]) -> bool:
    """Whether what stands over a rule is a numerator, and not of the line above what an overline covers."""
    box = hull_of(atom.box for atom in above)
    off = abs(box.x0 + box.x1 - bar.x0 - bar.x1) / 2
    near = min(atom.box.y0 for atom in below) - bar.y1 < 0.2 * size_of(below)
    return not near or off < 0.25 * size_of(above)


def _block(atoms: Sequence[Atom]) -> str:
    """LaTeX of atoms that rules have no more part in."""
    if not atoms:
        return ""
    atoms = _with_matrices(_with_limits(atoms))
    lines = [row_latex(line) for line in _lines(atoms)]
    return lines[0] if len(lines) == 1 else r"\begin{aligned}" + r"\\".join(lines) + r"\end{aligned}"


def _with_limits(atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms; large operators and long arrows one with what stands over and under them."""
    out = list(atoms)
    for operator in [atom for atom in atoms if atom.kind is Kind.OPERATOR or atom.text in _ARROWS]:
        below, above = (_limit(operator, out, side) for side in (1, -1))
        if not (below or above):
            continue
        if operator.text in _ARROWS:
            latex = _ARROWS[operator.text] + (f"[{_block(below)}]" if below else "") + f"{{{_block(above)}}}"
        else:
            limits = (("_", below), ("^", above))
            latex = operator.latex + "".join(f"{mark}{{{_block(limit)}}}" for mark, limit in limits if limit)
        parts = [operator, *below, *above]
        whole = built(latex, parts, line_of(operator), operator.size, Kind.BUILT)
        out = [*(atom for atom in out if atom not in parts), whole]
    return out


def _limit(operator: Atom, atoms: Sequence[Atom], side: int) -> list[Atom]:
    """What is set under (1) or over (-1) an operator, in its middle."""
    box, size = operator.box, operator.size
    band = [
        atom for atom in atoms
        if atom is not operator and not full_sized([atom], size)
        and -0.12 * size < (_top(atom) - box.y1 if side > 0 else box.y0 - atom.box.y1) < _LIMIT_GAP * size
    ]  # fmt: skip
    for limit in (group for white in _LIMIT_WHITE for group in _parted_by_white(band, white * size)):
        reach = hull_of(atom.box for atom in limit)
        off = _LIMIT_OFF + (operator.text in _SLANTED) * _SLANT
        if abs(reach.x - operator.x) < max(off * size, 0.12 * reach.width):
            return limit
    return []


def _top(atom: Atom) -> float:
    """Where its ink begins; of a comma, where a letter's would."""
    return min(atom.box.y0, atom.baseline - 0.4 * atom.size) if atom.kind is Kind.SIGN else atom.box.y0


def _parted_by_white(atoms: Sequence[Atom], white: float) -> list[list[Atom]]:
    """The atoms in groups, from the left, with more white than this between them."""
    groups: list[list[Atom]] = []
    end = 0.0
    for atom in sorted(atoms, key=lambda atom: atom.box.x0):
        if not groups or atom.box.x0 - end > white:
            groups.append([])
            end = atom.box.x1
        groups[-1].append(atom)
        end = max(end, atom.box.x1)
    return groups


def _with_matrices(atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms; what stands in several rows between tall delimiters as a matrix, or as cases, from the inside out."""
    out = list(atoms)
    tall = [a for a in atoms if a.kind is Kind.FENCE and a.box.height > _GROWN * a.size and a.text in _PARTNERS]
    for fence, partner in sorted(((a, _partner(a, atoms)) for a in tall), key=_distance):
        right = partner.box.x0 if partner else max(atom.box.x1 for atom in out)
        inside = [
            atom for atom in out
            if atom not in (fence, partner) and fence.box.x1 - 0.5 < atom.x < right
            and fence.box.y0 - 0.3 * atom.size < atom.y < fence.box.y1 + 0.3 * atom.size
        ]  # fmt: skip
        rows = _lines(inside) if inside else []
        high = fence.box.height > _TALL * fence.size or not full_sized(inside, fence.size)
        if len(rows) > 1 and high and fence in out and (partner or fence.text == "{"):
            parts = [fence, *inside] + ([partner] if partner else [])
            size, box = size_of(inside), hull_of(atom.box for atom in parts)
            latex = _matrix(fence.text if partner else "", rows)
            whole = built(latex, parts, (box.y0 + box.y1) / 2 + AXIS * size, size, Kind.BUILT)
            out = [*(atom for atom in out if atom not in parts), whole]
    return out


def _partner(fence: Atom, atoms: Sequence[Atom]) -> Atom | None:
    """The next delimiter of the same height that closes what this one opens."""
    fitting = [
        other for other in atoms
        if other.kind is Kind.FENCE and other.text == _PARTNERS[fence.text] and other.box.x0 > fence.box.x1
        and abs(other.box.y0 - fence.box.y0) < 2 and abs(other.box.y1 - fence.box.y1) < 2
    ]  # fmt: skip
    return min(fitting, key=lambda other: other.box.x0, default=None)


def _distance(pair: tuple[Atom, Atom | None]) -> float:
    fence, partner = pair
    return partner.box.x0 - fence.box.x1 if partner else float("inf")


def _matrix(fence: str, rows: Sequence[Sequence[Atom]]) -> str:
    """Rows as a matrix between delimiters, or as cases behind a brace that nothing closes ("")."""
    whole = [atom for row in rows for atom in row]
    columns = _parted_by_white(whole, _COLUMN_GAP * size_of(whole))
    cells = [[_block([atom for atom in row if atom in column]) for column in columns] for row in rows]
    if fence == "(" and len(rows) == 2 and len(columns) == 1:
        return rf"\binom{{{cells[0][0]}}}{{{cells[1][0]}}}"
    name = _MATRICES.get(fence, "matrix") if fence else "cases"
    return rf"\begin{{{name}}}" + r"\\".join("&".join(row) for row in cells) + rf"\end{{{name}}}"


def _lines(atoms: Sequence[Atom]) -> list[list[Atom]]:
    """The atoms by line, from the top: signs of full size tell the baselines, the others belong to the nearest."""
    size = size_of(atoms)
    telling = [a for a in full_sized(atoms, size) if not a.is_tall and a.kind is not Kind.OPERATOR]
    levels = [median(group) for group in _levels(sorted(a.baseline for a in telling), _LINE * size)]
    lines: list[list[Atom]] = [[] for _ in levels or [0]]
    for atom in atoms:
        lines[min(range(len(lines)), key=lambda at: abs(levels[at] - line_of(atom)) if levels else 0)].append(atom)
    return [line for line in lines if line]


def _levels(baselines: Sequence[float], apart: float) -> Iterator[list[float]]:
    """Baselines, from the top, in groups that begin at least so far apart."""
    group: list[float] = []
    for baseline in baselines:
        if group and baseline - group[0] >= apart:
            yield group
            group = []
        group.append(baseline)
    if group:
        yield group
