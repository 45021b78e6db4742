"""Llama-shaped models with random weights, a small tokenizer of their own, and the same weights as GGUF."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.workloads import corpus

VOCABULARY = 32_000


@dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int


SHAPES = {
    "20M": Shape(320, 8, 5, 5, 864),
    "100M": Shape(640, 16, 10, 5, 1728),
    "500M": Shape(1280, 20, 20, 5, 4864),
}
"""Parameters with tied embeddings of 32,000 tokens: 20.2, 93 and 495 million."""


def random_model(size: str) -> LlamaForCausalLM:
    """A float32 model of that size, the same every time."""
    shape = SHAPES[size]
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=shape.hidden,
        intermediate_size=shape.feed_forward,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=4096,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        attn_implementation="sdpa",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config).eval()


def tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level BPE tokenizer learned from the workloads' words; rarer ones are two or three tokens."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1100,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(corpus(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw, eos_token="<|endoftext|>", bos_token="<|endoftext|>", pad_token="<|endoftext|>"
    )


def write_gguf(model: LlamaForCausalLM, words: PreTrainedTokenizerFast, path: Path) -> None:
    """The same weights for llama.cpp, in float32."""
    import gguf

    config: Any = model.config
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(config.hidden_size // config.num_attention_heads)
    writer.add_rope_freq_base(float(config.rope_parameters["rope_theta"]))
    writer.add_vocab_size(VOCABULARY)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer, words)
    heads, kv_heads = config.num_attention_heads, config.num_key_value_heads
    for name, tensor in model.state_dict().items():
        if name != "lm_head.weight":  # tied
            writer.add_tensor(_gguf_name(name), _gguf_order(name, tensor.float().numpy(), heads, kv_heads))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_tokenizer(writer: Any, words: PreTrainedTokenizerFast) -> None:
    import json

    import gguf

    vocabulary = words.get_vocab()
    tokens = sorted(vocabulary, key=lambda token: vocabulary[token])
    fill = [f"<unused{i}>" for i in range(VOCABULARY - len(tokens))]
    special, normal, unused = gguf.TokenType.CONTROL, gguf.TokenType.NORMAL, gguf.TokenType.UNUSED
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([*tokens, *fill])
    writer.add_token_types([special, *[normal] * (len(tokens) - 1), *[unused] * len(fill)])
    merges = json.loads(words.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    writer.add_add_bos_token(False)


_PARTS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def _gguf_name(name: str) -> str:
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, layer, rest = name.split(".", 3)
    return f"blk.{layer}.{_PARTS[rest.removesuffix('.weight')]}.weight"


def _gguf_order(name: str, values: np.ndarray, heads: int, kv_heads: int) -> np.ndarray:
    """llama.cpp pairs neighbouring rotary dimensions where transformers pairs the two halves of a head."""
    n = heads if "q_proj" in name else kv_heads if "k_proj" in name else 0
    if n:
        values = values.reshape(n, 2, values.shape[0] // n // 2, values.shape[1]).swapaxes(1, 2).reshape(values.shape)
    return np.ascontiguousarray(values)
