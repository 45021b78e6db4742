"""Models, and how to open them. Each name is imported at its first use, so that reading an option loads no library."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unslant.models.base import Cost, Model, ModelInfo, Scored, ScoringModel, facts_of
    from unslant.models.chat import ChatCost, ChatModel, Reply
    from unslant.models.hf.loading import load_model
    from unslant.models.open import open_model
    from unslant.models.options import GenerateOptions, LengthOptions, ModelOptions

_HOMES = {
    "base": ("Cost", "Model", "ModelInfo", "Scored", "ScoringModel", "facts_of"),
    "chat": ("ChatCost", "ChatModel", "Reply"),
    "hf.loading": ("load_model",),
    "open": ("open_model",),
    "options": ("GenerateOptions", "LengthOptions", "ModelOptions"),
}

__all__ = [
    "ChatCost",
    "ChatModel",
    "Cost",
    "GenerateOptions",
    "LengthOptions",
    "Model",
    "ModelInfo",
    "ModelOptions",
    "Reply",
    "Scored",
    "ScoringModel",
    "facts_of",
    "load_model",
    "open_model",
]


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"unslant.models.{home}"), name)
    raise AttributeError(f"module 'unslant.models' has no attribute {name!r}")
