"""Who a loaded model is: everything that, if changed, may change a score.

The digest covers what was loaded, not the files: tensors, configurations, module settings, hooks, the code that runs,
and the log-probabilities of a few fixed prompts. So a model changed in memory, in any way, is another model.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedConfig

from unslant.models.base import Cost, Encoded
from unslant.models.hf.engine import PlainEngine
from unslant.models.hf.foreign import Scan, cells
from unslant.models.hf.precision import is_cut, part, whole
from unslant.store.identity import fingerprint_text
from unslant.version import __version__

NOISE = {torch.float32: 2e-5, torch.float64: 2e-5, torch.bfloat16: 2e-2, torch.float16: 5e-3}
"""How far log-probabilities of the fixed prompts may lie apart in two processes with the same model: the number of
threads and the processor decide their last bits."""

_HASHED_AT_ONCE = 4
_DEEPEST = 4  # within settings; objects may hold themselves
_COLUMNS = 1024
_ELEMENTS = {"cpu": 1 << 16, "cuda": 1 << 24}  # mixed at once: what stays in a processor's cache, or fills a GPU
_KNOWN_CODE = frozenset(
    "torch transformers peft accelerate tokenizers huggingface_hub unslant builtins abc typing functools".split()
)
_VOLATILE = frozenset({"warnings_issued", "name_or_path", "_parameters", "_buffers", "_modules", "_hf_hook"})


class Identifier:
    """Says who a loaded model is, now; see :meth:`__call__`.

    Args:
        given: what cannot be read off the objects, such as the model's name.

    Attributes:
        code: the code that acted on it when it was last asked.
    """

    def __init__(self, model: Any, tokenizer: Any, given: dict[str, str]) -> None:
        self._model, self._tokenizer, self._given = model, tokenizer, given
        self._weights = ("", "")  # quick checksum, and digest
        self.code = Scan(model, tokenizer)

    def __call__(self, engine: str) -> dict[str, str]:
        """Digests, versions, and the fingerprint, which differs a little from process to process.

        Costs one pass over a few tokens and a look at every weight; a digest of all weights when they have changed.
        """
        model = self._model
        self.look()
        fingerprint = self._fingerprint()  # first: a short prompt brings rotary frequencies back to where they began
        if (quick := _checksum(model)) != self._weights[0]:
            self._weights = quick, weights_digest(model)
        adapters = {name: config.to_dict() for name, config in (getattr(model, "peft_config", None) or {}).items()}
        return self._given | {
            "class": type(model).__name__,
            "weights": self._weights[1],
            "config": _digest(model.config.to_dict()),
            "adapter config": _digest(adapters) if adapters else "",
            "modules": _modules_digest(model),
            "code": _code_digest([*model.modules(), self._tokenizer]) + self.code.digest,
            "numbers": _number_settings(model.device.type),
            "tokenizer": tokenizer_digest(self._tokenizer),
            "dtype": str(model.dtype).removeprefix("torch."),
            "device": model.device.type,
            "attention": str(model.config._attn_implementation),
            "engine": f"{engine} {__version__}",
            "fingerprint": fingerprint,
            **{library: _version(library) for library in ("torch", "transformers", "peft")},
        }

    def look(self) -> Scan:
        """The code that acts on the model now."""
        self.code = Scan(self._model, self._tokenizer)
        return self.code

    def _fingerprint(self) -> str:
        probe = _fixed_prompts(int(self._model.get_input_embeddings().weight.shape[0]))
        found = dict(PlainEngine(self._model, 1 << 10).score(probe, Cost()))
        return fingerprint_text(np.concatenate([found[i] for i in range(len(probe))]), NOISE.get(self._model.dtype, 0))


@functools.cache
def _fixed_prompts(vocabulary: int) -> list[Encoded]:
    ids = np.random.default_rng(20240617).integers(0, vocabulary, (2, 12), dtype=np.int32)
    return [Encoded(row[:8], tuple(row[8:, None])) for row in ids]


def _tensors(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers, those that no checkpoint holds among them, each with a name that gives type and shape."""
    for name, tensor in sorted({**dict(model.named_parameters()), **dict(model.named_buffers())}.items()):
        yield f"{name} {tensor.dtype} {tuple(tensor.shape)}", tensor.detach()


def weights_digest(model: Any) -> str:
    def one(named: tuple[str, Tensor]) -> tuple[str, str]:
        name, tensor = named
        return name, hashlib.sha256(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data).hexdigest()

    if is_cut(model):  # one by one, for each takes all processes
        return _digest([one((name, whole(tensor))) for name, tensor in _tensors(model)])
    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        return _digest(list(pool.map(one, _tensors(model))))


