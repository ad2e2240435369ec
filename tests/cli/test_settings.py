from dataclasses import fields

import pytest

from gravityocr_cli.errors import UsageError
from gravityocr_cli.settings import PageRanges, Settings, help_of


@pytest.mark.parametrize(
    ("text", "pages"),
    [
        ("1", (1,)),
        ("1,3-5,8-end", (1, 3, 4, 5, 8, 9, 10)),
        ("5,2-3,3", (2, 3, 5)),
        ("10-end", (10,)),
        (" 2 , 4 ", (2, 4)),
    ],
)
def test_page_ranges(text: str, pages: tuple[int, ...]) -> None:
    assert PageRanges.parse(text).of(10) == pages


def test_no_ranges_is_every_page() -> None:
    assert PageRanges().of(3) == (1, 2, 3)


@pytest.mark.parametrize("text", ["", "0", "3-1", "a", "1-", "-3", "1,,2", "end", "1.5", "2-0"])
def test_senseless_ranges(text: str) -> None:
    with pytest.raises(ValueError, match="page"):
        PageRanges.parse(text)
    with pytest.raises(UsageError, match="--pages: "):
        Settings(pages=text)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["4", "2-4", "4-end"])
def test_ranges_past_the_end(text: str) -> None:
    with pytest.raises(UsageError, match="the document has 3"):
        PageRanges.parse(text).of(3)


@pytest.mark.parametrize("value", [{"block": 0}, {"block": 1000}, {"dtype": "int8"}, {"device": "gpu"}])
def test_senseless_values(value: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        Settings(**value)  # type: ignore[arg-type]


def test_every_field_explains_itself_and_the_password_stays_out_of_sight() -> None:
    assert all(help_of(each.name) for each in fields(Settings))
    assert "secret" not in repr(Settings(password="secret"))
