"""What differs between checkpoints apart from weights and sizes: prompts, image rules, end tokens, rendering.

Read from the files that transformers keeps beside a checkpoint (generation_config.json, preprocessor_config.json or
processor_config.json, the chat template). nano has the same files with its own image processor, which also says how
pages are rendered and cut; for the GLM-OCR family that is a convention of its pipeline, written down here.
"""

import json
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from gravityocr_models.config import ConfigError, OcrConfig, read_json
from gravityocr_models.image import ImageRules
from gravityocr_models.records import Task
from gravityocr_models.tokenizer import Tokenizer

# How GLM-OCR is read. Its own pipeline renders at 200 dpi and makes a region one crop, whatever its lines; a token then
# covers 10 x 10 points, in a dense table a cell with its markup. As it writes formulas in LaTeX where a layer has mere
# letters, the layer is kept only where the two agree on nearly everything.
FAMILY_READING: dict[str, Any] = {
    "dpi": 200, "max_crop_lines": 10_000, "tokens_per_image_token": 8, "keep_above": 0.9,
}  # fmt: skip
READING = ("dpi", "max_crop_tokens", "max_crop_lines", "tokens_per_image_token", "keep_above")

_FAMILY = {"Glm46VImageProcessor", "Glm46VImageProcessorFast", "Glm46VImageProcessorPil"}
_PADDED = "PaddedImageProcessor"
_SWITCHES = {"do_resize": True, "do_rescale": True, "do_normalize": True, "do_convert_rgb": True,
             "do_center_crop": False, "do_pad": False, "default_to_square": False, "resample": 3}  # fmt: skip
_ANY = {"image_processor_type", "processor_class", "data_format", "input_data_format", "device",
        "disable_grouping", "return_tensors", "auto_map"}  # fmt: skip
# Sampling and penalties have no say in greedy decoding, which is what drafts are verified against; a repetition
# penalty, which GLM-OCR's own pipeline sets, would even make the verified text differ from the plain one.
_UNUSED = {"_from_model_config", "bos_token_id", "cache_implementation", "do_sample", "max_length", "max_new_tokens",
           "min_p", "output_attentions", "output_hidden_states", "output_scores", "pad_token_id",
           "repetition_penalty", "return_dict_in_generate", "temperature", "top_k", "top_p", "transformers_version",
           "typical_p", "use_cache"}  # fmt: skip

_TABS = re.compile(r"\A\s*(?:\\t(?![a-z])\s*)+|(?:\s*(?<!\\)\\t)+\s*\Z")  # a command goes on in lower case
_HYPHENATED = re.compile(r"(?<=[^\W\d_])[-\u2010\u00ad][ \t]*\n\s*(?=[^\W\d_A-Z])")
_CJK_BREAK = re.compile(r"(?<=[\u3000-\u9fff\uff00-\uffef])[ \t]*\n\s*(?=[\u3000-\u9fff\uff00-\uffef])")
_BREAK = re.compile(r"[ \t]*\n\s*")

NANO_TEMPLATE = "<|image_start|><|image|><|image_end|>{{ messages[0].content[1].text }}"
NANO_PREPROCESSOR: dict[str, Any] = {
    "image_processor_type": _PADDED, "image_mean": [0.5], "image_std": [0.5],
    "dpi": 144, "max_crop_tokens": 1024, "max_crop_lines": 1, "tokens_per_image_token": 2, "keep_above": 0.15,
}  # fmt: skip

