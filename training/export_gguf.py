"""Write a small Llama (a reference model, say) as GGUF, the file that llama.cpp serves.

Covers what the reference models are: Llama with byte-level BPE in the manner of GPT-2, weights in half or single
precision, tied or not. Needs the ``gguf`` package. ``python -m training.export_gguf MODEL_FOLDER OUT.gguf``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.errors import ModelError

_TENSORS = {
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


def export_gguf(folder: str | Path, out: str | Path, name: str = "reference") -> None:
    """Write the model in ``folder`` to ``out``, in single precision.

    Raises:
        ModelError: if it is not a Llama with a BPE tokenizer, or ``gguf`` is not installed.
    """
    try:
        import gguf
    except ImportError:
        raise ModelError("writing GGUF needs the gguf package: pip install gguf") from None
    from safetensors.numpy import load_file

    folder = Path(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    if config.get("model_type") != "llama" or tokenizer["model"]["type"] != "BPE":
        raise ModelError(f"{folder}: only Llama models with a byte-level BPE tokenizer can be written as GGUF here")
    heads, kv_heads, width = config["num_attention_heads"], config["num_key_value_heads"], config["hidden_size"]
    rope = config.get("rope_parameters") or {}
    writer = gguf.GGUFWriter(str(out), "llama")
    writer.add_name(name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(width)
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_dimension_count(width // heads)
    writer.add_rope_freq_base(float(config.get("rope_theta") or rope.get("rope_theta", 10_000.0)))
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _write_tokenizer(writer, tokenizer, config, gguf)
    template = folder / "chat_template.jinja"
    if template.is_file():
        writer.add_chat_template(template.read_text("utf-8"))
    for key, weights in load_file(folder / "model.safetensors").items():
        tensor = np.ascontiguousarray(weights.astype(np.float32))
        if key.endswith("q_proj.weight"):
            tensor = _interleaved(tensor, heads)
        if key.endswith("k_proj.weight"):
            tensor = _interleaved(tensor, kv_heads)
        writer.add_tensor(_tensor_name(key), tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _write_tokenizer(writer: Any, tokenizer: dict[str, Any], config: dict[str, Any], gguf: Any) -> None:
    added = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    by_id = {i: text for text, i in {**tokenizer["model"]["vocab"], **added}.items()}
    tokens = [by_id.get(i, f"<unused{i}>") for i in range(config["vocab_size"])]
    normal, unused = gguf.TokenType.NORMAL, gguf.TokenType.UNUSED
    kinds = [
        gguf.TokenType.CONTROL if token in added else normal if i in by_id else unused for i, token in enumerate(tokens)
    ]
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in tokenizer["model"]["merges"]]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(merges)
    for add, key in (
        (writer.add_bos_token_id, "bos_token_id"),
        (writer.add_eos_token_id, "eos_token_id"),
        (writer.add_pad_token_id, "pad_token_id"),
    ):
        if config.get(key) is not None:
            add(config[key])
    writer.add_add_bos_token(False)


def _tensor_name(key: str) -> str:
    whole = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if key in whole:
        return whole[key]
    _, _, layer, rest = key.split(".", 3)
    return f"blk.{layer}.{_TENSORS[rest.removesuffix('.weight')]}.weight"


def _interleaved(weights: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Rotary dimensions in llama.cpp's order: pairs side by side, where transformers has the two halves apart."""
    half = weights.shape[0] // heads // 2
    shaped = weights.reshape(heads, 2, half, *weights.shape[1:]).swapaxes(1, 2)
    return np.ascontiguousarray(shaped.reshape(weights.shape))


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a small Llama as GGUF.")
    parser.add_argument("model", type=Path, help="folder of the model")
    parser.add_argument("out", type=Path, help="file to write")
    arguments = parser.parse_args()
    export_gguf(arguments.model, arguments.out)


if __name__ == "__main__":
    main()
