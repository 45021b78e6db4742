"""What all models behind a server that scores have in common: how they are reached, who they are, what they cost."""

from __future__ import annotations

import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

import httpx

from unslant.errors import ModelError
from unslant.models.answered import Watch
from unslant.models.base import Cost, Scored, renders_prompts
from unslant.models.concurrent import Server, from_several
from unslant.models.http import CONNECTIONS, TIMEOUT, Endpoint, is_lost
from unslant.models.options import KEY_VARIABLES, ModelOptions
from unslant.prompts.prompt import Prompt
from unslant.reach import recorded_body, texts_in


class HttpModel(ABC):
    """A scoring model behind a server.

    Args:
        model: name the server knows it by.
        base_url: such as ``http://127.0.0.1:8080/v1``.
        extra_body: what is added to every request.
        connection: see :class:`~unslant.models.http.Endpoint`.

    Attributes:
        server: how it is reached.
        who: what it said of itself when it was last asked.
        watch: who answered so far.
    """

    def __init__(
        self, model: str, base_url: str, *, extra_body: Mapping[str, Any] | None = None, **connection: Any
    ) -> None:
        self.model, self._extra = model, dict(extra_body or {})
        self.server = Endpoint(base_url, secrets=texts_in(self._extra), **connection)
        self.who: dict[str, str] = {}
        self.watch = Watch(model)
        self._cost = Cost()

    @property
    def name(self) -> str:
        return self.model

    @property
    @abstractmethod
    def _address(self) -> Mapping[str, str]:
        """Which of the server's formats is spoken, and how."""

    @property
    def address(self) -> Mapping[str, str]:
        """What is known of it without asking."""
        more = {"extra_body": recorded_body(self._extra)} if self._extra else {}
        return {"model": self.model, **self._address, **more}

    @property
    def identity(self) -> Mapping[str, str]:
        """The address, and what the server said of itself when it was last asked (:meth:`ask_identity`)."""
        return {**self.address, **self.who}

    @property
    def facts(self) -> Mapping[str, object]:
        """See :func:`unslant.models.base.facts_of`."""
        return self.watch.facts

    @property
    def waiting(self) -> str:
        """What is being waited for, where a request failed for the time being; empty otherwise."""
        return self.server.waiting

    @property
    def cost(self) -> Cost:
        """Prompts and seconds; tokens where the server counts them (``tokens`` without those from its prefix cache)."""
        return self._cost

    @abstractmethod
    def ask_identity(self) -> None:
        """Ask the server who it is.

        Raises:
            ModelError: if it does not say.
        """

    @abstractmethod
    def asker(self, prompts: Sequence[Prompt]) -> Callable[[httpx.AsyncClient, Prompt], Awaitable[Any]]:
        """What puts one of these prompts to the server; its answer is for :meth:`read`.

        Raises:
            ModelError: if the server cannot score them.
        """

    @abstractmethod
    def read(self, index: int, answer: Any) -> Scored:
        """Scores from an answer."""

    def runs(self, prompts: Sequence[Prompt], at_once: int) -> Sequence[Sequence[int]] | None:
        """Indices of prompts that are asked one after the other; None if none wait for one another."""
        return None

    def answers(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Any]]:
        """The answer to each prompt, as it comes, and counted."""
        return asked([self], prompts, self._cost)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """See :meth:`unslant.models.base.ScoringModel.score`.

        Raises:
            ModelError: see :meth:`asker`; if a request fails for good; it names the group.
        """
        yield from _watched([self], prompts, self._cost, self.read, self.watch)

    def ask_again(self, prompts: Sequence[Prompt]) -> list[Scored]:
        """Scores of prompts that were asked before, which are compared and counted nowhere."""
        return _asked_again([self], prompts, self.read)


def _watched(
    models: Sequence[HttpModel],
    prompts: Sequence[Prompt],
    cost: Cost,
    read: Callable[[int, Any], Scored],
    watch: Watch,
) -> Iterator[Scored]:
    """What each prompt got, from servers that must stay the same."""
    for index, answer in asked(models, prompts, cost):
        found = read(index, answer)
        watch.scored(prompts[index], found)
        yield found
    watch.confirm(lambda again: _asked_again(models, again, read))


