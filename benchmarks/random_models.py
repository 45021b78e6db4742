"""Llama-shaped models with random weights, a small tokenizer of their own, and the same weights as GGUF."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.workloads import corpus
from training.export_gguf import export_gguf

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
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        words.save_pretrained(folder)
        export_gguf(folder, path)
