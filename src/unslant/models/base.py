"""What unslant needs of a model, whatever stands behind it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats, json_fields
from unslant.prompts.prompt import Prompt

Ids = NDArray[np.int32]


NOBODY = ("", "")
"""A reply that names neither a model nor a system."""


class Counts:
    """A dataclass of numbers that add up."""

    __slots__ = ()

    @classmethod
    def of(cls, values: object) -> Self:
        """From what JSON shows of it; what is missing is 0, and names of other versions are passed over."""
        known = {f.name for f in fields(cast(Any, cls))}
        return cls(**{k: v for k, v in values.items() if k in known}) if isinstance(values, Mapping) else cls()

    def __sub__(self, earlier: Self) -> Self:
        return type(self)(*(mine - other for mine, other in zip(self._values(), earlier._values(), strict=True)))

    def __add__(self, other: Self) -> Self:
        return type(self)(*(mine + more for mine, more in zip(self._values(), other._values(), strict=True)))

    def become(self, other: Self) -> None:
        """Count what the other does."""
        for f in fields(cast(Any, self)):
            setattr(self, f.name, getattr(other, f.name))

    def copy(self) -> Self:
        return type(self)(*self._values())

    def _values(self) -> list[Any]:
        return [getattr(self, f.name) for f in fields(cast(Any, self))]


@dataclass(slots=True)
class Cost(Counts):
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
        ordinary_runs: how many ordinary runs as many tokens would make; null where that is not known.
    """

    tokens: int = 0
    tokens_plain: int = 0
    tokens_baqckv: int = 0
    prompts: int = 0
    forwards: int = 0
    seconds: float = 0.0
    tokens_ordinary: int = 0

    @property
    def ordinary_runs(self) -> float:
        """How many ordinary runs as many tokens would make; nan where that is not known."""
        return self.tokens / self.tokens_ordinary if self.tokens_ordinary and self.tokens else math.nan

    def to_dict(self) -> dict[str, Any]:
        """For JSON, with :attr:`ordinary_runs`."""
        return json_fields(self, also=("ordinary_runs",))


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of one prompt: ``context`` (shape ``(k,)``) and the tokens to be scored after it, per candidate."""

    context: Ids
    candidates: tuple[Ids, ...]


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of one prompt, or why there are none.

    Attributes:
        logprobs: ``logprobs[c]`` is the natural-log probability of continuation ``c`` (whole text, summed over its
            tokens, over the full vocabulary), shape ``(len(prompt.continuations),)``; None where what came back was no
            log-probability.
        error: what came back then.
        bounds: the continuations of which ``logprobs`` has only an upper bound; a server returns few tokens.
        declined: whether that was a refusal.
        by: the model and the system that the reply names; empty where it names none.
    """

    index: int
    logprobs: Floats | None
    error: str = ""
    bounds: tuple[int, ...] = ()
    declined: bool = False
    by: tuple[str, str] = NOBODY


class ScoringModel(Protocol):
    """A model that gives log-probabilities of continuations."""

    @property
    def name(self) -> str:
        """Short name for people, such as the folder or Hub id."""
        ...

    @property
    def identity(self) -> Mapping[str, str]:
        """Everything that, if changed, may change a score: weights digest, adapter, dtype, tokenizer, engine."""
        ...

    @property
    def cost(self) -> Cost:
        """Running total; subtract a copy taken before to get the cost of one call."""
        ...

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """Score every prompt; yields each prompt's result once, as it is ready, in any order.

        Raises:
            ModelError: if a prompt cannot be scored (longer than the model's context, for example); it names the group.
        """
        ...


def facts_of(model: ScoringModel) -> dict[str, object]:
    """What every result tells of the model that was asked, JSON-able: its engine, its identity, and what it admits.

    The last are the model's ``facts``, if it has any: ``offline`` (scores came from the store alone), ``incomplete``
    (a checkpoint that lacks weights), ``half_precision`` (its agreement with float32), ``special_tokens`` (questions
    that spell some).
    """
    engine = getattr(model, "engine", type(model).__name__)
    return {"engine": engine, "identity": dict(model.identity), **getattr(model, "facts", {})}


class RemoteModel(ScoringModel, Protocol):
    """A model whose weights this process cannot look at, so that it must be asked who it is."""

    @property
    def address(self) -> Mapping[str, str]:
        """The part of its identity that is known without asking."""
        ...

    def ask_identity(self) -> None:
        """Ask who answers at this address now.

        Raises:
            ModelError: if nobody does.
        """
        ...


class Journal(Protocol):
    """Where a model notes how far it has come, so that another process can go on from there."""

    def state(self, stretch: str) -> bytes:
        """What was last noted of a stretch of the work; empty if nothing was."""
        ...

    def note(self, stretch: str, step: int, results: Sequence[Scored], state: Callable[[], bytes]) -> None:
        """These results are there; ``state`` gives the bytes from which to go on behind them."""
        ...


class TokenizingModel(ScoringModel, Protocol):
    """A model that tokenizes by itself, so that a prompt is known by its tokens."""

    def encode(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        """Token ids of the prompts."""
        ...

    def score(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded] | None = None) -> Iterator[Scored]:
        """As of any model; ``encoded`` is what :meth:`encode` gave, where it was called before."""
        ...


class ResumableModel(TokenizingModel, Protocol):
    """A model that can go on where another process was stopped, bit for bit."""

    def score_encoded(
        self, prompts: Sequence[Prompt], encoded: Sequence[Encoded], journal: Journal | None = None
    ) -> Iterator[Scored]:
        """As ``score``; with a journal it goes on from what was noted, and yields what was not noted yet."""
        ...


def renders_prompts(model: object) -> bool:
    """Whether a model words its prompts itself, as decision endpoints do: it takes prompts with a ``state`` only."""
    return bool(getattr(model, "renders_prompts", False))


# ``isinstance`` of a protocol would read every property, and an identity takes a while.
def is_remote(model: ScoringModel) -> TypeGuard[RemoteModel]:
    """Whether a model must be asked who it is."""
    return hasattr(type(model), "ask_identity")


def tokenizes(model: ScoringModel) -> TypeGuard[TokenizingModel]:
    """Whether a model tokenizes by itself."""
    return hasattr(type(model), "encode")


def is_resumable(model: ScoringModel) -> TypeGuard[ResumableModel]:
    """Whether a model can continue where another process was stopped."""
    return hasattr(type(model), "score_encoded")
