"""What the text says about a region's kind."""

from dataclasses import replace

import numpy as np
import pytest

from gravityocr_cli.document import Kind, Line, Page, Region, Span, Style
from gravityocr_cli.kinds import settled
from gravityocr_models.signs import Box

BODY = tuple(Line(Box(50, 300 + 12 * i, 550, 310 + 12 * i), "running text of the page " * 3, 10) for i in range(9))


def line(text: str, y: float = 100, x: float = 50, size: float = 10, bold: bool = False, italic: bool = False) -> Line:
    spans = (Span(text, Style(italic=True)),) if italic else ()
    return Line(Box(x, y, x + 5 * len(text), y + size), text, size, bold, spans=spans)


def kind_of(*lines: Line, kind: Kind = Kind.TEXT) -> Kind:
    box = Box(min(x.box.x0 for x in lines), lines[0].box.y0, max(x.box.x1 for x in lines), lines[-1].box.y1)
    page = Page(2, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), (*lines, *BODY))
    body = Region(1, 1, Kind.TEXT, Box(50, 300, 550, 406), BODY)
    return settled([Region(1, 0, kind, box, lines), body], page)[0].kind


@pytest.mark.parametrize(
    "lines",
    [
        [line("B.", bold=True), line("Weak coupling regime", x=80, bold=True)],
        [line("II.", bold=True), line("THE BESIII DETECTOR", x=80, bold=True)],
        [line("2. Clones of maps, counting and examples to", x=100), line("a claim", y=112, x=190)],
        [line("Inputs and outputs", bold=True)],
        [line("Something larger", size=14)],
        [line("3.2 Plain but numbered")],
    ],
)
def test_headings_that_were_called_text(lines: list[Line]) -> None:
    assert kind_of(*lines) is Kind.HEADING


@pytest.mark.parametrize(
    "lines",
    [
        [line("A bold sentence ends with a point.", bold=True)],
        [line("a few words")],
        [line("Note:", bold=True)],
        [line("1. Apples"), line("2. Pears", y=112)],
        [line("A. B. Cee, D. Eff, and some others", bold=True), line("(of a place)", y=112)],
    ],
)
def test_text_that_stays_text(lines: list[Line]) -> None:
    assert kind_of(lines[0]) is Kind.TEXT if len(lines) == 1 else kind_of(*lines) is Kind.TEXT


def test_a_bold_name_before_what_it_is_said_to_be_is_no_heading() -> None:
    name = replace(
        line("License.txt and the licence", bold=True),
        spans=(Span("License.txt", Style(bold=True)), Span(" and the licence")),
    )
    assert kind_of(name) is Kind.TEXT


@pytest.mark.parametrize(
    ("text", "kind"), [("2. Models", Kind.HEADING), ("E = m c", Kind.FORMULA), ("2 sin x", Kind.FORMULA)]
)
def test_a_formula_that_is_a_heading_is_one(text: str, kind: Kind) -> None:
    assert kind_of(line(text), kind=Kind.FORMULA) is kind


def test_a_formula_that_is_the_pages_number_is_none() -> None:
    assert kind_of(line("17", y=20, x=300), kind=Kind.FORMULA) is Kind.HEADER


@pytest.mark.parametrize(("text", "kind"), [("The contributions are:", Kind.TEXT), ("• the first", Kind.LIST)])
def test_a_list_of_one_line_without_a_mark_is_text(text: str, kind: Kind) -> None:
    assert kind_of(line(text), kind=Kind.LIST) is kind


def test_a_word_of_the_body_is_no_heading() -> None:
    assert kind_of(line("returns:"), kind=Kind.HEADING) is Kind.TEXT
    assert kind_of(line("Results"), kind=Kind.HEADING) is Kind.HEADING


def test_a_dotted_number_in_bold_is_no_item() -> None:
    assert kind_of(line("2.3 Data from the sea", bold=True), kind=Kind.LIST) is Kind.HEADING
    assert kind_of(line("2. Data from the sea", bold=True), kind=Kind.LIST) is Kind.LIST


def test_captions_by_their_label() -> None:
    assert kind_of(line("表3.1: 表格列格式"), kind=Kind.HEADING) is Kind.CAPTION
    assert kind_of(line("Figure 3. A thing."), kind=Kind.TEXT) is Kind.CAPTION
    assert kind_of(line("IV. METHODS AS CONTROLLERS"), kind=Kind.CAPTION) is Kind.HEADING


