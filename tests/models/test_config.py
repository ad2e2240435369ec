"""Configs are read strictly: what is unknown, missing, of the wrong type or not supported is named."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gravityocr_models.config import ConfigError, DraftConfig, OcrConfig
from tiny import tiny_config

FACTS = {"bd_size": 32, "mask_id": 0, "ar_loss_weight": 1.0}


def values() -> dict[str, Any]:
    made: dict[str, Any] = json.loads(json.dumps(tiny_config(stem=False).to_json()))
    return made


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("surprise", 1, "surprise"),
        ("model_type", "glm4v", "glm4v"),
        ("tie_word_embeddings", True, "tie_word_embeddings"),
        ("quantization_config", {"quant_method": "fp8"}, "quantization_config"),
        ("image_token_id", "<|image|>", "image_token_id"),
        ("text_config.tie_word_embeddings", True, "tie_word_embeddings"),
        ("text_config.attention_bias", True, "attention_bias"),
        ("text_config.sliding_window", 1024, "sliding_window"),
        ("text_config.hidden_size", True, "hidden_size"),
        ("text_config.num_hidden_layers", 0, "num_hidden_layers"),
        ("text_config.hidden_act", "gelu", "hidden_act"),
        ("text_config.rope_parameters.rope_type", "yarn", "rope_parameters"),
        ("text_config.rope_parameters.partial_rotary_factor", 0.5, "rope_parameters"),
        ("text_config.rope_parameters.factor", 2.0, "factor"),
        ("text_config.rope_parameters.mrope_section", [2, 3, 4], "mrope_section"),
        ("vision_config.patch_size", [14, 14], "patch_size"),
        ("vision_config.window_size", 112, "window_size"),
        ("vision_config.rope_parameters.rope_type", "yarn", "rope_parameters"),
    ],
)
def test_what_is_not_supported_is_named(path: str, value: object, message: str) -> None:
    made = values()
    *parents, key = path.split(".")
    place = made
    for parent in parents:
        place = place[parent]
    place[key] = value
    with pytest.raises(ConfigError, match=message):
        OcrConfig.from_json(made)


@pytest.mark.parametrize(
    "path",
    [
        "image_token_id",
        "text_config",
        "vision_config",
        "text_config.vocab_size",
        "text_config.rope_parameters",
        "text_config.rope_parameters.mrope_section",
        "vision_config.depth",
    ],
)
def test_what_is_missing_is_named(path: str) -> None:
    made = values()
    *parents, key = path.split(".")
    place = made
    for parent in parents:
        place = place[parent]
    del place[key]
    with pytest.raises(ConfigError, match=f"lacks {key}"):
        OcrConfig.from_json(made)


def test_keys_of_no_consequence_are_let_by() -> None:
    """What published and fine-tuned checkpoints carry besides."""
    made = values() | {"eos_token_id": [1, 2], "hidden_size": 32, "dtype": "bfloat16", "pad_token_id": 3}
    made["text_config"] |= {
        "eos_token_id": [1, 2],
        "pad_token_id": 3,
        "num_nextn_predict_layers": 1,
        "dtype": "float32",
    }
    made["vision_config"] |= {"hidden_dropout_prob": 0.0, "image_size": 336}
    assert OcrConfig.from_json(made) == tiny_config(stem=False)


def test_head_dim_is_the_widths_share_where_it_is_not_given() -> None:
    made = values()
    made["text_config"]["head_dim"] = 8
    made["text_config"]["rope_parameters"]["mrope_section"] = [1, 1, 2]
    explicit = OcrConfig.from_json(made)
    del made["text_config"]["head_dim"]
    assert OcrConfig.from_json(made) == explicit


def test_draft_config() -> None:
    assert DraftConfig.from_json(FACTS | {"noise": "uniform"}) == DraftConfig(32, 0, 1.0)
    assert DraftConfig.from_json(FACTS | {"alphabet": "aab"}).alphabet == frozenset("ab")


@pytest.mark.parametrize(
    ("change", "message"),
    [({"mask_id": "59282"}, "mask_id"), ({"bd_size": 0}, "bd_size"), ({"mask_id": -1}, "mask_id")],
)
def test_draft_config_of_wrong_types_raises(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DraftConfig.from_json(FACTS | change)
    with pytest.raises(ConfigError, match="lacks bd_size"):
        DraftConfig.from_json({"mask_id": 1, "ar_loss_weight": 1.0})


def test_stem_depths_stand_between_the_convolutions() -> None:
    vision = tiny_config(stem=True).vision
    assert replace(vision, stem_depths=(2,)).stem_depths == (2,)
    with pytest.raises(ConfigError, match="stem_depths"):
        replace(vision, stem_depths=(1, 1))


def test_a_glyph_head_needs_glyphs() -> None:
    vision = tiny_config(stem=True).vision
    assert replace(vision, glyphs=5).glyphs == 5
    with pytest.raises(ConfigError, match="glyphs"):
        replace(vision, glyphs=0)
