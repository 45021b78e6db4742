"""Label scoring with a served model: an OpenAI-compatible server that returns the most probable first tokens.

A label is the continuation's whole text as one token. Where it is among the returned tokens its log-probability is
exact; where it is not, it is only known to lie below: no unseen token is more probable than the least probable one
returned, nor than what the returned ones leave. Such scores are intervals (:class:`Bounds`).

Some servers accept ``logprobs``, ignore it and answer 200; some return the chat shape from the completions route. So
what comes back is looked at, not trusted. The key is sent in the request's header and kept nowhere else.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import httpx
import numpy as np
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from unslant.arrays import Bools, Floats
from unslant.errors import ModelError
from unslant.models.base import Cost, Scored
from unslant.models.options import KEY_VARIABLES, Address
from unslant.prompts.prompt import Prompt

TIMEOUT = 60.0
"""Seconds to wait for one reply."""
TOP = 20
"""Most probable tokens asked for; 20 is what the OpenAI interface allows, some servers give more."""
_RETRIED = frozenset({408, 409, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0
_TOLERANCE = 1e-3
_ROUNDING = 1e-6  # llama.cpp differs in the sixth decimal between equal calls


@dataclass(frozen=True, slots=True)
class Bounds:
    """What is known of the log-probabilities of one prompt's continuations (natural log).

    Attributes:
        low, high: shape ``(continuations,)``; equal where the continuation was among the returned tokens, else
            ``low`` is ``-inf``.
    """

    low: Floats
    high: Floats

    @property
    def exact(self) -> Bools:
        """Which continuations were returned."""
        return np.asarray(self.low == self.high)

    @property
    def best(self) -> int | None:
        """The most probable continuation, or None where the intervals leave that open."""
        first = int(np.argmax(self.low))
        others = np.delete(self.high, first)
        return first if np.isfinite(self.low[first]) and (others < self.low[first]).all() else None


class ServedModel:
    """A model behind an OpenAI-compatible server, as a scoring model.

    Args:
        model: name the server knows it by.
        base_url: such as ``http://127.0.0.1:8080/v1``.
        key_variable: environment variable that holds the key; none is sent where it is not set.
        top: tokens to ask for.
        timeout: seconds to wait for one reply.
        retries: how often a request is repeated after 429, 5xx, a broken connection or a broken body.
        wait: seconds before the first repetition; doubled each time, or what ``Retry-After`` says.
        connections: requests at a time.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        key_variable: str = KEY_VARIABLES[-1],
        top: int = TOP,
        timeout: float = TIMEOUT,
        retries: int = 5,
        wait: float = 0.5,
        connections: int = 8,
    ) -> None:
        self.model, self.base_url, self.key_variable = model, base_url.rstrip("/"), key_variable
        self.top, self.timeout, self.retries, self.wait, self.connections = top, timeout, retries, wait, connections
        self._cost = Cost()
        self.censored = 0
        """Continuations scored so far that were not among the returned tokens."""

    @property
    def name(self) -> str:
        return self.model

    @property
    def identity(self) -> Mapping[str, str]:
        """The server does not say what weights it runs: its address and the name are all there is."""
        return {"model": self.model, "base_url": self.base_url, "top_logprobs": str(self.top), "engine": "served"}

    @property
    def cost(self) -> Cost:
        """Prompts and seconds; tokens are counted by the server."""
        return self._cost

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """Score every prompt; a continuation outside the returned tokens gets the upper end of its interval.

        An argmax over these scores is right wherever :attr:`Bounds.best` is known; :attr:`censored` counts the others'
        cause. Use :meth:`bounds` to have the intervals themselves.

        Raises:
            ModelError: if a request fails for good, or no log-probabilities come back; it names the group.
        """
        for index, bounds in self.bounds(prompts):
            yield Scored(index, bounds.high)

    def bounds(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Bounds]]:
        """Index of each prompt and what is known of its continuations, as replies come in.

        Raises:
            ModelError: see :meth:`score`.
        """
        started = time.monotonic()
        with httpx.Client(timeout=self.timeout) as client, ThreadPoolExecutor(self.connections) as pool:
            waiting = {pool.submit(self._bounds_of, client, prompt): i for i, prompt in enumerate(prompts)}
            try:
                for done in as_completed(waiting):
                    bounds = done.result()
                    self.censored += int((~bounds.exact).sum())
                    self._cost.prompts += 1
                    self._cost.forwards += 1
                    yield waiting[done], bounds
            finally:
                for future in waiting:
                    future.cancel()
                self._cost.seconds += time.monotonic() - started

    def _bounds_of(self, client: httpx.Client, prompt: Prompt) -> Bounds:
        place = f"question {prompt.group!r}" if prompt.group else "a prompt"
        try:
            reply = self._post(client, prompt)
            return label_bounds(top_logprobs(reply), prompt.continuations)
        except ModelError as error:
            raise ModelError(f"{self.model} at {self.base_url}, {place}: {error}") from None

    def _post(self, client: httpx.Client, prompt: Prompt) -> Any:
        common = {"model": self.model, "max_tokens": 1, "temperature": 0}
        if prompt.messages:
            messages = [{"role": message.role, "content": message.content} for message in prompt.messages]
            if prompt.text:
                raise ModelError("a served chat cannot be continued in the middle of the assistant's turn")
            body = {**common, "messages": messages, "logprobs": True, "top_logprobs": self.top}
            return self._send(client, "/chat/completions", body)
        return self._send(client, "/completions", {**common, "prompt": prompt.text, "logprobs": self.top})

    def _send(self, client: httpx.Client, route: str, body: Mapping[str, Any]) -> Any:
        """POST ``body`` and return the decoded reply, repeating what may be transient."""
        key = os.environ.get(self.key_variable)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        tries = Retrying(
            retry=retry_if_exception_type(_Transient),
            stop=stop_after_attempt(self.retries + 1),
            wait=self._pause,
            reraise=True,
        )
        try:
            return tries(_sent, client, self.base_url + route, headers, body)
        except _Transient as problem:
            raise ModelError(f"no usable reply after {self.retries + 1} tries; the last one: {problem}") from None

    def _pause(self, state: RetryCallState) -> float:
        """Seconds before the next try: what the server asked for, or twice as long each time."""
        problem = state.outcome.exception() if state.outcome else None
        if isinstance(problem, _Transient) and problem.after is not None:
            return problem.after
        return min(_LONGEST_WAIT, self.wait * 2.0 ** (state.attempt_number - 1))