def test_small_print_with_a_mark_under_the_text_is_a_note() -> None:
    assert kind_of(line("† The contacts started then.", y=700, size=8)) is Kind.FOOTNOTE
    assert kind_of(line("1 The contacts started then.", y=700, size=8)) is Kind.FOOTNOTE
    assert kind_of(line("1 The contacts started then.", y=700)) is Kind.TEXT
    assert kind_of(line("The contacts started then.", y=700, size=8)) is Kind.TEXT


def test_a_contents_table_is_a_list() -> None:
    rows = [line(f"Chapter {n} . . . . . . . . . . {10 * n}", y=100 + 12 * n) for n in range(5)]
    assert kind_of(*rows, kind=Kind.TABLE) is Kind.LIST


def test_a_slanted_section_line_is_split_off_its_paragraph() -> None:
    lines = (
        *(line("words of the paragraph", y=100 + 12 * n) for n in range(4)),
        line("A. Next Part", 148, italic=True),
    )
    page = Page(1, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), lines)
    regions = settled([Region(1, 0, Kind.TEXT, Box(50, 100, 300, 160), lines)], page)
    assert [(region.kind, len(region.lines)) for region in regions] == [(Kind.TEXT, 4), (Kind.HEADING, 1)]


def test_the_only_line_of_a_page_is_no_furniture() -> None:
    only = line("All there is", y=20)
    page = Page(1, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), (only,))
    (region,) = settled([Region(1, 0, Kind.HEADER, only.box, (only,))], page)
    assert region.kind is Kind.TEXT


def test_prose_in_two_columns_is_two_regions_and_labels_are_one() -> None:
    page = Page(1, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8))
    prose = tuple(line("a line of the column here", 100 + 12 * n, x) for n in range(3) for x in (50, 330))
    form = tuple(
        line(text, 100 + 12 * n, x) for n in range(3) for x, text in ((50, "Name:"), (330, "A value that is long"))
    )
    assert len(settled([Region(1, 0, Kind.TEXT, Box(50, 100, 500, 140), prose)], page)) == 2
    assert len(settled([Region(1, 0, Kind.TEXT, Box(50, 100, 500, 140), form)], page)) == 1


def test_a_running_head_is_split_off_the_text_under_it() -> None:
    head = (line("400", 30), line("BRITISH HUSBANDRY.", 30, 200), line("[Ch. XIX.", 30, 450))
    text = tuple(line("words of the page " * 4, 44 + 12 * n) for n in range(5))
    page = Page(1, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), (*head, *text))
    regions = settled([Region(1, 0, Kind.TEXT, Box(50, 30, 500, 110), (*head, *text))], page)
    assert [(region.kind, len(region.lines)) for region in regions] == [(Kind.HEADER, 3), (Kind.TEXT, 5)]


@pytest.mark.parametrize(
    ("text", "number", "kind"),
    [("A Long Look", 1, Kind.TITLE), ("A Long Look", 2, Kind.HEADING), ("3 A Long Look", 1, Kind.HEADING)],
)
def test_the_largest_heading_of_the_first_page_is_the_title(text: str, number: int, kind: Kind) -> None:
    head = line(text, size=18)
    page = Page(number, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), (head, *BODY))
    regions = [
        Region(number, 0, Kind.HEADING, head.box, (head,)),
        Region(number, 1, Kind.TEXT, Box(50, 300, 550, 406), BODY),
    ]
    assert settled(regions, page)[0].kind is kind


def test_a_bold_label_beside_its_value_is_no_heading() -> None:
    label, value = line("Invoice number", bold=True), line("4711", x=140)
    page = Page(2, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), (label, value, *BODY))
    regions = [Region(2, at, Kind.TEXT, each.box, (each,)) for at, each in enumerate((label, value))]
    assert [region.kind for region in settled(regions, page)] == [Kind.TEXT, Kind.TEXT]


def first_page(*regions: tuple[Kind, Line]) -> list[Kind]:
    """Kinds on a first page, over two lines of text."""
    text = tuple(Line(Box(50, 300 + 12 * i, 550, 310 + 12 * i), "running text " * 5, 10) for i in range(2))
    lines = (*(line for _, line in regions), *text)
    page = Page(1, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), lines)
    given = [Region(1, order, kind, each.box, (each,)) for order, (kind, each) in enumerate(regions)]
    return [region.kind for region in settled([*given, Region(1, 9, Kind.TEXT, Box(50, 300, 550, 322), text)], page)]


