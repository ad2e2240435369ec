import itertools

import pytest

from gravityocr_cli.order import reading_order
from gravityocr_models.signs import Box


def named(order: str, **boxes: tuple[float, float, float, float]) -> None:
    """Asserts the order for every order of arrival."""
    for names in itertools.islice(itertools.permutations(boxes), 50):
        found = reading_order([Box(*boxes[name]) for name in names])
        assert " ".join(names[i] for i in found) == order


def test_one_column_goes_down() -> None:
    named("a b c", a=(50, 50, 500, 100), b=(50, 110, 400, 200), c=(50, 210, 500, 300))


def test_title_then_left_then_right() -> None:
    named(
        "title abstract l1 l2 r1 r2",
        title=(100, 40, 500, 80),
        abstract=(50, 100, 290, 200),
        l1=(50, 210, 290, 400),
        l2=(50, 410, 290, 700),
        r1=(310, 100, 550, 350),
        r2=(310, 360, 550, 700),
    )


def test_a_wide_box_in_the_middle_parts_the_columns() -> None:
    named(
        "ul ur wide ll lr foot",
        ul=(50, 50, 290, 300),
        ur=(310, 50, 550, 300),
        wide=(50, 320, 550, 400),
        ll=(50, 420, 290, 700),
        lr=(310, 420, 550, 700),
        foot=(50, 720, 550, 740),
    )


def test_paragraph_gaps_level_in_both_columns_do_not_make_rows() -> None:
    named("l1 l2 r1 r2", l1=(50, 50, 290, 200), l2=(50, 220, 290, 400), r1=(310, 50, 550, 200), r2=(310, 220, 550, 400))


def test_two_lines_in_two_columns() -> None:
    named("l1 l2 r1 r2", l1=(60, 71, 120, 82), l2=(60, 85, 120, 96), r1=(330, 71, 390, 82), r2=(330, 85, 390, 96))


def test_side_heads_go_with_their_paragraphs() -> None:
    boxes: dict[str, tuple[float, float, float, float]] = {}
    for i, y in enumerate((50, 200, 350), 1):
        boxes[f"h{i}"] = (50, y, 150, y + 12)
        boxes[f"p{i}"] = (200, y, 550, y + 120)
    named("h1 p1 h2 p2 h3 p3", **boxes)


def test_three_columns() -> None:
    named("a b c d", a=(50, 50, 200, 300), b=(50, 310, 200, 700), c=(220, 50, 370, 700), d=(390, 50, 540, 700))


def test_columns_go_on_beside_a_figure_between_them() -> None:
    named(
        "title ul ml figure ll ur mr lr",
        title=(100, 10, 500, 40),
        ul=(50, 50, 290, 300),
        ur=(310, 50, 550, 300),
        figure=(200, 320, 400, 420),
        ml=(50, 320, 190, 420),
        mr=(410, 320, 550, 420),
        ll=(50, 440, 290, 700),
        lr=(310, 440, 550, 700),
    )


def test_a_sidebar_comes_after_the_text_that_it_stands_beside() -> None:
    named(
        "head a b side", head=(50, 20, 550, 60), a=(50, 80, 380, 300), b=(50, 310, 380, 700), side=(410, 80, 550, 400)
    )


def test_boxes_that_lean_over_the_gutter() -> None:
    named("l r", l=(50, 50, 303, 700), r=(300, 50, 550, 700))


@pytest.mark.parametrize("count", [0, 1, 7])
def test_a_permutation_even_of_equal_boxes(count: int) -> None:
    assert sorted(reading_order([Box(0, 0, 10, 10)] * count)) == list(range(count))


def test_a_figure_level_with_a_paragraph_is_no_side_head() -> None:
    named(
        "a f b c d e g h i j k",
        a=(41, 40, 191, 183),
        f=(0, 196, 203, 543),
        b=(201, 39, 351, 84),
        c=(202, 86, 351, 277),
        d=(203, 279, 353, 354),
        e=(218, 405, 330, 435),
        g=(418, 39, 567, 190),
        h=(417, 192, 567, 386),
        i=(578, 39, 729, 171),
        j=(578, 173, 729, 433),
        k=(219, 444, 682, 474),
    )