def _checksum(model: Any) -> str:
    """Detects whether any bit of any tensor has changed, at a third of a digest's cost, and without leaving the GPU.

    A sum of all words, each mixed and multiplied by an odd number of its column.
    """
    found = hashlib.sha256()
    for name, tensor in _tensors(model):
        found.update(name.encode())
        for some in _sums(part(tensor).contiguous().reshape(-1).view(torch.uint8)):
            found.update(some.cpu().numpy().data)
    return found.hexdigest()


def _sums(data: Tensor) -> Iterator[Tensor]:
    whole = len(data) // (4 * _COLUMNS) * 4 * _COLUMNS
    yield data[whole:]
    if whole:
        odd = _multipliers(data.device)
        words = data[:whole].view(torch.int32).view(-1, _COLUMNS)
        for some in torch.split(words, _ELEMENTS.get(data.device.type, 1 << 20) // _COLUMNS):
            yield ((some ^ (some >> 16)) * odd).sum(1, dtype=torch.int32)


@functools.cache
def _multipliers(device: torch.device) -> Tensor:
    odd = np.random.default_rng(0).integers(-(2**30), 2**30, _COLUMNS) * 2 + 1
    return torch.from_numpy(odd.astype(np.int32)).to(device)


def _modules_digest(model: Any) -> str:
    """Settings that modules hold besides their registered tensors (scales, switches, private ones), and hooks."""
    return _digest([(name, type(module).__qualname__, _settings(module)) for name, module in model.named_modules()])


def _settings(module: Any) -> dict[str, object]:
    found = {}
    for name, value in sorted(vars(module).items()):
        if name not in _VOLATILE and (plain := _plain(value)) is not None:
            found[name] = plain
    return found


def _plain(value: object, depth: int = 0) -> object:
    """``value`` if it is a setting, name and closure of a function, or None for anything else."""
    if isinstance(value, bool | int | float | str):
        return repr(value)
    if isinstance(value, Tensor | np.ndarray):
        array = value.detach().float().cpu().numpy() if isinstance(value, Tensor) else np.ascontiguousarray(value)
        return [str(array.shape), hashlib.sha256(array.tobytes()).hexdigest()]
    if isinstance(value, PreTrainedConfig):
        return _digest(value.to_dict())
    inside = functools.partial(_plain, depth=depth + 1)
    if depth < _DEEPEST and isinstance(value, FunctionType):
        return [value.__qualname__, *map(inside, cells(value))]
    if depth < _DEEPEST and isinstance(value, MethodType) and not isinstance(value.__self__, torch.nn.Module):
        return [value.__qualname__, inside(getattr(value.__self__, "__dict__", {}))]
    if depth < _DEEPEST and isinstance(value, functools.partial):
        return [*map(inside, (value.func, value.args, value.keywords))]
    if isinstance(value, list | tuple):
        return [inside(item) for item in value] if depth < _DEEPEST else len(value)
    if isinstance(value, set | frozenset):
        return sorted(map(str, map(inside, value)))  # iterated in another sequence by every process
    if isinstance(value, dict):
        items = value.items() if depth < _DEEPEST else ()
        return [(repr(key) if isinstance(key, str) else "", inside(item)) for key, item in items]
    return getattr(value, "__qualname__", None)


def _number_settings(device: str) -> str:
    """What of torch's own settings changes how it computes."""
    cast = f"{torch.get_autocast_dtype(device)}" if torch.is_autocast_enabled(device) else "none"
    return f"autocast {cast}, matmul {torch.get_float32_matmul_precision()}"


def _code_digest(objects: Sequence[object]) -> str:
    """Source files of the classes that are not of a library whose version is part of the identity; empty if none."""
    files: set[Path] = set()
    for kind in {base for thing in objects for base in type(thing).__mro__}:
        root = kind.__module__.partition(".")[0]
        source = getattr(sys.modules.get(kind.__module__), "__file__", None)
        if root in _KNOWN_CODE or not source:
            continue
        # Code that came with a model imports other files next to it.
        files |= set(Path(source).parent.rglob("*.py")) if root == "transformers_modules" else {Path(source)}
    return _digest([(path.name, path.read_text("utf-8", "replace")) for path in sorted(files)]) if files else ""


def tokenizer_digest(tokenizer: Any) -> str:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    written = backend.to_str() if backend is not None else sorted(tokenizer.get_vocab().items())
    template = getattr(tokenizer, "chat_template", None) or ""
    return _digest([type(tokenizer).__name__, written, template, tokenizer.special_tokens_map])


def _digest(value: object) -> str:
    text = json.dumps(value, default=lambda other: sorted(map(str, other)) if isinstance(other, set) else str(other))
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""
