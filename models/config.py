"""What a checkpoint is: frozen configs, read strictly from the files beside the weights.

`config.json` has the layout that transformers writes for GLM-OCR. nano adds one key to it, `vision_config.stem_widths`.
`block_diffusion.json` says how the decoder was trained to draft. A key that is missing or unknown raises.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

# Written by transformers, of no consequence for a forward pass of an image.
# Keys that transformers writes into every config.
_GENERIC = {"_name_or_path", "architectures", "chunk_size_feed_forward", "dtype", "id2label", "is_encoder_decoder",
            "label2id", "output_attentions", "output_hidden_states", "problem_type", "return_dict"}  # fmt: skip
_IGNORED_TOP = {"torch_dtype", "transformers_version", "video_token_id", "pad_token_id",
                "video_start_token_id", "video_end_token_id", "model_type"}  # fmt: skip
_IGNORED_TEXT = {"attention_dropout", "initializer_range", "max_position_embeddings", "model_type",
                 "pad_token_id", "use_cache", "tie_word_embeddings", "attention_bias",
                 "num_nextn_predict_layers"}  # fmt: skip
_IGNORED_VISION = {"attention_dropout", "image_size", "initializer_range", "model_type"}


T = TypeVar("T")


class ConfigError(ValueError):
    """A checkpoint's configuration is incomplete, unknown or contradicts itself."""


@dataclass(frozen=True)
class VisionConfig:
    """The image encoder. stem_widths: channels of stride-2 convolutions; empty = linear patches of patch_size px."""

    depth: int
    hidden_size: int
    num_heads: int
    intermediate_size: int
    out_hidden_size: int
    in_channels: int = 3
    patch_size: int = 14
    spatial_merge_size: int = 2
    temporal_patch_size: int = 2
    attention_bias: bool = True
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e4
    stem_widths: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.hidden_size % (4 * self.num_heads):
            raise ConfigError("vision hidden_size must be a multiple of 4 * num_heads (2-D rotary embedding)")
        if self.stem_widths and self.stem_widths[-1] != self.hidden_size:
            raise ConfigError("the last stem width must be the vision hidden_size")
        if self.stem_widths and self.patch_size != 2 ** len(self.stem_widths):
            raise ConfigError("patch_size must be the stem's total stride")

    @property
    def token_px(self) -> int:
        """Edge of the square of pixels that becomes one text token."""
        return self.patch_size * self.spatial_merge_size


@dataclass(frozen=True)
class TextConfig:
    """The decoder. mrope_section: rotary pairs for time, row and column."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    mrope_section: tuple[int, int, int]
    rms_norm_eps: float = 1e-5
    rope_theta: float = 1e4

    def __post_init__(self) -> None:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ConfigError("num_attention_heads must be a multiple of num_key_value_heads")
        if 2 * sum(self.mrope_section) != self.head_dim:
            raise ConfigError("mrope_section must add up to half of head_dim")


@dataclass(frozen=True)
class OcrConfig:
    """A whole model."""

    vision: VisionConfig
    text: TextConfig
    image_token_id: int
    image_start_token_id: int
    image_end_token_id: int

    def __post_init__(self) -> None:
        if self.vision.out_hidden_size != self.text.hidden_size:
            raise ConfigError("the vision encoder's out_hidden_size must be the decoder's hidden_size")

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "OcrConfig":
        """From the content of config.json; ConfigError names the key at fault."""
        top = dict(values)
        if top.get("model_type") != "glm_ocr":
            raise ConfigError(f"model_type is {top.get('model_type')!r}, not 'glm_ocr'")
        if top.pop("tie_word_embeddings", False):
            raise ConfigError("tied word embeddings are not part of the GLM-OCR family")
        text, vision = dict(top.pop("text_config")), dict(top.pop("vision_config"))
        for part in (text, vision):
            if part.pop("hidden_act", "silu") != "silu":
                raise ConfigError("hidden_act must be silu")
        rope = dict(text.pop("rope_parameters"))
        text |= {"rope_theta": rope.pop("rope_theta"), "mrope_section": tuple(rope.pop("mrope_section"))}
        if rope.pop("rope_type", "default") != "default" or rope.pop("partial_rotary_factor", 1.0) != 1.0 or rope:
            raise ConfigError("only the default rotary embedding over the whole head is supported")
        text.setdefault("head_dim", text["hidden_size"] // text["num_attention_heads"])
        vision["rope_theta"] = (vision.pop("rope_parameters", None) or {}).get("rope_theta", 1e4)
        vision["stem_widths"] = tuple(vision.get("stem_widths", ()))
        return cls(
            vision=_strict(VisionConfig, vision, _IGNORED_VISION, "vision_config"),
            text=_strict(TextConfig, text, _IGNORED_TEXT, "text_config"),
            **_known(top, {"image_token_id", "image_start_token_id", "image_end_token_id"}, _IGNORED_TOP, "config"),
        )

    def to_json(self) -> dict[str, Any]:
        """The content of config.json; from_json gives the same config back."""
        vision = vars(self.vision) | {"model_type": "glm_ocr_vision", "hidden_act": "silu"}
        vision["rope_parameters"] = {"rope_type": "axial", "rope_theta": vision.pop("rope_theta")}
        text = vars(self.text) | {"model_type": "glm_ocr_text", "hidden_act": "silu"}
        text["rope_parameters"] = {
            "rope_type": "default",
            "rope_theta": text.pop("rope_theta"),
            "mrope_section": list(text.pop("mrope_section")),
        }
        ids = ("image_token_id", "image_start_token_id", "image_end_token_id")
        return {
            "model_type": "glm_ocr",
            "text_config": text,
            "vision_config": {key: list(value) if isinstance(value, tuple) else value for key, value in vision.items()},
            **{key: getattr(self, key) for key in ids},
            "tie_word_embeddings": False,
        }


@dataclass(frozen=True)
class DraftConfig:
    """How the decoder drafts (block_diffusion.json).

    bd_size: mask tokens in a block it was trained on. alphabet: characters it has learned to read; None = not stated.
    """

    bd_size: int
    mask_id: int
    ar_loss_weight: float
    alphabet: frozenset[str] | None = None

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "DraftConfig":
        """From the content of block_diffusion.json; further keys there describe the training and are not needed."""
        missing = {"bd_size", "mask_id", "ar_loss_weight"} - set(values)
        if missing:
            raise ConfigError(f"block_diffusion.json lacks {sorted(missing)}")
        alphabet = frozenset(values["alphabet"]) if "alphabet" in values else None
        return cls(int(values["bd_size"]), int(values["mask_id"]), float(values["ar_loss_weight"]), alphabet)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; ConfigError if it is anything else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} does not hold a JSON object")
    return values


def _known(values: Mapping[str, Any], wanted: set[str], ignored: set[str], where: str) -> dict[str, Any]:
    unknown = set(values) - wanted - ignored - _GENERIC
    if unknown:
        raise ConfigError(f"unknown keys in {where}: {sorted(unknown)}")
    return {key: value for key, value in values.items() if key in wanted}


def _strict(kind: type[T], values: Mapping[str, Any], ignored: set[str], where: str) -> T:
    fields = set(kind.__dataclass_fields__)  # type: ignore[attr-defined]
    try:
        return kind(**_known(values, fields, ignored, where))
    except TypeError as error:
        raise ConfigError(f"{where}: {error}") from error
