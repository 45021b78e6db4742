"""A model whose weights are in other processes: what runs there, and the base of such models here."""

from __future__ import annotations

import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from unslant.errors import UnslantError
from unslant.models.base import Cost, Encoded, Journal, ModelInfo, Scored, TokenizingModel
from unslant.models.hf import other_costs
from unslant.models.hf.identity import PROMPTS, spread
from unslant.models.hf.loading import load_model
from unslant.models.options import ModelOptions
from unslant.prompts import Prompt


@dataclass(frozen=True, slots=True)
class ReplicaInfo:
    """A replica's description of itself, once it has loaded the model."""

    info: ModelInfo
    token_budget: int
    warned: tuple[str, ...] = ()


@dataclass(slots=True)
class Part:
    """Some of the results of a unit of work.

    Attributes:
        results: token ids or log-probabilities of prompts, by position in the unit.
        cost: of these.
        spelling: groups whose prompts spell special tokens.
    """

    results: list[tuple[int, Any]]
    cost: Cost = field(default_factory=Cost)
    spelling: frozenset[str] = frozenset()


class Replica:
    """A model, or this process's part of one, in a process of its own.

    Args:
        name, options: of the model.
        threads: of torch.
        folder: base of relative paths.
    """

    def __init__(self, name: str, options: ModelOptions, threads: int, folder: str) -> None:
        self._failed: UnslantError | None = None
        with suppress(OSError):  # another machine may neither have nor need it
            os.chdir(folder)
        try:
            torch.set_num_threads(threads)
            with warnings.catch_warnings(record=True) as warned:
                self._model = load_model(name, options)
            self._warned = tuple(str(warning.message) for warning in warned)
        except UnslantError as error:  # raised in ``about``: of an error in a constructor, Ray keeps only the text
            self._failed = error

    def about(self) -> ReplicaInfo:
        if self._failed:
            raise self._failed
        return ReplicaInfo(self._model.identify(), self._model.token_budget, self._warned)

    def facts(self, sample: Sequence[Encoded], spelling: frozenset[str]) -> dict[str, object]:
        """All facts about the model, as if this replica had answered every prompt."""
        self._model.sample = list(sample)
        self._model.encoder.spelling |= spelling
        return self._model.all_facts()

    def encode(self, prompts: Sequence[Prompt]) -> Iterator[Part]:
        """Token ids of the prompts."""
        groups = {prompt.group for prompt in prompts}
        encoded = list(enumerate(self._model.encode(prompts)))
        yield Part(encoded, spelling=frozenset(self._model.encoder.spelling & groups))

    def score(self, groups: Sequence[str], encoded: Sequence[Encoded]) -> Iterator[Part]:
        """Log-probabilities of the candidates, a forward pass at a time.

        Args:
            groups: of the prompts; their texts, which would be most of the message, are not needed any more.
        """
        prompts = [Prompt("", (), group=group) for group in groups]
        passes, before = _Passes(), self._model.cost.copy()
        for _ in self._model.score_encoded(prompts, encoded, passes):
            if passes.results:
                now = self._model.cost.copy()
                yield Part(passes.results, now - before)
                passes.results, before = [], now


class _Passes(Journal):
    """A journal that holds the results of the last forward passes."""

    def __init__(self) -> None:
        self.results: list[tuple[int, Any]] = []

    def state(self, stretch: str) -> bytes:
        return b""  # nothing to resume: a unit whose replica died is scored again

    def note(self, stretch: str, step: int, results: Sequence[Scored], state: Callable[[], bytes]) -> None:
        self.results += [(one.index, one.logprobs) for one in results]


class Elsewhere(TokenizingModel):
    """A scoring model whose weights are in replicas. These load them from files, so no foreign code acts on them."""

    def __init__(self, name: str) -> None:
        super().__init__(ModelInfo(name=name))
        self._sample: list[Encoded] = []
        self._spelling: set[str] = set()

    def describe(self) -> ModelInfo:
        return replace(self.identify(), facts=self._facts(self._sample, frozenset(self._spelling)))

    @abstractmethod
    def _facts(self, sample: Sequence[Encoded], spelling: frozenset[str]) -> dict[str, object]:
        """The facts from one of the replicas; see :meth:`Replica.facts`."""

    def encode(self, prompts: Sequence[Prompt]) -> list[Encoded]:
        """Token ids of the prompts; ModelError, naming the group, if a prompt is too long."""
        started = time.perf_counter()
        by_position: dict[int, Encoded] = {}
        for part in self._encoding(prompts):
            by_position.update(part.results)
            self._spelling |= part.spelling
        encoded = [by_position[i] for i in range(len(prompts))]
        self._sample += spread(encoded, PROMPTS - len(self._sample))
        self.cost.seconds += time.perf_counter() - started
        return encoded

    def score(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded] | None = None) -> Iterator[Scored]:
        """See :class:`~unslant.models.base.TokenizingModel`; ``cost.seconds`` is this process's time."""
        encoded = self.encode(prompts) if encoded is None else encoded
        if not prompts:
            return
        since = time.perf_counter()
        plain, baqckv = other_costs(encoded, [prompt.group for prompt in prompts])
        self.cost += Cost(tokens_plain=plain, tokens_baqckv=baqckv)
        for part in self._scoring(prompts, encoded):
            now = time.perf_counter()
            self.cost += replace(part.cost, tokens_plain=0, tokens_baqckv=0, seconds=now - since)
            since = now
            for position, logprobs in part.results:
                yield Scored(position, logprobs)

    @abstractmethod
    def _encoding(self, prompts: Sequence[Prompt]) -> Iterator[Part]:
        """Token ids as replicas send them, with positions among all prompts."""

    @abstractmethod
    def _scoring(self, prompts: Sequence[Prompt], encoded: Sequence[Encoded]) -> Iterator[Part]:
        """Log-probabilities as replicas send them, in the same way."""
