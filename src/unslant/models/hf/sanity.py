"""Find a checkpoint, and check it before anything is built: it may ask for no more than its tensors can hold.

A configuration is somebody else's file, and transformers believes it: ``num_hidden_layers`` of ten million keeps it
building for minutes, ``num_labels`` of a billion fills the memory before a weight is read. So counts are first compared
with the tensors, by name and shape alone. Then the model is built without memory (on torch's ``meta`` device), and its
size is compared with theirs.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import lru_cache
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from unslant.errors import ModelError, first_line, shortened
from unslant.files import size_of
from unslant.questions.loaders import holds_questions
from unslant.reference import WORDS, reference_names, reference_path

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
_SMALL = 1 << 26  # weights that do no harm
_CONSTANTS = (".attn.masked_bias", ".rotary_emb.inv_freq")
"""Endings of entries that old versions of transformers saved, although they are not weights."""
_PICTURES = re.compile(r"(?:^|\.)(?:vision|visual|multi_modal)\w*\.")
"""Within the names of weights that read pictures, which a causal language model of the same checkpoint leaves out."""
_LISTED = 12
_HOLE = 4096
"""Consecutive zero bytes that no block of trained weights has."""


def is_gguf(source: str | Path) -> bool:
    """Whether this is the name of a GGUF file."""
    return str(source).lower().endswith(".gguf")


_HUB_ID = re.compile(r"(?=.{1,96}\Z)(?!.*(?:--|\.\.))(?:\w[\w.-]*/)?\w(?:[\w.-]*\w)?", re.ASCII)


def locate(name: str) -> str:
    """Where a model is: the folder of a reference model, a folder, the GGUF file in it, or a Hub id as it is.

    Raises:
        ModelError: if there is no such file, or the folder holds no model.
    """
    folder = Path(os.path.expanduser(name))
    if name in (WORDS, *reference_names()):
        if os.path.isfile(folder / "config.json") or any(folder.glob("*.gguf")):
            raise ModelError(f"{name}: a bundled model, and also a folder here; for the folder: ./{name}")
        return str(reference_path(name))
    if os.path.isfile(folder) and is_gguf(folder):
        return str(folder)
    if os.path.isdir(folder):
        for place, needs in ((folder, os.R_OK | os.X_OK), *((file, os.R_OK) for file in folder.glob("*.safetensors"))):
            if os.path.exists(place) and not os.access(place, needs):  # their reader takes these files for missing
                raise ModelError(f"{place}: cannot be read: permission denied")
        tokenizers = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model")
        configured = os.path.isfile(folder / "config.json")
        if configured and any(os.path.isfile(folder / file) for file in tokenizers):
            return str(folder)
        files = sorted(folder.glob("*.gguf"))  # collections of these come with a config.json that says little
        if len(files) == 1:
            return str(files[0])
        if files:
            raise ModelError(f"{folder}: {len(files)} GGUF files in it; give one, such as {files[0]}")
        if not configured:
            raise ModelError(f"{folder}: not a model folder, config.json is missing")
        raise ModelError(f"{folder}: no tokenizer in it; save one there with tokenizer.save_pretrained({name!r})")
    if holds_questions(name):
        what = "questions or responses (--log)" if name.endswith(".parquet") else "questions"
        raise ModelError(f"{name}: {what}, not a model; give the model first, then the questions: MODEL {name}")
    if os.path.exists(folder) or is_gguf(name) or not _HUB_ID.fullmatch(name):
        raise ModelError(
            f"{shortened(name)}: no such model; give a folder with config.json, a .gguf file, a Hub id such as "
            "org/model, or http://HOST/v1#NAME for a served one"
        )
    return name


def check_config(source: str, where: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Refuse a configuration that asks for more layers, experts, heads or labels than the checkpoint can have.

    Args:
        source: folder, GGUF file or Hub id.
        where: keywords that say where transformers looks, such as ``revision``.

    Raises:
        ModelError: naming the key.
    """
    from transformers import PreTrainedConfig

    path = Path(source)
    if is_gguf(path):
        size_of(path)
        _check_gguf(path)
        return
    if os.path.isdir(path):
        size_of(path / "config.json", _LARGEST_CONFIG)
        for file in filter(os.path.isfile, sorted(path.iterdir())):  # weights, and the files of tokenizers
            size_of(file)
    try:
        config, _ = PreTrainedConfig.get_config_dict(source, **where)
    except Exception:  # loading fails too, with the reason
        return
    _check_counts(config, source, len(_shapes(path)))


