"""Fingerprint of a loaded model: everything that, if changed, may change a score; and its agreement with float32.

Digests cover what was loaded rather than its files: tensors, configurations, module settings, hooks, the code that
runs, and the log-probabilities of a few fixed prompts. So a model changed in memory, in any way, is another model.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedConfig

from unslant import __version__
from unslant.arrays import Floats
from unslant.models.base import Cost, Encoded
from unslant.models.hf.engine import PlainEngine
from unslant.models.hf.foreign import Scan, cells
from unslant.responses.provenance import Agreement, fingerprint_text

NOISE = {torch.float32: 2e-5, torch.float64: 2e-5, torch.bfloat16: 2e-2, torch.float16: 5e-3}
"""How far log-probabilities of the fixed prompts may differ between two processes with the same model: the number of
threads and the processor decide their last bits."""

_HASHED_AT_ONCE = 4
_DEEPEST = 4  # within settings; objects may hold themselves
_COLUMNS = 1024
_ELEMENTS = {"cpu": 1 << 16, "cuda": 1 << 24}  # mixed at once: what stays in a processor's cache, or fills a GPU
_KNOWN_CODE = frozenset(
    "torch transformers peft accelerate tokenizers huggingface_hub unslant builtins abc typing functools".split()
)
_VOLATILE = frozenset({"warnings_issued", "name_or_path", "_parameters", "_buffers", "_modules", "_hf_hook"})
PROMPTS = 16
"""Prompts compared between half precision and float32."""
_BUDGET = 1024


class Identifier:
    """Says who a loaded model is, now; see :meth:`__call__`.

    Args:
        entries: of the identity that cannot be read off the objects, such as the model's name.

    Attributes:
        code: the code that acted on it at the last look.
    """

    def __init__(self, model: Any, tokenizer: Any, entries: dict[str, str]) -> None:
        self._model, self._tokenizer, self._entries = model, tokenizer, entries
        self._weights = ("", "")  # quick checksum, and digest
        self.code = Scan(model, tokenizer)

    def __call__(self, engine: str) -> dict[str, str]:
        """Digests, versions, and the fingerprint, which differs a little from process to process.

        Costs one pass over a few tokens and a checksum of every weight; a digest of all weights when that has changed.
        """
        model, device = self._model, self._model.device.type
        self.look()
        # First: a short prompt resets rotary frequencies, which are buffers, and would change the digest of weights.
        vocabulary = int(model.get_input_embeddings().weight.shape[0])
        ids = np.random.default_rng(20240617).integers(0, vocabulary, (2, 12), dtype=np.int32)
        scores = np.concatenate(_scores(model, [Encoded(row[:8], tuple(row[8:, None])) for row in ids]))
        if (quick := _checksum(model)) != self._weights[0]:
            self._weights = quick, weights_digest(model)
        adapters = {name: config.to_dict() for name, config in (getattr(model, "peft_config", None) or {}).items()}
        autocast = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else "none"
        return self._entries | {
            "class": type(model).__name__,
            "weights": self._weights[1],
            "config": _digest(model.config.to_dict()),
            "adapter config": _digest(adapters) if adapters else "",
            "modules": _modules_digest(model),
            "code": _code_digest([*model.modules(), self._tokenizer]) + self.code.digest,
            "numbers": f"autocast {autocast}, matmul {torch.get_float32_matmul_precision()}",
            "tokenizer": tokenizer_digest(self._tokenizer),
            "dtype": str(model.dtype).removeprefix("torch."),
            "device": device,
            "attention": str(model.config._attn_implementation),
            "engine": f"{engine} {__version__}",
            "fingerprint": fingerprint_text(scores, NOISE.get(model.dtype, 0)),
            **{library: _version(library) for library in ("torch", "transformers", "peft")},
        }

    def look(self) -> Scan:
        """The code that acts on the model now."""
        self.code = Scan(self._model, self._tokenizer)
        return self.code


def _tensors(model: Any) -> Iterator[tuple[str, Tensor]]:
    """Parameters and buffers, also those that no checkpoint holds, each named with its type and shape."""
    for name, tensor in sorted({**dict(model.named_parameters()), **dict(model.named_buffers())}.items()):
        yield f"{name} {tensor.dtype} {tuple(tensor.shape)}", tensor.detach()


def weights_digest(model: Any) -> str:
    """SHA-256 (hex) over all tensors of a model."""

    def one(named: tuple[str, Tensor]) -> tuple[str, str]:
        name, tensor = named
        return name, hashlib.sha256(tensor.cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data).hexdigest()

    if is_cut(model):  # one by one, since all processes must put together the same tensor
        whole = ((name, cast(Any, t).full_tensor() if _is_part(t) else t) for name, t in _tensors(model))
        return _digest(list(map(one, whole)))
    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        return _digest(list(pool.map(one, _tensors(model))))


def _checksum(model: Any) -> str:
    """Detects a change of any bit of any tensor, at a third of a digest's cost, and without leaving the GPU.

    A sum of all words, each mixed and multiplied by an odd number of its column.
    """
    checksum = hashlib.sha256()
    for name, tensor in _tensors(model):
        checksum.update(name.encode())
        tensor = cast(Any, tensor).to_local() if _is_part(tensor) else tensor
        for sums in _sums(tensor.contiguous().reshape(-1).view(torch.uint8)):
            checksum.update(sums.cpu().numpy().data)
    return checksum.hexdigest()


def _sums(data: Tensor) -> Iterator[Tensor]:
    in_rows = len(data) // (4 * _COLUMNS) * 4 * _COLUMNS
    yield data[in_rows:]
    if in_rows:
        odd = _multipliers(data.device)
        words = data[:in_rows].view(torch.int32).view(-1, _COLUMNS)
        for rows in torch.split(words, _ELEMENTS.get(data.device.type, 1 << 20) // _COLUMNS):
            # Odd numbers, since an even one would shift the top bit of every word out of the sum.
            yield ((rows ^ (rows >> 16)) * odd).sum(1, dtype=torch.int32)


@functools.cache
def _multipliers(device: torch.device) -> Tensor:
    odd = np.random.default_rng(0).integers(-(2**30), 2**30, _COLUMNS) * 2 + 1
    return torch.from_numpy(odd.astype(np.int32)).to(device)


def _modules_digest(model: Any) -> str:
    """Settings that modules hold besides their registered tensors (scales, switches, private ones), and hooks."""
    modules = []
    for name, module in model.named_modules():
        plain = {key: _plain(value) for key, value in sorted(vars(module).items()) if key not in _VOLATILE}
        settings = {key: value for key, value in plain.items() if value is not None}
        modules.append((name, type(module).__qualname__, settings))
    return _digest(modules)


def _plain(value: object, depth: int = 0) -> object:
    """A setting as JSON, a function as its name and what it closes over; None for anything else."""
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
        return sorted(map(str, map(inside, value)))  # every process iterates it in another order
    if isinstance(value, dict):
        items = value.items() if depth < _DEEPEST else ()
        return [(repr(key) if isinstance(key, str) else "", inside(item)) for key, item in items]
    return getattr(value, "__qualname__", None)


def _code_digest(objects: Sequence[object]) -> str:
    """Digest of the source files of classes of no library whose version is in the identity; empty if there are none."""
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
    """SHA-256 (hex) over a tokenizer's vocabulary, rules, chat template and special tokens."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    rules = backend.to_str() if backend is not None else sorted(tokenizer.get_vocab().items())
    template = getattr(tokenizer, "chat_template", None) or ""
    return _digest([type(tokenizer).__name__, rules, template, tokenizer.special_tokens_map])


