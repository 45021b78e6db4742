"""What unslant needs of a model: :class:`ModelInfo`, which every model has, and the methods of its kind.

A model of your own is a subclass of :class:`ScoringModel` (or of :class:`~unslant.models.chat.ChatModel`)::

    class Coin(ScoringModel):
        def __init__(self):
            super().__init__(ModelInfo(name="coin", identity={"model": "coin", "version": "1"}))

        def score(self, prompts):
            for index, prompt in enumerate(prompts):
                yield Scored(index, np.log(np.full(len(prompt.continuations), 1 / len(prompt.continuations))))
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unslant.arrays import Floats
from unslant.prompts.prompt import Prompt
from unslant.responses.cost import Cost as Cost

Ids = NDArray[np.int32]
Ability = Literal["score", "generate", "attend", "train"]
"""``score``: log-probabilities of labels. ``generate``: replies. ``attend``: attention and hidden states can be read
and changed. ``train``: weights can be trained."""
NOBODY = ("", "")
"""A reply that names neither a model nor a system."""


@dataclass(frozen=True, kw_only=True)
class ModelInfo:
    """Who a model is and what it can do. A wrapper passes it on, or a copy by :func:`dataclasses.replace`.

    Attributes:
        name: display name, such as the folder or Hub id.
        identity: everything that, if changed, may change a score or a reply, prompts apart: weights digest, adapter,
            dtype, tokenizer, engine, address. Stored scores are found under it. It is as of the last
            :meth:`Model.identify`; before the first one, what is known without looking or asking.
        engine: what computes, such as ``tree`` or ``plain``.
        facts: what every result must say of the model, as fields of a :class:`~unslant.responses.run.Run`; see
            :func:`facts_of`.
        can: what it can do.
        remote: its weights are out of reach: it is asked who it is, and ``offline`` forbids that.
        renders_prompts: it words its prompts itself, as decision endpoints do: it takes prompts with a ``state`` only.
        parameters: number of weights, where known.
        copies: copies of the model that work at the same time.
    """

    name: str
    identity: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    can: frozenset[Ability] = frozenset({"score"})
    remote: bool = False
    renders_prompts: bool = False
    parameters: int | None = None
    copies: int = 1


class Model:
    """What all models have in common; subclass :class:`ScoringModel` or :class:`~unslant.models.chat.ChatModel`.

    Attributes:
        recalled: prompts that came from a store so far.
        taken_over: those of them that other calls had asked.
    """

    def __init__(self, info: ModelInfo) -> None:
        self._info = info
        self.recalled = self.taken_over = 0

    @property
    def info(self) -> ModelInfo:
        """Who the model is and what it can do; cheap to read."""
        return self._info

    @property
    def name(self) -> str:
        """Display name."""
        return self.info.name

    def identify(self) -> ModelInfo:
        """Find out who the model is now, since it may have changed: digest its weights, or ask its server.

        Raises:
            ModelError: if its server does not answer.
        """
        return self.info

    def describe(self) -> ModelInfo:
        """The info for a result, with all facts, also those that take computing; asks no server."""
        return self.info

    @property
    def foreign_code(self) -> tuple[str, ...]:
        """Code that acts on the model and comes from no installed library; nothing is then stored or recalled."""
        return ()

    @property
    def waiting(self) -> str:
        """What is being waited for, where a request failed for the time being; empty otherwise."""
        return ""

    @property
    def unwrapped(self) -> Model:
        """The model that is asked, without a store in front of it."""
        return self


def facts_of(model: Model) -> dict[str, object]:
    """What every result says of the model that was asked, JSON-able: its engine, its identity, and its facts.

    Among the facts are ``offline`` (scores came from the store alone), ``incomplete`` (weights are missing from the
    checkpoint), ``half_precision`` (its agreement with float32), ``special_tokens`` (questions that spell some).
    """
    info = model.describe()
    return {"engine": info.engine or type(model.unwrapped).__name__, "identity": dict(info.identity), **info.facts}


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of one prompt, or why there are none.

    Attributes:
        logprobs: ``logprobs[c]`` is the natural-log probability of continuation ``c`` (whole text, summed over its
            tokens, over the full vocabulary), shape ``(len(prompt.continuations),)``; None where what came back was no
            log-probability.
        error: what came back then.
        bounds: the continuations for which ``logprobs`` has only an upper bound; a server returns few tokens.
        declined: whether that was a refusal.
        by: the model and the system that the reply names; empty where it names none.
    """

    index: int
    logprobs: Floats | None
    error: str = ""
    bounds: tuple[int, ...] = ()
    declined: bool = False
    by: tuple[str, str] = NOBODY


class ScoringModel(Model, ABC):
    """A model that gives log-probabilities of continuations.

    Attributes:
        cost: running total; subtract a copy taken before to get the cost of one call.
    """

    def __init__(self, info: ModelInfo) -> None:
        super().__init__(info)
        self.cost = Cost()

    @abstractmethod
    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """Score every prompt; yields each prompt's result once, as it is ready, in any order.

        Raises:
            ModelError: if a prompt cannot be scored (longer than the model's context, for example); it names the group.
        """

    def ask_again(self, prompts: Sequence[Prompt]) -> Iterable[Scored]:
        """Scores of prompts that were asked before, only to compare them."""
        return self.score(prompts)

    def note_stored(self, by: tuple[str, str], group: str) -> None:  # only servers name themselves
        """Take note that a prompt's score comes from the store, and of whom the reply named.

        Raises:
            ModelChanged: if it names another model than the replies before.
        """


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of one prompt: ``context`` (shape ``(k,)``) and the tokens to be scored after it, per candidate."""

    context: Ids
    candidates: tuple[Ids, ...]

    @property
    def longest(self) -> int:
        """Tokens that the model has to take at once: no candidate's last token is read, only predicted."""
        return len(self.context) + max(map(len, self.candidates)) - 1


class TokenizingModel(ScoringModel):
    """A model that tokenizes by itself, so that the store knows a prompt by its tokens."""

    @abstractmethod
    def encode(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        """Token ids of the prompts."""

    @abstractmethod
    def score(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded] | None = None) -> Iterator[Scored]:
        """As of any model; ``encoded`` is the result of :meth:`encode`, where it was called before."""

    def agrees(self, encoded: Sequence[Encoded], known: Sequence[Floats]) -> bool:
        """Whether it gives some prompts the scores that are stored of it; True where its identity settles that."""
        return True


class Journal(ABC):
    """Where a model notes how far it has come, so that another process can continue from there."""

    @abstractmethod
    def state(self, stretch: str) -> bytes:
        """What was last noted of a stretch of the work; empty if nothing was."""

    @abstractmethod
    def note(self, stretch: str, step: int, results: Sequence[Scored], state: Callable[[], bytes]) -> None:
        """Keep these results; ``state`` gives the bytes from which to continue behind them."""


class ResumableModel(TokenizingModel):
    """A model that can continue where another process was stopped, bit for bit."""

    @abstractmethod
    def score_encoded(
        self, prompts: Sequence[Prompt], encoded: Sequence[Encoded], journal: Journal | None = None
    ) -> Iterator[Scored]:
        """As ``score``; with a journal it continues from what was noted, and yields what was not noted yet."""
