"""Running heads and feet, told by the pages around."""

from gravityocr_cli.document import Block, Kind, Line, Region
from gravityocr_cli.furniture import without_running_heads
from gravityocr_cli.report import Method, PageReport, RegionReport
from gravityocr_models.signs import Box


def page(number: int, *lines: tuple[float, str, float]) -> tuple[PageReport, list[Block]]:
    """Blocks of one line each: height on the page, text, font size."""
    blocks = []
    for order, (y, text, size) in enumerate(lines):
        box = Box(72, y, 300, y + size)
        kind = Kind.HEADING if size > 10 or text[0].isupper() else Kind.TEXT
        blocks.append(Block(Region(number, order, kind, box, (Line(box, text, size),)), text))
    regions = tuple(RegionReport(order, "text", (0, 0, 1, 1), Method.LAYER) for order in range(len(blocks)))
    return PageReport(number, 0.0, regions=regions), blocks


def paper(numbers: range) -> list[tuple[PageReport, list[Block]]]:
    heads = {0: "Ann and Bob", 1: "On small crabs"}
    return [
        page(n, (50, f"{n} {heads[n % 2]}", 9), (90, f"text of page {'abcdefg'[n]}", 10), (700, str(n + 40), 10))
        for n in numbers
    ]


def texts(pages: list[tuple[PageReport, list[Block]]], keep: bool = False) -> list[list[str]]:
    return [[block.text for block in blocks] for _, blocks in without_running_heads(pages, keep)]


def test_what_repeats_at_one_height_is_dropped_and_reported() -> None:
    assert texts(paper(range(1, 5))) == [[f"text of page {each}"] for each in "bcde"]
    reports = [report for report, _ in without_running_heads(paper(range(1, 5)), keep=False)]
    assert [region.method for region in reports[0].regions] == [Method.SKIPPED, Method.LAYER, Method.SKIPPED]
    assert [region.kind for region in reports[0].regions] == ["header", "text", "footer"]


def test_wanted_ones_are_kept_as_what_they_are() -> None:
    _, blocks = next(iter(without_running_heads(paper(range(1, 4)), keep=True)))
    assert [block.region.kind for block in blocks] == [Kind.HEADER, Kind.TEXT, Kind.FOOTER]


def test_a_large_running_head_is_known_by_its_page_number() -> None:
    bodies = {2: "crabs eat", 3: "waves rise", 4: "stars fall"}

    def headed(*heads: tuple[int, str]) -> list[list[str]]:
        return texts([page(n, (50, head, 14), (90, bodies[n], 10), (120, "end " + bodies[n], 10)) for n, head in heads])

    assert [each[0] for each in headed((2, "2 Ann and Bob"), (4, "4 Ann and Bob"))] == ["crabs eat", "stars fall"]
    assert headed((2, "Exercise 2"), (3, "Exercise 3"))[0][0] == "Exercise 2"
    assert headed((2, "1 Ann and Bob"), (4, "2 Ann and Bob"))[0][0] == "1 Ann and Bob"


def test_what_only_looks_alike_stays() -> None:
    alone = [page(1, (50, "Ann and Bob", 9), (90, "some text", 10)), page(2, (50, "other words", 9), (90, "more", 10))]
    assert texts(alone) == [["Ann and Bob", "some text"], ["other words", "more"]]
    slides = [page(n, (50, "Results", 18), (90, f"point {'abc'[n]}", 10)) for n in range(3)]
    assert [each[0] for each in texts(slides)] == ["Results"] * 3  # larger than the text: a slide's title
    moved = [page(n, (50 + 10 * n, "Ann and Bob", 9), (290, f"text {'abc'[n]}", 10)) for n in range(3)]
    assert [each[0] for each in texts(moved)] == ["Ann and Bob"] * 3
    years = [page(n, (50, str(1990 + 3 * n), 10), (90, f"text {'abc'[n]}", 10)) for n in range(3)]
    assert [each[0] for each in texts(years)] == ["1990", "1993", "1996"]


def test_a_page_with_nothing_else_keeps_it() -> None:
    same = [page(n, (50, "to be filled in", 10)) for n in range(2)]
    assert texts(same) == [["to be filled in"]] * 2
    assert texts([page(1)]) == [[]]


def test_copies_of_a_form_keep_all_their_lines() -> None:
    letters = [
        page(
            n, (50, "Ann and Bob", 9), (90, f"dear {'abc'[n]}", 10), (300, "we write to you", 10), (500, "as ever", 10)
        )
        for n in range(3)
    ]
    assert texts(letters)[0] == ["Ann and Bob", "dear a", "we write to you", "as ever"]
