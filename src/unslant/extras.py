"""What is installed besides us: libraries that only some uses need, and packages that add rows to our tables."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from unslant.errors import ModelError, UnslantError, first_line

EXTRAS = {
    "torch": "unslant[local]",
    "transformers": "unslant[local]",
    "tokenizers": "unslant[local]",
    "safetensors": "unslant[local]",
    "huggingface_hub": "unslant[local]",
    "datasets": "unslant[local]",
    "vl_convert": "unslant[figures]",
    "peft": "unslant[local]",
    "accelerate": "unslant[local]",
    "gguf": "unslant[local]",
    "inspect_ai": "unslant[inspect]",
    "lm_eval": "unslant[lm-eval]",
    "openai": "unslant[inspect]",
    "openpyxl": "unslant[excel]",
    "pandas": "pandas",
    "ray": "unslant[ray]",
    "bitsandbytes": "bitsandbytes",
}
"""Module -> what installs it."""


def needed(module: str, what: str, kind: type[UnslantError] = ModelError) -> Any:
    """Import a module that may not be installed.

    Args:
        what: what needs it, as the beginning of a sentence: ``a local model``.
        kind: of the error.

    Raises:
        UnslantError: of that kind, naming what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise kind(missing(error, what) or f"{what} needs {module}: {first_line(error)}") from error


def missing(error: ImportError, what: str = "this") -> str:
    """What to install after a failed import, in one line; empty where it is none of :data:`EXTRAS`."""
    root = (error.name or "").partition(".")[0]
    if root not in EXTRAS:
        return ""
    broken = "" if isinstance(error, ModuleNotFoundError) else f" ({first_line(error)})"
    return f"{what} needs {root}{broken}: pip install {EXTRAS[root]!r}"


def with_plugins(rows: Mapping[str, str], group: str) -> dict[str, str]:
    """A table of ``name -> module:object`` with the rows that installed packages add as entry points of a group.

    Our own names win: installing a package must not change what a command that worked before does.
    """
    from importlib.metadata import entry_points  # slow to import, and few commands need it

    return {point.name: point.value for point in entry_points(group=group)} | dict(rows)


def load_row(home: str, what: str) -> Any:
    """The object that a row names, imported now.

    Args:
        what: the row, as the beginning of a sentence: ``the method bnp``.

    Raises:
        ModelError: naming what to install, or the package that cannot be imported.
    """
    module, _, name = home.partition(":")
    try:
        return getattr(needed(module, what), name)
    except AttributeError:
        raise ModelError(
            f"{what}: there is no {name} in {module}; install a version of its package that has it"
        ) from None
