"""What a checkpoint is: frozen configs, read strictly from the files beside the weights.

`config.json` has the layout that transformers writes for GLM-OCR. nano adds three keys to its
vision_config: `stem_widths`, `stem_depths` and `glyphs`.
`block_diffusion.json` says how the decoder was trained to draft. A key that is missing or unknown raises.
"""

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

# Keys that transformers and trainers write into configs and that no forward pass of an image depends on.
_GENERIC = {"_name_or_path", "architectures", "chunk_size_feed_forward", "dtype", "eos_token_id", "id2label",
            "is_encoder_decoder", "label2id", "output_attentions", "output_hidden_states", "pad_token_id",
            "problem_type", "return_dict", "torch_dtype", "transformers_version"}  # fmt: skip
_IGNORED_TOP = {"hidden_size", "model_type", "video_token_id", "video_start_token_id", "video_end_token_id"}
_IGNORED_TEXT = {"attention_dropout", "initializer_range", "max_position_embeddings", "model_type",
                 "num_nextn_predict_layers", "use_cache"}  # fmt: skip
_IGNORED_VISION = {"attention_dropout", "hidden_dropout_prob", "image_size", "initializer_range", "model_type"}


T = TypeVar("T")


class ConfigError(ValueError):
    """A checkpoint's configuration is incomplete, unknown or contradicts itself."""


@dataclass(frozen=True)
class VisionConfig:
    """The image encoder.

    stem_widths: channels of stride-2 convolutions; empty = linear patches of patch_size px. stem_depths: residual
    blocks behind each of them but the last; empty = none. glyphs: characters that image tokens can name; None = no
    glyph head.
    """

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
    stem_depths: tuple[int, ...] = ()
    glyphs: int | None = None

    def __post_init__(self) -> None:
        if self.hidden_size % (4 * self.num_heads):
            raise ConfigError("vision hidden_size must be a multiple of 4 * num_heads (2-D rotary embedding)")
        if self.stem_widths and self.stem_widths[-1] != self.hidden_size:
            raise ConfigError("the last stem width must be the vision hidden_size")
        if self.stem_widths and self.patch_size != 2 ** len(self.stem_widths):
            raise ConfigError("patch_size must be the stem's total stride")
        if self.stem_depths and len(self.stem_depths) != len(self.stem_widths) - 1:
            raise ConfigError("stem_depths must have one entry less than stem_widths")
        if self.glyphs is not None and (not isinstance(self.glyphs, int) or self.glyphs < 1):
            raise ConfigError(f"vision_config: glyphs cannot be {self.glyphs!r}")

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
        if "quantization_config" in top:
            raise ConfigError("quantization_config: the tensors of a quantised checkpoint cannot be read")
        text, vision = _part(top, "text_config", "config"), _part(top, "vision_config", "config")
        if any([top.pop("tie_word_embeddings", False), text.pop("tie_word_embeddings", False)]):
            raise ConfigError("tie_word_embeddings: the GLM-OCR family has no tied word embeddings")
        if text.pop("attention_bias", False):
            raise ConfigError("text_config.attention_bias: the GLM-OCR family's decoder has no biases")
        for part in (text, vision):
            if part.pop("hidden_act", "silu") != "silu":
                raise ConfigError("hidden_act must be silu")
        rope = _part(text, "rope_parameters", "text_config")
        text |= {key: rope.pop(key) for key in ("rope_theta", "mrope_section") if key in rope}
        if rope.pop("rope_type", "default") != "default" or rope.pop("partial_rotary_factor", 1.0) != 1.0 or rope:
            raise ConfigError(f"rope_parameters: only the default over the whole head is supported, not {rope}")
        vision_rope = dict(vision.pop("rope_parameters", None) or {})
        if vision_rope.pop("rope_type", "axial") not in ("axial", "default") or vision_rope.keys() - {"rope_theta"}:
            raise ConfigError("vision_config.rope_parameters: only the axial rotary embedding is supported")
        vision |= vision_rope
        for part, key in ((text, "mrope_section"), (vision, "stem_widths"), (vision, "stem_depths")):
            if key in part:
                part[key] = tuple(part[key])
        if {"hidden_size", "num_attention_heads"} <= text.keys():
            text.setdefault("head_dim", text["hidden_size"] // text["num_attention_heads"])
        top["vision"] = _strict(VisionConfig, vision, _IGNORED_VISION, "vision_config")
        top["text"] = _strict(TextConfig, text, _IGNORED_TEXT, "text_config")
        return _strict(cls, top, _IGNORED_TOP, "config")

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
    glyphs: signs that the glyph head names, in the order of their numbers, from 1 on.
    """

    bd_size: int
    mask_id: int
    ar_loss_weight: float
    alphabet: frozenset[str] | None = None
    glyphs: str = ""

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "DraftConfig":
        """From the content of block_diffusion.json; further keys there describe the training and are not needed."""
        alphabet = {"alphabet": frozenset(values["alphabet"])} if "alphabet" in values else {}
        return _strict(cls, {**values, **alphabet}, set(values), "block_diffusion.json")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; ConfigError if it is anything else."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} does not hold a JSON object")
    return values


def _part(values: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """Take an object out of an object."""
    if not isinstance(values.get(key), Mapping):
        raise ConfigError(f"{where} lacks {key}")
    return dict(values.pop(key))


def _strict(kind: type[T], values: Mapping[str, Any], ignored: set[str], where: str) -> T:
    """The record of these values: none unknown, none missing, each of its type, sizes positive."""
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    unknown = values.keys() - known.keys() - ignored - _GENERIC
    if unknown:
        raise ConfigError(f"unknown keys in {where}: {sorted(unknown)}")
    missing = [name for name, field in known.items() if field.default is MISSING and name not in values]
    if missing:
        raise ConfigError(f"{where} lacks {', '.join(missing)}")
    given = {name: value for name, value in values.items() if name in known}
    for name, value in given.items():
        wanted = known[name].type
        accepted = (int, float) if wanted is float else wanted if isinstance(wanted, type) else object
        right = isinstance(value, accepted) and (wanted is bool or not isinstance(value, bool))
        if not right or (wanted is int and value < (not name.endswith("_id"))):
            raise ConfigError(f"{where}: {name} cannot be {value!r}")
    return kind(**given)