def _asked_again(
    models: Sequence[HttpModel], prompts: Sequence[Prompt], read: Callable[[int, Any], Scored]
) -> list[Scored]:
    before = [(one.cost, one.cost.copy()) for one in models]
    try:
        return [read(index, answer) for index, answer in asked(models, prompts, Cost())]
    finally:
        for cost, earlier in before:
            cost.become(earlier)


def asked(models: Sequence[HttpModel], prompts: Sequence[Prompt], cost: Cost) -> Iterator[tuple[int, Any]]:
    """The answers of several servers, each of which is given as much as it keeps up with.

    Args:
        cost: where prompts and seconds are counted.
    """
    if not prompts:
        return
    since = time.monotonic()
    servers = [Server(one.asker(prompts), one.server.limit, one.server.client, is_lost) for one in models]
    runs = models[0].runs(prompts, sum(one.server.limit.most for one in models))
    for index, answer in from_several(prompts, servers, runs):
        now = time.monotonic()
        cost.prompts += 1
        cost.forwards += 1
        cost.seconds, since = cost.seconds + now - since, now
        yield index, answer


class ServerGroup:
    """Several servers of one model, as one scoring model; see :func:`asked`.

    Args:
        models: one at each address.
    """

    def __init__(self, models: Sequence[HttpModel]) -> None:
        self._all = self._there = list(models)
        self._own = Cost()
        self.watch = Watch(models[0].name)
        self._who: Mapping[str, str] = {}
        self._known = False
        self.renders_prompts = renders_prompts(models[0])

    @property
    def name(self) -> str:
        return self._all[0].name

    @property
    def address(self) -> Mapping[str, str]:
        """What is known of it without asking; ``base_url`` holds all addresses."""
        return {**self._all[0].address, "base_url": " ".join(sorted(one.address["base_url"] for one in self._all))}

    @property
    def identity(self) -> Mapping[str, str]:
        """See :class:`HttpModel`."""
        return {**self.address, **self._who}

    @property
    def facts(self) -> Mapping[str, object]:
        """See :func:`unslant.models.base.facts_of`."""
        return {**self._there[0].facts, **self.watch.facts}

    @property
    def waiting(self) -> str:
        """What is being waited for; empty if nothing."""
        return "; ".join(filter(None, (one.waiting for one in self._all)))

    @property
    def cost(self) -> Cost:
        """That of all servers; ``seconds`` are those that passed here."""
        return sum((one.cost for one in self._all), self._own)

    def ask_identity(self) -> None:
        """Ask every server who it is; one that does not answer is left out, with a warning.

        Raises:
            ModelError: if two do not tell the same of themselves, or none answers.
        """
        there: list[HttpModel] = []
        for one in self._all:
            try:
                one.ask_identity()
            except ModelError as error:
                if not is_lost(error) or (not there and one is self._all[-1]):
                    raise
                warnings.warn(f"{error}; the other servers go on without it", stacklevel=2)
                continue
            there.append(one)
            if differ := [key for key in {**there[0].who, **one.who} if there[0].who.get(key) != one.who.get(key)]:
                first, other = (model.address["base_url"] for model in (there[0], one))
                told = " and ".join(str(model.who.get(differ[0], "nothing")) for model in (there[0], one))
                raise ModelError(
                    f"{self.name}: the servers at {first} and {other} do not serve the same model: they tell {told} as "
                    f"their {differ[0]}"
                )
        self._there, self._who, self._known = there, there[0].who, True

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """See :meth:`HttpModel.score`; a server that fails for good is left out with a warning, if others are left."""
        if not self._known:
            self.ask_identity()
        yield from _watched(self._there, prompts, self._own, self._there[0].read, self.watch)

    def ask_again(self, prompts: Sequence[Prompt]) -> list[Scored]:
        """See :meth:`HttpModel.ask_again`."""
        return _asked_again(self._there, prompts, self._there[0].read)


def group_of(models: Sequence[HttpModel]) -> HttpModel | ServerGroup:
    """One model at one address or at several."""
    return models[0] if len(models) == 1 else ServerGroup(models)


def connection_of(options: ModelOptions) -> dict[str, Any]:
    """What a user's options say to every :class:`HttpModel`, with the key that the environment has for it."""
    return {
        "key_variable": next((name for name in KEY_VARIABLES if name in os.environ), KEY_VARIABLES[-1]),
        "headers": options.headers(),
        "extra_body": options.body(),
        "timeout": options.timeout or TIMEOUT,
        "retries": options.retries,
        "connections": options.connections or CONNECTIONS,
    }
