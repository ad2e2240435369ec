"""What a glyph of a formula is: its Unicode, and the alphabet that a letter is set in.

Fonts of maths often have no Unicode; then the name of the glyph in its font says what it is. For letters, the font
says which alphabet they belong to.
"""

import re
import unicodedata
from functools import lru_cache

from gravityocr_models.formulas import COMMANDS
from gravityocr_models.signs import UNSOUND, Box, Sign

_RARE = (
    "⨿ amalg|⩾ geqslant|⩽ leqslant|⊠ boxtimes|⊞ boxplus|⋄ diamond|♯ sharp|♭ flat|♮ natural|↠ twoheadrightarrow|"
    "↣ rightarrowtail|⌣ smile|⌢ frown|⊤ top|↘ searrow|↗ nearrow|↖ nwarrow|↙ swarrow|ħ hbar|⇀ rightharpoonup|"
    "⇌ rightleftharpoons|↩ hookleftarrow|⪯ preceq|⪰ succeq|≼ preccurlyeq|≽ succcurlyeq|⊑ sqsubseteq|⊓ sqcap|⊔ sqcup|"
    "⊎ uplus|⋉ ltimes|⋊ rtimes|⊲ lhd|⊳ rhd|◁ triangleleft|▷ triangleright|≍ asymp|≲ lesssim|≳ gtrsim|□ square|"
    "■ blacksquare|⊣ dashv|∤ nmid|⊊ subsetneq|⇝ rightsquigarrow|⇄ rightleftarrows|⟶ longrightarrow|⟵ longleftarrow|"
    "⟹ Longrightarrow|⟺ Longleftrightarrow|⟼ longmapsto|⨆ bigsqcup|⨀ bigodot|∁ complement|≀ wr|⋈ bowtie|≐ doteq|"
    "∴ therefore|⇑ Uparrow|⇓ Downarrow|\\ setminus|$ $|℘ wp"
)
SPELLED = COMMANDS | {"′": r"\prime"} | {sign: f"\\{name}" for sign, name in map(str.split, _RARE.split("|"))}
"""A sign -> its LaTeX. The glyph of a backslash is more often that of a difference of sets."""
_BOLD, _ITALIC = 16, 2  # bits of a font's flags
_FONTS = (
    (r"cmsy|sy\d*\Z|mathsym|math-?(?:cal|symb)|-sy-|[pt]xsys|eus|rsfs|script", r"\mathcal"),
    (r"msbm|bbold|dsrom|syb|blackboard", r"\mathbb"),
    (r"euf|fraktur", r"\mathfrak"),
    (r"cmbsy|cmmib|cmbx|bold|demi|-bd", r"\mathbf"),
)
_UNICODE = {
    "BOLD": r"\mathbf", "SCRIPT": r"\mathcal", "DOUBLE-STRUCK": r"\mathbb", "FRAKTUR": r"\mathfrak",
    "BLACK-LETTER": r"\mathfrak",
}  # fmt: skip
_TEXT_SLANTED = re.compile(r"cmti|cmsl|sfti|sfsl|lmroman\d+-(?:italic|oblique|slant)", re.IGNORECASE)  # not of maths
_SLANTED = re.compile(r"cmmi|mmi\d|ital|obli|slant|mtmi|math", re.IGNORECASE)
_NAMES = dict(
    pair.split()
    for pair in (
        "parenleft (|parenright )|bracketleft [|bracketright ]|braceleft {|braceright }|brace ⎪|angbracketleft ⟨|"
        "angbracketright ⟩|floorleft ⌊|floorright ⌋|ceilingleft ⌈|ceilingright ⌉|slash /|backslash \\|"
        "vextenddouble ‖|radical √|radicallow √|radicalvertex √|summation ∑|product ∏|coproduct ∐|integral ∫|"
        "contintegral ∮|union ⋃|intersection ⋂|logicaland ⋀|logicalor ⋁|circleplus ⨁|circlemultiply ⨂|unionsq ⨆|"
        "negationslash \u0338|mapsto ↦|mapstochar ↦|arrowhookleft ↪|prime ′|dotlessi ı|dotlessj ȷ|emptysetstress ∅|"
        "simequal ≃|doteq ≐|nelement ∉|owner ∋|universal ∀|multiply ×|hatwide \u1dcd|tildewide \u0360|vector \u20d7|"
        "vec \u20d7|dotacc \u0307|ddotacc \u0308|nequal ≠|harpoonrightup ⇀"
    ).split("|")
) | dict.fromkeys(("vextendsingle", "arrowvertex", "bar"), "|")
"""Name of a glyph, without what tells its size or which piece it is -> the sign."""
_VARIANT = re.compile(r"(?:display|text|[bB]igg?|tp|bt|ex|mid|r|st|A|\.?\d|\.alt|\.s)\Z")
_STYLED = {"cal": r"\mathcal", ".kali": r"\mathcal", "bbb": r"\mathbb"}  # behind a letter, in its name
_SHAPES = {"phi": "ϕ", "phi1": "φ", "phi.alt": "φ", "epsilon.alt": "ϵ", "theta.alt": "ϑ"}
"""Name of a glyph -> the sign, where Unicode's name for that is the other shape's."""
_NO_TEXT = ("Cc", "Cf", "Cn", "Co", "Cs")
_SAME = str.maketrans("µ∆·−∗∣∥•◦ℎ★〈〉\u2329\u232aƒ", "μΔ⋅-*|‖∙∘h⋆⟨⟩⟨⟩f")