def class_for(name: str, config: Any, auto: str) -> Any:
    """The Auto class of transformers that loads a checkpoint; ``auto`` is the one for its purpose.

    Raises:
        ModelError: if a causal language model is wanted, and transformers has none for this checkpoint.
    """
    import transformers

    kind, stored = type(config), (config.architectures or [""])[0]
    if auto != "AutoModelForCausalLM" or auto in (getattr(config, "auto_map", None) or {}):
        return getattr(transformers, auto)
    causal = transformers.MODEL_FOR_CAUSAL_LM_MAPPING.get(kind, None)
    # Bart's configuration also has a causal class, for a decoder that was saved by itself.
    if not getattr(config, "is_encoder_decoder", False) or (causal and stored in ("", causal.__name__)):
        if causal is not None:
            return transformers.AutoModelForCausalLM
        seeing = transformers.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING.get(kind, None)
        if seeing and getattr(signature(seeing.forward).parameters.get("pixel_values"), "default", None) is None:
            return transformers.AutoModelForImageTextToText
    raise ModelError(
        f"{name}: {stored or config.model_type} is not a causal language model: give one, which continues a text (an "
        "encoder-decoder does not: it reads one text and writes another; nor does a model that needs a picture)"
    )


def check_size(source: str, config: Any, model_class: Any, *, trust_remote_code: bool) -> None:
    """Refuse a configuration whose model would be far larger than the tensors of the checkpoint.

    Args:
        config: as transformers read it.
        model_class: the Auto class of transformers that will load it.
        trust_remote_code: run the code that comes with the checkpoint.

    Raises:
        ModelError: with both sizes.
    """
    import torch

    stored = sum(_shapes(Path(source)).values())
    if not stored:  # not here, or not in safetensors
        return
    try:
        with torch.device("meta"):
            model = model_class.from_config(config, trust_remote_code=trust_remote_code)
    except Exception as error:
        raise ModelError(f"{source}: no model can be built from its configuration: {first_line(error)}") from error
    size = sum(tensor.numel() for tensor in (*model.parameters(), *model.buffers()))
    times = _MOST_TIMES * (_PACKED if getattr(config, "quantization_config", None) else 1)
    if size > times * stored + _SMALL:
        raise ModelError(
            f"{source}: its configuration asks for {size:,} weights, but its files hold {stored:,}; config.json "
            "belongs to another model, or was made to exhaust memory"
        )


def _check_counts(config: Any, source: str, tensors: int, place: str = "", written_in: str = "config.json") -> None:
    """Check every count of a configuration and of those inside it."""
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
                f"{source}: {written_in} asks for {key} {max(whole):,}"
                + (f", but its files hold {tensors:,} tensors" if tensors else ", more than any model has")
                + f" ({name})" * bool(place)
            )


