"""What all models behind a server that scores have in common: how they are reached, who they are, what they cost."""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import httpx

from unslant.models.base import Cost
from unslant.models.http import CONNECTIONS, TIMEOUT, Endpoint
from unslant.models.options import KEY_VARIABLES, ModelOptions
from unslant.prompts.prompt import Prompt

_Found = TypeVar("_Found")


class HttpModel(ABC):
    """A scoring model behind a server.

    Args:
        model: name the server knows it by.
        base_url: such as ``http://127.0.0.1:8080/v1``.
        extra_body: what is added to every request.
        connection: see :class:`~unslant.models.http.Endpoint`.

    Attributes:
        server: how it is reached.
    """

    def __init__(
        self, model: str, base_url: str, *, extra_body: Mapping[str, Any] | None = None, **connection: Any
    ) -> None:
        self.model, self._extra = model, dict(extra_body or {})
        self.server = Endpoint(base_url, **connection)
        self._who: dict[str, str] = {}
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
        more = {"extra_body": json.dumps(self._extra, sort_keys=True)} if self._extra else {}
        return {"model": self.model, **self._address, **more}

    @property
    def identity(self) -> Mapping[str, str]:
        """The address, and what the server said of itself when it was last asked (:meth:`ask_identity`)."""
        return {**self.address, **self._who}

    @property
    def waiting(self) -> str:
        """What is being waited for, where a request failed for the time being; empty otherwise."""
        return self.server.waiting

    @property
    def cost(self) -> Cost:
        """Prompts and seconds; tokens where the server counts them (``tokens`` without those from its prefix cache)."""
        return self._cost

    def _asked(
        self,
        prompts: Sequence[Prompt],
        ask: Callable[[httpx.AsyncClient, Prompt], Awaitable[_Found]],
        runs: Sequence[Sequence[int]] | None = None,
    ) -> Iterator[tuple[int, _Found]]:
        """What ``ask`` finds for each prompt, as it comes, and counted; see :meth:`Endpoint.all`."""
        since = time.monotonic()
        for index, found in self.server.all(prompts, ask, runs):
            now = time.monotonic()
            self._cost.prompts += 1
            self._cost.forwards += 1
            self._cost.seconds, since = self._cost.seconds + now - since, now
            yield index, found


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
