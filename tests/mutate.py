"""Mutated PDFs: ten small seeds, and ways to break them. Pure and seeded: mutant number n is the same everywhere.

for number in range(1000): data = mutant(seeds(), number)
"""

import random
import re
from collections.abc import Callable, Sequence

import pymupdf

_OBJECT = re.compile(rb"\d+ 0 obj\b.*?endobj", re.DOTALL)
_STREAM = re.compile(rb"stream\r?\n(.*?)endstream", re.DOTALL)
_NUMBER = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_WILD = [b"0", b"-1", b"65536", b"2147483647", b"-2147483648", b"9" * 40, b"1e9", b"0.0000001", b"NaN"]


def seeds() -> list[bytes]:
    """Ten documents that differ in what they are made of."""
    return [_document(paint, save) for paint, save in _SEEDS]


def mutant(sources: Sequence[bytes], number: int) -> bytes:
    """Mutant `number`: a seed with one to three things broken."""
    chance = random.Random(number)
    data = sources[number % len(sources)]
    for _ in range(chance.randint(1, 3)):
        data = chance.choice(_FAULTS)(data, chance)
    return data


def _flip(data: bytes, chance: random.Random) -> bytes:
    broken = bytearray(data)
    for _ in range(chance.choice((1, 8, 64))):
        if broken:
            broken[chance.randrange(len(broken))] = chance.randrange(256)
    return bytes(broken)


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _without(pattern: "re.Pattern[bytes]") -> "Callable[[bytes, random.Random], bytes]":
    def drop(data: bytes, chance: random.Random) -> bytes:
        found = list(pattern.finditer(data))
        if not found:
            return data
        start, end = chance.choice(found).span()
        return data[:start] + data[end:]

    return drop


def _truncate_stream(data: bytes, chance: random.Random) -> bytes:
    found = list(_STREAM.finditer(data))
    if not found:
        return data
    start, end = chance.choice(found).span(1)
    keep = chance.randint(start, end)
    return data[:keep] + data[end:]


def _wild_number(data: bytes, chance: random.Random) -> bytes:
    found = list(_NUMBER.finditer(data))
    if not found:
        return data
    start, end = chance.choice(found).span()
    return data[:start] + chance.choice(_WILD) + data[end:]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    piece = data[start : start + chance.randint(1, 200)]
    return data[:start] + piece * chance.randint(2, 40) + data[start:]


_FAULTS = (_flip, _cut, _without(_OBJECT), _truncate_stream, _wild_number, _wild_number, _repeat)


def _text(page: "pymupdf.Page") -> None:
    for row in range(12):
        page.insert_text((40, 60 + 14 * row), f"Line {row} of an ordinary page of text.", fontsize=10)


def _sideways(page: "pymupdf.Page") -> None:
    _text(page)
    page.set_rotation(90)


def _table(page: "pymupdf.Page") -> None:
    for k in range(5):
        page.draw_line((40, 60 + 20 * k), (240, 60 + 20 * k))
        page.draw_line((40 + 50 * k, 60), (40 + 50 * k, 140))
    for k in range(16):
        page.insert_text((45 + 50 * (k % 4), 75 + 20 * (k // 4)), str(k), fontsize=9)


def _picture(page: "pymupdf.Page") -> None:
    pixmap = pymupdf.Pixmap(pymupdf.csRGB, (0, 0, 64, 48), False)
    pixmap.clear_with(90)
    page.insert_image((40, 60, 240, 200), pixmap=pixmap)
    page.insert_text((40, 230), "A caption under a picture.", fontsize=10)


def _shapes(page: "pymupdf.Page") -> None:
    for k in range(60):
        page.draw_circle((150, 150), 2 * k + 1, color=(k / 60, 0, 0))


def _chinese(page: "pymupdf.Page") -> None:
    page.insert_text((40, 80), "一行中文字，和第二行。", fontname="china-s", fontsize=12)


def _linked(page: "pymupdf.Page") -> None:
    _text(page)
    page.insert_link({"kind": pymupdf.LINK_URI, "from": pymupdf.Rect(40, 50, 120, 64), "uri": "https://example.org"})
    page.add_text_annot((200, 200), "a note")


def _form(page: "pymupdf.Page") -> None:
    field = pymupdf.Widget()
    field.field_name, field.field_value = "name", "A value"
    field.field_type, field.rect = pymupdf.PDF_WIDGET_TYPE_TEXT, pymupdf.Rect(40, 60, 200, 80)
    page.add_widget(field)


def _nothing(page: "pymupdf.Page") -> None:
    pass


_SEEDS: "list[tuple[Callable[[pymupdf.Page], None], dict[str, object]]]" = [
    (_text, {}),
    (_text, {"deflate": True, "use_objstms": 1}),
    (_sideways, {}),
    (_table, {}),
    (_picture, {"deflate": True}),
    (_shapes, {}),
    (_chinese, {}),
    (_linked, {}),
    (_form, {}),
    (_nothing, {"encryption": pymupdf.PDF_ENCRYPT_AES_256, "owner_pw": "owner"}),
]


def _document(paint: "Callable[[pymupdf.Page], None]", save: dict[str, object]) -> bytes:
    with pymupdf.open() as document:
        for _ in range(2):
            paint(document.new_page(width=300, height=300))
        document.subset_fonts()
        document.set_metadata({})
        return bytes(document.tobytes(no_new_id=True, **save))
