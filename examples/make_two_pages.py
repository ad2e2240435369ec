"""Draws examples/two-pages.pdf: what a report has, on two pages. Run: python examples/make_two_pages.py

Title, headings, two columns, a list, a ruled table, a displayed formula and a figure with its caption, in the STIX
fonts that matplotlib brings (embedded as subsets). The same bytes come out each time.
"""

from math import exp
from pathlib import Path

import matplotlib
import pymupdf

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
ROMAN, BOLD, ITALIC = (pymupdf.Font(fontfile=str(FONTS / f"STIXGeneral{style}.ttf")) for style in ("", "Bol", "Italic"))
LEFT, RIGHT, GAP = 60.0, 552.0, 24.0
COLUMN = (RIGHT - LEFT - GAP) / 2
LEADING = 1.25

INTRODUCTION = (
    """A gauge on the pier has written down the height of the sea every six minutes since the spring of 1962. The paper
    rolls were copied by hand until 1987, and two of them were lost in a flood. What is left covers 97.3 % of the time,
    enough to ask how fast the mean level rises and whether the rise itself is growing.""",
    """This note describes the station, the way in which gaps were filled, and the trend that remains once tides, air
    pressure and the seasons have been taken out. All heights are given in millimetres above the bench mark on the
    church wall.""",
)
STATION = """The stilling well is a steel pipe of 0.45 m across, open to the harbour through a hole of 25 mm at its
foot. Waves shorter than a minute do not pass. The float was replaced in 2004 by a radar that looks down the same pipe,
and both were kept running side by side for eleven months. Their difference has a mean of 0.8 mm and no trend, so that
the two records can be joined without a step."""
GAPS = """Gaps of up to three hours were bridged by a cubic. For longer ones the neighbouring port, 31 km to the
north, gives the surge, and the local tide is added to it. Months with more than ten missing days were left out."""
LIST = (
    "Remove the tide with 37 constituents, fitted year by year.",
    "Correct for air pressure: one hectopascal less lifts the sea by 9.95 mm.",
    "Average over months, then take out the mean seasonal curve.",
    "Fit level, rate and acceleration together, with errors that remember the month before.",
)
HEAD = ("Years", "Months", "Mean (mm)", "Rate (mm/yr)")
BODY = (
    ("1962–1979", "205", "6 981", "1.2 ± 0.4"),
    ("1980–1999", "236", "7 012", "1.7 ± 0.3"),
    ("2000–2024", "298", "7 069", "3.1 ± 0.2"),
)
RESULT = """Table 1 gives the rate in three stretches, and Figure 1 the yearly means. The last stretch rises more than
twice as fast as the first. With the curve of equation (1) the acceleration is 0.041 mm per year squared, and it differs
from zero by more than four times its standard error."""


def put(page: pymupdf.Page, x: float, y: float, text: str, font: pymupdf.Font = ROMAN, size: float = 10) -> float:
    """Text with its baseline at (x, y); where it ends."""
    writer = pymupdf.TextWriter(page.rect)
    writer.append((x, y), text, font=font, fontsize=size)
    writer.write_text(page)
    return float(x + font.text_length(text, size))


def centre(page: pymupdf.Page, y: float, text: str, font: pymupdf.Font = ROMAN, size: float = 10) -> None:
    put(page, (LEFT + RIGHT - font.text_length(text, size)) / 2, y, text, font, size)


