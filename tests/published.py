"""A checkpoint folder as transformers writes it: a random small GLM-OCR with its real processor classes."""

from pathlib import Path
from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    Glm46VImageProcessor,
    Glm46VProcessor,
    Glm46VVideoProcessor,
    GlmOcrConfig,
    GlmOcrForConditionalGeneration,
    PreTrainedTokenizerFast,
)

SPECIAL = (
    "<|endoftext|> [MASK] [gMASK] [sMASK] <sop> <eop> <|system|> <|user|> <|assistant|> <|observation|>"
    " <|begin_of_image|> <|end_of_image|> <|begin_of_video|> <|end_of_video|> <|image|> <|video|>"
).split()
# The parts of the published template that matter to a prompt with one image: macro, string or parts, trimmed blocks.
TEMPLATE = """[gMASK]<sop>
{%- if tools -%}
<|system|>
{% for tool in tools %}
{{ tool | tojson(ensure_ascii=False) }}
{% endfor %}
{%- endif -%}
{%- macro shown(content) -%}
    {%- if content is string -%}
        {{- content }}
    {%- else -%}
        {%- for part in content -%}
            {%- if part.type == 'image' or 'image' in part -%}
                <|begin_of_image|><|image|><|end_of_image|>
            {%- elif part.type == 'text' -%}
                {{- part.text }}
            {%- endif -%}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
{%- set state = namespace(last=-1) %}
{%- for message in messages %}
    {%- if message.role == 'user' %}
        {%- set state.last = loop.index0 -%}
    {%- endif %}
{%- endfor %}
{% for message in messages %}
{%- if message.role == 'user' -%}<|user|>
{{ shown(message.content) }}
{{- '/nothink' if (enable_thinking is defined and not enable_thinking) else '' -}}
{%- elif message.role == 'assistant' -%}
<|assistant|>
{{ shown(message.content) }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|assistant|>
{{'<think></think>\\n' if (enable_thinking is defined and not enable_thinking) else ''}}
{%- endif -%}
"""


def tokenizer() -> PreTrainedTokenizerFast:
    """Bytes, a few merges, and GLM-OCR's special tokens."""
    vocabulary = {piece: number for number, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    merges = [("T", "e"), ("Te", "x"), ("Tex", "t"), ("Ġ", "R"), ("o", "n")]
    vocabulary |= {a + b: len(vocabulary) + number for number, (a, b) in enumerate(merges)}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, eos_token="<|endoftext|>", pad_token="<|endoftext|>", padding_side="left"
    )


def processor() -> Glm46VProcessor:
    """With the published limits on an image's size."""
    size = {"shortest_edge": 12544, "longest_edge": 9633792}
    return Glm46VProcessor(
        image_processor=Glm46VImageProcessor(size=size),
        tokenizer=tokenizer(),
        video_processor=Glm46VVideoProcessor(),
        chat_template=TEMPLATE,
    )


def model() -> GlmOcrForConditionalGeneration:
    """Random weights large enough that answers vary; the vocabulary is padded, as the published one is."""
    name = tokenizer().convert_tokens_to_ids
    ids: dict[str, Any] = {
        "image_token_id": name("<|image|>"),
        "image_start_token_id": name("<|begin_of_image|>"),
        "image_end_token_id": name("<|end_of_image|>"),
    }
    rope = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [4, 6, 6]}
    text = {"vocab_size": 320, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "rope_parameters": rope,
            "eos_token_id": [name("<|endoftext|>"), name("<|user|>")]}  # fmt: skip
    vision = {"depth": 2, "hidden_size": 64, "num_heads": 4, "intermediate_size": 80, "out_hidden_size": 64}
    torch.manual_seed(0)
    made = GlmOcrForConditionalGeneration(GlmOcrConfig(text_config=text, vision_config=vision, **ids)).eval()
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    made.generation_config.pad_token_id = name("<|endoftext|>")
    return made  # type: ignore[no-any-return]


def write(folder: Path, shard: str = "100KB") -> None:
    """Everything, by save_pretrained alone."""
    model().save_pretrained(folder, max_shard_size=shard)
    processor().save_pretrained(folder)
