"""What belongs together over lines, columns and pages."""

from collections.abc import Iterator, Sequence

from gravityocr_cli.assemble import assemble
from gravityocr_cli.blocks import block_of, lost_block
from gravityocr_cli.document import Block, Kind, Line, Region
from gravityocr_cli.elements import (
    Aside,
    Element,
    Figure,
    Formula,
    Heading,
    ItemList,
    Lost,
    PageBreak,
    Paragraph,
    Table,
)
from gravityocr_models.signs import Box

LEFT, RIGHT = (72.0, 290.0), (320.0, 540.0)


def block(
    kind: Kind,
    text: str,
    top: float = 72,
    column: tuple[float, float] = LEFT,
    page: int = 1,
    lines: tuple[Line, ...] = (),
    height: float = 40,
) -> Block:
    return block_of(Region(page, 0, kind, Box(column[0], top, column[1], top + height), lines), text)


def shown(*pages: Sequence[Block]) -> list[str]:
    """The elements as short texts, page breaks left out."""
    return [_show(each) for each in assemble(enumerate(pages, start=1)) if not isinstance(each, PageBreak)]


def _show(element: Element) -> str:
    match element:
        case Paragraph(text) | Aside(text):
            return text
        case Heading(level, text):
            return f"{'#' * level} {text}"
        case ItemList(items):
            return " / ".join(f"{'.' * item.depth}{item.number or '-'} {item.text}" for item in items)
        case Table(markup, caption):
            return f"[{caption}] {markup.count('<tr>')} rows"
        case Figure(path, caption):
            return f"({path}) {caption}"
        case _:
            return repr(element)


def cells(*rows: str) -> str:
    return "<table>" + "".join(f"<tr><td>{row.replace(',', '</td><td>')}</td></tr>" for row in rows) + "</table>"


def test_paragraph_over_columns() -> None:
    first = block(Kind.TEXT, "It goes on\nin the next", 600)
    second = block(Kind.TEXT, "column and ends.", 72, RIGHT)
    assert shown([first, second]) == ["It goes on in the next column and ends."]
    below = block(Kind.TEXT, "column and ends.", 660)
    assert shown([first, below]) == ["It goes on in the next", "column and ends."]


def test_paragraph_over_pages_past_furniture_footnotes_and_floats() -> None:
    one = [
        block(Kind.TEXT, "A sentence about algo-", 600),
        block(Kind.FOOTNOTE, "1 A note.", 700),
        block(Kind.FOOTER, "page 1", 750),
    ]
    two = [
        block(Kind.HEADER, "Journal of X", 20, page=2),
        block(Kind.PICTURE, "a.png", 72, page=2),
        block(Kind.CAPTION, "Figure 1: A.", 120, page=2),
        block(Kind.TEXT, "rithms. Done.", 200, page=2),
    ]
    assert shown(one, two) == [
        "A sentence about algorithms. Done.",
        "page 1",
        "1 A note.",
        "Journal of X",
        "(a.png) Figure 1: A.",
    ]


def test_what_ends_a_paragraph() -> None:
    ended = block(Kind.TEXT, "It is over (really.)", 600)
    assert len(shown([ended], [block(Kind.TEXT, "lower case start.", page=2)])) == 2
    unfinished = block(Kind.TEXT, "It stands open", 600)
    assert len(shown([unfinished], [block(Kind.TEXT, "Capital start.", page=2)])) == 2
    function_word = block(Kind.TEXT, "They met in", 600)
    assert shown([function_word], [block(Kind.TEXT, "Berlin again.", page=2)]) == ["They met in Berlin again."]
    heading = block(Kind.HEADING, "2 Next", page=2)
    assert len(shown([unfinished], [heading, block(Kind.TEXT, "lower.", 200, page=2)])) == 3
    short = (
        Line(Box(72, 600, 290, 610), "It stands open in the middle", 10),
        Line(Box(72, 612, 120, 622), "of it", 10),
    )
    stops = block(Kind.TEXT, "It stands open in the middle\nof it", 600, lines=short)
    assert len(shown([stops], [block(Kind.TEXT, "lower.", page=2)])) == 2


def test_before_a_name_or_a_bracket_the_setting_tells() -> None:
    def lines(x0: float, top: float, right: float = 290) -> tuple[Line, ...]:
        rows = ((x0, top, right), (72, top + 14, 290))
        return tuple(Line(Box(left, y, end, y + 10), "x" * 30, 10) for left, y, end in rows)

    first = block(Kind.TEXT, "in reference by the group of Ann\nand the late Bob", 600, lines=lines(72, 600))
    for second in ("Writer et al. say.\nIt is so.", "(see there).\nIt is so."):
        flush = block(Kind.TEXT, second, page=2, lines=lines(72, 72))
        indented = block(Kind.TEXT, second, page=2, lines=lines(84, 72))
        assert len(shown([first], [flush])) == 1
        assert len(shown([first], [indented])) == 2