def paragraph(page: pymupdf.Page, x: float, y: float, text: str, width: float, size: float = 10) -> float:
    """Text broken into lines of at most `width`; the baseline after the last."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if ROMAN.text_length(longer, size) > width:
            put(page, x, y, line, size=size)
            y, longer = y + LEADING * size, word
        line = longer
    put(page, x, y, line, size=size)
    return y + LEADING * size


def first_page(page: pymupdf.Page) -> None:
    centre(page, 84, "Sixty Years of Sea Level at a Small Harbour", BOLD, 20)
    centre(page, 108, "A. Writer and B. Reader", ITALIC, 11)
    y = put_heading(page, LEFT, 150, "1 Introduction")
    for text in INTRODUCTION:
        y = paragraph(page, LEFT, y, text, COLUMN) + 6
    y = put_heading(page, LEFT, y + 12, "2 The station")
    paragraph(page, LEFT, y, STATION, COLUMN)
    right = LEFT + COLUMN + GAP
    y = put_heading(page, right, 150, "3 Gaps")
    y = paragraph(page, right, y, GAPS, COLUMN)
    y = put_heading(page, right, y + 18, "4 Method")
    y = paragraph(page, right, y, "The monthly series was made in four steps:", COLUMN) + 2
    for number, item in enumerate(LIST, 1):
        put(page, right + 6, y, f"{number}.")
        y = paragraph(page, right + 22, y, item, COLUMN - 22) + 2
    centre(page, 750, "1")


def put_heading(page: pymupdf.Page, x: float, y: float, text: str) -> float:
    put(page, x, y, text, BOLD, 13)
    return y + 20


def second_page(page: pymupdf.Page) -> None:
    y = put_heading(page, LEFT, 84, "5 Model and result")
    y = paragraph(page, LEFT, y, "The height in month t, counted in years from 1993, is taken to be", RIGHT - LEFT)
    equation(page, y + 22)
    y = paragraph(page, LEFT, y + 56, RESULT, RIGHT - LEFT)
    centre(page, y + 20, "Table 1. Rate of the mean level in three stretches.", size=9)
    y = table(page, y + 30)
    figure(page, pymupdf.Rect(140, y + 30, 472, y + 220))
    centre(page, y + 240, "Figure 1. Yearly mean level, 1962 to 2024.", size=9)
    y = put_heading(page, LEFT, y + 280, "6 Data")
    paragraph(page, LEFT, y, "The series is kept by the harbour office and may be used by anyone.", RIGHT - LEFT)
    centre(page, 750, "2")


def equation(page: pymupdf.Page, y: float) -> None:
    """h(t) = h₀ + rt + ½at² + Σ cₖ cos(2πkt + φₖ), set by hand."""
    x = put(page, 150, y, "h", ITALIC, 13)
    x = put(page, x, y, "(t) = h", ITALIC, 13)
    x = put(page, x, y + 3, "0", size=9)
    x = put(page, x, y, " + rt + ", ITALIC, 13)
    put(page, x + 2, y - 7, "1", size=11)
    put(page, x + 2, y + 9, "2", size=11)
    page.draw_line((x, y - 4), (x + 10, y - 4), width=0.6)
    x = put(page, x + 12, y, "at", ITALIC, 13)
    x = put(page, x, y - 5, "2", size=9)
    x = put(page, x, y, " + ", size=13)
    put(page, x + 5, y - 14, "2", size=9)
    put(page, x + 1, y + 16, "k=1", ITALIC, 9)
    x = put(page, x, y + 3, "∑", size=20)
    for text, font, drop, size in (
        (" c", ITALIC, 0, 13),
        ("k", ITALIC, 3, 9),
        (" cos(2π", ROMAN, 0, 13),
        ("kt", ITALIC, 0, 13),
        (" + φ", ITALIC, 0, 13),
        ("k", ITALIC, 3, 9),
        (")", ROMAN, 0, 13),
    ):
        x = put(page, x, y + drop, text, font, size)
    put(page, RIGHT - 16, y, "(1)", size=11)


def table(page: pymupdf.Page, top: float) -> float:
    """The ruled table; its lower edge."""
    left, width, height = 126.0, 90.0, 20.0
    for row, cells in enumerate((HEAD, *BODY)):
        for column, text in enumerate(cells):
            box = pymupdf.Rect(0, 0, width, height) + (left + column * width, top + row * height) * 2
            page.draw_rect(box, width=0.7)
            put(page, box.x0 + 6, box.y1 - 6, text, BOLD if row == 0 else ROMAN, 10)
    return top + height * (1 + len(BODY))


def figure(page: pymupdf.Page, box: pymupdf.Rect) -> None:
    """A line with a wiggle that rises faster to the right, in a frame with two axis labels."""
    page.draw_rect(box, color=(0.2, 0.2, 0.2), fill=(0.96, 0.97, 1), width=0.8)
    years = range(63)
    levels = [1.2 * t + 0.02 * t * t + 9 * exp(-(((t % 7) - 3) ** 2)) for t in years]
    points = [(box.x0 + 12 + t * 4.9, box.y1 - 16 - 0.9 * level) for t, level in zip(years, levels, strict=True)]
    page.draw_polyline(points, color=(0.1, 0.3, 0.7), width=1.4)
    put(page, box.x0 + 6, box.y0 + 14, "mm", size=8)
    put(page, box.x1 - 30, box.y1 - 5, "year", size=8)


def main() -> None:
    document = pymupdf.open()
    first_page(document.new_page(width=612, height=792))
    second_page(document.new_page(width=612, height=792))
    document.set_metadata({"title": "Sixty Years of Sea Level at a Small Harbour"})
    document.subset_fonts()
    target = Path(__file__).with_name("two-pages.pdf")
    document.save(target, garbage=4, deflate=True, no_new_id=True)


if __name__ == "__main__":
    main()
