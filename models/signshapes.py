"""What the signs of a formula look like, whatever their font: how far they reach over and under their baseline.

Between the fonts of maths these differ by a few hundredths of the size, so the height of a sign that is known tells its
size, and its middle its baseline.
"""

from typing import NamedTuple


class Shape(NamedTuple):
    """Of a sign's ink, in sizes of its font: how far over the baseline and under it, and how wide."""

    above: float
    below: float
    width: float

    @property
    def height(self) -> float:
        return self.above + self.below


_CAPITAL, _SMALL, _OTHER, _ACCENT = (
    Shape(0.68, 0, 0.6),
    Shape(0.44, 0.01, 0.5),
    Shape(0.5, 0, 0.6),
    Shape(0.67, -0.55, 0.38),
)
_MEASURED = (
    "! 71 0 12|# 69 19 80|( 75 25 23|) 75 25 23|* 46 -3 38|+ 58 8 65|, 11 18 14|- 28 -23 61|. 11 0 11|"
    "/ 74 19 38|0 66 2 44|1 66 0 35|2 66 0 44|3 66 2 44|4 68 0 47|5 66 2 42|6 66 2 43|7 68 2 43|8 66 2 42|"
    "9 67 2 41|: 43 0 11|; 43 18 14|< 54 -1 55|= 37 -13 65|> 54 3 60|A 71 0 72|B 68 0 70|C 70 2 64|D 68 0 76|"
    "E 68 0 64|F 68 1 76|G 70 2 69|H 68 0 81|I 68 0 46|J 68 2 55|K 68 0 83|L 69 0 62|M 68 0 97|N 68 0 84|"
    "O 70 2 72|P 68 0 70|Q 70 19 69|R 68 2 69|S 70 2 54|T 68 0 67|U 68 2 71|V 68 2 71|W 68 2 99|X 68 0 81|"
    "Y 68 0 73|Z 68 0 66|[ 74 25 16|\\ 75 25 39|] 74 25 16|a 44 1 49|b 69 1 42|c 45 1 39|d 69 1 50|e 45 1 40|"
    "f 70 20 52|g 45 20 46|h 69 1 50|i 66 1 26|j 66 20 43|k 69 1 48|l 69 1 22|m 44 1 81|n 44 1 55|o 45 1 44|"
    "p 44 20 54|q 44 20 44|r 44 0 40|s 45 1 36|t 62 1 31|u 44 1 51|v 44 1 44|w 44 1 68|x 44 1 50|y 44 20 48|"
    "z 44 1 42|{ 72 25 36|} 74 25 36|± 60 0 55|× 49 -1 48|Γ 68 0 53|Δ 70 0 66|Θ 70 2 65|Λ 71 0 67|Π 68 0 66|"
    "Σ 68 0 60|Φ 68 0 61|Ψ 68 0 66|Ω 70 0 70|α 44 1 58|β 70 19 57|γ 44 22 56|δ 71 1 41|ε 45 2 40|ζ 70 18 45|"
    "η 44 22 50|θ 70 1 43|ι 44 1 30|κ 44 1 49|λ 69 1 55|μ 44 22 60|ν 44 0 51|ξ 70 20 43|π 43 1 54|ρ 44 22 50|"
    "σ 48 1 58|τ 43 1 48|φ 44 22 57|χ 44 20 56|ψ 69 20 61|ω 44 1 59|ϑ 72 1 55|ϕ 69 20 52|ϵ 43 1 33|‖ 2 62 26|"
    "† 70 21 37|′ 56 -4 25|ℏ 69 1 49|ℓ 70 1 40|← 49 -2 89|↑ 71 19 41|→ 51 1 89|⇒ 52 0 89|⇔ 52 2 93|∂ 72 2 52|"
    "∇ 68 2 68|∈ 54 4 50|∏ 0 140 116|∐ 0 140 116|∑ 0 140 120|∓ 51 17 66|∘ 44 -6 39|∙ 46 -4 41|√ 4 96 78|"
    "∝ 47 -5 60|∞ 44 1 94|∧ 60 2 55|∨ 58 1 55|∩ 60 2 55|∪ 60 2 58|∫ 0 222 89|∮ 0 166 77|∼ 37 -13 66|≃ 46 -4 66|"
    "≈ 48 -6 66|≠ 57 5 51|≡ 46 -4 66|≤ 57 6 55|≥ 64 14 61|⊂ 54 4 61|⊃ 51 -1 53|⊆ 58 6 60|⊕ 56 4 60|⊗ 58 8 66|"
    "⊥ 69 0 74|⋃ 0 140 100|⋅ 30 -20 11|♯ 72 22 28|⟨ 75 25 22|⟩ 75 25 22"
)
"""Sign, above, below, width in hundredths: as `benchmarks/sign_shapes.py` measures them in some 40 font packages."""
_SHAPES = {
    sign: Shape(*(int(number) / 100 for number in numbers))
    for sign, *numbers in (entry.split() for entry in _MEASURED.split("|"))
} | {"|": Shape(0.75, 0.25, 0.04)}
ACCENTS = frozenset("\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030c\u20d7")
GROWING = frozenset("()[]{}|‖⟨⟩⌊⌋⌈⌉∑∏∐⋃⋂⨁⨂⋀⋁∫∮√/")
"""What is as high as its formula needs it."""
FLAT = ACCENTS | frozenset("-=~∼_–—→←.⋅,'′·")
"""What is too low for its height to say much."""
IN_PARTS = frozenset('ij=:;!?≡≤≥±∓⊆⊇≅≃≈%Ξ≪≫"⇒⇔⇐∐÷≐‖')
"""What may be several pieces of ink."""


_UPRIGHT_F = Shape(0.7, 0, 0.35)


def shapes_of(sign: str) -> tuple[Shape, ...]:
    """The shapes that a sign has: one, but for an f, of which only the slanted one descends."""
    return (shape_of(sign), _UPRIGHT_F) if sign == "f" else (shape_of(sign),)


def shape_of(sign: str) -> Shape:
    """The shape of a sign; where it was not measured, that of most of its kind."""
    if sign in _SHAPES:
        return _SHAPES[sign]
    if sign in ACCENTS:
        return _ACCENT
    return (_CAPITAL if sign.isupper() else _SMALL) if sign.isalpha() else _OTHER
