"""In what form transformers is to load weights: unpacked, quantised, or cut into parts."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from unslant.errors import ModelError


def is_gguf(source: str | Path) -> bool:
    """Whether this is the name of a GGUF file."""
    return str(source).lower().endswith(".gguf")


def dense(source: str) -> dict[str, Any]:
    """Have the blocks of a GGUF file unpacked: packed ones could be neither trained nor scored in batches exactly."""
    import transformers

    if not (is_gguf(source) and hasattr(transformers, "GgufConfig")):  # earlier ones always unpack
        return {}
    return {"quantization_config": transformers.GgufConfig(dequantize=True)}


def quantised(bits: int, dtype: str) -> dict[str, Any]:
    """Have the weights quantised as they are loaded; what is computed is of this type."""
    from transformers import BitsAndBytesConfig

    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # it tells every layer's number type
    if bits == 8:
        return {"quantization_config": BitsAndBytesConfig(load_in_8bit=True)}
    computed = {} if dtype == "auto" else {"bnb_4bit_compute_dtype": dtype}
    return {"quantization_config": BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", **computed)}


def in_parts(number: int) -> Any:
    """Have the layers cut as the model's class says."""
    try:
        from transformers.distributed import DistributedConfig

        return DistributedConfig(tp_size=number)
    except (ImportError, TypeError):
        raise ModelError("--tensor-parallel needs a newer transformers: pip install -U transformers") from None
