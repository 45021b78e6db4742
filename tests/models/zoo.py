"""A zoo of small random-weight models of real ``transformers`` classes, with the tokenizers of their families.

Each is saved as a plain folder that ``AutoModelForCausalLM`` and ``AutoTokenizer`` load. The weights are drawn with a
spread that makes attention sharp and logits unlike, and biases and norms are no longer ones and zeros: a wrong
position, mask or parent shows in the numbers.

Any can be had with the small vocabulary of the reference models, for tests of something other than tokens: most of the
time that the others take is spent on their vocabularies.

Sliding windows are 16 tokens, shorter than any real prompt. ``AutoTokenizer`` gives Qwen 2 models its own class, so
those cut text by Qwen 2's rules with GPT-2's vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.models.zoo_tokenizers import TOKENIZERS, save_tokenizer

WINDOW = 16
_SEED = 20240617


@dataclass(frozen=True)
class ZooEntry:
    """One small model.

    Attributes:
        model_type: as in ``config.json``; picks the class.
        tokenizer: name in ``TOKENIZERS``.
        settings: configuration values beside the vocabulary and the special tokens.
        tree_supported: a prefix tree in one pass can give what each prompt alone gives: the class sends all mixing
            between positions through the attention interface, with a mask and explicit positions.
        why_not: what stands in the way where it cannot.
        chat_template: Jinja2 source to put on the tokenizer (one of its own stays otherwise).
    """

    model_type: str
    tokenizer: str
    settings: dict[str, Any] = field(default_factory=dict)
    tree_supported: bool = True
    why_not: str = ""
    chat_template: str = ""


def _gqa(**settings: Any) -> dict[str, Any]:
    """The sizes shared by most of the zoo: hidden 64, 2 layers, 4 heads on 2 key-value heads."""
    sizes: dict[str, Any] = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "initializer_range": 0.2,
        "tie_word_embeddings": True,
    }
    return sizes | settings


def _mha(**settings: Any) -> dict[str, Any]:
    sizes = _gqa(**settings)
    del sizes["num_key_value_heads"]
    return sizes


def _gpt2(**settings: Any) -> dict[str, Any]:
    return {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 1024, "initializer_range": 0.2} | settings


_MOE: dict[str, Any] = {"num_experts_per_tok": 2, "num_hidden_layers": 2}
_SLIDING_AND_FULL = ["sliding_attention", "full_attention", "sliding_attention"]
_ALIBI = "ALiBi biases are added to the scores inside the class, which knows no attention interface"
_OWN_ATTENTION = "the class computes attention itself and knows no attention interface"
_CHAT = (
    "{% for message in messages %}<|{{ message.role }}|>\n{{ message.content }}{{ eos_token }}\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)

ZOO: dict[str, ZooEntry] = {
    "llama": ZooEntry("llama", "llama-spm", _gqa(tie_word_embeddings=False)),
    "llama-deepseek": ZooEntry("llama", "deepseek-llm", _gqa(hidden_size=32, intermediate_size=64)),
    "llama-chat": ZooEntry("llama", "gpt-2", _gqa(hidden_size=32), chat_template=_CHAT),
    "qwen2": ZooEntry("qwen2", "gpt-2", _gqa()),
    "qwen2-sliding": ZooEntry(
        "qwen2",
        "gpt-2",
        _gqa(num_hidden_layers=3, use_sliding_window=True, sliding_window=WINDOW, layer_types=_SLIDING_AND_FULL),
    ),
    "qwen3": ZooEntry("qwen3", "gpt-2", _gqa(head_dim=16)),
    "mistral": ZooEntry("mistral", "llama-spm", _gqa(sliding_window=None)),
    "mistral-sliding": ZooEntry("mistral", "llama-spm", _gqa(sliding_window=WINDOW)),
    "phi": ZooEntry("phi", "phi-2", _gqa(partial_rotary_factor=0.5)),
    "phi3": ZooEntry("phi3", "phi-3", _gqa(sliding_window=None, original_max_position_embeddings=2048)),
    "phi3-sliding": ZooEntry("phi3", "phi-3", _gqa(sliding_window=WINDOW, original_max_position_embeddings=2048)),
    "gemma2": ZooEntry(
        "gemma2",
        "llama-spm-no-prefix",
        _gqa(
            num_hidden_layers=3,
            head_dim=16,
            query_pre_attn_scalar=24,
            sliding_window=WINDOW,
            layer_types=_SLIDING_AND_FULL,
            attn_logit_softcapping=5.0,
            final_logit_softcapping=10.0,
        ),
    ),
    "gemma3": ZooEntry(
        "gemma3_text",
        "llama-spm-no-prefix",
        _gqa(
            num_hidden_layers=3,
            head_dim=16,
            query_pre_attn_scalar=24,
            sliding_window=WINDOW,
            layer_types=_SLIDING_AND_FULL,
        ),
    ),
    "gpt2": ZooEntry("gpt2", "gpt-2", _gpt2()),
    "gpt2-scaled": ZooEntry("gpt2", "gpt-2", _gpt2(scale_attn_by_inverse_layer_idx=True)),
    "gpt-neox": ZooEntry("gpt_neox", "gpt-neox", _mha(rotary_pct=0.25)),
    "olmo2": ZooEntry("olmo2", "gpt-2", _gqa()),
    "mixtral": ZooEntry("mixtral", "llama-spm", _gqa(sliding_window=None, num_local_experts=4) | _MOE),
    "qwen2-moe": ZooEntry(
        "qwen2_moe",
        "gpt-2",
        _gqa(num_experts=4, moe_intermediate_size=48, shared_expert_intermediate_size=48, layer_types=None) | _MOE,
    ),
    "qwen3-moe": ZooEntry("qwen3_moe", "gpt-2", _gqa(num_experts=4, moe_intermediate_size=48, head_dim=16) | _MOE),
    "stablelm": ZooEntry("stablelm", "gpt-neox", _gqa(partial_rotary_factor=0.25)),
    "cohere": ZooEntry("cohere", "gpt-2", _gqa(logit_scale=0.5)),
    "granite": ZooEntry("granite", "gpt-2", _gqa(attention_multiplier=0.3, residual_multiplier=0.7)),
    "smollm3": ZooEntry("smollm3", "gpt-2", _gqa(no_rope_layers=[1, 0])),
    "opt": ZooEntry("opt", "gpt-2", _mha(ffn_dim=96, word_embed_proj_dim=64, init_std=0.2)),
    "gpt-oss": ZooEntry(
        "gpt_oss",
        "gpt-2",
        _gqa(
            head_dim=16,
            sliding_window=WINDOW,
            num_local_experts=4,
            layer_types=_SLIDING_AND_FULL[:2],
            rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        )
        | _MOE,
    ),
    "phi3-longrope": ZooEntry(
        "phi3",
        "phi-3",
        _gqa(
            sliding_window=None,
            original_max_position_embeddings=WINDOW,
            rope_parameters={
                "rope_type": "longrope",
                "rope_theta": 10000.0,
                "factor": 4.0,
                "short_factor": [1.0] * 8,
                "long_factor": [4.0] * 8,
                "original_max_position_embeddings": WINDOW,
            },
        ),
        tree_supported=False,
        why_not="the rotary frequencies depend on the longest sequence of the batch",
    ),
    # since transformers 5.24 its class knows the attention interface
    "gptj": ZooEntry("gptj", "gpt-2", _gpt2(rotary_dim=8, tie_word_embeddings=False)),
    "falcon": ZooEntry(
        "falcon",
        "gpt-2",
        _mha(alibi=False, multi_query=True, new_decoder_architecture=False),
        tree_supported=False,
        why_not=_OWN_ATTENTION,
    ),
    "falcon-alibi": ZooEntry(
        "falcon",
        "gpt-2",
        _mha(alibi=True, multi_query=True, new_decoder_architecture=False),
        tree_supported=False,
        why_not=_ALIBI,
    ),
    "bloom": ZooEntry(
        "bloom",
        "gpt-2",
        {"hidden_size": 64, "n_layer": 2, "n_head": 4, "initializer_range": 0.2},
        tree_supported=False,
        why_not=_ALIBI,
    ),
    "mamba": ZooEntry(
        "mamba",
        "gpt-neox",
        {"hidden_size": 64, "num_hidden_layers": 2, "state_size": 8, "initializer_range": 0.2},
        tree_supported=False,
        why_not="a state-space model: the state runs along the packed sequence",
    ),
    "lfm2": ZooEntry(
        "lfm2",
        "gpt-2",
        _gqa(layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False),
        tree_supported=False,
        why_not="short convolutions between the attention layers run along the packed sequence",
    ),
}


def build(name: str, folder: Path, tokenizer_cache: Path, small: bool = False) -> Path:
    """Build one model of :data:`ZOO`, save it with its tokenizer into ``folder`` (made if absent) and return that.

    With ``small`` it has the vocabulary of the reference models. Built tokenizers are kept in ``tokenizer_cache``.
    Always the same weights for the same name. Skips the test if the tokenizer's vocabulary file is not there.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    entry = replace(ZOO[name], tokenizer="reference") if small else ZOO[name]
    source = TOKENIZERS[entry.tokenizer]
    save_tokenizer(entry.tokenizer, folder, tokenizer_cache)
    config = AutoConfig.for_model(
        entry.model_type,
        vocab_size=source.vocab_size,
        bos_token_id=source.bos_id,
        eos_token_id=source.eos_id,
        pad_token_id=source.eos_id,
        **entry.settings,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        for parameter_name, parameter in model.named_parameters():
            if parameter.dim() == 1 and any(part in parameter_name for part in ("bias", "norm", "ln_", "sinks")):
                parameter.data.add_(torch.randn_like(parameter), alpha=0.2)
    model.save_pretrained(folder)
    if entry.chat_template:
        (folder / "chat_template.jinja").write_text(entry.chat_template, "utf-8")
    return folder


class ZooFolder(Protocol):
    """The fixture ``zoo_model``: the folder of a model by its name in :data:`ZOO`, as :func:`build` makes it."""

    def __call__(self, name: str, small: bool = False) -> Path: ...


MORE = set(
    "llama-deepseek llama-chat gpt2-scaled qwen3-moe stablelm cohere granite smollm3 opt falcon gptj bloom lfm2".split()
)
"""Variants for the slow run; every class named in the README is in the quick or the thorough one."""


def variant(name: str):
    """The name as a parameter of a test, slow if it is a mere variant."""
    return pytest.param(name, marks=[pytest.mark.slow] if name in MORE else [])


ONE_OF_EACH_TOKENIZER = ("gpt2", "gpt-neox", "phi", "llama", "llama-deepseek", "phi3", "gemma2", "qwen2")
"""One model for every tokenizer and every kind of pre-tokenization."""
