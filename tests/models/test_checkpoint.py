"""A folder that transformers wrote loads unchanged, and gives what transformers gives: pixels, prompt, logits, ids."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import save_file
from transformers import AutoProcessor, GlmOcrConfig, GlmOcrForConditionalGeneration

import published
from gravityocr_models import store, weights
from gravityocr_models.config import ConfigError, OcrConfig
from gravityocr_models.engine import Engine
from gravityocr_models.image import normalise
from gravityocr_models.ocr import OcrModel
from gravityocr_models.records import Crop, LayerUse, Rounds, Task
from gravityocr_models.speculate import decode

SIZES = [(1, 1), (9, 200), (31, 355), (28, 28), (50, 90), (100, 333), (181, 40), (27, 29), (210, 190), (70, 71)]
STEPS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    published.write(folder)
    return folder


@pytest.fixture(scope="module")
def theirs(folder: Path) -> GlmOcrForConditionalGeneration:
    return GlmOcrForConditionalGeneration.from_pretrained(folder).eval()  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def processor(folder: Path) -> Any:
    return AutoProcessor.from_pretrained(folder)


@pytest.fixture(scope="module")
def engine(folder: Path) -> Engine:
    return Engine.load(folder, "cpu", "float32")


def crop(size: tuple[int, int], task: Task = Task.TEXT) -> Crop:
    return Crop(np.random.default_rng(sum(size)).integers(0, 256, (*size, 3)).astype(np.uint8), task)


def asked(processor: Any, crop: Crop) -> dict[str, torch.Tensor]:
    """transformers' inputs for the crop."""
    content = [{"type": "image", "image": Image.fromarray(crop.pixels)}, {"type": "text", "text": str(crop.task)}]
    messages = [{"role": "user", "content": content}]
    inputs = processor.apply_chat_template(
        messages, tokenize=True, add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )
    return dict(inputs)


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # transformers, of a PIL image
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_all_stages_equal_transformers(
    theirs: GlmOcrForConditionalGeneration, processor: Any, engine: Engine, size: tuple[int, int]
) -> None:
    one = crop(size, list(Task)[sum(size) % 3])
    inputs = asked(processor, one)
    model, image = engine.checkpoint.model, engine.conventions.image
    pixels = torch.from_numpy(normalise(one.pixels, model.config.vision, image))
    rows, columns = (side // 28 for side in pixels.shape[1:])
    assert inputs["image_grid_thw"].tolist() == [[1, 2 * rows, 2 * columns]]
    patches = pixels.view(3, rows, 2, 14, columns, 2, 14).permute(1, 4, 2, 5, 0, 3, 6)
    patches = patches.reshape(-1, 3, 1, 196).expand(-1, -1, 2, -1).reshape(rows * columns * 4, -1)
    torch.testing.assert_close(patches, inputs["pixel_values"], rtol=0, atol=1e-6)

    before, after = engine.conventions.prompts[one.task]
    assert [*before, *[model.config.image_token_id] * (rows * columns), *after] == inputs["input_ids"][0].tolist()

    with torch.no_grad():
        expected = theirs(**inputs).logits[0]
        generated = theirs.generate(**inputs, max_new_tokens=STEPS, do_sample=False)[0, len(expected) :].tolist()
    (prompt,) = engine.prompts([one])
    causal = torch.ones(len(expected), len(expected), dtype=torch.bool).tril()[None, None]
    hidden = model.decode(prompt.embeds[None], prompt.positions[:, None], causal)
    torch.testing.assert_close(model.logits(hidden)[0], expected, rtol=0, atol=1e-4)
    for rounds in Rounds:
        (answer,) = decode(model, [replace(prompt, limit=STEPS)], engine.rules(rounds))
        assert answer.ids == generated


def test_the_prompt_is_the_published_one(processor: Any, engine: Engine) -> None:
    before, after = engine.conventions.prompts[Task.TABLE]
    said = [processor.tokenizer.decode(ids) for ids in (before, after)]
    assert said == ["[gMASK]<sop><|user|>\n<|begin_of_image|>", "<|end_of_image|>Table Recognition:<|assistant|>\n"]


def test_conventions_of_the_family(engine: Engine, processor: Any) -> None:
    name = processor.tokenizer.convert_tokens_to_ids
    assert engine.conventions.ends == {name("<|endoftext|>"), name("<|user|>")}
    assert (engine.dpi, engine.max_crop_tokens, engine.token_px) == (200, 6144, 28)
    assert engine.max_crop_lines > 1000
    assert engine.conventions.image.bounds == (6272, 4816896)


def test_without_drafting_the_layer_and_the_answer_itself_are_followed(engine: Engine) -> None:
    """No block_diffusion.json: no mask rows; any draft, right, wrong or absent, leaves the answer what it is."""
    assert engine.checkpoint.draft is None
    assert engine.rules(Rounds.FUSED).masks(0) == 0
    one = crop((60, 200))
    (plain,) = engine.read([one], rounds=Rounds.PLAIN, layer=LayerUse.OFF)
    assert len(plain.committed) == sum(plain.committed) > 20
    (own,) = engine.read([one], layer=LayerUse.OFF)
    assert own.ids == plain.ids
    assert len(own.committed) <= len(plain.committed)
    for draft in ("not what the crop says", "x" * 40):
        (drafted,) = engine.read([replace(one, draft=draft)], layer=LayerUse.DRAFT)
        assert drafted.ids == plain.ids
    (prompt,) = engine.prompts([one])
    prompt = replace(prompt, limit=20, layer=plain.ids[:19])
    (answer,) = decode(engine.checkpoint.model, [prompt], engine.rules(Rounds.FUSED))
    assert tuple(answer.ids) == plain.ids[:20]
    assert len(answer.committed) <= 2


def test_repetition_is_followed_where_nothing_else_drafts(engine: Engine) -> None:
    """A constant answer (every logit but one is silenced) is drafted by n-grams of itself."""
    model = OcrModel(engine.checkpoint.model.config).eval()
    model.load_state_dict(engine.checkpoint.model.state_dict())
    with torch.no_grad():
        model.lm_head.weight[:] = 0
        model.lm_head.weight[0] = 0
    loud = replace(engine, checkpoint=replace(engine.checkpoint, model=model))
    (prompt,) = loud.prompts([crop((60, 60))])
    (answer,) = decode(model, [replace(prompt, limit=60)], loud.rules(Rounds.FUSED))
    assert answer.ids == [0] * 60
    assert len(answer.committed) < 40


def test_a_drafting_checkpoint_uses_the_mask_of_the_padded_vocabulary(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    facts = {"bd_size": 8, "mask_id": 319, "ar_loss_weight": 1.0, "noise": "uniform", "phase_jitter": True}
    (copy / "block_diffusion.json").write_text(json.dumps(facts))
    drafting, plain = Engine.load(copy, "cpu", "float32"), Engine.load(folder, "cpu", "float32")
    assert len(drafting.checkpoint.tokenizer) < 319
    assert (drafting.rules(Rounds.FUSED).mask_id, drafting.rules(Rounds.FUSED).block) == (319, 8)
    some = [crop((40, 60)), crop((90, 30), Task.FORMULA)]
    assert [a.ids for a in drafting.read(some)] == [a.ids for a in plain.read(some, rounds=Rounds.PLAIN)]
    (copy / "block_diffusion.json").write_text(json.dumps(facts | {"ar_loss_weight": 0.0}))
    assert Engine.load(copy, "cpu", "float32").checkpoint.draft is None
    (copy / "block_diffusion.json").write_text(json.dumps(facts | {"mask_id": 320}))
    with pytest.raises(ConfigError, match="mask_id 320"):
        weights.load(copy)


def test_other_forms_of_the_same_folder(folder: Path, engine: Engine, tmp_path: Path) -> None:
    """One file instead of shards; preprocessor_config.json as published; the template in tokenizer_config.json; end ids
    in config.json alone; the multi-token head."""
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    state = weights.read_tensors(copy) | {"model.language_model.layers.2.eh_proj.weight": torch.zeros(2, 2)}
    for file in [*copy.glob("model*"), copy / "generation_config.json"]:
        file.unlink()
    save_file(state, copy / "model.safetensors")
    nested = json.loads((copy / "processor_config.json").read_text())["image_processor"]
    (copy / "processor_config.json").unlink()
    kept = {k: v for k, v in nested.items() if k not in ("resample", "do_convert_rgb", "rescale_factor", "do_resize")}
    (copy / "preprocessor_config.json").write_text(json.dumps(kept | {"processor_class": "Glm46VProcessor"}))
    file = copy / "tokenizer_config.json"
    template = (copy / "chat_template.jinja").read_text()
    (copy / "chat_template.jinja").unlink()
    file.write_text(json.dumps(json.loads(file.read_text()) | {"chat_template": template}))
    assert store.missing(copy) == []
    again = Engine.load(copy, "cpu", "float32")
    assert again.conventions == engine.conventions
    one = crop((40, 60))
    assert again.read([one])[0].ids == engine.read([one])[0].ids


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
def test_a_tokenizer_that_adds_tokens_of_its_own(folder: Path, processor: Any, tmp_path: Path) -> None:
    """transformers' processor lets it, even before a template's own: so the model has been trained."""
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    values = json.loads((copy / "tokenizer.json").read_text())
    first = "[gMASK]"
    values["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": first, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            first: {"id": first, "ids": [processor.tokenizer.convert_tokens_to_ids(first)], "tokens": [first]}
        },
    }
    (copy / "tokenizer.json").write_text(json.dumps(values))
    again = Engine.load(copy, "cpu", "float32")
    expected = asked(AutoProcessor.from_pretrained(copy), crop((30, 60)))["input_ids"][0].tolist()
    (prompt,) = again.prompts([crop((30, 60))])
    before, after = again.conventions.prompts[Task.TEXT]
    assert before[0] == before[1]
    assert (list(before), list(after)) == (expected[: len(before)], expected[-len(after) :])
    assert len(prompt.embeds) == len(expected)


def full_size() -> dict[str, Any]:
    """The published config.json, as the hub shows it."""
    return {
        "architectures": ["GlmOcrForConditionalGeneration"],
        "model_type": "glm_ocr",
        "text_config": {
            "model_type": "glm_ocr_text", "pad_token_id": 59246, "vocab_size": 59392, "eos_token_id": [59246, 59253],
            "attention_bias": False, "attention_dropout": 0.0, "head_dim": 128, "hidden_act": "silu",
            "hidden_size": 1536, "initializer_range": 0.02, "intermediate_size": 4608,
            "max_position_embeddings": 131072, "num_attention_heads": 16, "num_hidden_layers": 16,
            "num_nextn_predict_layers": 1, "num_key_value_heads": 8, "rms_norm_eps": 1e-05, "dtype": "bfloat16",
            "rope_parameters": {"rope_type": "default", "mrope_section": [16, 24, 24], "partial_rotary_factor": 1.0,
                                "rope_theta": 10000},
            "tie_word_embeddings": False, "use_cache": True,
        },
        "vision_config": {
            "model_type": "glm_ocr_vision", "hidden_size": 1024, "depth": 24, "num_heads": 16, "attention_bias": True,
            "intermediate_size": 4096, "hidden_act": "silu", "hidden_dropout_prob": 0.0, "initializer_range": 0.02,
            "image_size": 336, "patch_size": 14, "out_hidden_size": 1536, "rms_norm_eps": 1e-05,
            "spatial_merge_size": 2, "temporal_patch_size": 2,
        },
        "image_start_token_id": 59256, "image_end_token_id": 59257, "video_start_token_id": 59258,
        "video_end_token_id": 59259, "image_token_id": 59280, "video_token_id": 59281,
        "tie_word_embeddings": False, "transformers_version": "5.0.1dev0",
    }  # fmt: skip


def test_every_name_and_shape_of_the_full_size() -> None:
    config = OcrConfig.from_json(full_size())
    with torch.device("meta"):
        ours = OcrModel(config)
        theirs = GlmOcrForConditionalGeneration(GlmOcrConfig(**full_size()))
    shapes = {name: tuple(tensor.shape) for name, tensor in ours.state_dict().items()}
    assert shapes == {name: tuple(tensor.shape) for name, tensor in theirs.state_dict().items()}
    assert 0.85e9 < sum(tensor.numel() for tensor in ours.state_dict().values()) < 1.2e9
    assert (config.vision.token_px, config.image_token_id) == (28, 59280)
