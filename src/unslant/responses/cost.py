"""What asking a model has cost."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from typing import Annotated, Any, Self, cast

from pydantic import Field

from unslant.arrays import json_fields

Count = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def money(tokens: float, replies: float, price: float | None, output_price: float | None) -> float:
    """What tokens in and tokens of replies cost, at prices of a million; nan without a price.

    Args:
        output_price: of replies; by default that of the tokens in.
    """
    if price is None:
        return math.nan
    return (price * tokens + (price if output_price is None else output_price) * replies) / 1e6


class Totals:
    """A dataclass of totals: its numbers add up; of a text, the first that is not empty is kept."""

    __slots__ = ()

    def __sub__(self, earlier: Self) -> Self:
        return self._combined(earlier, operator.sub)

    def __add__(self, other: Self) -> Self:
        return self._combined(other, operator.add)

    def _combined(self, other: Self, combine: Callable[[Any, Any], Any]) -> Self:
        pairs = zip(astuple(cast(Any, self)), astuple(cast(Any, other)), strict=True)
        return type(self)(*(a or b if isinstance(a, str) else combine(a, b) for a, b in pairs))

    def become(self, other: Self) -> None:
        """Count what the other does."""
        for f in fields(cast(Any, self)):
            setattr(self, f.name, getattr(other, f.name))

    def copy(self) -> Self:
        return type(self)(*astuple(cast(Any, self)))


@dataclass(slots=True)
class Cost(Totals):
    """What scoring has cost so far, and what it would have cost done otherwise.

    Attributes:
        tokens: tokens that went through the model's linear layers (distinct prefix-tree nodes with the tree engine; of
            a server, those of prompts that were not in its prefix cache, where it counts them).
        tokens_plain: tokens if every prompt were run alone, whole, without padding.
        tokens_baqckv: tokens if only the beginning shared by one question's prompts were run once (P1, Algorithm 1);
            0 for a server.
        tokens_ordinary: tokens of one ordinary run: the published order of every question alone, each prompt whole; 0
            where not counted.
        prompts: prompts scored.
        forwards: forward passes made.
        seconds: wall-clock seconds inside ``score``.
        ordinary_runs: the tokens computed, in ordinary runs; null where that is not known.
    """

    tokens: Count = 0
    tokens_plain: Count = 0
    tokens_baqckv: Count = 0
    prompts: Count = 0
    forwards: Count = 0
    seconds: Number = 0.0
    tokens_ordinary: Count = 0

    @property
    def ordinary_runs(self) -> float:
        """The tokens computed, in ordinary runs; nan where that is not known."""
        return self.tokens / self.tokens_ordinary if self.tokens_ordinary and self.tokens else math.nan

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with :attr:`ordinary_runs`."""
        return json_fields(self, also=("ordinary_runs",))


@dataclass(slots=True)
class ChatCost(Totals):
    """What replies have cost, whenever they were asked for: those from the store count like the others.

    Attributes:
        requests: replies wanted, including those that failed.
        failed: those of them that never came.
        uncounted: replies whose tokens nobody counted.
        input_tokens, output_tokens, reasoning_tokens: of the counted replies; reasoning is part of the output.
        error: why most of those failed that did.
    """

    requests: Count = 0
    failed: Count = 0
    uncounted: Count = 0
    input_tokens: Count = 0
    output_tokens: Count = 0
    reasoning_tokens: Count = 0
    error: str = ""