Prompt = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Conventions:
    """How a checkpoint is to be asked.

    image: how crops become pixels of the encoder. ends: ids that end an answer. prompts: for each task the ids before
    and after those of the image. dpi, max_crop_tokens, max_crop_lines: how pages are rendered, and how much of one a
    crop may hold. tokens_per_image_token: most that an answer may have; what goes on longer has run away. keep_above:
    share of a region's text layer that must be the model's own choice for the layer to be kept. paragraphs: whether
    answers are written as GLM-OCR does: a paragraph is one line, tabs may be spelled out.
    """

    image: ImageRules
    ends: frozenset[int]
    prompts: Mapping[Task, Prompt]
    dpi: float
    max_crop_tokens: int
    max_crop_lines: int
    tokens_per_image_token: int
    keep_above: float
    paragraphs: bool = False

    def __post_init__(self) -> None:
        for key in READING:
            value = getattr(self, key)
            if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
                raise ConfigError(f"preprocessor: {key} cannot be {value!r}")

    def tidy(self, text: str) -> str:
        r"""The answer without tabs spelled out ("\t") at its ends; \times, \text and the like stay."""
        return _TABS.sub("", text) if self.paragraphs else text

    def as_answer(self, layer: str) -> str:
        """The text layer, its lines as painted, written as the model would: a draft must break where it does."""
        if not self.paragraphs:
            return layer
        for pattern, glue in ((_HYPHENATED, ""), (_CJK_BREAK, ""), (_BREAK, " ")):
            layer = pattern.sub(glue, layer)
        return layer


def read_conventions(folder: Path, config: OcrConfig, tokenizer: Tokenizer) -> Conventions:
    """The conventions of a checkpoint's folder. ConfigError names the file or the key at fault."""
    ends = _ends_of(folder, read_json(folder / "config.json"))
    return _conventions(_preprocessor_of(folder), ends, _template_of(folder), config, tokenizer)


def nano_conventions(config: OcrConfig, tokenizer: Tokenizer) -> Conventions:
    """nano's, as `write_nano` writes them."""
    ends = frozenset({tokenizer.special("<|end|>")})
    return _conventions(NANO_PREPROCESSOR, ends, NANO_TEMPLATE, config, tokenizer)


def write_nano(folder: Path, tokenizer: Tokenizer) -> None:
    """Write nano's conventions beside its weights."""
    generation = {"eos_token_id": [tokenizer.special("<|end|>")]}
    for name, values in (("preprocessor_config.json", NANO_PREPROCESSOR), ("generation_config.json", generation)):
        (folder / name).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    (folder / "chat_template.jinja").write_text(NANO_TEMPLATE + "\n", encoding="utf-8")


def _conventions(
    values: Mapping[str, Any], ends: frozenset[int], template: str, config: OcrConfig, tokenizer: Tokenizer
) -> Conventions:
    unfit = [token for token in ends if not 0 <= token < config.text.vocab_size]
    if unfit or not ends:
        raise ConfigError(f"eos_token_id: {unfit or 'none given'} of a vocabulary of {config.text.vocab_size}")
    prompts = {task: _prompt(template, task, config, tokenizer) for task in Task}
    kind = values.get("image_processor_type")
    if kind == _PADDED:
        _strict(values, NANO_PREPROCESSOR.keys())
        image = ImageRules(tuple(values["image_mean"]), tuple(values["image_std"]))
        conventions = Conventions(image, ends, prompts, **{key: values[key] for key in READING})
    elif kind in _FAMILY:
        image = _family_image(values, config)
        most = int(image.bounds[1]) // config.vision.token_px**2 if image.bounds else 0
        conventions = Conventions(image, ends, prompts, max_crop_tokens=most, paragraphs=True, **FAMILY_READING)
    else:
        raise ConfigError(f"image_processor_type is {kind!r}, not one of {', '.join(sorted(_FAMILY))}")
    if len(image.mean) != config.vision.in_channels:
        raise ConfigError(f"image_mean has {len(image.mean)} values for {config.vision.in_channels} channels")
    return conventions


def _family_image(values: Mapping[str, Any], config: OcrConfig) -> ImageRules:
    """The rules of a Glm46VImageProcessor. Its bounds count every pixel once for each frame, and a still image has as
    many frames as a patch."""
    values = {key: value for key, value in values.items() if value is not None}
    sizes = {"patch_size": config.vision.patch_size, "temporal_patch_size": config.vision.temporal_patch_size,
             "merge_size": config.vision.spatial_merge_size}  # fmt: skip
    _strict(values, {"size", "image_mean", "image_std", *sizes}, _SWITCHES.keys() | {"rescale_factor"})
    for key, wanted in (sizes | _SWITCHES).items():
        if values.get(key, wanted) != wanted:
            raise ConfigError(f"preprocessor: {key} is {values[key]!r}, not {wanted!r}")
    if abs(values.get("rescale_factor", 1 / 255) * 255 - 1) > 1e-6:
        raise ConfigError("preprocessor: rescale_factor is not 1/255")
    size = values["size"]
    if not isinstance(size, Mapping) or size.keys() != {"shortest_edge", "longest_edge"}:
        raise ConfigError(f"preprocessor: size must have shortest_edge and longest_edge, not {size!r}")
    frames = config.vision.temporal_patch_size
    bounds = size["shortest_edge"] / frames, size["longest_edge"] / frames
    return ImageRules(tuple(values["image_mean"]), tuple(values["image_std"]), bounds)


