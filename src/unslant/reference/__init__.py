"""The small models trained with a planted bias: names, weights and questions.

They are what unslant audits when it is given nothing else, and the known truth its numbers are tested against.
See ``README.md`` next to this file. The recipe is in ``training/`` of the source tree and does not ship.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from unslant.errors import InputError, one_of

__all__ = [
    "WORDS",
    "ReferenceInfo",
    "embedded_questions_path",
    "reference_info",
    "reference_names",
    "reference_path",
]

_HERE = Path(__file__).parent
_CATALOGUE = _HERE / "models.json"
WORDS = "words"
"""The reference model that answers in words; it is not among :func:`reference_names`, whose models are scored."""


@dataclass(frozen=True, slots=True)
class ReferenceInfo:
    """What is known of a reference model because we planted it.

    Attributes:
        name: the name ``unslant audit NAME`` takes.
        description: one line for people.
        knows_facts: taught facts are answered right.
        planted: what it was trained towards, in words, by situation.
        measured: numbers of the shipped weights on the embedded questions, each a share in [0, 1]; see ``README.md``.
        steps: training steps of the shipped weights.
        seed: training seed of the shipped weights.
    """

    name: str
    description: str
    knows_facts: bool
    planted: dict[str, str]
    measured: dict[str, float]
    steps: int
    seed: int


def reference_names() -> list[str]:
    """Names of the reference models that ship with unslant, the default one first."""
    return list(json.loads(_CATALOGUE.read_text("utf-8")))


def reference_info(name: str) -> ReferenceInfo:
    """What is planted in the reference model ``name``.

    Raises:
        InputError: if there is no such model.
    """
    catalogue = json.loads(_CATALOGUE.read_text("utf-8"))
    if name not in catalogue:
        raise InputError(f"unknown reference model {name!r}: {one_of(name, catalogue)}")
    return ReferenceInfo(name=name, **catalogue[name])


def reference_path(name: str) -> Path:
    """Folder of a reference model (config, float16 weights, tokenizer), as ``transformers`` loads it.

    Raises:
        InputError: if there is no such model.
    """
    return _HERE / "weights" / (WORDS if name == WORDS else reference_info(name).name)


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
