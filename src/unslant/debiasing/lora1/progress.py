"""The log of a training run on held-out questions, and the detection of a collapse; reading it needs no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from unslant.arrays import Jsonable

ENTROPY_RISE = 0.15
"""Rise of normalised entropy from which a fall in accuracy counts as collapse."""
UNIFORM = 0.95
"""Normalised entropy above which answers carry no information, at any accuracy."""
_STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class Epoch(Jsonable):
    """The held-out questions after an epoch; every number is a mean over them.

    Attributes:
        epoch: 0 is before training.
        n: held-out questions with more than one order.
        pbm: permutation bias.
        entropy: of the probabilities of one order, divided by log n options: 0 certain, 1 uniform.
        accuracy: mean over all orders; nan without right answers.
        accuracy_n: questions it rests on.
        accuracy_se: its standard error over questions.
        loss: P1 eq. 8.
        train_loss: mean loss of the epoch's training questions; nan before training.
    """

    epoch: int
    n: int
    pbm: float
    entropy: float
    accuracy: float
    accuracy_n: int
    accuracy_se: float
    loss: float
    train_loss: float = math.nan

    @classmethod
    def from_dict(cls, values: object) -> Epoch:
        """The inverse of :meth:`to_dict`; ValueError naming the value that is missing, unknown or not a number."""
        if not isinstance(values, Mapping):
            raise ValueError("not a JSON object")
        counts = ("epoch", "n", "accuracy_n")
        read: dict[str, Any] = {}
        for field in fields(cls):
            value = values.get(field.name)
            if field.name in counts:
                if type(value) is not int or not 0 <= value < 1 << 31:
                    raise ValueError(f"{field.name} is {value!r}, not a whole number from 0")
            elif value is not None and (type(value) not in (int, float) or math.isinf(value)):
                raise ValueError(f"{field.name} is {value!r}, not a number")
            read[field.name] = math.nan if value is None else value
        if unknown := sorted(set(values) - set(read)):
            raise ValueError(f"{unknown[0]!r} is not part of it")
        return cls(**read)


def collapsed(log: Sequence[Epoch]) -> str:
    """Why a run looks collapsed: entropy rose and accuracy fell, or answers are uniform. Empty if it does not."""
    if len(log) < 2 or not log[0].n:
        return ""
    first, last = log[0], log[-1]
    rise = last.entropy - first.entropy
    error = math.hypot(first.accuracy_se, last.accuracy_se)
    if rise > ENTROPY_RISE and first.accuracy - last.accuracy > _STANDARD_ERRORS * error:
        reason = (
            f"entropy rose from {first.entropy:.2f} to {last.entropy:.2f} of its maximum and accuracy fell from "
            f"{first.accuracy:.2f} to {last.accuracy:.2f}"
        )
    elif last.entropy > UNIFORM and rise > 0.05:
        before = f"{first.entropy:.2f} before training"
        reason = f"entropy is {last.entropy:.2f} of its maximum ({before}), answers are close to uniform"
    else:
        return ""
    return (
        f"the adapter has collapsed: on {last.n} held-out questions {reason}; use a lower learning rate, fewer epochs "
        "or a larger entropy weight, and do not use this adapter"
    )