def _digest(value: object) -> str:
    text = json.dumps(value, default=lambda other: sorted(map(str, other)) if isinstance(other, set) else str(other))
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


def spread(items: Sequence[Encoded], number: int) -> list[Encoded]:
    """At most ``number`` of the items, spread evenly."""
    return [items[i] for i in np.linspace(0, len(items) - 1, min(number, len(items))).round().astype(int)]


def agreement(model: Any, encoded: Sequence[Encoded]) -> Agreement:
    """Compare a model in half precision with a copy of it in float32, both on whole prompts.

    Returns:
        An agreement on no prompts if a float32 copy does not fit into free memory, or the model is quantised or cut.
    """
    if getattr(model, "is_quantized", False) or is_cut(model):
        return Agreement()
    needed = 4 * sum(parameter.numel() for parameter in model.parameters())
    on_gpu = model.device.type == "cuda"
    if 1.1 * needed >= torch.cuda.mem_get_info(model.device)[0] if on_gpu else 2 * needed >= _free_memory():
        return Agreement()
    try:
        wide = copy.deepcopy(model).float()
        half, exact = _scores(model, encoded), _scores(wide, encoded)
    except torch.OutOfMemoryError:
        return Agreement()
    apart = np.abs(np.concatenate(half) - np.concatenate(exact))
    same = [one.argmax() == other.argmax() for one, other in zip(half, exact, strict=True) if len(one) > 1]
    return Agreement(
        prompts=len(encoded),
        argmax=float(np.mean(same)) if same else None,
        largest=float(apart.max()),
        mean=float(apart.mean()),
    )


def _scores(model: Any, encoded: Sequence[Encoded]) -> list[Floats]:
    scores = dict(PlainEngine(model, _BUDGET).score(encoded, Cost()))
    return [scores[i] for i in range(len(encoded))]


def _free_memory() -> int:
    """Bytes that this process may still take, on Linux; 0 where nothing says so."""
    limits = []
    with suppress(OSError):
        lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        limits.append(1024 * int(lines["MemAvailable"].split()[0]))
    with suppress(OSError, ValueError):  # in a container, /proc/meminfo is the whole machine's
        limit, used = (int((Path("/sys/fs/cgroup") / f"memory.{name}").read_text()) for name in ("max", "current"))
        limits.append(limit - used)
    return min(limits, default=0)


# Weights cut across processes (tensor parallelism)


def is_cut(model: Any) -> bool:
    """Whether this process holds only a part of the model's weights, so that all must compute in step."""
    return any(_is_part(parameter) for parameter in model.parameters())


def _is_part(tensor: Tensor) -> bool:
    if not torch.distributed.is_available():
        return False
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)
