"""CDM by hand: signs counted on paper, TeX's files made byte by byte, and what may not be set."""

import shutil
import struct

import pytest

from gravityocr_cli import cdm
from gravityocr_cli.cdm import cdm_scores, missing, typeset
from gravityocr_cli.dvi import RULE, Sign, read_dvi, read_tfm
from gravityocr_models.signs import Box

NEEDS_LATEX = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")


def row(names: str, step: float = 10) -> tuple[Sign, ...]:
    """Signs of 5 points side by side, a step apart."""
    return tuple(Sign(name, Box(place * step, 0, place * step + 5, 5)) for place, name in enumerate(names))


# ---------------------------------------------------------------- matching


def test_signs_are_counted_by_name() -> None:
    assert cdm.cdm(row("abcd"), row("abcd")) == 1
    assert cdm.cdm(row("abc"), row("abcd")) == pytest.approx(2 * 3 / 7)
    assert cdm.cdm(row("abxd"), row("abcd")) == pytest.approx(2 * 3 / 8)
    assert cdm.cdm((), row("ab")) == 0


def test_shift_and_scale_are_free_and_a_jump_is_not() -> None:
    moved = tuple(Sign(sign.name, Box(*(30 + 2 * side for side in vars(sign.box).values()))) for sign in row("abcd"))
    assert cdm.cdm(moved, row("abcd")) == 1
    # The tolerance is 7.2 points, from a place half way between where the first three and the last want to be.
    for jump, hits in ((13, 4), (16, 3)):
        last = Sign("d", Box(30, jump, 35, jump + 5))
        assert cdm.cdm((*row("abc"), last), row("abcd")) == pytest.approx(2 * hits / 8)


def test_a_second_line_may_have_a_shift_of_its_own_but_two_signs_may_not() -> None:
    def broken(after: int) -> tuple[Sign, ...]:
        below = [Sign(sign.name, Box(sign.box.x0, 40, sign.box.x1, 45)) for sign in row("abcdefgh"[after:])]
        return (*row("abcdefgh"[:after]), *below)

    assert cdm.cdm(broken(5), row("abcdefgh")) == 1
    assert cdm.cdm(broken(6), row("abcdefgh")) == pytest.approx(2 * 6 / 16)


def test_a_long_formula_is_matched_the_same_each_time() -> None:
    names = [chr(0x4E00 + number) for number in range(120)]
    long = tuple(Sign(name, Box(10 * place, 0, 10 * place + 5, 5)) for place, name in enumerate(names))
    assert [cdm.cdm(long[:90], long) for _ in range(2)] == [pytest.approx(180 / 210)] * 2


# ---------------------------------------------------------------- TeX's files


def font_file() -> bytes:
    """A TFM file with one character, A: half the size wide, 0.75 high, 0.25 deep."""
    word = struct.pack
    tables = [(0, 2**19), (0, 3 * 2**18), (0, 2**18), (0,)]  # widths, heights, depths, italic corrections
    words = 6 + 2 + 1 + sum(map(len, tables))
    head = word(">12H", words, 2, 65, 65, *map(len, tables), 0, 0, 0, 0)
    sizes = b"".join(word(">i", size) for table in tables for size in table)
    return head + word(">Ii", 0, 10 * 2**20) + bytes([1, 1 << 4 | 1, 0, 0]) + sizes


def test_metrics_are_read_as_the_format_says() -> None:
    assert read_tfm(font_file()) == {65: (0.5, 0.75, 0.25)}


def test_tex_output_is_read_as_the_format_says() -> None:
    point = round(2**16 * 72.27 / 72)  # one of ours
    four = ">i"
    page = (
        bytes([139]) + struct.pack(">11i", 7, *[0] * 9, -1)  # page 7
        + bytes([243, 0]) + struct.pack(">3i", 0, 10 * point, 10 * 2**16) + bytes([0, 6]) + b"cmr100"
        + bytes([171]) + b"A"  # set: moves on by 5
        + bytes([141, 160]) + struct.pack(four, 20 * point) + bytes([133, 65, 142])  # push, down, put, pop
        + bytes([151]) + struct.pack(four, 3 * point) + bytes([147])  # 3 to the right, and again
        + bytes([137]) + struct.pack(">2i", 2 * point, 4 * point)  # a rule
        + bytes([137]) + struct.pack(">2i", -1, point)  # one without ink
        + bytes([140])
    )  # fmt: skip
    head = bytes([247, 2]) + struct.pack(">3i", 0, 0, 1000) + bytes([3]) + b"TeX"
    pages = read_dvi(head + page + bytes([248]), lambda name: read_tfm(font_file()) if name == "cmr100" else {})
    assert [(sign.name, *(round(v, 3) for v in vars(sign.box).values())) for sign in pages[7]] == [
        ("A", 0, -7.5, 5, 2.5),
        ("A", 5, 12.5, 10, 22.5),
        (RULE, 11, -2, 15, 0),
    ]


# ---------------------------------------------------------------- LaTeX