def open_served(address: Address) -> ServedModel:
    """A model behind a server, with the key that the environment has for it; see :mod:`unslant.models.open`."""
    options = address.options
    return ServedModel(
        address.model,
        str(options.base_url),
        key_variable=next((name for name in KEY_VARIABLES if name in os.environ), KEY_VARIABLES[-1]),
        timeout=options.timeout or TIMEOUT,
        retries=options.retries,
        connections=options.connections,
    )


class _Transient(Exception):
    """A request that may succeed when it is repeated, ``after`` so many seconds if the server said so."""

    def __init__(self, problem: str, after: float | None = None) -> None:
        super().__init__(problem)
        self.after = after


def _sent(client: httpx.Client, url: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> Any:
    try:
        response = client.post(url, headers=headers, json=body)
    except httpx.TransportError as error:
        raise _Transient(f"{type(error).__name__}: {error}") from None
    if response.is_success:
        try:
            return response.json()
        except ValueError as error:
            raise _Transient(f"{type(error).__name__}: {error}") from None
    problem = f"HTTP {response.status_code} {response.reason_phrase}"
    if response.status_code in _RETRIED:
        raise _Transient(problem, _retry_after(response))
    raise ModelError(f"{problem}: {response.text[:300]}")


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return min(_LONGEST_WAIT, max(0.0, float(response.headers.get("Retry-After", ""))))
    except ValueError:
        return None


def top_logprobs(reply: Any) -> dict[str, float]:
    """The first token's most probable tokens, text -> natural-log probability, from either shape of reply.

    Chat shape: ``logprobs.content[0].top_logprobs``, a list with ``token``, ``bytes`` and ``logprob`` (llama.cpp
    returns it from the completions route too). Legacy shape: ``logprobs.top_logprobs[0]``, an object.

    Raises:
        ModelError: if there are none, or they are no log-probabilities.
    """
    try:
        logprobs = reply["choices"][0].get("logprobs")
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ModelError("the reply has no choices; is this an OpenAI-compatible server?") from None
    try:
        found = _first_token(logprobs)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise ModelError(f"the log-probabilities are not in a known shape ({type(error).__name__}: {error})") from None
    if not found:
        raise ModelError(
            "the server answered without log-probabilities (some accept the field and ignore it), so labels cannot "
            "be scored; generate replies instead, or use a server that returns them, such as llama.cpp or vLLM"
        )
    best: dict[str, float] = {}
    for text, value in found:
        best[text] = max(value, best.get(text, -math.inf))
    total = math.fsum(math.exp(value) for value in best.values() if value <= 0)
    if any(value > _TOLERANCE for value in best.values()) or total > 1 + _TOLERANCE:
        raise ModelError("the server returned no valid log-probabilities: they are above 0, or sum to more than 1")
    return best


def _first_token(logprobs: Any) -> list[tuple[str, float]]:
    if isinstance(logprobs, Mapping) and logprobs.get("content"):
        first = logprobs["content"][0]
        return [(_text(entry), float(entry["logprob"])) for entry in (*(first.get("top_logprobs") or ()), first)]
    if isinstance(logprobs, Mapping) and logprobs.get("top_logprobs"):
        return [(text, float(value)) for text, value in logprobs["top_logprobs"][0].items()]
    return []


def _text(entry: Mapping[str, Any]) -> str:
    """A token's text, from its bytes where these are given and are bytes."""
    raw = entry.get("bytes")
    if isinstance(raw, list) and raw and all(isinstance(b, int) and 0 <= b < 256 for b in raw):
        return bytes(raw).decode("utf-8", "replace")
    return str(entry.get("token", ""))


def label_bounds(top: Mapping[str, float], continuations: Sequence[str]) -> Bounds:
    """What the most probable tokens say about each continuation."""
    rest = max(0.0, 1.0 - math.fsum(math.exp(value) for value in top.values()))
    ceiling = min(min(top.values()), math.log(rest + _ROUNDING))
    low = np.array([top.get(text, -math.inf) for text in continuations])
    high = np.array([top.get(text, ceiling) for text in continuations])
    return Bounds(low, high)
