"""Pages and formulas typeset on the spot from the corpora, as training needs them endlessly and in many fonts."""

import html
import io
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import pymupdf
from numpy.typing import NDArray
from PIL import Image

from gravityocr_models.train.corpora import Corpora, family_of
from gravityocr_models.train.dialect import UnknownSpelling, normal_latex

T = TypeVar("T")

FORMULA_IMAGE_DPI = 200
SIZES = (7, 8, 9, 9, 10, 10, 10, 11, 11, 11, 12, 12, 13, 14, 16, 18, 20, 24)
UNITS = "kg km mm cm GHz MHz MB kB GeV keV °C K Hz mV kΩ μm ms s % ppm mol Pa kWh".split()
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_RARE = "áàâäãåæçéèêëíìîïñóòôöõøœúùûüýÿßčćďěłńňřšśťůžźżąęğışțșőűāēīōūαβγδεζηθικλμνξοπρςστυφχψωάέήίόύώΓΔΘΛΞΠΣΦΨΩ"
_MONO = re.compile(r"mono|cursor|courier|typewriter|lmmono|_M", re.IGNORECASE)
_PLAIN = re.compile(r"^[^-]*$|[-_](regular|roman|book|R|medium)$|lm\w+-regular", re.IGNORECASE)


def story_pdf(corpora: Corpora, rng: np.random.Generator) -> bytes:
    """A PDF of one page: prose, headings, lists, listings and made-up tokens, typeset in up to three of the fonts.

    Where the corpora hold no fonts, MuPDF's own are used.
    """
    faces = {"body": font_of(corpora.fonts, rng, mono=False), "head": font_of(corpora.fonts, rng, mono=False)}
    faces["code"] = font_of(corpora.fonts, rng, mono=True)
    generic = {"body": ("serif", "sans-serif")[int(rng.integers(2))], "head": "sans-serif", "code": "monospace"}
    archive, css = pymupdf.Archive(), ""
    for name, face in faces.items():
        if face:
            archive.add(face.read_bytes(), f"{name}{face.suffix}")
            css += f"@font-face {{font-family: {name}; src: url({name}{face.suffix});}}\n"
    family = {name: name if face else generic[name] for name, face in faces.items()}
    size = float(rng.choice(SIZES))
    width = float(rng.uniform(180, 560)) if size < 15 else float(rng.uniform(300, 560))
    css += (
        f"body {{font-family: {family['body']}; font-size: {size}pt; line-height: {rng.uniform(1.0, 1.6):.2f};"
        f" text-align: {('justify', 'left', 'left', 'center')[int(rng.integers(4))]}}}\n"
        f"h2 {{font-family: {family['head']}; font-size: {size * rng.uniform(1.0, 1.7):.1f}pt}}\n"
        f"pre {{font-family: {family['code']}; font-size: {max(7.0, size * 0.85):.1f}pt; text-align: left}}\n"
        f"p {{margin: 0 0 {rng.uniform(0, 0.8):.2f}em 0; text-indent: {float(rng.choice([0, 0, 1.5]))}em}}\n"
    )
    page = pymupdf.Rect(0, 0, width + 40, 720)
    story = pymupdf.Story(
        _story_html(corpora, rng, room=round(100_000 / size / size * width / 400)), user_css=css, archive=archive
    )
    stored = io.BytesIO()
    writer = pymupdf.DocumentWriter(stored)
    device = writer.begin_page(page)
    story.place(pymupdf.Rect(20, 20, page.width - 20, page.height - 20))
    story.draw(device)
    writer.end_page()
    writer.close()
    return stored.getvalue()


def _story_html(corpora: Corpora, rng: np.random.Generator, room: int) -> str:
    """HTML blocks of about `room` characters in all; prose goes on from a random place of a document."""
    blocks: list[str] = []
    while sum(map(len, blocks)) < room:
        text = pick(corpora.prose, rng)
        start = int(rng.integers(len(text.parts)))
        for part in text.parts[start : start + int(rng.integers(2, 7))]:
            kind = rng.random()
            if kind < 0.08:
                blocks.append(f"<h2>{html.escape(heading(part, rng))}</h2>")
            elif kind < 0.14 and corpora.code:
                blocks.append(f"<pre>{html.escape(listing(pick(pick(corpora.code, rng).parts, rng), rng))}</pre>")
            elif kind < 0.24:
                points = re.split(r"(?<=[,;.]) ", part)[:4]
                items = "".join(f"<li>{html.escape(salted(point, rng))}</li>" for point in points)
                blocks.append(f"<ul>{items}</ul>" if rng.random() < 0.5 else f"<ol>{items}</ol>")
            elif kind < 0.36:
                token = made_up if rng.random() < 0.5 else figure
                blocks.append(f"<p>{html.escape(' '.join(token(rng) for _ in range(int(rng.integers(4, 20)))))}</p>")
            else:
                blocks.append(f"<p>{_styled(salted(part, rng), rng)}</p>")
    return "".join(blocks)


