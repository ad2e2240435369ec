"""Maths within lines, on lines set by hand as MuPDF gives them, and through a PDF."""

from typing import Any

import pytest

from gravityocr_cli.inlinemath import is_formula
from gravityocr_cli.mathinline import maths_in_lines, with_maths
from gravityocr_models.mathsigns import sign_of
from gravityocr_models.signs import Box, Sign

Raw = dict[str, Any]
LINE = 100.0  # the baseline
FONTS = {"t": "CMR10", "i": "CMMI10", "s": "CMSY10", "x": "CMEX10", "b": "CMBX10", "c": "CMTT10", "w": "SymbolMT"}


class Setter:
    """Sets letters from left to right: each a half size wide, and as high as a letter of its font."""

    def __init__(self) -> None:
        self.x, self.lines, self.signs = 10.0, list[Raw](), list[Sign]()
        self.spans: list[Raw] = []

    def put(self, text: str, font: str, size: float = 10, up: float = 0, at: float | None = None) -> "Setter":
        x, y = self.x if at is None else at, LINE - up
        chars = list[Raw]()
        for each in text:
            width = 0.33 * size if each == " " else 0.5 * size
            box = x, y - 0.75 * size, x + width, y + 0.25 * size
            chars.append({"c": each, "origin": (x, y), "bbox": box, "synthetic": each == " "})
            if each != " ":
                ink = Box(x, y - 0.68 * size, x + width - 0.5, y)
                self.signs.append(sign_of(each, "", FONTS[font], 0, size, ink, (x, y)))
            x += width
        box = (chars[0]["bbox"][0], chars[0]["bbox"][1], chars[-1]["bbox"][2], chars[0]["bbox"][3])
        flags = 16 if font == "b" else 0
        span = {"font": FONTS[font], "size": size, "flags": flags, "origin": (box[0], y), "bbox": box, "chars": chars}
        self.spans.append(span)
        self.x = x if at is None else self.x
        return self

    def put_large(self, text: str) -> "Setter":
        """A sign of the font of large signs: it hangs from its origin, and claims the height of the largest."""
        y = LINE - 10.0
        box = (self.x, y - 15, self.x + 5, y + 30)
        char = {"c": text, "origin": (self.x, y), "bbox": box, "synthetic": False}
        self.signs.append(sign_of(text, "", FONTS["x"], 0, 10, Box(self.x, y, self.x + 4, y + 15), (self.x, y)))
        span = {"font": FONTS["x"], "size": 10, "flags": 0, "origin": (self.x, y), "bbox": box, "chars": [char]}
        self.spans.append(span)
        self.x += 5
        return self

    def end(self) -> "Setter":
        """Ends the line that MuPDF sees."""
        boxes = [span["bbox"] for span in self.spans]
        box = tuple(f(each[at] for each in boxes) for at, f in enumerate((min, min, max, max)))
        self.lines.append({"dir": (1.0, 0.0), "wmode": 0, "bbox": box, "spans": self.spans})
        self.spans = []
        return self

    def raw(self) -> Raw:
        return {"blocks": [{"lines": self.lines}]}

    def read(self, but: tuple[Box, ...] = ()) -> list[str]:
        """The texts of the lines with their maths."""
        found = with_maths(self.raw(), self.signs, (), but)
        lines = (line for block in found["blocks"] for line in block["lines"])
        return ["".join(char["c"] for span in line["spans"] for char in span["chars"]) for line in lines]


def test_a_letter_of_maths() -> None:
    assert Setter().put("let ", "t").put("n", "i").put(" be", "t").end().read() == ["let $n$ be"]


def test_signs_that_maths_shares_with_text_belong_to_it() -> None:
    line = Setter().put("that ", "t").put("f", "i").put("(0) = 0, and", "t").end()
    assert line.read() == ["that $f(0) = 0$, and"]
    line = Setter().put("set 2", "t").put("x", "i").put(" + 1 of", "t").end()
    assert line.read() == ["set $2x + 1$ of"]


def test_punctuation_and_the_texts_brackets_stay_outside() -> None:
    line = Setter().put("(see ", "t").put("x", "i").put("), ", "t").put("y", "i").put(".", "t").end()
    assert line.read() == ["(see $x$), $y$."]
    line = Setter().put("in [6], ", "t").put("α", "i").put(" is", "t").end()
    assert line.read() == [r"in [6], $\alpha$ is"]