def _shapes(folder: Path) -> dict[str, int]:
    """Elements of every tensor in the safetensors files of a folder, from their headers; empty without such files."""
    from safetensors import SafetensorError, safe_open

    shapes: dict[str, int] = {}
    for file in sorted(folder.glob("*.safetensors")):
        # Loading says what is wrong with a file that cannot be read.
        with suppress(OSError, SafetensorError), safe_open(file, "np") as tensors:
            shapes |= {name: math.prod(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118
    return shapes


def _check_gguf(path: Path) -> None:
    """Compare the counts in the header of a GGUF file with its tensors."""
    reader = gguf_reader(path)
    counts = {
        key.rpartition(".")[2]: field.contents()
        for key, field in reader.fields.items()
        if key.endswith(("block_count", "expert_count", "head_count", "head_count_kv"))
    }
    renamed = {key.replace("block_count", "n_layers").replace("_count", "s"): value for key, value in counts.items()}
    _check_counts(renamed, str(path), len(reader.tensors), written_in="its header")


def gguf_reader(path: str | Path) -> Any:
    """The table of contents of a GGUF file, read within the file's bounds: lengths in it may say anything.

    A model is checked and loaded in five steps that each read it, and a large vocabulary takes seconds. So the
    last one is kept until :func:`forget_gguf`.

    Raises:
        ModelError: if it is damaged.
    """
    try:
        status = os.stat(path)
        return _gguf_reader(os.fspath(path), status.st_mtime_ns, status.st_size)
    except Exception as error:  # every kind of damage raises another kind of error
        raise ModelError(
            f"{path}: neither tokenizer nor weights can be loaded from it: it is not a complete GGUF file "
            f"({first_line(error)})"
        ) from error


@lru_cache(maxsize=1)
def _gguf_reader(path: str, *version: int) -> Any:
    from gguf.gguf_reader import GGUFReader

    class Within(GGUFReader):  # type: ignore[misc]  # the library is not typed
        @property
        def data(self) -> Any:
            return self._array

        @data.setter
        def data(self, mapped: Any) -> None:
            self._array = mapped.view(np.ndarray)  # each of a million slices of a memmap takes three times as long

        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
            if offset + np.dtype(dtype).itemsize * int(count) > len(self.data):
                raise ValueError("it is shorter than its header announces")
            return super()._get(offset, dtype, count, override_order)

    return Within(path)


forget_gguf = _gguf_reader.cache_clear


def holes(path: Path) -> str:
    """Stretches of zeros in the matrices of a GGUF file, which has no checksums; empty if there are none.

    Rows of a vocabulary beyond the tokenizer's last token are padding, and may well be zeros.
    """
    reader = gguf_reader(path)
    tokens = reader.get_field("tokenizer.ggml.tokens")
    stretches = []
    for tensor in reader.tensors:
        if len(tensor.shape) < 2:
            continue
        rows = int(tensor.shape[-1])
        used = len(tokens.data) if tokens and rows > len(tokens.data) and len(tensor.shape) == 2 else rows
        content = tensor.data.reshape(rows, -1)[:used].reshape(-1).view(np.uint8)
        blocks = content[: len(content) // _HOLE * _HOLE].reshape(-1, _HOLE).any(axis=1)
        if empty := int((~blocks).sum()):
            stretches.append(f"{empty * _HOLE:,} bytes of {tensor.name}")
    return ", ".join(stretches[:4]) + (f" and of {len(stretches) - 4} more" if len(stretches) > 4 else "")


def incomplete_weights(source: str, missing: Iterable[str], unexpected: Iterable[str], allowed: bool) -> str:
    """Describe weights that are missing or left over; empty if there are none.

    Raises:
        ModelError: if there are any and they are not allowed.
    """
    left_over = [key for key in unexpected if not (key.endswith(_CONSTANTS) or _PICTURES.search(key))]
    problems = ", ".join(
        f"{len(keys)} weight{'s' * (len(keys) > 1)} {what} ({_listed(sorted(keys))})"
        for what, keys in (("missing", list(missing)), ("left over", left_over))
        if keys
    )
    if problems and not allowed:
        raise ModelError(
            f"{source}: the weights do not match its configuration: {problems}; missing weights would "
            "be random numbers. Give a complete checkpoint, or override with --allow-missing"
        )
    return f"{source}: {problems}" if problems else ""


def _listed(keys: list[str]) -> str:
    return ", ".join(keys[:_LISTED]) + (f" and {len(keys) - _LISTED} more" if len(keys) > _LISTED else "")