def made_up(rng: np.random.Generator) -> str:
    """A token that prose is poor in: a number, date, price, unit, identifier, address, reference, or random letters."""
    a, b, c = (int(v) for v in rng.integers(0, 10 ** rng.integers(1, 5, 3)))
    word, other = ("".join(pick(_LETTERS, rng) for _ in range(int(rng.integers(2, 9)))) for _ in range(2))
    accented = "".join(pick(_RARE, rng) for _ in range(int(rng.integers(1, 5))))
    return pick(
        (
            f"{a}", f"{a}.{b}", f"{a},{b % 1000:03}", f"−{a}.{b % 100}", f"{a}%", f"({a})", f"[{a % 100}, {b % 100}]",
            f"{a}–{b}", f"${a}.{b % 100:02}", f"€{a}", f"£{a}", f"{a} {pick(UNITS, rng)}", f"{a} × {b}",
            f"{a} ± {b}", f"{a}/{b}", f"{a}:{b % 60:02}", f"{1900 + a % 130}-{1 + b % 12:02}-{1 + c % 28:02}",
            f"{1 + b % 28}.{1 + a % 12}.{1990 + c % 40}", f"No. {a}", f"§ {a % 100}", f"{word}_{other}",
            f"{word}{other.capitalize()}", f"{word}.{other}()", f"--{word}={a}", f"0x{a:04X}", f"{word.upper()}-{a}",
            f"{word}@{other}.org", f"https://{word}.{other}.com/{a}", f"www.{word}.net", f"/{word}/{other}.py",
            f"#{a}", f"&{word};", f"“{word}”", f"‘{other}’", f"„{word}“", f"«{other}»", f"{word}—{other}", f"{word}…",
            f"{word}!", f"{other}?", f"{word};", f"{word.capitalize()} {other.upper()}", f"{word.upper()}",
            f"{accented}", f"{word}{accented}{other}", f"{accented.upper()}", f"{word}*", f"{word} → {other}",
            f"{word} ≤ {a}", f"{word} = {b}", f"{word} ~ {a}", f"{{{word}}}", f"<{word}>", f"{word}\\{other}",
            f"{word}^{a % 10}", f"|{word}|", f"`{word}`", f"'{other}'", f'"{word}"', f"{word}†", f"• {word}",
            f"© {a}", f"{word}®",
        ),
        rng,
    )  # fmt: skip


def figure(rng: np.random.Generator) -> str:
    """What stands in the cells of tables."""
    a, b, c = (int(v) for v in rng.integers(0, 10 ** rng.integers(1, 6, 3)))
    return pick(
        (
            f"{a}", f"{a}", f"{a % 1000}.{b % 100}", f"{a % 100}.{b % 10}", f"0.{b % 1000:03}",
            f"{a} ({b % 100}.{c % 10})",
            f"{a % 100}.{b % 10} ± {c % 10}.{a % 10}", f"{a % 1000},{b % 1000:03}", f"−{a % 100}.{b % 10}",
            f"{a % 101}%",
            f"({a % 10}.{b % 100:02}–{c % 10}.{a % 100:02})", f"({a % 100}.{b % 10}%)", f"< 0.{'0' * (a % 4)}1",
            f"<0.{b % 100:02}", f"p = 0.{c % 1000:03}", f"n = {a}", f"{a % 100}/{b % 100}", f"{a % 90}–{a % 90 + 9}",
            f"{b % 100:02}:{c % 60:02}", "–", "*", "**", "NS", "n/a", "N (%)", "SD", "95% CI", f"{2000 + a % 30}",
        ),
        rng,
    )  # fmt: skip


