"""Label scoring with a served model: an OpenAI-compatible server that returns the most probable first tokens.

A label is the continuation's whole text as one token. Where it is among the returned tokens its log-probability is
exact; where it is not, it is only known to lie below: no unseen token is more probable than the least probable one
returned, nor than what the returned ones leave. Such scores are intervals (:class:`Bounds`).

Some servers accept ``logprobs``, ignore it and answer 200; some return the chat shape from the completions route. So
what comes back is looked at, not trusted. The key is sent in the request's header and kept nowhere else. A server is
asked who it is, for its address says little about the weights behind it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import httpx
import numpy as np

from unslant.arrays import Bools, Floats, are_logprobs
from unslant.errors import ModelError
from unslant.models.base import Cost, Scored
from unslant.models.http import Endpoint, Refused
from unslant.models.options import KEY_VARIABLES, Address
from unslant.prompts.prompt import Prompt

TIMEOUT = 60.0
"""Seconds to wait for one whole reply."""
DEADLINE = 300.0
"""Seconds to wait for a usable reply, all tries together."""
TOP = 20
"""Most probable tokens asked for; 20 is what the OpenAI interface allows, some servers give more."""
_TOLERANCE = 1e-3  # on a sum of probabilities, which servers round
_ROUNDING = 1e-6  # llama.cpp differs in the sixth decimal between equal calls
_HELLO = {"prompt": "1 + 1 =", "max_tokens": 1, "temperature": 0}
_HELLO_CHAT = {"messages": [{"role": "user", "content": "1 + 1 ="}], "max_tokens": 1, "temperature": 0}
_PROPS = ("model_path", "model_alias", "build_info", "chat_template", "bos_token", "eos_token", "modalities")
_PASSING = frozenset({"created", "permission", "status", "last_used", "expires_at"})
_SHOWN = 300


class NotLogprobs(ModelError):
    """A reply with numbers that are no log-probabilities."""


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
        top: tokens to ask for.
        key_variable, timeout, deadline, retries, wait, connections: see :class:`~unslant.models.http.Endpoint`.

    Attributes:
        censored: continuations scored so far that were not among the returned tokens.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        key_variable: str = KEY_VARIABLES[-1],
        top: int = TOP,
        timeout: float = TIMEOUT,
        deadline: float = DEADLINE,
        retries: int = 5,
        wait: float = 0.5,
        connections: int = 8,
    ) -> None:
        self.model, self.top = model, top
        self._server = Endpoint(base_url, key_variable, timeout, deadline, retries, wait, connections)
        self._who: dict[str, str] = {}
        self._cost = Cost()
        self.censored = 0

    @property
    def name(self) -> str:
        return self.model

    @property
    def address(self) -> Mapping[str, str]:
        """What is known of it without asking."""
        return {
            "model": self.model,
            "base_url": self._server.base_url,
            "top_logprobs": str(self.top),
            "engine": "served",
        }

    @property
    def identity(self) -> Mapping[str, str]:
        """The address, and what the server said of itself when it was last asked (:meth:`ask_identity`)."""
        return {**self.address, **self._who}

    @property
    def waiting(self) -> str:
        """What is being waited for, where a request failed for the time being; empty otherwise."""
        return self._server.waiting

    @property
    def cost(self) -> Cost:
        """Prompts and seconds; tokens are counted by the server."""
        return self._cost

    def ask_identity(self) -> None:
        """Ask the server who it is: its list of models, llama.cpp's properties, the fingerprint of its system.

        What a server does not tell is left out.

        Raises:
            ModelError: if it cannot be reached, or does not accept the key.
        """
        asked = [("/models", None), ("//props", None), ("/completions", _HELLO), ("/chat/completions", _HELLO_CHAT)]
        try:
            found = dict(self._server.all(asked, self._told))
        except ModelError as error:
            raise ModelError(
                f"{self.model} at {self._server.base_url} does not say who it is: {error}; scores that are stored are "
                "used without asking with --offline"
            ) from None
        models, props, *replies = (found[i] for i in range(len(asked)))
        prints = {str(reply.get("system_fingerprint") or "") for reply in replies if isinstance(reply, Mapping)} - {""}
        told = {
            "models": _entry(models, self.model),
            "props": {key: props[key] for key in _PROPS if key in props} if isinstance(props, Mapping) else {},
            "system_fingerprint": sorted(prints),
        }
        self._who = {name: _short(value) for name, value in told.items() if value}

    async def _told(self, client: httpx.AsyncClient, asked: tuple[str, Mapping[str, Any] | None]) -> Any:
        route, body = asked
        try:
            return await self._server.send(client, route, body and {"model": self.model, **body})
        except Refused as refused:
            if refused.status in (401, 403, 429):
                raise
            return None  # a server without this route

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        """Score every prompt; a continuation outside the returned tokens gets the upper end of its interval.

        An argmax over these scores is right wherever :attr:`Bounds.best` is known; :attr:`censored` counts the others'
        cause. Use :meth:`bounds` to have the intervals themselves. A reply whose numbers are no log-probabilities gives
        an error in place of scores.

        Raises:
            ModelError: if a request fails for good, no log-probabilities come back, or labels begin one another; it
                names the group.
        """
        for index, found in self._ask(prompts):
            if isinstance(found, Bounds):
                yield Scored(index, np.minimum(found.high, 0.0))
            else:
                yield Scored(index, None, found)

    def bounds(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Bounds]]:
        """Index of each prompt and what is known of its continuations, as replies come in.

        Raises:
            ModelError: see :meth:`score`; also if a reply's numbers are no log-probabilities.
        """
        for index, found in self._ask(prompts):
            if not isinstance(found, Bounds):
                raise ModelError(found)
            yield index, found

    def _ask(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Bounds | str]]:
        for labels in dict.fromkeys(prompt.continuations for prompt in prompts):
            _check_labels(labels)
        started = time.monotonic()
        try:
            for index, found in self._server.all(prompts, self._bounds_of):
                self.censored += int((~found.exact).sum()) if isinstance(found, Bounds) else 0
                self._cost.prompts += 1
                self._cost.forwards += 1
                yield index, found
        finally:
            self._cost.seconds += time.monotonic() - started

    async def _bounds_of(self, client: httpx.AsyncClient, prompt: Prompt) -> Bounds | str:
        place = f"question {prompt.group!r}" if prompt.group else "a prompt"
        try:
            reply = await self._server.send(client, *self._request(prompt))
            return label_bounds(top_logprobs(reply), prompt.continuations)
        except NotLogprobs as error:
            return f"{place}: {error}"
        except ModelError as error:
            raise ModelError(f"{self.model} at {self._server.base_url}, {place}: {error}") from None

    def _request(self, prompt: Prompt) -> tuple[str, dict[str, Any]]:
        common = {"model": self.model, "max_tokens": 1, "temperature": 0}
        if prompt.to_end:
            raise ModelError("a server gives the probability of one token, so not that of a label with its end")
        if not prompt.messages:
            return "/completions", {**common, "prompt": prompt.text, "logprobs": self.top}
        messages = [{"role": message.role, "content": message.content} for message in prompt.messages]
        if prompt.text:
            raise ModelError("a served chat cannot be continued in the middle of the assistant's turn")
        return "/chat/completions", {**common, "messages": messages, "logprobs": True, "top_logprobs": self.top}


def _check_labels(labels: Sequence[str]) -> None:
    """Refuse labels of which one's text begins another's: the longer one may be more than one token.

    Raises:
        ModelError: naming a set of labels that works.
    """
    texts = sorted(label.strip() for label in labels)
    for short, long in pairwise(texts):
        if long.startswith(short):
            raise ModelError(
                f"labels {short!r} and {long!r}: a server gives the probability of the first token only, which may be "
                f"that of {short!r} for both; use --labels A"
            )


def _entry(listed: Any, model: str) -> Any:
    """What a list of models says of one of them, or of all where it is not there, but for what changes by itself."""
    entries = listed.get("data") if isinstance(listed, Mapping) else None
    entries = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []
    found = [entry for entry in entries if entry.get("id") == model] or entries
    return [{key: value for key, value in entry.items() if key not in _PASSING} for entry in found]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... sha256 {hashlib.sha256(text.encode()).hexdigest()}"


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
        best[text] = max(value, best.get(text, value))
    values = np.array([value for _, value in found])
    if not are_logprobs(values) or math.fsum(map(math.exp, best.values())) > 1 + _TOLERANCE:
        raise NotLogprobs(
            "the server returned no valid log-probabilities: they are not finite, above 0, or sum to more than 1"
        )
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
