"""Plan a run: ``unslant plan``."""

import math
from dataclasses import dataclass
from typing import ClassVar, TypedDict

from unslant.experiment import Options
from unslant.flags import out_of_range
from unslant.questions.question import MAX_OPTIONS, MIN_OPTIONS


@dataclass(frozen=True, kw_only=True)
class PlanSettings(Options):
    """What is wanted, and what is known; see :func:`unslant.plan`."""

    LEAST: ClassVar = {"available": 2, "options": 2, "tokens": 1, "repeats": 1, "price": 0, "output_price": 0}

    half_width: float | None = None
    """Target for half of the 95 % interval of the mean over orders, such as 0.02."""
    difference: float | None = None
    """Difference between two models on the same questions to detect in four of five runs, such as 0.03."""
    available: int | None = None
    """Number of questions you have; alone, it shows how precise a run on them will be."""
    score: float = 0.5
    """Expected score, without a pilot; 0.5 needs the most questions."""
    options: int = 4
    """Options per question, without a pilot."""
    correlation: float = 0.5
    """Correlation between the two models' answers; 0 if they answer different questions."""
    repeats: int = 1
    """Replies averaged for each prompt."""
    tokens: float | None = None
    """Tokens per prompt; by default the pilot's, or 200."""
    price: float | None = None
    """Price of a million tokens."""
    output_price: float | None = None
    """Price of a million tokens of replies, if it differs."""

    @property
    def aimed(self) -> bool:
        """Whether a precision is wanted."""
        return self.half_width is not None or self.difference is not None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("half_width", "difference", "score"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise out_of_range(name, value, "a number between 0 and 1")
        if self.options > MAX_OPTIONS:
            raise out_of_range("options", self.options, f"{MIN_OPTIONS} to {MAX_OPTIONS}")
        if self.tokens == math.inf:
            raise out_of_range("tokens", self.tokens, "a finite number")
        if not 0 <= self.correlation < 1:
            raise out_of_range("correlation", self.correlation, "0 or more, and less than 1")


class PlanKeywords(TypedDict, total=False):
    """Keywords of :func:`unslant.plan`: the fields of :class:`PlanSettings`."""

    half_width: float | None
    difference: float | None
    available: int | None
    score: float
    options: int
    correlation: float
    repeats: int
    tokens: float | None
    price: float | None
    output_price: float | None