def test_what_stands_large_over_a_first_page_is_its_title() -> None:
    title = line("On the small crabs of the sea", x=230, y=60, size=12)
    numbered = line("400 ON THE SMALL CRABS. [Ch. XIX.", x=220, y=60, size=12)
    assert first_page((Kind.HEADER, numbered))[0] is Kind.HEADER
    assert first_page((Kind.HEADER, title))[0] is Kind.TITLE
    assert first_page((Kind.HEADING, title))[0] is Kind.TITLE
    assert first_page((Kind.HEADING, line("ON THE SMALL CRABS OF THE SEA", x=228, y=60)))[0] is Kind.TITLE
    left = line("1 Introduction", y=200, size=12)
    assert first_page((Kind.HEADING, title), (Kind.HEADING, left))[:2] == [Kind.TITLE, Kind.HEADING]
    assert first_page((Kind.HEADER, line("Journal of Crabs, vol. 3", x=240, y=60, size=9)))[0] is Kind.HEADER


def test_the_rest_of_an_address_is_no_heading() -> None:
    address = (Kind.TEXT, line("Observatory, Via Gobetti 93,", y=100, size=12))
    assert first_page(address, (Kind.TEXT, line("40129 Bologna, Italy", y=113, size=12)))[1] is Kind.TEXT
    assert first_page((Kind.TEXT, line("40129 Bologna, Italy", y=200, size=12)))[0] is Kind.HEADING


def test_a_listing_and_its_result_are_two_regions() -> None:
    code = [Line(Box(50, 100 + 12 * i, 150, 110 + 12 * i), "\\begin{it}", 10, mono=True) for i in range(3)]
    result = Line(Box(300, 106, 340, 116), "so it is", 10)
    page = Page(2, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), (*code, result, *BODY))
    region = Region(2, 0, Kind.TEXT, Box(50, 100, 340, 136), (*code, result))
    body = Region(2, 1, Kind.TEXT, Box(50, 300, 550, 406), BODY)
    assert [each.kind for each in settled([region, body], page)] == [Kind.CODE, Kind.TEXT, Kind.TEXT]


def test_an_index_in_two_columns_is_read_column_by_column() -> None:
    entries = [("apples", ". . . . 3"), ("pears", ". . . . . 5, 7"), ("plums and", ""), ("damsons", ". . . . 12–14")]
    lines = [
        Line(Box(x, 100 + 12 * row, x + 60, 110 + 12 * row), f"{name} {dots}".strip(), 10)
        for row, (name, dots) in enumerate(entries)
        for x in (50, 120)
    ]
    page = Page(2, 600, 800, 72, np.full((800, 600, 3), 255, np.uint8), (*lines, *BODY))
    region = Region(2, 0, Kind.TABLE, Box(50, 100, 180, 148), tuple(lines))
    body = Region(2, 1, Kind.TEXT, Box(50, 300, 550, 406), BODY)
    parts = settled([region, body], page)
    assert [(each.kind, each.box.x0, len(each.lines)) for each in parts[:2]] == [
        (Kind.LIST, 50, 4),
        (Kind.LIST, 120, 4),
    ]
    pairs = replace(region, kind=Kind.TEXT, lines=tuple(replace(each, text="a name: 5") for each in lines))
    assert len(settled([pairs, body], page)) == 2


def test_an_item_alone_is_no_heading_unless_it_is_set_as_one() -> None:
    assert kind_of(line("• one thing"), kind=Kind.HEADING) is Kind.TEXT
    assert kind_of(line("• One Thing", size=14), kind=Kind.HEADING) is Kind.HEADING


def test_what_announces_something_is_no_heading() -> None:
    assert kind_of(line("Parameters:", bold=True), kind=Kind.HEADING) is Kind.TEXT
    assert kind_of(line("2.1 Parameters:", bold=True), kind=Kind.HEADING) is Kind.HEADING
    assert kind_of(line("Parameters:", bold=True, size=14), kind=Kind.HEADING) is Kind.HEADING


def test_a_line_of_code_is_no_heading_unless_it_is_set_as_one() -> None:
    code = replace(line("\\setup{all}"), mono=True)
    assert kind_of(code, kind=Kind.HEADING) is Kind.CODE
    assert kind_of(replace(code, bold=True), kind=Kind.HEADING) is Kind.HEADING
