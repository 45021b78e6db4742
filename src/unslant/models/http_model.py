"""The base of all models behind a server that scores: connections, identity, and cost."""

from __future__ import annotations

import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self, Unpack

import httpx

from unslant.errors import ModelError
from unslant.models.answered import Watch
from unslant.models.base import Cost, ModelInfo, Scored, ScoringModel
from unslant.models.concurrent import Server, from_several
from unslant.models.http import CONNECTIONS, TIMEOUT, Connection, Endpoint, is_lost
from unslant.models.options import KEY_VARIABLES, ModelOptions
from unslant.prompts import Prompt
from unslant.reach import recorded_body, texts_in

_MOST_LOST = 3
"""Questions that may fail after all retries; more of them may not outnumber the answers."""


class HttpModel(ScoringModel):
    """A scoring model behind a server, or behind several that share the work (:meth:`load`).

    Args:
        model: name the server knows it by.
        base_url: such as ``http://127.0.0.1:8080/v1``.
        extra_body: entries added to every request.
        connection: see :class:`~unslant.models.http.Connection`.

    Attributes:
        cost: prompts and seconds; tokens where the server counts them (``tokens`` without those from its prefix cache).
        server: its endpoint.
        url: where requests go, without secrets.
        who: how it described itself when it was last asked.
        servers: this one, and others with the same model.
        watch: who answered so far.
        answered: the latest prompt that it answered.
    """

    takes: ClassVar[tuple[str, ...]] = ()
    """Names of options that the constructor of a subclass takes too."""

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        extra_body: Mapping[str, Any] | None = None,
        **connection: Unpack[Connection],
    ) -> None:
        super().__init__(ModelInfo(name=model, remote=True))
        self.model, self._extra = model, dict(extra_body or {})
        self.server = Endpoint(base_url, secrets=texts_in(self._extra), **connection)
        self.url = self.server.base_url
        self.who: dict[str, str] = {}
        self._speaks: Mapping[str, str] = {}  # which of the server's formats, and how
        self.watch = Watch(model)
        self.answered: Prompt | None = None
        self._lost: set[str] = set()
        self.servers: Sequence[HttpModel] = [self]
        self._there: Sequence[HttpModel] = []  # those of them that answered when they were asked who they are

    @classmethod
    def load(cls, name: str, options: ModelOptions) -> Self:
        """One model at the address of a user's options, or at several, which share the work; the key is from the
        environment."""
        connection: Connection = {
            "key_variable": next((name for name in KEY_VARIABLES if name in os.environ), KEY_VARIABLES[-1]),
            "headers": options.headers(),
            "timeout": options.timeout or TIMEOUT,
            "retries": options.retries,
            "connections": options.connections or CONNECTIONS,
        }
        more: dict[str, Any] = {"extra_body": options.body(), **{key: getattr(options, key) for key in cls.takes}}
        models = [cls(name, url, **more, **connection) for url in options.addresses]
        first = models[0]
        first.servers = models
        for one in models:
            one.cost, one.watch = first.cost, first.watch
        return first

    @property
    def info(self) -> ModelInfo:
        """The identity: the address, and how the server described itself at the last :meth:`identify`."""
        first = next(iter(self._there), self)
        body = {"extra_body": recorded_body(self._extra)} if self._extra else {}
        urls = " ".join(sorted(one.url for one in self.servers))
        identity = {"model": self.model, "base_url": urls, **self._speaks, **body, **first.who}
        return replace(self._info, identity=identity, facts={**first._facts, **self.watch.facts})

    @property
    def _facts(self) -> Mapping[str, object]:
        """Facts learned about the server."""
        return {}

    @property
    def waiting(self) -> str:
        return "; ".join(filter(None, (one.server.waiting for one in self.servers)))

    @abstractmethod
    def ask_who(self) -> dict[str, str]:
        """The server's description of itself; ModelError if it gives none."""

    @abstractmethod
    def asker(self, prompts: Sequence[Prompt]) -> Callable[[httpx.AsyncClient, Prompt], Awaitable[Scored]]:
        """A function that has the server score one of these prompts.

        Raises:
            ModelError: if the server cannot score them.
        """

    async def fails_alone(
        self, prompt: Prompt, error: ModelError, other: Prompt, ask: Callable[[Endpoint, Prompt], Awaitable[object]]
    ) -> bool:
        """Whether the prompt is the reason why it failed for good: the server still answers the latest answered one.

        Args:
            other: asked in its place if none was answered yet.
            ask: has an endpoint, which does not retry, answer a prompt.
        """
        other, once = self.answered or other, copy(self.server)
        once.retries = 0
        if is_lost(error):  # after all its retries, minutes perhaps
            self._lost.add(prompt.group or prompt.as_text())
            if len(self._lost) > max(_MOST_LOST, self.watch.replies.total()):
                return False
        try:
            return other != prompt and bool(await ask(once, other))
        except ModelError:
            return False

    @staticmethod
    def runs(prompts: Sequence[Prompt], at_once: int) -> Sequence[Sequence[int]] | None:
        """Indices of prompts to ask one after the other; None if they are independent."""
        return None

    def identify(self) -> ModelInfo:
        """Ask every server who it is; one of several that does not answer is left out, with a warning.

        Raises:
            ModelError: if two describe themselves differently, or none answers.
        """
        there: list[HttpModel] = []
        for one in self.servers:
            try:
                one.who = one.ask_who()
            except ModelError as error:
                if not is_lost(error) or (not there and one is self.servers[-1]):
                    raise
                warnings.warn(f"{error}; the other servers continue without it", stacklevel=2)
                continue
            there.append(one)
            first = there[0]
            if differ := [key for key in {**first.who, **one.who} if first.who.get(key) != one.who.get(key)]:
                values = " and ".join(str(model.who.get(differ[0], "nothing")) for model in (first, one))
                raise ModelError(
                    f"{self.name}: the servers at {first.url} and {one.url} do not serve the same model: they say "
                    f"{values} as their {differ[0]}"
                )
        self._there = there
        return self.info

    def _asked(self, prompts: Sequence[Prompt], cost: Cost) -> Iterator[Scored]:
        """The scores of each prompt, as they arrive; each server gets as much as it keeps up with.

        Args:
            cost: where prompts and seconds are counted.
        """
        if not prompts:
            return
        if len(self.servers) > 1 and not self._there:
            self.identify()
        models, since = self._there or self.servers, time.monotonic()
        servers = [Server(one.asker(prompts), one.server.limit, one.server.client, is_lost) for one in models]
        runs = self.runs(prompts, sum(one.server.limit.most for one in models))
        for index, scored in from_several(prompts, servers, runs):
            now = time.monotonic()
            cost.prompts += 1
            cost.forwards += 1
            cost.seconds, since = cost.seconds + now - since, now
            yield replace(scored, index=index)

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """See :meth:`unslant.models.base.ScoringModel.score`; one of several servers that fails for good is left out,
        with a warning.

        Raises:
            ModelError: see :meth:`asker`; if a request fails for good; it names the group.
            ModelChanged: if a server does not stay the same model until the end.
        """
        for scored in self._asked(prompts, self.cost):
            self.watch.scored(prompts[scored.index], scored)
            yield scored
        self.watch.confirm(self.ask_again)

    def ask_again(self, prompts: Sequence[Prompt]) -> list[Scored]:
        """Scores of prompts that were asked before, which are compared and counted nowhere."""
        before = self.cost.copy()
        try:
            return list(self._asked(prompts, Cost()))
        finally:
            self.cost.become(before)

    def note_stored(self, by: tuple[str, str], group: str) -> None:
        self.watch.note(by, group, stored=True)


def entries_in(listed: Any) -> list[Mapping[str, Any]]:
    """The models of a server's list of models."""
    entries = listed.get("data") if isinstance(listed, Mapping) else None
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