SAME = [
    (r"\frac{a}{b}", r"{a \over b}"),
    (r"x_i^2 \leq y", r"x^{2}_{i}\le y"),
    (r"{\cal Q}+{\bf x}", r"\mathcal{Q} + \mathbf{x}"),
    (r"\left( a \right)", "(a)"),
    (r"\sin\theta", r"\operatorname{sin} \theta"),
    (r"α ≤ β − 1", r"\alpha\leq\beta-1"),
    (r"\varphi", r"\phi"),
    (r"\begin{align*} a &= b \\ c &= d \end{align*}", r"a &= b \\ c &= d"),
    (r"\begin{pmatrix} a \\ b \end{pmatrix}", r"\left(\begin{array}{c}a\\b\end{array}\right)"),
    (r"a = b \label{eq:one} \tag{1}", r"a=b% a remark"),
    (r"\text{长度 }x", r"\text{长度}\ x"),
]
DIFFERENT = [  # predicted, true, partners that fit, signs of both
    ("a+b", "a+b+c", 3, 8),  # missing: + and c
    ("a+b+c", "a+b", 3, 8),  # surplus
    ("y=2x+3z", "y=2z+3x", 5, 14),  # swapped: x and z are there, but not in their places
    (r"\frac{a}{c}", r"\frac{a}{b}", 2, 6),  # the line is a sign
    (r"\frac{b}{a}", r"\frac{a}{b}", 1, 6),  # only the line is where it was
    ("a=b", r"a\ne b", 2, 6),
    (r"\sqrt{a}", r"\sqrt{a}+b", 2, 6),  # a root with its line is one sign
    (r"\sum^n x", r"\sum_n x", 2, 6),  # above against below: 24 points
    ("a+x_2", "a+x^2", 4, 8),  # 6.7 points: within the published tolerance
    (r"\text{长}", r"\text{短}", 0, 2),
    (r"\unknown{x}", "x", 1, 2),  # as TeX mends it
]
NOT_SET = [r"\frac{a}{b", r"\left( a", "x}", r"\begin{array}{c} a", r"\text{$a}", r"\begin{nothing}a\end{nothing}", ""]
REACHING = [
    r"\def\a{\a}\a", r"\input{/etc/passwd}", r"\begin{input}", r"\end{document}", r"\csname def\endcsname", "^^5cdef",
    r"\gdef\b{c}", r"\shipout\hbox{a}", r"\count0=3 a", r"\immediate\write18{ls}", r"\loop\iftrue\repeat",
    r"a\egroup b", r"\verb|a",
]  # fmt: skip


@NEEDS_LATEX
def test_one_formula_in_two_spellings_is_one() -> None:
    assert missing() == ""
    assert dict(zip(SAME, cdm_scores(SAME), strict=True)) == dict.fromkeys(SAME, 1.0)


@NEEDS_LATEX
def test_mistakes_cost_what_they_are_on_paper() -> None:
    found = cdm_scores([(pred, truth) for pred, truth, _, _ in DIFFERENT])
    assert found == [pytest.approx(2 * hits / signs) for _, _, hits, signs in DIFFERENT]


@NEEDS_LATEX
def test_what_latex_cannot_set_is_nothing_read_and_no_truth() -> None:
    assert cdm_scores([(code, "x") for code in NOT_SET + REACHING]) == [0.0] * len(NOT_SET + REACHING)
    assert cdm_scores([("x", code) for code in NOT_SET]) == [None] * len(NOT_SET)


@NEEDS_LATEX
def test_a_formula_that_fails_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fatal = r"\nothing" * 200 + "x"  # TeX gives up at a hundred mistakes
    formulas = ["a", fatal, r"\frac{b}", "c^2^3", r"d \\\\ e", "f"]
    names = [[sign.name for sign in signs] for signs in typeset(formulas)]
    assert names[::5] == [["a"], ["f"]]
    assert not names[1]
    assert names[4] == ["d", "e"]
    monkeypatch.setattr(cdm, "SECONDS", 0)
    assert typeset(["a"]) == [()]


@NEEDS_LATEX
def test_a_bracket_has_one_name_at_every_size_and_is_one_sign() -> None:
    tall = r"\begin{array}{c}a\\a\\a\\a\\a\end{array}"
    sides = [("(", ")"), ("[", "]"), (r"\{", r"\}"), ("|", "|"), (r"\|", r"\|"), (r"\lfloor", r"\rfloor")]
    names = [*(pair for pair in sides[:2]), ("{", "}"), ("|", "|"), ("‖", "‖"), ("⌊", "⌋")]
    sizes = ("", r"\big", r"\Big", r"\bigg", r"\Bigg")
    for (left, right), signs in zip(
        [pair for pair in names for _ in sizes],
        typeset([f"{size}{left} a {size}{right}" for left, right in sides for size in sizes]),
        strict=True,
    ):
        assert [sign.name for sign in signs] == [left, "a", right]
    # LaTeX has no pieces for a floor taller than four lines: it takes those of a square bracket
    for pair, signs in zip(names[:-1], typeset([rf"\left{a}{tall}\right{b}" for a, b in sides[:-1]]), strict=True):
        assert [sign.name for sign in signs] == [pair[0], *"aaaaa", pair[1]]
        assert min(signs[0].box.height, signs[-1].box.height) > 60
    root, *_ = typeset([rf"\sqrt{{{tall}}}"])[0]
    assert (root.name, root.box.height > 60, root.box.width > 20) == ("√", True, True)


def test_without_latex_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    missing.cache_clear()
    assert missing() == "LaTeX is not installed"
    missing.cache_clear()
