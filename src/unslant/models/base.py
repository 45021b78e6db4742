"""What unslant needs of a model, whatever stands behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.prompts.prompt import Prompt
from unslant.responses.cost import Cost as Cost

Ids = NDArray[np.int32]


NOBODY = ("", "")
"""A reply that names neither a model nor a system."""


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