def test_cjk_paragraph_goes_on_where_the_setting_says_so() -> None:
    def lines(x0: float, top: float) -> tuple[Line, ...]:
        return (Line(Box(x0, top, 290, top + 10), "行" * 20, 10), Line(Box(72, top + 14, 290, top + 24), "行" * 21, 10))

    first = block(Kind.TEXT, "上の行\n続く", 600, lines=lines(72, 600))
    assert shown([first], [block(Kind.TEXT, "次の行。", page=2, lines=lines(72, 72))]) == ["上の行続く次の行。"]
    assert len(shown([first], [block(Kind.TEXT, "次の行。", page=2, lines=lines(92, 72))])) == 2


def test_case_17_vocabulary_of_the_pages_so_far() -> None:
    one = [block(Kind.TEXT, "On blood-feeding and algorithms.")]
    two = [block(Kind.TEXT, "The n-\ntridecanal, algo-\nrithms, blood-\nfeeding, mid-\nto late.", page=2)]
    assert shown(one, two)[1] == "The n-tridecanal, algorithms, blood-feeding, mid- to late."


def test_blank_lines_part_paragraphs() -> None:
    assert shown([block(Kind.TEXT, "One\nline.\n\nTwo.")]) == ["One line.", "Two."]


def test_headings_and_levels() -> None:
    texts = [
        (Kind.TITLE, "A\nTitle"),
        (Kind.HEADING, "1 One"),
        (Kind.HEADING, "1.3 Two"),
        (Kind.HEADING, "1.3.1 Three"),
    ]
    blocks = [block(kind, text, 72 + 50 * at) for at, (kind, text) in enumerate(texts)]
    assert shown(blocks) == ["# A Title", "## 1 One", "### 1.3 Two", "#### 1.3.1 Three"]


def test_captions_find_their_own() -> None:
    page = [
        block(Kind.CAPTION, "Table 1. T.", 60),
        block(Kind.TABLE, cells("a,b"), 110),
        block(Kind.PICTURE, "f.png", 160),
        block(Kind.CAPTION, "Fig. 1. F.", 210),
        block(Kind.TABLE, cells("c,d"), 400),
        block(Kind.CAPTION, "Table 2. U.", 450),
    ]
    assert shown(page) == ["[Table 1. T.] 1 rows", "(f.png) Fig. 1. F.", "[Table 2. U.] 1 rows"]


def test_label_wins_over_distance() -> None:
    page = [
        block(Kind.PICTURE, "f.png", 60),
        block(Kind.CAPTION, "Table 1. T.", 110),
        block(Kind.TABLE, cells("a,b"), 170),
    ]
    assert shown(page) == ["(f.png) ", "[Table 1. T.] 1 rows"]


def test_a_caption_without_a_float_is_kept() -> None:
    assert shown([block(Kind.CAPTION, "Figure 9. Gone.")]) == ["Figure 9. Gone."]


def test_footnotes_close_their_page() -> None:
    page = [
        block(Kind.FOOTNOTE, "1 First note\n3 wise men.\n2 Second.\n* Star.", 700),
        block(Kind.TEXT, "Text in the right column.", 72, RIGHT),
    ]
    assert shown(page) == ["Text in the right column.", "1 First note 3 wise men.", "2 Second.", "* Star."]


def test_equation_number_beside_its_formula() -> None:
    page = [
        block(Kind.FORMULA, "E = mc^2", 100),
        block(Kind.TEXT, "(2.1)", 110, RIGHT),
        block(Kind.TEXT, "(3)", 400),
    ]
    assert shown(page) == [repr(Formula("E = mc^2 \\tag{2.1}")), "(3)"]


def test_list_items_in_regions_of_their_own() -> None:
    page = [
        block(Kind.TEXT, "1. one", 100),
        block(Kind.TEXT, "2. two", 150),
        block(Kind.LIST, "• in", 200, (92, 290)),
        block(Kind.TEXT, "3. three", 250),
    ]
    assert shown(page[:2]) == ["1. one / 2. two"]
    assert shown([*page[:3]]) == ["1. one / 2. two / .- in"]
    assert shown([block(Kind.TEXT, "1. alone", 100)]) == ["1. alone"]


def test_list_item_goes_on_over_a_page() -> None:
    one = [block(Kind.LIST, "• first\n• second is bro-", 600)]
    two = [block(Kind.LIST, "ken in two\n• third", page=2)]
    assert shown(one, two) == ["- first / - second is broken in two", "- third"]
    assert shown(one, [block(Kind.TEXT, "ken off.", page=2)]) == ["- first / - second is broken off."]