def test_scripts_and_alphabets() -> None:
    line = Setter().put("on ", "t").put("R", "b").put("n", "i", 7, 4).put(" ", "t").put("→", "s").put(" ", "t")
    assert line.put("A", "s").end().read() == [r"on $\mathbf{R}^{n} \rightarrow \mathcal{A}$"]
    line = Setter().put("for ", "t").put("N", "i").put("max", "t", 7, -2).put(" of", "t").end()
    assert line.read() == [r"for $N_{\max}$ of"]


def test_a_line_that_mupdf_ends_at_large_brackets_is_one() -> None:
    line = Setter().put("when ", "t").put("f", "i").end().put_large("(").end()
    line.put("x", "i").put("+1", "t").end().put_large(")").end().put(" ", "t").put("<", "i").put(" 0 holds", "t").end()
    (text,) = line.read()
    assert text == r"when $f\left(x+1\right) < 0$ holds"


def test_the_place_of_maths_is_all_of_its_line() -> None:
    """What is painted elsewhere is not looked for, and would be missing from the formula."""
    line = Setter().put("rates ", "t").put_large("(").put("x", "i").put_large(")").end().put("QL", "t", 7, -2.5).end()
    (box,) = maths_in_lines(line.raw())
    assert box.x1 == line.x


def test_a_line_of_large_signs_is_as_high_as_its_ink() -> None:
    line = Setter().put("when ", "t").put("f", "i").end().put_large("(").end().put("x", "i").end().put_large(")").end()
    (block,) = with_maths(line.raw(), line.signs, (), ())["blocks"]
    (whole,) = block["lines"]
    assert (whole["bbox"][1], whole["bbox"][3]) == (LINE - 10, LINE + 5)


def test_a_line_with_an_arrow_is_as_high_as_its_letters() -> None:
    """The font of arrows claims a whole size under the baseline: the line would lie in no box of the layout."""
    line = Setter().put("for ", "t").put("N", "i").put("→", "s").put(" all", "t")
    arrow = next(span for span in line.spans if span["font"] == "CMSY10")
    arrow["bbox"] = (*arrow["bbox"][:3], LINE + 9.6)
    (block,) = with_maths(line.end().raw(), line.signs, (), ())["blocks"]
    (whole,) = block["lines"]
    assert whole["bbox"][3] == LINE + 2.5


def test_a_line_that_mupdf_ends_between_scripts_is_one() -> None:
    line = Setter().put("at ", "t").put("L", "i")
    x = line.x
    line.put("max", "t", 7, 4).end().put("c", "i", 7, -2.5, at=x).put(". The ", "t").end()
    assert line.read() == [r"at $L_{c}^{\max}$. The "]


def test_the_wider_of_two_scripts_tells_where_the_next_glyph_stands() -> None:
    line = Setter().put("at ", "t").put("L", "i")
    x = line.x
    line.put("m", "t", 7, 4).put("i", "i", 7, -2.5, at=x + 0.1).put("ax", "t", 7, 4).put(" of", "t").end()
    narrow = line.lines[0]["spans"][3]["chars"][0]
    narrow["bbox"] = (x, narrow["bbox"][1], x + 0.5, narrow["bbox"][3])
    assert line.read() == [r"at $L_{i}^{\max}$ of"]


def test_a_letters_slant_before_its_script_is_no_blank() -> None:
    line = Setter().put("value ", "t").put("V", "i")
    line.x += 1.4
    assert line.put(" ", "t", 1).put("π", "i", 7, 4).put("(", "t").put("s", "i").put(") of", "t").end().read() == [
        r"value $V^{\pi}(s)$ of"
    ]


def test_an_upright_name_that_stands_before_maths_belongs_to_it() -> None:
    line = Setter().put("with supp(", "t").put("f", "i").put(") in ", "t").put("x", "i").end()
    assert line.read() == [r"with $\mathrm{supp}(f)$ in $x$"]
    line = Setter().put("as ∆", "t").put("x", "i").put(" and d", "t").put("t", "i").put(" go", "t").end()
    assert line.read() == [r"as $\Delta x$ and $\mathrm{d}t$ go"]


def test_lowered_text_of_full_size_is_a_script() -> None:
    line = Setter().put("for ", "t").put("T", "i").put("eff", "t", 10, -3).put(" = 5", "t").end()
    assert line.read() == [r"for $T_{\mathrm{eff}} = 5$"]


