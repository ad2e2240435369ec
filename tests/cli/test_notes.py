"""Footnotes and the marks that refer to them."""

import pytest

from gravityocr_cli.document import Kind, Region, Style
from gravityocr_cli.elements import Aside, Heading, Note, Paragraph
from gravityocr_cli.inline import Run
from gravityocr_cli.notes import Labels, notes_in, with_links
from gravityocr_models.signs import Box

REGION = Region(1, 0, Kind.TEXT, Box(0, 0, 100, 10))
RAISED = Style(script=1)


def paragraph(text: str, *raised: tuple[int, int]) -> Paragraph:
    return Paragraph(text, REGION, REGION, tuple(Run(start, end, RAISED) for start, end in raised))


def test_numbers_start_notes_only_in_sequence() -> None:
    lines = ["1 A note of", "1984 and more", "2 Another", "† A dagger"]
    assert [(mark, len(part)) for mark, part in notes_in(lines)] == [("1", 2), ("2", 1), ("†", 1)]


def test_a_note_is_linked_to_its_mark() -> None:
    text = paragraph("As said1 before", (7, 8))
    linked, note = with_links([text], [("1", Aside("1 By me."))], 3, Labels())
    assert isinstance(linked, Paragraph)
    assert linked.runs == (Run(7, 8, Style(note="1")),)
    assert note == Note("1", "By me.")


def test_an_exponent_is_no_mark() -> None:
    text = paragraph("near 106 of them", (7, 8))
    assert with_links([text], [("6", Aside("6 By me."))], 1, Labels()) == [text, Aside("6 By me.")]


def test_of_several_marks_the_one_on_a_word_in_prose_counts() -> None:
    prose = paragraph("where E2 is meant and P1 is small, as was shown.1 " + 40 * "Words. ", (7, 8), (23, 24), (48, 49))
    authors = paragraph("Ann Author1, * and Bob", (10, 14))
    elements = with_links([authors, prose], [("1", Aside("1 There.")), ("*", Aside("* Mail."))], 1, Labels())
    first, second, *_ = elements
    assert isinstance(first, Paragraph)
    assert isinstance(second, Paragraph)
    assert [(run.start, run.end, run.style.note) for run in first.runs if run.style.note] == [(13, 14, "*")]
    assert [(run.start, run.end, run.style.note) for run in second.runs if run.style.note] == [(48, 49, "1")]


def test_a_title_may_have_a_note() -> None:
    title = Heading(1, "On Crabs∗", (Run(8, 9, RAISED),))
    linked, note = with_links([title], [("*", Aside("∗ Paid by fish."))], 1, Labels())
    assert linked == Heading(1, "On Crabs∗", (Run(8, 9, Style(note="*")),))
    assert note == Note("*", "Paid by fish.")


@pytest.mark.parametrize("mark", ["§", "∥", "⋆⋆"])
def test_any_of_the_usual_marks(mark: str) -> None:
    text = f"{mark} See there."
    assert [found for found, _ in notes_in([text])] == [mark]
    linked, note = with_links([paragraph(f"models{mark} are")], [(mark, Aside(text))], 1, Labels())
    assert isinstance(linked, Paragraph)
    assert [run.style.note for run in linked.runs] == [mark]
    assert note == Note(mark, "See there.")


def test_a_note_without_a_mark_in_the_text_stays_as_printed() -> None:
    text = paragraph("No mark here")
    assert with_links([text], [("*", Aside("* Alone."))], 1, Labels()) == [text, Aside("* Alone.")]


def test_marks_that_a_model_wrote() -> None:
    for written in ("before$^{2}$ and", "before² and", "before<sup>2</sup> and"):
        linked, note = with_links([paragraph(written)], [("2", Aside("2 See there."))], 1, Labels())
        assert isinstance(linked, Paragraph)
        (run,) = linked.runs
        assert run.style.note == "2"
        assert written[: run.start] + written[run.end :] == "before and"
        assert note == Note("2", "See there.")


def test_labels_are_unique_in_the_document() -> None:
    labels = Labels()
    assert [labels.take("1", 1), labels.take("1", 2), labels.take("2", 2)] == ["1", "1-p2", "2"]


def test_the_runs_of_a_note_move_with_its_text() -> None:
    note = Aside("1 In Nature, 1999", (Run(0, 1, RAISED), Run(5, 11, Style(italic=True))))
    _, linked = with_links([paragraph("Said1", (4, 5))], [("1", note)], 1, Labels())
    assert linked == Note("1", "In Nature, 1999", (Run(3, 9, Style(italic=True)),))