def test_case_27_table_over_three_pages() -> None:
    pages = [
        [block(Kind.CAPTION, "Table 1.", 500), block(Kind.TABLE, cells("k,v"), 550)],  # the header alone
        [block(Kind.TABLE, cells("k,v", "a,1", "b,2"), page=2), block(Kind.FOOTER, "2", 750, page=2)],
        [block(Kind.CAPTION, "Table 1 (continued)", 50, page=3), block(Kind.TABLE, cells("c,3", "d,4"), 100, page=3)],
    ]
    assert shown(*pages) == ["[Table 1.] 5 rows", "2"]


def test_tables_that_are_two_stay_two() -> None:
    one = [block(Kind.TABLE, cells("k,v"), 550)]
    assert len(shown(one, [block(Kind.TABLE, cells("a,b,c"), column=(72, 200), page=2)])) == 2
    named = [block(Kind.CAPTION, "Table 2.", 50, page=2), block(Kind.TABLE, cells("a,1"), page=2)]
    assert len(shown(one, named)) == 2
    parted = [block(Kind.TEXT, "Text.", page=2), block(Kind.TABLE, cells("a,1"), 200, page=2)]
    assert len(shown(one, parted)) == 3


def test_lost_regions_stay_in_place() -> None:
    lost = lost_block(Region(1, 4, Kind.TEXT, Box(0, 0, 1, 1)), "time limit")
    elements = list(assemble([(1, [block(Kind.TEXT, "Before."), lost, block(Kind.TEXT, "After.", 200)])]))
    assert elements[1] == Lost(1, 4, "time limit")


def test_page_breaks_follow_what_was_joined() -> None:
    pages = [(1, [block(Kind.TEXT, "one and", 600)]), (2, [block(Kind.TEXT, "two.", page=2)]), (9, [])]
    elements = list(assemble(pages))
    assert [type(each) for each in elements] == [Paragraph, PageBreak, PageBreak]
    assert elements[2] == PageBreak(9)


def test_pages_are_taken_one_at_a_time() -> None:
    taken = 0

    def pages() -> Iterator[tuple[int, list[Block]]]:
        nonlocal taken
        for number in range(1, 200):
            taken = number
            yield (
                number,
                [block(Kind.TEXT, "It is never finished", 600, page=number), block(Kind.PICTURE, "a.png", page=number)],
            )

    for element in assemble(pages()):
        if isinstance(element, Paragraph):
            assert taken - element.last.page <= 1
    assert taken == 199


def test_an_open_end_is_not_held_for_ever() -> None:
    taken = 0

    def pages() -> Iterator[tuple[int, list[Block]]]:
        nonlocal taken
        for number in range(1, 200):
            taken = number
            kind, text = (Kind.TEXT, "It is never finished") if number == 1 else (Kind.PICTURE, "a.png")
            yield number, [block(kind, text, page=number)]

    first = next(assemble(pages()))
    assert isinstance(first, Paragraph)
    assert taken < 6


def test_the_bibliography_is_a_list_up_to_the_next_heading() -> None:
    one = [block(Kind.HEADING, "6. References"), block(Kind.TEXT, "Ann, B. 2007a On crabs. J. Crabs 3, 1.", 120)]
    two = [
        block(Kind.TEXT, "Bob, C. 1999 On fish.", page=2),
        block(Kind.TEXT, "Received yesterday.", 120, page=2),
        block(Kind.HEADING, "Appendix", 300, page=2),
        block(Kind.TEXT, "Since 2001.", 400, page=2),
    ]
    assert shown(one, two) == [
        "## 6. References",
        "- Ann, B. 2007a On crabs. J. Crabs 3, 1.",
        "- Bob, C. 1999 On fish.",
        "Received yesterday.",
        "## Appendix",
        "Since 2001.",
    ]


def test_what_hangs_under_an_unfinished_item_is_its_rest() -> None:
    first = block(Kind.LIST, "[1] Ann, B., Bob, C.,", 100)
    rest = block(Kind.LIST, "Dora, E. On crabs.", 114, (84.0, 290.0))
    assert shown([first, rest]) == ["- [1] Ann, B., Bob, C., Dora, E. On crabs."]


def test_what_breaks_off_within_a_word_waits_for_its_rest() -> None:
    first = block(Kind.TEXT, "They speak of bal-", 600)
    note = block(Kind.TEXT, "Signed networks have weights.", 700)
    assert shown([first, note], [block(Kind.TEXT, "ance alone.", page=2)]) == [
        "They speak of balance alone.",
        "Signed networks have weights.",
    ]
    assert shown([first, note], [block(Kind.HEADING, "Next", page=2)])[0] == "They speak of bal-"
