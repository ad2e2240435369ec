"""Blocks to JSON: what stands where on each page, and who read it. docs/document.schema.json says what comes out.

Unlike Markdown, this keeps pages and regions apart: nothing is joined over a column or a page.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gravityocr_cli.assemble import items_in
from gravityocr_cli.document import Block, Kind
from gravityocr_cli.headings import Outline
from gravityocr_cli.hyphens import join_lines, words_in

VERSION = 1
_AS_IS = {Kind.TABLE: "html", Kind.FORMULA: "latex", Kind.PICTURE: "image"}


def write_json(
    pages: Iterable[tuple[int, Sequence[Block]]],
    size_of_page: Callable[[int], tuple[float, float] | None],
    contents: Sequence[tuple[int, str, int]] = (),
) -> Iterator[str]:
    """The document piece by piece, a page at a time; joined, the pieces are the file.

    size_of_page: width and height in points of a page that `pages` has given; None for one that could not be opened.
    contents: the PDF's own outline, as level from 1, title, and page from 1.
    """
    seen: Counter[str] = Counter()
    outline = Outline(contents)
    yield f'{{"format": "gravityocr", "version": {VERSION}, "pages": ['
    for index, (number, given) in enumerate(pages):
        blocks = outline.with_headings(given)
        seen.update(words_in(line for block in blocks for line in block.text.splitlines()))
        outline.look(blocks)
        size = size_of_page(number)
        page = {
            "page": number,
            "unit": "pt",
            "width": None if size is None else round(size[0], 2),
            "height": None if size is None else round(size[1], 2),
            "blocks": [_record(block, outline, seen) for block in blocks],
        }
        yield f"{',' if index else ''}\n{json.dumps(page, ensure_ascii=False)}"
    yield "\n]}\n"


def _record(block: Block, outline: Outline, seen: Mapping[str, int]) -> dict[str, Any]:
    region = block.region
    record: dict[str, Any] = {
        "order": region.order,
        "kind": region.kind.value,
        "box": [round(each, 2) for each in (region.box.x0, region.box.y0, region.box.x1, region.box.y1)],
    }
    if block.lost:
        record["lost"] = block.lost
    elif region.kind in _AS_IS:
        record[_AS_IS[region.kind]] = block.text
    elif region.kind is Kind.LIST:
        items = items_in(block, seen)
        record["items"] = [{"text": item.text, "number": item.number, "depth": item.depth} for item in items]
    elif region.kind is Kind.CODE:
        record["text"] = block.text
    else:
        parts = (join_lines(part.splitlines(), seen) for part in block.text.split("\n\n"))
        record["text"] = "\n\n".join(parts)
    if region.kind in (Kind.TITLE, Kind.HEADING) and not block.lost:
        record["level"] = outline.level(block)
    record["source"] = block.source or None
    record["confidence"] = None if block.confidence is None else round(block.confidence, 4)
    record["warnings"] = list(block.warnings)
    return record
