"""LoRA-1: a rank-1 adapter trained, without labels, to give the same probabilities in every order (P1 sec. 3.3.2).

Only the settings are here: the command line names them, and everything else needs torch.
"""

from dataclasses import dataclass, fields
from typing import TypedDict

from unslant.errors import InputError


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
    """Most orders of a question."""
    targets: str = ""
    """Endings of the names of modules to adapt, separated by commas; by default the attention projections."""
    seed: int = 0
    """Seed of every random choice."""

    def __post_init__(self) -> None:
        for name in ("rank", "epochs", "questions_per_epoch", "questions_per_step"):
            if getattr(self, name) < 1:
                raise InputError(f"LoRA-1: {name} is {getattr(self, name)}; give 1 or more")
        if self.max_orders < 2:
            raise InputError(f"LoRA-1: {self.max_orders} orders; give 2 or more, so that there are orders to compare")
        if not 0 <= self.dropout < 1:
            raise InputError(f"LoRA-1: dropout {self.dropout} is not in [0, 1)")
        if self.alpha <= 0 or self.learning_rate <= 0:
            raise InputError("LoRA-1: alpha and learning_rate must be greater than 0")
        if self.weight_decay < 0 or self.entropy_weight < 0:
            raise InputError("LoRA-1: weight_decay and entropy_weight must not be negative")

    def differences(self, other: "TrainSettings") -> list[str]:
        """Names of the settings, except the number of epochs, that differ."""
        return [f.name for f in fields(self) if f.name != "epochs" and getattr(self, f.name) != getattr(other, f.name)]


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
