"""The JSON output against its published schema."""

import json
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest

from gravityocr_cli.blocks import block_of, lost_block
from gravityocr_cli.document import Block, Kind, Region
from gravityocr_cli.jsonfile import write_json
from gravityocr_models.signs import Box

SCHEMA = Path(__file__).parents[2] / "docs" / "document.schema.json"


def block(kind: Kind, text: str, order: int = 0, page: int = 1) -> Block:
    return block_of(Region(page, order, kind, Box(72, 72 + 40 * order, 400.123, 100 + 40 * order)), text)


def written(*pages: list[Block]) -> Any:
    sizes = {1: (612.0, 792.0)}
    return json.loads("".join(write_json(enumerate(pages, 1), sizes.get)))


def test_every_kind_of_block_is_what_the_schema_says() -> None:
    texts = {Kind.TABLE: "<table><tr><td>1</td></tr></table>", Kind.LIST: "- a\n- b", Kind.PICTURE: "p/x.png"}
    blocks = [block(kind, texts.get(kind, "some text"), order) for order, kind in enumerate(Kind)]
    lost = lost_block(Region(2, 0, Kind.TEXT, Box(0, 0, 0, 0)), "no luck")
    document = written(blocks, [lost])
    fastjsonschema.compile(json.loads(SCHEMA.read_text("utf-8")))(document)
    first, second = document["pages"]
    assert (first["width"], first["height"], second["width"]) == (612.0, 792.0, None)
    assert [each["kind"] for each in first["blocks"]] == [kind.value for kind in Kind]
    assert second["blocks"][0]["lost"] == "no luck"


def test_the_schema_refuses_what_is_not_in_it() -> None:
    document = written([block(Kind.TEXT, "a")])
    document["pages"][0]["blocks"][0]["surprise"] = 1
    with pytest.raises(fastjsonschema.JsonSchemaException):
        fastjsonschema.compile(json.loads(SCHEMA.read_text("utf-8")))(document)


def test_lines_are_joined_and_levels_stated() -> None:
    (page,) = written([block(Kind.HEADING, "2.1 Aims"), block(Kind.TEXT, "an algo-\nrithm", 1)])["pages"]
    assert page["blocks"][0]["level"] == 3
    assert page["blocks"][1]["text"] == "an algorithm"
    assert page["blocks"][1]["box"] == [72, 112, 400.12, 140]


def test_an_empty_document() -> None:
    assert written()["pages"] == []