def salted(text: str, rng: np.random.Generator) -> str:
    """The text with a made-up token here and there."""
    words = text.split(" ")
    for _ in range(len(words) // 12):
        if rng.random() < 0.5:
            words.insert(int(rng.integers(len(words))), made_up(rng))
    return " ".join(words)


def _styled(text: str, rng: np.random.Generator) -> str:
    """Escaped text; at times a stretch of it in bold, italic or typewriter."""
    words = text.split(" ")
    if rng.random() < 0.6 or len(words) < 6:
        return html.escape(text)
    start = int(rng.integers(len(words) - 3))
    end = start + int(rng.integers(1, 6))
    tag = pick(("b", "i", "code"), rng)
    before, inside, after = (html.escape(" ".join(part)) for part in (words[:start], words[start:end], words[end:]))
    return f"{before} <{tag}>{inside}</{tag}> {after}"


def heading(text: str, rng: np.random.Generator) -> str:
    title = " ".join(text.split(" ")[: int(rng.integers(1, 8))]).rstrip(".,;:")
    number = pick(
        ("", "", f"{int(rng.integers(1, 12))}. ", f"{int(rng.integers(1, 9))}.{int(rng.integers(1, 9))} "), rng
    )
    return number + pick((title, title.title(), title.upper()), rng)


def listing(code: str, rng: np.random.Generator) -> str:
    lines = [line for line in code.split("\n") if line.strip()]
    start = int(rng.integers(max(1, len(lines) - 8)))
    return "\n".join(line[:70] for line in lines[start : start + 8])


def font_of(fonts: Sequence[Path], rng: np.random.Generator, mono: bool) -> Path | None:
    """A font by family, then within it; half the time an upright one of plain weight."""
    fitting = [font for font in fonts if bool(_MONO.search(font.name)) is mono] or fonts
    if not fitting:
        return None
    family = pick(sorted({family_of(font) for font in fitting}), rng)
    members = [font for font in fitting if family_of(font) == family]
    plain = [font for font in members if _PLAIN.search(font.stem)]
    return pick(plain if plain and rng.random() < 0.5 else members, rng)


def pick(items: Sequence[T], rng: np.random.Generator) -> T:
    return items[int(rng.integers(len(items)))]


def draw_formula(corpora: Corpora, rng: np.random.Generator, dpi: float) -> tuple[NDArray[np.uint8], str]:
    """A formula, black on white [H, W] without margins, and its LaTeX: an image of the corpora, or a drawing."""
    while True:
        if corpora.formulas and (not corpora.latex or corpora.sheets or rng.random() < 0.4):
            path, latex = pick(corpora.formulas, rng)
            image, scale = Image.fromarray(formula_ink(path)), dpi / FORMULA_IMAGE_DPI
            size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
            return np.asarray(image.resize(size, Image.Resampling.BOX)), latex
        with suppress(UnknownSpelling):
            latex = normal_latex(pick(corpora.latex, rng))
            family = pick(("cm", "cm", "cm", "stix", "dejavuserif"), rng)
            pixels = typeset_formula(latex, rng.uniform(9, 13), dpi, family)
            if pixels is not None:
                return pixels, latex


def typeset_formula(latex: str, points: float, dpi: float, family: str) -> NDArray[np.uint8] | None:
    """A formula drawn by matplotlib in one of its families, grey [H, W]; None where mathtext can't read it."""
    from matplotlib.font_manager import FontProperties  # heavy, and only needed for formulas
    from matplotlib.mathtext import MathTextParser

    try:
        drawn = MathTextParser("agg").parse(f"${latex}$", dpi, FontProperties(size=points, math_fontfamily=family))
    except (ValueError, RuntimeError):
        return None
    return np.uint8(255) - np.asarray(drawn.image, np.uint8)


@lru_cache(maxsize=1000)
def formula_ink(path: Path) -> NDArray[np.uint8]:
    """The inked part of a formula's sheet, grey [H, W], dark on white; the sheet is mostly one colour of a palette."""
    with Image.open(path) as image:
        sheet = np.asarray(image if image.mode == "P" else image.convert("L"))
        ink = sheet != np.bincount(sheet[::8, ::8].ravel()).argmax()
        rows, columns = np.nonzero(ink.any(axis=1))[0], np.nonzero(ink.any(axis=0))[0]
        part = image.crop((int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1)).convert("RGBA")
    return np.asarray(Image.alpha_composite(Image.new("RGBA", part.size, "white"), part).convert("L"))