def test_thin_white_within_maths_is_no_blank() -> None:
    line = Setter().put("that ", "t").put("q", "i")
    line.x += 1.7
    assert line.put(" ", "t", 0.5).put("v", "i").put(" is", "t").end().read() == ["that $q v$ is"]


def test_no_dollar_stands_right_behind_a_letter() -> None:
    """It would be taken for money's."""
    line = Setter().put("parameter", "t").put("×", "s").put("Reynolds number", "t").end()
    assert line.read() == [r"parameter $\times$Reynolds number"]


def test_a_script_goes_with_the_nearest_of_the_lines_that_it_may_be_of() -> None:
    line = Setter().put("one ", "t").put("x", "i").put(" of the words", "t").end()
    second = Setter()
    second.put("two ", "t").put("y", "i")
    for span in second.spans:
        for char in span["chars"]:
            char["origin"] = (char["origin"][0], char["origin"][1] + 8)
            char["bbox"] = (char["bbox"][0], char["bbox"][1] + 8, char["bbox"][2], char["bbox"][3] + 8)
        span["bbox"] = (span["bbox"][0], span["bbox"][1] + 8, span["bbox"][2], span["bbox"][3] + 8)
    x = second.x
    second.end()
    line.lines += second.lines
    line.put("i", "i", 5, -6, at=x - 0.2).end()
    assert line.read()[0] == "one $x$ of the words"


def test_a_word_that_is_set_in_a_font_of_maths_is_a_word() -> None:
    for word in ("place", "place_of_birth"):
        assert Setter().put("the ", "t").put(word, "i").put(" is", "t").end().read() == [f"the {word} is"]
    assert Setter().put("the ", "t").put("abc", "i").put(" is", "t").end().read() == ["the $a b c$ is"]


def test_a_fraction_and_what_holds_it_are_one_formula() -> None:
    line = Setter().put("at ", "t").put("x", "i").put("( ", "t")
    x = line.x
    line.put("π", "i", 7, 4).put(" ) of", "t").end().put("2", "t", 7, -3, at=x).end()
    bar = Box(x - 0.2, LINE - 2.8, x + 3.7, LINE - 2.4)
    found = with_maths(line.raw(), line.signs, [bar], ())["blocks"][0]["lines"]
    texts = ["".join(char["c"] for span in each["spans"] for char in span["chars"]) for each in found]
    assert texts == [r"at $x( \frac{\pi}{2})$ of"]


def test_a_font_of_no_size_is_no_fault() -> None:
    line = Setter().put("see ", "t").put("y", "i").end().put("z", "i").put(" there", "t").end()
    for each in line.lines:
        for span in each["spans"]:
            span["size"] = 0.0
    assert maths_in_lines(line.raw())
    assert "see" in line.read()[0]


def test_columns_and_rows_stay_apart() -> None:
    line = Setter().put("one ", "t").put("x", "i").end()
    line.x += 12
    line.put("y", "i").put(" two", "t").end()
    assert line.read() == ["one $x$", "$y$ two"]


def test_scripts_on_both_sides_are_lines_of_their_own() -> None:
    line = Setter().put("to ", "t").put("T", "i")
    x = line.x
    line.x += 4
    line.put(" is", "t").end().put("u", "i", 7, 4, at=x).end().put("x", "i", 7, -2.5, at=x).end()
    assert line.read() == ["to $T_{x}^{u}$ is"]


def test_scripts_that_are_words_are_told_once() -> None:
    line = Setter().put("value ", "t").put("g", "i")
    x = line.x
    line.x += 12
    line.put(" is", "t").end().put("max", "t", 7, 4, at=x).end().put("av", "t", 7, -2.5, at=x).end()
    assert line.read() == [r"value $g_{\mathrm{av}}^{\max}$ is"]


def test_blanks_are_seen_around_relations_alone() -> None:
    line = Setter().put("if ", "t").put("f", "i").put("i", "i", 7, -2)
    line.x += 2.5  # as before any bracket behind a script
    assert line.put("(0) = 1", "t").end().read() == ["if $f_{i}(0) = 1$"]


def test_words_end_a_formula() -> None:
    line = Setter().put("a ", "t").put("σ", "i").put("-algebra on ", "t").put("X", "i").put(" and", "t").end()
    assert line.read() == [r"a $\sigma$-algebra on $X$ and"]
    line = Setter().put("as ", "t").put("x", "i").put(" = sin", "t")
    line.x += 1.7
    assert line.put("y", "i").end().read() == [r"as $x = \sin y$"]


