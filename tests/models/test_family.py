r"""Conventions are read strictly, and answers are tidied without eating LaTeX."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gravityocr_models import store
from gravityocr_models.config import ConfigError, OcrConfig, VisionConfig, read_json
from gravityocr_models.family import Conventions, nano_conventions, read_conventions, write_nano
from gravityocr_models.records import Task
from gravityocr_models.tokenizer import Tokenizer
from gravityocr_models.weights import NANO
from tiny import small_nano

TEMPLATE = "<|image_start|><|image|><|image_end|>{{ messages[0].content[1].text }}"
PUBLISHED = {
    "size": {"shortest_edge": 12544, "longest_edge": 9633792},
    "do_rescale": True,
    "patch_size": 14,
    "temporal_patch_size": 2,
    "merge_size": 2,
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "image_processor_type": "Glm46VImageProcessor",
    "processor_class": "Glm46VProcessor",
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.load(NANO / "tokenizer.json")


@pytest.fixture
def config(tokenizer: Tokenizer) -> OcrConfig:
    """nano's tokens behind linear patches of the family's size."""
    nano = small_nano(tokenizer)
    return replace(nano, vision=VisionConfig(1, 64, 4, 64, 64))


@pytest.fixture
def folder(tmp_path: Path, tokenizer: Tokenizer) -> Path:
    end = tokenizer.special("<|end|>")
    write(tmp_path, "config.json", {"text_config": {"eos_token_id": [end, 9]}})
    write(tmp_path, "generation_config.json", {"eos_token_id": end, "pad_token_id": 0, "do_sample": False})
    write(tmp_path, "preprocessor_config.json", PUBLISHED)
    (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    return tmp_path


def write(folder: Path, name: str, values: dict[str, Any]) -> None:
    (folder / name).write_text(json.dumps(values))


def test_published_preprocessor(folder: Path, config: OcrConfig, tokenizer: Tokenizer) -> None:
    found = read_conventions(folder, config, tokenizer)
    assert found.image.bounds == (6272, 4816896)  # of one still image; the file counts two frames
    assert found.image.mean == tuple(PUBLISHED["image_mean"])  # type: ignore[arg-type]
    assert (found.max_crop_tokens, found.dpi) == (6144, 200)
    assert found.ends == {tokenizer.special("<|end|>")}
    assert len(set(found.prompts.values())) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"image_processor_type": "Qwen2VLImageProcessor"}, "Qwen2VLImageProcessor"),
        ({"size": {"height": 1, "width": 2}}, "shortest_edge"),
        ({"size": {"shortest_edge": 9, "longest_edge": 3}}, "inside out"),
        ({"patch_size": 16}, "patch_size"),
        ({"do_normalize": False}, "do_normalize"),
        ({"do_center_crop": True}, "do_center_crop"),
        ({"resample": 2}, "resample"),
        ({"rescale_factor": 1.0}, "rescale_factor"),
        ({"image_mean": [0.5]}, "image_mean"),
        ({"image_std": [0.5, 0.5, 0.0]}, "image_std"),
        ({"crop_everything": 1}, "crop_everything"),
        ({"size": None}, "lacks size"),
    ],
)
def test_preprocessor_that_is_not_followed_raises(
    folder: Path, config: OcrConfig, tokenizer: Tokenizer, change: dict[str, Any], message: str
) -> None:
    write(folder, "preprocessor_config.json", PUBLISHED | change)
    with pytest.raises(ConfigError, match=message):
        read_conventions(folder, config, tokenizer)


def test_the_newer_form_comes_first(folder: Path, config: OcrConfig, tokenizer: Tokenizer) -> None:
    nested = PUBLISHED | {"size": {"shortest_edge": 12544, "longest_edge": 2 * 784 * 100}}
    write(folder, "processor_config.json", {"image_processor": nested, "processor_class": "Glm46VProcessor"})
    assert read_conventions(folder, config, tokenizer).max_crop_tokens == 100
    write(folder, "processor_config.json", {"processor_class": "Glm46VProcessor"})
    assert read_conventions(folder, config, tokenizer).max_crop_tokens == 6144


@pytest.mark.parametrize(
    ("file", "message"),
    [("preprocessor_config.json", "preprocessor_config.json"), ("chat_template.jinja", "chat_template.jinja")],
)
def test_missing_files_are_named(
    folder: Path, config: OcrConfig, tokenizer: Tokenizer, file: str, message: str
) -> None:
    (folder / file).unlink()
    with pytest.raises(ConfigError, match=message):
        read_conventions(folder, config, tokenizer)


def test_end_ids(folder: Path, config: OcrConfig, tokenizer: Tokenizer) -> None:
    """generation_config.json before config.json; sampling and penalties are left out; what would change greedy
    decoding raises."""
    write(folder, "generation_config.json", {"repetition_penalty": 1.1, "temperature": 0.8, "do_sample": True})
    assert read_conventions(folder, config, tokenizer).ends == {tokenizer.special("<|end|>"), 9}
    write(folder, "generation_config.json", {"eos_token_id": 5, "suppress_tokens": [3]})
    with pytest.raises(ConfigError, match="suppress_tokens"):
        read_conventions(folder, config, tokenizer)
    write(folder, "generation_config.json", {"eos_token_id": [5, 99999]})
    with pytest.raises(ConfigError, match="99999"):
        read_conventions(folder, config, tokenizer)
    write(folder, "generation_config.json", {"eos_token_id": []})
    with pytest.raises(ConfigError, match="eos_token_id"):
        read_conventions(folder, config, tokenizer)
    (folder / "generation_config.json").unlink()
    write(folder, "config.json", {})
    with pytest.raises(ConfigError, match="eos_token_id"):
        read_conventions(folder, config, tokenizer)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("no image", "image_token_id"),
        ("<|image_start|><|image|><|image|><|image_end|>", "image_token_id"),
        ("<|image|><|image_end|>", "image_start_"),
        ("{{ messages[0].content[1].text", "chat template"),
        ("{{ ''.__class__.__mro__ }}", "chat template"),
    ],
)
def test_templates_that_cannot_be_right_raise(
    folder: Path, config: OcrConfig, tokenizer: Tokenizer, template: str, message: str
) -> None:
    (folder / "chat_template.jinja").write_text(template)
    with pytest.raises(ConfigError, match=message):
        read_conventions(folder, config, tokenizer)


def test_nano_says_in_files_what_it_needs(tmp_path: Path, tokenizer: Tokenizer) -> None:
    config = small_nano(tokenizer)
    write(tmp_path, "config.json", config.to_json())
    write_nano(tmp_path, tokenizer)
    found = read_conventions(tmp_path, config, tokenizer)
    assert found == nano_conventions(config, tokenizer)
    assert (found.dpi, found.max_crop_tokens, found.max_crop_lines, found.image.bounds) == (144, 1024, 1, None)
    names = ("<|image_start|>", "<|image_end|>")
    start, end = (tokenizer.special(name) for name in names)
    assert found.prompts[Task.TABLE] == ((start,), (end, tokenizer.special(Task.TABLE)))
    changed = read_json(tmp_path / "preprocessor_config.json") | {"max_crop_lines": 6, "dpi": 120, "keep_above": 0.7}
    write(tmp_path, "preprocessor_config.json", changed)
    found = read_conventions(tmp_path, config, tokenizer)
    assert (found.max_crop_lines, found.dpi, found.keep_above) == (6, 120, 0.7)
    for wrong in ({"dpi": "144"}, {"max_crop_lines": 0}, {"keep_above": True}, {"dpj": 144}):
        write(tmp_path, "preprocessor_config.json", changed | wrong)
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            read_conventions(tmp_path, config, tokenizer)
    store.write_sums(tmp_path)
    assert "chat_template.jinja" in (tmp_path / "SHA256SUMS").read_text()


@pytest.mark.parametrize(
    ("text", "tidied"),
    [
        (r"\t\tName", "Name"),
        ("\\t \\t- one\n- two\\t\\t", "- one\n- two"),
        (r"\times 3", r"\times 3"),
        (r"\text{a} + \tau", r"\text{a} + \tau"),
        (r"\t\times 3\t", r"\times 3"),
        (r"\to \infty", r"\to \infty"),
        (r"\tfrac 1 2 \today", r"\tfrac 1 2 \today"),
        (r"x \\t", r"x \\t"),
        ("a\\tb\nc", "a\\tb\nc"),
        ("  indented\n", "  indented\n"),
        ("", ""),
    ],
)
def test_spelled_out_tabs_go_and_commands_stay(config: OcrConfig, tokenizer: Tokenizer, text: str, tidied: str) -> None:
    family: Conventions = replace(nano_conventions(small_nano(tokenizer), tokenizer), paragraphs=True)
    assert family.tidy(text) == tidied
    assert replace(family, paragraphs=False).tidy(text) == text


@pytest.mark.parametrize(
    ("layer", "joined"),
    [
        ("a line\nand the next", "a line and the next"),
        ("a pre-\nfix and a Baden-\nWürttemberg", "a prefix and a Baden- Württemberg"),
        ("中文字\n幕", "中文字幕"),
        ("中文\nabc", "中文 abc"),
        ("1 - \n2", "1 - 2"),
        ("one line", "one line"),
    ],
)
def test_a_draft_is_written_as_the_model_would(tokenizer: Tokenizer, layer: str, joined: str) -> None:
    nano = nano_conventions(small_nano(tokenizer), tokenizer)
    assert nano.as_answer(layer) == layer
    assert replace(nano, paragraphs=True).as_answer(layer) == joined
