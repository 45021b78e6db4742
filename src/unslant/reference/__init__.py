"""The small models trained with a planted bias: names, weights and questions.

They are what unslant audits when it is given nothing else, and the known truth its numbers are tested against.
See ``README.md`` next to this file. The recipe is in ``training/`` of the source tree and does not ship.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from unslant.errors import InputError, one_of

__all__ = ["WORDS", "embedded_questions_path", "reference_models", "reference_names", "reference_path"]

_HERE = Path(__file__).parent
WORDS = "words"
"""The reference model that answers in words; it is not among :func:`reference_names`, whose models are scored."""


def reference_models() -> dict[str, dict[str, Any]]:
    """What ``models.json`` says of each model: a line for people (``description``), whether it knows the taught facts,
    what is planted, shares in [0, 1] ``measured`` with the shipped weights, and their training steps and seed."""
    models: dict[str, dict[str, Any]] = json.loads((_HERE / "models.json").read_text("utf-8"))
    return models


def reference_names() -> list[str]:
    """Names of the reference models that ship with unslant, the default one first."""
    return list(reference_models())


def reference_path(name: str) -> Path:
    """Folder of a reference model (config, float16 weights, tokenizer), as ``transformers`` loads it.

    Raises:
        InputError: if there is no such model.
    """
    if name not in (names := [*reference_names(), WORDS]):
        raise InputError(f"unknown reference model {name!r}: {one_of(name, names)}")
    return _HERE / "weights" / name


def embedded_questions_path(name: str = "a") -> Path:
    """The embedded questions about the world: set ``a`` (400 questions, the default), ``b`` (200 others), or
    ``skewed`` (those of ``a`` with 40 % of the right options first).

    Raises:
        InputError: on another name.
    """
    files = {"a": "questions.jsonl", "b": "questions_b.jsonl", "skewed": "questions_skewed.jsonl"}
    if name not in files:
        raise InputError(f"unknown embedded question set {name!r}: use one of {', '.join(files)}")
    return _HERE / files[name]
