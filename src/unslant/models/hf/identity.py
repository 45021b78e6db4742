"""Fingerprint of a loaded model: everything that, if changed, may change a score; and code that no digest covers.

Digests cover what was loaded rather than its files: tensors, configurations, module settings, hooks, the code that
runs, and the log-probabilities of a few fixed prompts. So a model changed in memory, in any way, is another model.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack
from transformers import PreTrainedConfig

from unslant import __version__
from unslant.models.base import Encoded
from unslant.models.hf.engine import is_cut, is_part, plain_scores
from unslant.responses.provenance import fingerprint_text

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
        scores = np.concatenate(plain_scores(model, [Encoded(row[:8], tuple(row[8:, None])) for row in ids]))
        if (quick := _checksum(model)) != self._weights[0]:
            self._weights = quick, weights_digest(model)
        adapters = {name: _facts(config) for name, config in (getattr(model, "peft_config", None) or {}).items()}
        autocast = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else "none"
        return self._entries | {
            "class": type(model).__name__,
            "weights": self._weights[1],
            "config": _digest(_facts(model.config)),
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
        whole = ((name, cast(Any, t).full_tensor() if is_part(t) else t) for name, t in _tensors(model))
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
        tensor = cast(Any, tensor).to_local() if is_part(tensor) else tensor
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
        return _digest(_facts(value))
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


def _facts(config: Any) -> object:
    """What a configuration says of a model, and not where it was loaded from: a copy elsewhere is the same model."""

    def unplaced(value: object) -> object:
        if isinstance(value, Mapping):
            return {key: unplaced(item) for key, item in value.items() if not str(key).endswith("name_or_path")}
        return [*map(unplaced, value)] if isinstance(value, list | tuple) else value

    return unplaced(config.to_dict())


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


# Code that acts on a loaded model and comes from no installed library: hooks, patched methods and functions.
#
# What such code does may depend on anything: a counter, the length of a prompt, an attribute of an object that it
# closes over. No digest covers all of that, so scores of a model with foreign code are neither stored nor reused. The
# scan covers the objects of the model and of its tokenizer, their classes, and the libraries whose functions they call.
# Code that came with a model (``transformers_modules``) counts as installed: its files are digested.

_LEVELS, _MOST = 5, 1000
"""Levels of nesting, and entries of a container, that are looked at: enough for hooks, bounded for everything else."""
_PLAIN = (bool, int, float, str, bytes, type(None), torch.dtype, torch.device, torch.nn.Module, ModuleType)
_LIBRARIES = (
    *(f"transformers.{name}" for name in ("activations", "cache", "generation", "integrations", "mask", "model", "py")),
    *("peft.tuners", "peft.peft_model", "accelerate.hooks", "torch.nn", "torch.functional", "torch._tensor"),
)
_COMPILED = ("__compiled_fn", "__resume_at")
"""Names under which ``torch.compile`` puts compiled code next to a library's function. On a GPU unslant's own attention
is compiled this way; a compiled function of somebody else keeps its own name."""
_BEFORE = ("__init__", "__setstate__")
"""Methods that act before a model is scored, so exchanging them changes no score: ``torch.compile`` does so in all
modules when it is first used."""
_OF_MODULES = frozenset({"_parameters", "_buffers", "_modules"})


class Scan:
    """One look at all code that acts on a model now.

    Attributes:
        foreign: where foreign code is, and its name.
        digest: of the functions that names refer to, so that one library function in place of another shows.
    """

    def __init__(self, model: Any, tokenizer: Any) -> None:
        self._seen: dict[int, object] = {}  # held, so that no other object gets the same id meanwhile
        self._functions: set[int] = set()
        self._names = hashlib.sha256()
        self._foreign: dict[str, None] = {}
        for name, module in model.named_modules():
            for key, value in vars(module).items():
                if key not in _OF_MODULES:
                    self._look(value, f"{name or type(model).__name__}.{key}")
        self._look(vars(tokenizer), "tokenizer")
        kinds = {kind for thing in (*model.modules(), tokenizer) for kind in type(thing).__mro__}
        for kind in sorted({*kinds, torch.Tensor}, key=_name):
            self._look(kind, _name(kind))
            self._bindings(_name(kind), vars(kind))
        homes = {kind.__module__ for kind in kinds} | {"torch"}
        for name, library in sorted(sys.modules.items()):
            if isinstance(library, ModuleType) and (name in homes or name.startswith(_LIBRARIES)):
                self._library(name, vars(library), name in homes or name == "torch.nn.functional")
        hooks = torch.nn.modules.module
        for hook in (hooks._global_forward_hooks, hooks._global_forward_pre_hooks):
            self._look(dict(hook), "hook of all modules")
        functions = _get_current_function_mode_stack()  # type: ignore[no-untyped-call]
        for mode in (*functions, *_get_current_dispatch_mode_stack()):  # they intercept every call of torch
            self._look(mode, "mode of torch")
        self.foreign, self.digest = tuple(self._foreign), self._names.hexdigest()

    def _library(self, name: str, values: Mapping[str, Any], used: bool) -> None:
        """Scan a Python module; the names of its functions are digested where the model surely uses it."""
        values = {key: value for key, value in list(values.items()) if not key.startswith(_COMPILED)}
        for key, value in values.items():
            if isinstance(value, FunctionType):
                self._function(value, f"{name}.{key}")
            elif isinstance(value, type) and value.__module__ == name and id(value) not in self._seen:
                self._bindings(f"{name}.{key}", vars(value), note=False)
            elif type(value) is dict or hasattr(type(value), "_global_mapping"):  # of attention, masks, activations
                entries = value if type(value) is dict else {**value._global_mapping, **value._local_mapping}
                for entry, function in list(entries.items()):
                    if isinstance(function, FunctionType):
                        self._function(function, f"{name}.{key}[{entry!r}]")
        if used:
            self._bindings(name, values)

    def _bindings(self, owner: str, values: Mapping[str, Any], note: bool = True) -> None:
        for key, value in list(values.items()):
            function = getattr(value, "__func__", getattr(value, "fget", value))
            if isinstance(function, FunctionType | functools.partial | MethodType):
                self._function(function, f"{owner}.{key}")
            if note and key not in _BEFORE and isinstance(function, FunctionType | BuiltinFunctionType):
                self._names.update(f"{owner}.{key}={function.__module__}.{function.__qualname__}\n".encode())

    def _function(self, value: Any, where: str, depth: int = 0) -> None:
        if isinstance(value, functools.partial | MethodType):
            self._look(value, where, depth)
            return
        if id(value) in self._functions:
            return
        self._functions.add(id(value))
        if not _installed_function(value):
            self._foreign[f"{where} ({value.__module__}.{value.__qualname__})"] = None
        for inner in (value.__dict__.get("__wrapped__"), *cells(value)) if value.__dict__ or value.__closure__ else ():
            if isinstance(inner, FunctionType | MethodType | functools.partial) and depth < _LEVELS:
                self._function(inner, where, depth + 1)

    def _look(self, value: Any, where: str, depth: int = 0) -> None:
        """Scan everything within a value that could be, or hold, a function."""
        if isinstance(value, _PLAIN) or depth > _LEVELS or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        inside: Sequence[Any] = ()
        if isinstance(value, FunctionType):
            self._function(value, where)
            inside = (*cells(value), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        elif isinstance(value, MethodType):
            inside = (value.__func__, value.__self__)
        elif isinstance(value, functools.partial):
            inside = (value.func, *value.args, *value.keywords.values())
        elif isinstance(value, dict):
            inside = list(dict.values(value))[:_MOST]
        elif isinstance(value, list | tuple | set | frozenset):
            inside = list(value)[:_MOST]
        kind = value if isinstance(value, type) else type(value)
        if not _installed_module(kind.__module__):
            self._foreign[f"{where} ({_name(kind)})"] = None
        elif not isinstance(value, type | torch.Tensor) and depth < 2:
            inside = (*inside, *getattr(value, "__dict__", {}).values())
        for one in inside:
            self._look(one, where, depth + 1)


def cells(function: FunctionType) -> list[Any]:
    """What a function closes over."""
    contents = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # not filled yet
            contents.append(cell.cell_contents)
    return contents


def _name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _installed_function(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    if file.startswith("<"):  # compiled from text, as dataclasses do
        module = function.__module__ or function.__globals__.get("__name__", "")
        return file.startswith("<frozen") or _installed_module(str(module))
    return _installed_file(file)


def _installed_module(name: str) -> bool:
    if name.startswith("namedtuple_"):
        return True
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    return module is not None and name != "__main__" and (file is None or _installed_file(file))


@functools.cache
def _installed_file(file: str) -> bool:
    return file.startswith(_roots()) or "transformers_modules" in Path(file).parts


@functools.cache
def _roots() -> tuple[str, ...]:
    """Folders of installed code: Python's, its packages', and unslant's own."""
    paths = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths |= {str(Path(torch.__file__).parent.parent), str(Path(__file__).parents[2])}
    return tuple(f"{folder}/" for path in sorted(paths) for folder in {path, str(Path(path).resolve())})