def test_white_beside_maths_is_a_blank_where_mupdf_sees_none() -> None:
    line = Setter().put("of ", "t").put("e", "i").put("−", "s", 7, 4)
    line.x += 3.3
    assert line.put("beams", "t").end().read() == ["of $e^{-}$ beams"]


def test_accents_that_mupdf_has_moved() -> None:
    line = Setter().put("is ", "t")
    line.put("\u20d7", "i", at=line.x - 3.3)
    line.signs[-1] = Sign("\u20d7", Box(line.x, 91, line.x + 4, 93), (line.x, LINE), 10)  # where it is painted
    assert line.put("u", "i").put(" at", "t").end().read() == [r"is $\vec{u}$ at"]


@pytest.mark.parametrize("mark", ["\u2225", "\u2329", "\u27e8"])
def test_marks_that_fonts_of_maths_lend_to_text_are_no_maths(mark: str) -> None:
    assert Setter().put("key", "t").put(mark, "s").put(" is", "t").end().read() == [f"key{mark} is"]


def test_scripts_of_words_are_no_maths() -> None:
    assert Setter().put("2.9 fb", "t").put("−", "s", 7, 4).put("1", "t", 7, 4).end().read() == ["2.9 fb−1"]


@pytest.mark.parametrize("mark", ["•", "∗", "†", "⟨", "|"])
def test_marks_that_fonts_of_maths_lend_to_text(mark: str) -> None:
    assert Setter().put(mark, "s").put(" An item", "t").end().read() == [f"{mark} An item"]


def test_letters_that_could_be_money_stand_apart() -> None:
    """`$uv$` is told from prices by nothing, `$u v$` is."""
    assert Setter().put("all ", "t").put("uv", "i").put(" of", "t").end().read() == ["all $u v$ of"]


def test_other_boxes_and_fonts_are_left_alone() -> None:
    line = Setter().put("x", "i").put(" = ", "t").put("y", "i").end()
    assert line.read(but=(Box(0, 0, 200, 200),)) == ["x = y"]
    word = Setter().put("TNF-", "t").put("α", "w").end()
    assert not maths_in_lines(word.raw())
    assert word.read() == ["TNF-α"]
    unknown = Setter().put("the ", "t").put("\ufffdx", "s").end()
    assert unknown.read() == ["the \ufffdx"]


@pytest.mark.parametrize("text", ["a2 + b2 = c2", "∫ f(x) dx = F(b) − F(a)", "x = sin y", "$x_{i} = 1$ , $y \\leq 2$"])
def test_what_is_nothing_but_a_formula(text: str) -> None:
    assert is_formula(text)


@pytest.mark.parametrize(
    "text", ["1 + 1 = 2", "let x = 1", "x", "for (i = 0; i < n)", "a_b = c", "E+", "$N$", "cost = $5", "where $x = 1$"]
)
def test_what_is_more_or_less_than_a_formula(text: str) -> None:
    assert not is_formula(text)


def test_signs_in_typewriter_type_are_no_maths() -> None:
    line = Setter().put(r"\sep{,}{12}", "c").put(" ", "t").put("⇒", "s").put(" 1 holds", "t").end()
    assert line.read() == [r"\sep{,}{12} $\Rightarrow 1$ holds"]


def test_names_of_functions_are_maths_with_what_they_are_of() -> None:
    line = Setter().put("as ", "t").put("⟨", "s").put("cos ", "t").put("θ", "i").put("⟩", "s").put(" = 0 is", "t").end()
    assert line.read() == [r"as $\langle\cos \theta\rangle = 0$ is"]
    line = Setter().put("of (1 ", "t").put("−", "s").put(" x", "i").put(") ln(1 ", "t").put("−", "s").put(" x", "i")
    assert line.put(") is", "t").end().read() == [r"of $(1 - x) \ln(1 - x)$ is"]
    assert Setter().put("that max ", "t").put("x", "i").put(" is", "t").end().read() == [r"that $\max x$ is"]
    assert Setter().put("the max of ", "t").put("x", "i").put(" is", "t").end().read() == ["the max of $x$ is"]


def test_marks_stand_right_behind_maths_that_leans() -> None:
    line = (
        Setter().put("rate (", "t").put("T", "i").put("a", "i", 7, 4).put(" ), and ", "t").put("N", "i").put(" .", "t")
    )
    assert line.end().read() == ["rate ($T^{a}$), and $N$."]
    assert Setter().put("so ", "t").put("x", "i").put(" so .", "t").end().read() == ["so $x$ so ."]
