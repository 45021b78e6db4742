"""Small models with random weights that speak the language of the embedded questions."""

from __future__ import annotations

from training.tokenizer import train_tokenizer, wrap
from unslant.models.hf.model import TransformersModel


def random_model(seed: int = 0, name: str = "random", hidden: int = 64) -> TransformersModel:
    """A two-layer Llama that knows nothing."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = wrap(train_tokenizer())
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=hidden, intermediate_size=2 * hidden, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=2048, tie_word_embeddings=True,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, initializer_range=0.05,
    )  # fmt: skip
    return TransformersModel(LlamaForCausalLM(config), tokenizer, name)