def sign_of(text: str, name: str, font: str, flags: int, size: float, box: Box, origin: tuple[float, float]) -> Sign:
    """A painted glyph as a sign. text: its Unicode, U+FFFD where unknown. name: the glyph's in its font, or "".

    flags: of the font, as PyMuPDF gives them.
    """
    shown, alphabet = _identity(text, name, font, flags)
    return Sign(shown, box, origin, size, alphabet)


def identity_of(sign: str) -> tuple[str, str]:
    """A sign that a model names, as painted signs are told: its plain sign, and the alphabet that it is in."""
    return _identity(sign, "", "", _ITALIC)


@lru_cache(4096)
def _identity(text: str, name: str, font: str, flags: int) -> tuple[str, str]:
    """The sign that a glyph is, and LaTeX's command for its alphabet."""
    if name[1:] in _STYLED:
        return name[0], _STYLED[name[1:]]
    if text == UNSOUND or unicodedata.category(text[0]) in _NO_TEXT or "\ufe00" <= text[0] <= "\ufe0f":
        text = _of_name(name)
    text = _SHAPES.get(name, text)
    text, alphabet = _plain(unicodedata.normalize("NFC", text).translate(_SAME))
    return text, alphabet or _alphabet(text, font, flags)


def _of_name(name: str) -> str:
    while name not in _NAMES and (shorter := _VARIANT.sub("", name)) != name:
        name = shorter
    return _NAMES.get(name, UNSOUND)


def _plain(text: str) -> tuple[str, str]:
    """A letter of Unicode's mathematical alphabets as a plain letter, and LaTeX's command for its alphabet."""
    name, form = unicodedata.name(text[0], ""), unicodedata.decomposition(text[0]).split()
    styled = "MATHEMATICAL" in name or (name.partition(" ")[0] in _UNICODE and text not in COMMANDS)
    if form[:1] != ["<font>"] or not styled:
        return text, ""
    return chr(int(form[1], 16)) + text[1:], next((command for word, command in _UNICODE.items() if word in name), "")


def _alphabet(text: str, font: str, flags: int) -> str:
    """LaTeX's command for the alphabet that a letter's font is; "" for what needs none."""
    if not text.isalnum():
        return ""
    for pattern, command in _FONTS:
        if re.search(pattern, font, re.IGNORECASE):
            return command if text.isascii() and (text.isalpha() or command in (r"\mathbf", r"\mathbb")) else ""
    if flags & _BOLD:
        return r"\mathbf"
    slanted = (flags & _ITALIC or _SLANTED.search(font)) and not _TEXT_SLANTED.search(font)
    return r"\mathrm" if text.isascii() and text.isalpha() and not slanted else ""
