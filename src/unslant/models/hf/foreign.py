"""Code that acts on a loaded model and comes from no installed library: hooks, patched methods and functions.

What such code does may depend on anything: a counter, the length of a prompt, an attribute of an object that it closes
over. No digest covers all of that, so scores of a model with foreign code are neither stored nor reused. The scan
covers the objects of the model and of its tokenizer, their classes, and the libraries whose functions they call. Code
that came with a model (``transformers_modules``) counts as installed: its files are digested.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

_DEEPEST, _MOST = 5, 1000
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
            if isinstance(inner, FunctionType | MethodType | functools.partial) and depth < _DEEPEST:
                self._function(inner, where, depth + 1)

    def _look(self, value: Any, where: str, depth: int = 0) -> None:
        """Scan everything within a value that could be, or hold, a function."""
        if isinstance(value, _PLAIN) or depth > _DEEPEST or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        inside: Iterator[Any] = iter(())
        if isinstance(value, FunctionType):
            self._function(value, where)
            inside = iter((*cells(value), *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()))
        elif isinstance(value, MethodType):
            inside = iter((value.__func__, value.__self__))
        elif isinstance(value, functools.partial):
            inside = iter((value.func, *value.args, *value.keywords.values()))
        elif isinstance(value, dict):
            inside = iter(list(dict.values(value))[:_MOST])
        elif isinstance(value, list | tuple | set | frozenset):
            inside = iter(list(value)[:_MOST])
        kind = value if isinstance(value, type) else type(value)
        if not _installed_module(kind.__module__):
            self._foreign[f"{where} ({_name(kind)})"] = None
        elif not isinstance(value, type | torch.Tensor) and depth < 2:
            inside = iter((*inside, *getattr(value, "__dict__", {}).values()))
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
