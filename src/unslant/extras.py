"""Libraries that only some uses need: each comes with an extra, and a missing one is one line that names it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from unslant.errors import ModelError, UnslantError, first_line

EXTRAS = {
    "torch": "hf",
    "transformers": "hf",
    "tokenizers": "hf",
    "safetensors": "hf",
    "huggingface_hub": "hf",
    "datasets": "hub",
    "vl_convert": "figures",
    "peft": "train",
    "accelerate": "train",
    "inspect_ai": "inspect",
    "openai": "inspect",
    "openpyxl": "excel",
}
"""Module -> the extra of unslant that installs it."""


def needed(module: str, what: str, kind: type[UnslantError] = ModelError) -> Any:
    """Import a module that may not be installed.

    Args:
        what: what needs it, as the beginning of a sentence: ``local models``.
        kind: of the error.

    Raises:
        UnslantError: of that kind, with what to install.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise kind(f"{what} cannot be used: {missing(error, module)}") from error


def missing(error: ImportError, module: str = "") -> str:
    """What to install after a failed import; empty where no extra would help."""
    root = (error.name or module).partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and root not in EXTRAS:
        return f"{root} is not installed: pip install {root}" if module else ""
    extra = EXTRAS.get(root) or EXTRAS.get(module.partition(".")[0], "")
    problem = (
        f"{root} is not installed" if isinstance(error, ModuleNotFoundError) else f"{root} fails ({first_line(error)})"
    )
    return f"{problem}: pip install 'unslant[{extra}]'" if extra else ""
