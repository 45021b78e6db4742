"""What a checkpoint may ask for, checked before anything is built: no more than what its tensors can hold.

A configuration is a file of others. transformers believes it: ``num_hidden_layers`` of ten million keeps it building
for minutes, ``num_labels`` of a billion fills the memory before a weight is read. So counts are compared with the
tensors first, by name and shape alone; then the model is built without memory (on torch's ``meta`` device), and its
size is compared with theirs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unslant.errors import ModelError, first_line
from unslant.files import size_of

_LARGEST_CONFIG = 64 << 20
_COUNT = re.compile(
    r"^(num|n)_(?!vocab|ctx|embd|inner|positions|embeddings)\w+|(layers?|blocks?|heads?|experts?|depths?)$"
)
_MODULES = re.compile(r"(layers?|blocks?|experts?|depths?)$")
_MOST_LAYERS = 1_000
_MOST_COUNTED = 10_000
_MOST_MODULES = 20_000
_MOST_TIMES = 4
"""A model may be this many times as large as its tensors; with packed weights, ``_PACKED`` times more."""
_PACKED = 16
_SMALL = 1 << 26
_CONSTANTS = (".attn.masked_bias", ".rotary_emb.inv_freq")
"""Endings of entries that earlier versions of transformers saved though they are not weights."""
_LISTED = 12
_HOLE = 4096
"""Bytes of zeros in a row that no block of trained weights has."""


def is_gguf(source: str | Path) -> bool:
    """Whether this is the name of a GGUF file."""
    return str(source).lower().endswith(".gguf")


def check_config(source: str, **where: Any) -> None:
    """Refuse a configuration that asks for more layers, experts, heads or labels than the checkpoint can have.

    Args:
        source: folder, GGUF file or Hub id.
        where: where transformers is to look.

    Raises:
        ModelError: naming the key.
    """
    from transformers import PreTrainedConfig

    path = Path(source)
    if is_gguf(path):
        return _check_gguf(path)
    if path.is_dir():
        size_of(path / "config.json", _LARGEST_CONFIG)
    try:
        config, _ = PreTrainedConfig.get_config_dict(source, **where)
    except Exception:  # loading says why, in its own words
        return None
    _check_counts(config, source, len(_shapes(path)))
    return None


def check_size(source: str, config: Any, **options: Any) -> None:
    """Refuse a configuration whose model would be far larger than the tensors of the checkpoint.

    Args:
        config: as transformers read it.
        options: of ``from_config``.

    Raises:
        ModelError: telling both sizes.
    """
    import torch
    from transformers import AutoModelForCausalLM

    stored = sum(_shapes(Path(source)).values())
    if not stored:  # not here, or not in safetensors
        return
    try:
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config, **options)
    except Exception as error:
        raise ModelError(f"{source}: no model can be built from its configuration: {first_line(error)}") from error
    asked = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    times = _MOST_TIMES * (_PACKED if getattr(config, "quantization_config", None) else 1)
    if asked > times * stored + _SMALL:
        raise ModelError(
            f"{source}: its configuration asks for {asked:,} weights, but its files hold {stored:,}; config.json is "
            "that of another model, or made to fill the memory"
        )


def _check_counts(config: Any, source: str, tensors: int, place: str = "") -> None:
    """Look at every count of a configuration and of those inside it."""
    modules = 1
    for key, value in config.items():
        name = f"{place}{key}"
        if isinstance(value, Mapping):
            _check_counts(value, source, tensors, f"{name}.")
        numbers = value if isinstance(value, list) else [value]
        whole = [number for number in numbers if isinstance(number, int) and not isinstance(number, bool)]
        if not whole or not _COUNT.search(key):
            continue
        counts_modules = bool(_MODULES.search(key))
        modules *= max(1, *whole) if counts_modules else 1
        most = max(tensors, _MOST_LAYERS if counts_modules else _MOST_COUNTED)
        if max(whole) > most or modules > max(tensors, _MOST_MODULES):
            raise ModelError(
                f"{source}: config.json asks for {key} {max(whole):,}"
                + (f", but its files hold {tensors:,} tensors" if tensors else ", more than any model has")
                + f" ({name})" * bool(place)
            )


def _shapes(folder: Path) -> dict[str, int]:
    """Elements of every tensor in the safetensors files of a folder, from their headers; none where there are none."""
    found: dict[str, int] = {}
    for file in sorted(folder.glob("*.safetensors")) if folder.is_dir() else ():
        try:
            found |= {name: math.prod(entry["shape"]) for name, entry in _header(file)}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue  # loading says what is wrong with it
    return found


def _header(file: Path) -> Iterator[tuple[str, Any]]:
    with file.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if length > _LARGEST_CONFIG:
            raise ValueError("no header")
        yield from ((name, entry) for name, entry in json.loads(stream.read(length)).items() if name != "__metadata__")


def _check_gguf(path: Path) -> None:
    """Read the table of contents of a GGUF file within its bounds, and compare its counts with its tensors."""
    reader = gguf_reader(path)
    counts = {
        key.rpartition(".")[2]: field.contents()
        for key, field in reader.fields.items()
        if key.endswith(("block_count", "expert_count", "head_count", "head_count_kv"))
    }
    renamed = {key.replace("block_count", "n_layers").replace("_count", "s"): value for key, value in counts.items()}
    try:
        _check_counts(renamed, str(path), len(reader.tensors))
    except ModelError as error:
        raise ModelError(str(error).replace("config.json asks", "its header asks")) from None


def gguf_reader(path: Path) -> Any:
    """The table of contents of a GGUF file, read without leaving the file: lengths in it may say anything.

    Raises:
        ModelError: if it is damaged.
    """
    from gguf import GGUFReader

    class Within(GGUFReader):  # type: ignore[misc]  # the library is not typed
        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
            if offset + np.dtype(dtype).itemsize * int(count) > len(self.data):
                raise ValueError("it ends before what its header announces")
            return super()._get(offset, dtype, count, override_order)

    try:
        return Within(path)
    except Exception as error:  # as many kinds as there are damages
        raise ModelError(
            f"{path}: the tokenizer cannot be loaded from it, nor the weights: it is not a whole GGUF file "
            f"({first_line(error)})"
        ) from error


def holes(path: Path) -> str:
    """Stretches of zeros in the matrices of a GGUF file, which has no checksums; empty if there are none.

    Rows of a vocabulary beyond the tokenizer's last token are padding, and may well be zeros.
    """
    reader = gguf_reader(path)
    tokens = reader.get_field("tokenizer.ggml.tokens")
    found = []
    for tensor in reader.tensors:
        if len(tensor.shape) < 2:
            continue
        rows = int(tensor.shape[-1])
        used = len(tokens.data) if tokens and rows > len(tokens.data) and len(tensor.shape) == 2 else rows
        content = tensor.data.reshape(rows, -1)[:used].reshape(-1).view(np.uint8)
        blocks = content[: len(content) // _HOLE * _HOLE].reshape(-1, _HOLE).any(axis=1)
        if empty := int((~blocks).sum()):
            found.append(f"{empty * _HOLE:,} bytes of {tensor.name}")
    return ", ".join(found[:4]) + (f" and of {len(found) - 4} more" if len(found) > 4 else "")


def incomplete_weights(source: str, missing: Iterable[str], unexpected: Iterable[str], allowed: bool) -> str:
    """What weights are missing or left over, in words; empty if none.

    Raises:
        ModelError: if there are, and that is not allowed.
    """
    left_over = [key for key in unexpected if not key.endswith(_CONSTANTS)]
    found = ", ".join(
        f"{len(keys)} weight{'s' * (len(keys) > 1)} {what} ({_listed(sorted(keys))})"
        for what, keys in (("missing", list(missing)), ("left over", left_over))
        if keys
    )
    if found and not allowed:
        raise ModelError(
            f"{source}: the weights are not those that its configuration asks for: {found}; what is missing would be "
            "random numbers. Give a complete checkpoint, or insist with --allow-missing"
        )
    return f"{source}: {found}" if found else ""


def _listed(keys: list[str]) -> str:
    return ", ".join(keys[:_LISTED]) + (f" and {len(keys) - _LISTED} more" if len(keys) > _LISTED else "")
