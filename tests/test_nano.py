"""The shipped model on the shipped path: it loads, reads, drafts, and tells a true text layer from a lying one."""

from collections.abc import Sequence
from dataclasses import replace
from operator import eq
from pathlib import Path

import numpy as np
import pymupdf
import pytest
import torch

from gravityocr_cli.crops import crops_of
from gravityocr_cli.output import TextProduct
from gravityocr_cli.pdf import Sheet, Source
from gravityocr_cli.pipeline import convert, limits_of
from gravityocr_cli.regions import regions_of
from gravityocr_cli.settings import Settings
from gravityocr_models.attention import window_mask
from gravityocr_models.engine import Engine
from gravityocr_models.records import Crop, Decoded, LayerUse, Rounds, Task
from gravityocr_models.sequences import similarity
from gravityocr_models.speculate import Answer, agreements, decode, decoder_choices

DRAFTED, MASK_MARGIN = 16, 0.1  # tokens; nats
FLOOR, READING_FLOOR = 3.0, 10.0  # tokens a forward, prefill counted; raise them as nano learns
TEXT = (
    "The gauge was read twice a day, at noon and at six in the evening, by the keeper",
    "of the light. Between 1871 and 1896 no reading is missing, and the differences of",
    "two readings on the same day are small: less than 12 mm in all but nine cases.",
    "We take their mean. Where the float was under repair the readings of the harbour",
    "master were used instead; they were made with a staff and are good to a centimetre.",
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.load(device="cpu", dtype="float32")


def write_page(path: Path, shift: int = 0, font: str = "tiro") -> Path:
    """A page of TEXT. shift: what a ToUnicode table adds to every character, so that copied text is nonsense."""
    document = pymupdf.open()
    page = document.new_page(width=595, height=300)
    for row, line in enumerate(TEXT):
        page.insert_text((72, 80 + 15 * row), line, fontsize=11, fontname=font)
    if shift:
        lines = [f"<{code:02x}> <{code + shift:04x}>" for code in range(0x20, 0x7F)]
        table = (
            "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapType 2 def\n"
            "1 begincodespacerange <00> <ff> endcodespacerange\n"
            f"{len(lines)} beginbfchar\n" + "\n".join(lines) + "\nendbfchar\nendcmap end end"
        )
        stream = document.get_new_xref()
        document.update_object(stream, "<<>>")
        document.update_stream(stream, table.encode())
        document.xref_set_key(page.get_fonts()[0][0], "ToUnicode", f"{stream} 0 R")
    document.save(path)
    return path


def crops_in(path: Path, engine: Engine) -> list[Crop]:
    with Source(path) as source:
        (sheet,) = source.sheets([1], engine.dpi)
    assert isinstance(sheet, Sheet)
    regions = regions_of(sheet.page, sheet.found)
    return [crop for region in regions for crop in crops_of(sheet.page, region, limits_of(engine), True)]


def markdown_of(path: Path, engine: Engine) -> str:
    product = TextProduct()
    convert(path, product, lambda: engine, Settings())
    return product.text


@pytest.mark.parametrize("font", ["tiro", "helv"])
def test_a_true_layer_is_kept_to_the_letter(tmp_path: Path, engine: Engine, font: str) -> None:
    path = write_page(tmp_path / "page.pdf", font=font)
    assert " ".join(markdown_of(path, engine).split()) == " ".join(TEXT)


@pytest.mark.parametrize("shift", [1, 3, -2])
def test_a_layer_with_shifted_unicode_is_not_believed(tmp_path: Path, engine: Engine, shift: int) -> None:
    path = write_page(tmp_path / "page.pdf", shift=shift)
    lying = "".join(chr(ord(char) + shift) for char in "readings")
    crops = crops_in(path, engine)
    assert lying in "".join(crop.draft or "" for crop in crops)
    assert not any(answer.kept_layer for answer in engine.read(crops))
    assert lying not in markdown_of(path, engine)


@pytest.mark.parametrize("shift", [0, 1])
def test_the_reading_judges_a_layer_as_the_decoder_would(tmp_path: Path, engine: Engine, shift: int) -> None:
    crops = crops_in(write_page(tmp_path / "page.pdf", shift=shift), engine)
    prompts = engine.prompts(crops, LayerUse.DRAFT)
    assert all(prompt.reading for prompt in prompts)
    model = engine.checkpoint.model
    decoded = zip(prompts, decoder_choices(model, prompts), strict=True)
    assert agreements(model, prompts) == [sum(map(eq, prompt.layer, ids)) for prompt, ids in decoded]


CHINESE = "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。"


@pytest.mark.parametrize(("lines", "font", "sure"), [(TEXT, "tiro", True), ([CHINESE] * 4, "china-s", False)])
def test_a_scan_in_a_script_that_nano_has_not_learned_is_told(
    tmp_path: Path, engine: Engine, lines: Sequence[str], font: str, sure: bool
) -> None:
    drawn, scan = pymupdf.open(), pymupdf.open()
    page = drawn.new_page(width=595, height=300)
    for row, line in enumerate(lines):
        page.insert_text((72, 80 + 18 * row), line, fontsize=11, fontname=font)
    scan.new_page(width=595, height=300).insert_image(page.rect, pixmap=page.get_pixmap(dpi=200))
    scan.save(tmp_path / "scan.pdf")
    (read,) = convert(tmp_path / "scan.pdf", TextProduct(), lambda: engine, Settings()).pages
    confidences = [region.confidence for region in read.regions if region.confidence is not None]
    assert all(confidence > 0.9 if sure else confidence < 0.7 for confidence in confidences)
    assert confidences
    assert any("script" in warning for warning in read.warnings) is not sure


def test_speculation_changes_no_id(tmp_path: Path, engine: Engine) -> None:
    crops = crops_in(write_page(tmp_path / "page.pdf"), engine)
    plain = engine.read(crops, rounds=Rounds.PLAIN, layer=LayerUse.OFF)
    for rounds in Rounds:
        found = engine.read(crops, rounds=rounds, layer=LayerUse.OFF)
        assert [answer.ids for answer in found] == [answer.ids for answer in plain]
    drafted = engine.read(crops, layer=LayerUse.DRAFT)
    assert [answer.ids for answer in drafted] == [answer.ids for answer in plain]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_nano_reads_in_every_number_format(tmp_path: Path, engine: Engine, dtype: str) -> None:
    """The format is chosen by the processor: what this machine would not choose, another one does."""
    crops = crops_in(write_page(tmp_path / "page.pdf"), engine)
    crops += [replace(crops[0], task=task, draft=None) for task in Task]
    half = Engine.load(device="cpu", dtype=dtype)
    kept = half.read(crops)
    assert [answer.text for answer in kept[: len(TEXT)]] == list(TEXT)
    found, wanted = (each.read(crops[: len(TEXT)], layer=LayerUse.OFF) for each in (half, engine))
    alike = [similarity(a.text, b.text) for a, b in zip(found, wanted, strict=True)]
    assert min(alike) > 0.9


def test_nano_was_trained_with_its_mask(tmp_path: Path, engine: Engine) -> None:
    """A wrong mask id passes every test of identity and shows as slowness only: its drafts are less likely right."""
    crops = crops_in(write_page(tmp_path / "page.pdf"), engine)
    assert engine.checkpoint.draft is not None
    right, wrong = engine.checkpoint.draft.mask_id, engine.checkpoint.model.config.image_token_id
    assert likelihood_of_drafts(engine, crops, right) > likelihood_of_drafts(engine, crops, wrong) + MASK_MARGIN


def test_the_decoder_drafts_by_itself(tmp_path: Path, engine: Engine) -> None:
    """Without hints from the reading: mask rows alone say what comes."""
    crops = crops_in(write_page(tmp_path / "page.pdf"), engine)
    bare = [replace(prompt, reading=None) for prompt in engine.prompts(crops)]
    answers = decode(engine.checkpoint.model, bare, engine.rules(Rounds.FUSED, DRAFTED))
    assert tokens_a_forward(answers) > FLOOR


@torch.inference_mode()
def likelihood_of_drafts(engine: Engine, crops: list[Crop], mask_id: int) -> float:
    """The mean log-probability that the first block of drafts, made from this token, gives to the answers."""
    model, found = engine.checkpoint.model, []
    answers = engine.read(crops, layer=LayerUse.OFF)
    for prompt, answer in zip(engine.prompts(crops), answers, strict=True):
        ids, length = answer.ids[: DRAFTED + 1], len(prompt.embeds)
        masks = torch.full((len(ids) - 1,), mask_id)
        width, places = length + len(masks), int(prompt.positions[0, -1]) + 1 + torch.arange(len(masks))
        none, clean, masked = (torch.tensor([count]) for count in (0, length, len(masks)))
        hidden = model.decode(
            torch.cat([prompt.embeds, model.embed(masks)])[None],
            torch.cat([prompt.positions, places.expand(3, -1)], dim=1)[:, None],
            window_mask(none, clean, masked, width, width),
        )
        scores = model.logits(hidden[0, length:]).log_softmax(-1)
        found.append(scores.gather(-1, torch.tensor(ids[1:])[:, None]).mean())
    return float(torch.stack(found).mean())


def test_the_encoder_reads_no_tables(tmp_path: Path, engine: Engine) -> None:
    """Their answer is markup: the letters of a row, in order, would displace it."""
    line = crops_in(write_page(tmp_path / "page.pdf"), engine)[0]
    readings = [prompt.reading for prompt in engine.prompts([replace(line, task=task) for task in Task])]
    assert [reading is not None for reading in readings] == [task is not Task.TABLE for task in Task]


def test_nano_writes_most_of_what_its_encoder_reads(tmp_path: Path, engine: Engine) -> None:
    crops = crops_in(write_page(tmp_path / "page.pdf"), engine)
    assert tokens_a_forward(engine.read(crops, layer=LayerUse.OFF)) > READING_FLOOR


def tokens_a_forward(answers: Sequence[Decoded | Answer]) -> float:
    return sum(sum(answer.committed) for answer in answers) / sum(len(answer.committed) for answer in answers)


@pytest.mark.parametrize("task", [Task.TEXT, Task.FORMULA])
def test_where_the_encoder_sees_nothing_nothing_is_written(engine: Engine, task: Task) -> None:
    """A coloured bar, which a decoder left alone would make something of; the same however it is decoded."""
    pixels = np.full((30, 60, 3), 255, np.uint8)
    pixels[4:26, 10:50] = (31, 119, 180)
    for rounds in Rounds:
        (answer,) = engine.read([Crop(pixels, task)], rounds=rounds)
        assert (answer.text, answer.truncated) == ("", False)