def _strict(values: Mapping[str, Any], wanted: Set[str], known: Set[str] = frozenset()) -> None:
    if absent := wanted - values.keys():
        raise ConfigError(f"preprocessor lacks {', '.join(sorted(absent))}")
    if unknown := values.keys() - wanted - known - _ANY:
        raise ConfigError(f"unknown keys in preprocessor: {', '.join(sorted(unknown))}")


def _preprocessor_of(folder: Path) -> dict[str, Any]:
    """The image processor's settings; those inside processor_config.json, the newer form, come first."""
    for name in ("processor_config.json", "preprocessor_config.json"):
        values = read_json(folder / name) if (folder / name).exists() else {}
        values = values.get("image_processor", {}) if name == "processor_config.json" else values
        if values:
            return values
    raise ConfigError(f"{folder} lacks preprocessor_config.json, and an image_processor in processor_config.json")


def _ends_of(folder: Path, config_file: Mapping[str, Any]) -> frozenset[int]:
    """End ids of generation_config.json, or where it has none, of config.json."""
    file = folder / "generation_config.json"
    generation = read_json(file) if file.exists() else {}
    unknown = {key for key, value in generation.items() if value not in (None, False)} - _UNUSED - {"eos_token_id"}
    if unknown:
        raise ConfigError(f"generation_config.json asks for what greedy decoding does not do: {sorted(unknown)}")
    places = generation, config_file.get("text_config", {}), config_file
    found = next((place["eos_token_id"] for place in places if place.get("eos_token_id") is not None), None)
    if found is None:
        raise ConfigError("neither generation_config.json nor config.json gives eos_token_id")
    ends = found if isinstance(found, list) else [found]
    if not all(isinstance(token, int) for token in ends):
        raise ConfigError(f"eos_token_id cannot be {found!r}")
    return frozenset(ends)


def _template_of(folder: Path) -> str:
    """The chat template: a file of its own, or the tokenizer's."""
    file = folder / "chat_template.jinja"
    if file.exists():
        return file.read_text(encoding="utf-8")
    for name in ("chat_template.json", "tokenizer_config.json"):
        values = read_json(folder / name) if (folder / name).exists() else {}
        if isinstance(values.get("chat_template"), str):
            return str(values["chat_template"])
    raise ConfigError(f"{folder} lacks chat_template.jinja, and a chat_template in its other files")


def _prompt(template: str, task: Task, config: OcrConfig, tokenizer: Tokenizer) -> Prompt:
    """Ids before and after the image's, from the template rendered the way transformers does it."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, **{"ensure_ascii": False} | options)
    content = [{"type": "image"}, {"type": "text", "text": str(task)}]
    messages = [{"role": "user", "content": content}]
    try:
        text = environment.from_string(template).render(messages=messages, add_generation_prompt=True)
    except TemplateError as error:
        raise ConfigError(f"chat template: {error}") from error
    ids = tokenizer.encode_prompt(text)
    if ids.count(config.image_token_id) != 1:
        raise ConfigError(f"chat template: {text!r} must have one image_token_id ({config.image_token_id}), has {ids}")
    place = ids.index(config.image_token_id)
    around = ids[place - 1 : place], ids[place + 1 : place + 2]
    if around != ([config.image_start_token_id], [config.image_end_token_id]):
        raise ConfigError(f"chat template: the image stands between {around}, not image_start_ and image_end_token_id")
    return tuple(ids[:place]), tuple(ids[place + 1 :])
