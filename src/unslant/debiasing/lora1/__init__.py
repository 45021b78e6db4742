"""LoRA-1: a rank-1 adapter trained, without labels, to give the same probabilities in every order (P1 sec. 3.3.2).

Settings and the log of a run are here, because the command line needs them; everything else imports torch.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypedDict

from unslant.arrays import Jsonable
from unslant.flags import check_least, out_of_range


@dataclass(frozen=True)
class TrainSettings:
    """How the adapter is trained; the defaults are P1's (appendix C.2).

    Raises:
        InputError: on a value out of range, naming it.
    """

    rank: int = 1
    """LoRA rank."""
    alpha: float = 16.0
    """LoRA alpha."""
    dropout: float = 0.05
    """LoRA dropout."""
    learning_rate: float = 1e-4
    """AdamW learning rate."""
    weight_decay: float = 0.001
    """AdamW weight decay."""
    entropy_weight: float = 0.1
    """Weight of the entropy in the loss: lambda in the paper."""
    epochs: int = 5
    """Passes over the questions."""
    questions_per_epoch: int = 64
    """Questions drawn for each epoch, without replacement."""
    questions_per_step: int = 1
    """Questions whose gradients are summed for one optimizer step."""
    max_orders: int = 24
    """Maximum number of orders per question."""
    targets: str = ""
    """Name suffixes of the modules to adapt, separated by commas; by default the attention projections."""
    seed: int = 0
    """Seed of every random choice."""

    def __post_init__(self) -> None:
        check_least(self, {"rank": 1, "epochs": 1, "questions_per_epoch": 1, "questions_per_step": 1, "max_orders": 2,
                           "weight_decay": 0, "entropy_weight": 0, "seed": 0})  # fmt: skip
        if not 0 <= self.dropout < 1:
            raise out_of_range("dropout", self.dropout, "0 or more, and less than 1")
        for name, value in (("alpha", self.alpha), ("learning_rate", self.learning_rate)):
            if not value > 0:
                raise out_of_range(name, value, "a number above 0")


class TrainKeywords(TypedDict, total=False):
    """The fields of :class:`TrainSettings` as keywords of functions, for editors."""

    rank: int
    alpha: float
    dropout: float
    learning_rate: float
    weight_decay: float
    entropy_weight: float
    epochs: int
    questions_per_epoch: int
    questions_per_step: int
    max_orders: int
    targets: str
    seed: int


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
        accuracy_se: its standard error over questions, one by one.
        accuracy_low, accuracy_high: its 95 % interval, as in an audit; nan if there is none.
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
    accuracy_low: float
    accuracy_high: float
    loss: float
    train_loss: float = math.nan

    @classmethod
    def from_dict(cls, values: object) -> Self:
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
