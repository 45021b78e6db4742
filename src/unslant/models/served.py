"""A served model: an OpenAI-compatible server that returns log-probabilities of first tokens, as a scoring model.

:mod:`unslant.models.label_scores` describes how labels are scored. The key goes into the request's header and nowhere
else. A server is asked who it is, since its address says little about the weights behind it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, Unpack
from urllib.parse import urlsplit

import httpx

from unslant.errors import ModelError, one_of
from unslant.models.base import Malformed, Scored
from unslant.models.concurrent import Limit
from unslant.models.first_token import LENGTHS, NoScores
from unslant.models.http import Connection, Refused, hint_of, placed
from unslant.models.http_model import HttpModel, entries_in
from unslant.models.label_scores import KINDS, LabelScorer, ServerKind, known_by, known_from
from unslant.prompts import Prompt, by_question

LOOK = 5.0
"""Seconds to wait for the answer at a route that only some servers have."""
LOOKS = 1
"""Retries of requests that only identify the server, except the first chat: some servers answer 500 every time."""
_HELLO = "/completions", {"prompt": "1 + 1 =", "max_tokens": 1}
_HELLO_CHAT = "/chat/completions", {"messages": [{"role": "user", "content": "1 + 1 ="}]}
_PROPS = ("model_path", "model_alias", "build_info", "chat_template", "bos_token", "eos_token", "modalities")
_PASSING = frozenset({"created", "permission", "status", "last_used", "expires_at"})
_SHOWN = 300


class ServedModel(HttpModel):
    """A model behind an OpenAI-compatible server, as a scoring model.

    Args:
        server: one of :data:`~unslant.models.label_scores.KINDS`; by default detected.
        top: number of most probable tokens to request; by default :data:`~unslant.models.label_scores.TOPS` and
            :data:`~unslant.models.label_scores.MORE`.
        max_completion_tokens: sent in a chat instead of ``max_tokens`` 1.
        model, base_url, extra_body, connection: see :class:`~unslant.models.http_model.HttpModel`.
    """

    takes = ("server", "top", "max_completion_tokens")

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        server: str = "auto",
        top: int | None = None,
        max_completion_tokens: int | None = None,
        extra_body: Mapping[str, Any] | None = None,
        **connection: Unpack[Connection],
    ) -> None:
        super().__init__(model, base_url, extra_body=extra_body, **connection)
        self._speaks = {"top_logprobs": str(top or "auto"), "engine": "served"}
        self.top, self._max_completion_tokens = top, max_completion_tokens
        self._kind = KINDS.get(server)
        self._slots = 0  # unknown yet

    @property
    def _facts(self) -> Mapping[str, object]:
        return {"server": self._kind.name, **self._scores.refusals.facts} if self._kind else {}

    def ask_who(self) -> dict[str, str]:
        """The server's description of itself: its list of models, llama.cpp's properties, the name in its replies.

        The fingerprint of its system is left out, since a server may have several (:mod:`unslant.models.answered`).

        Raises:
            ModelError: if it cannot be reached, does not accept the key, or serves another model than the one named.
        """
        try:
            route, body = _HELLO_CHAT
            chats = [(route, {**body, name: self._max_completion_tokens or 1}) for name in LENGTHS]
            models, props, reply = self._all_replies([("/models", None), ("//props", None), chats[0]])
            # One by one, and plain completions last: after a request to a route that its backend does not have, a proxy
            # such as LiteLLM refuses every request to that backend for seconds.
            for other in (*chats[1:], _HELLO):
                if not isinstance(reply, Mapping):
                    (reply,) = self._all_replies([other])
        except ModelError as error:
            problem = f"{self.model} at {self.server.base_url} does not say who it is: {error}; scores that are stored "
            raise placed(error, f"{problem}are used without asking with --offline") from None
        self._check_name(models)
        names = {str(reply.get("model") or "") if isinstance(reply, Mapping) else ""} - {"", self.model}
        facts = {
            "models": _entry(models, self.model),
            "props": {key: props[key] for key in _PROPS if key in props} if isinstance(props, Mapping) else {},
            "answered_as": sorted(names),
        }
        return {name: _short(value) for name, value in facts.items() if value}

    def _all_replies(self, requests: Sequence[tuple[str, Mapping[str, Any] | None]]) -> list[Any]:
        return [reply for _, reply in sorted(self.server.all(requests, self._reply), key=itemgetter(0))]

    def _check_name(self, listed: Any) -> None:
        """Refuse a name that the server does not list but would answer to; ModelError with the names it lists."""
        entries = entries_in(listed)
        names = [str(name) for entry in entries for name in (entry.get("id"), *(entry.get("aliases") or ()))]
        kind = known_from(entries)
        files = {name.replace("\\", "/").rpartition("/")[2] for name in names}  # llama.cpp may list the file's path
        if kind and kind.any_name and self.model not in {*names, *files, *(f.removesuffix(".gguf") for f in files)}:
            raise ModelError(
                f"{self.model} at {self.url}: no such model, although the server answers to any name; "
                f"{one_of(self.model, dict.fromkeys(names))}"
            )

    async def _reply(self, client: httpx.AsyncClient, request: tuple[str, Mapping[str, Any] | None]) -> Any:
        route, body = request
        if route.startswith("//"):  # only some servers have it; an error there means nothing
            with suppress(ModelError, TimeoutError):
                async with asyncio.timeout(LOOK):
                    return await self.server.send(client, route, retries=LOOKS)
            return None
        try:
            first = body is not None and body.keys() >= {"messages", LENGTHS[0]}
            body = body and {"model": self.model, **body, **self._extra}
            return await self.server.send(client, route, body, retries=None if first else LOOKS)
        except (Malformed, Refused) as error:  # it does not identify the server, or is of a server without this route
            if getattr(error, "status", 0) in (401, 403, 429):
                raise
            return None

    def _known(self) -> ServerKind:
        """The kind of server, detected once."""
        if self._kind is None and f".{urlsplit(self.server.base_url).hostname}".endswith(".openai.com"):
            self._kind = KINDS["openai"]
        if self._kind is None:
            (models,) = self._all_replies([("/models", None)])
            self._check_name(models)
            self._kind = known_from(_entry(models, self.model))
        if self._kind is None:
            routes = [kind.route for kind in KINDS.values() if kind.route]
            answers = self._all_replies([(route, None) for route in routes])
            self._kind = known_by(dict(zip(routes, answers, strict=True)))
        return self._kind

    def _limit_to_slots(self) -> None:
        """Send no more requests at once than the server has prefix caches: each further one makes it drop a cache."""
        if (kind := self._known()).slots and not self._slots:
            (about,) = self._all_replies([(kind.route, None)])
            slots = about.get(kind.slots) if isinstance(about, Mapping) else None
            self._slots = slots if isinstance(slots, int) and slots > 0 else self.server.limit.most
            self.server.limit = Limit(min(self.server.limit.most, self._slots))

    def asker(self, prompts: Sequence[Prompt]) -> Callable[[httpx.AsyncClient, Prompt], Awaitable[Scored]]:
        """See :class:`~unslant.models.http_model.HttpModel`.

        A reply whose numbers are not log-probabilities fails its prompt alone, and so does a request that is refused or
        never answered if the server scores another prompt.

        Raises:
            ModelError: if no log-probabilities come back, labels are indistinguishable, or the model is about to think.
        """
        try:
            scores = self._scores
            self._limit_to_slots()
        except ModelError as error:
            place = f"{self.model} at "
            raise ModelError(str(error) if str(error).startswith(place) else f"{place}{self.url}: {error}") from None
        scores.check(prompts)
        shortest = min(prompts, key=lambda prompt: len(prompt.as_text()))

        async def ask(client: httpx.AsyncClient, prompt: Prompt) -> Scored:
            place = f"question {prompt.group!r}" if prompt.group else "a prompt"
            try:
                scored = await scores.scored(client, prompt)
            except ModelError as error:
                again = partial(scores.scored_at, client)
                if isinstance(error, Malformed) or await self.fails_alone(prompt, error, shortest, again):
                    return Scored(0, None, f"{place}: {error}")
                no_scores = isinstance(error, NoScores)
                # A refusal that names the model is about the model, at a route that is there.
                of_model = re.search(rf"(?<!\w){re.escape(self.model)}(?!\w)", str(error))
                no_route = isinstance(error, Refused) and error.status in (404, 405) and not of_model
                hint = hint_of(self.url) if no_scores or no_route else ""
                if no_route and not hint and not prompt.messages:
                    hint = " (a server that only chats needs --chat)"
                raise placed(error, f"{self.model} at {self.url}, {place}: {error}{hint}") from None
            self.answered = prompt
            return scored

        return ask

    @staticmethod
    def runs(prompts: Sequence[Prompt], at_once: int) -> list[list[int]]:
        """Indices of prompts to ask one after the other, so that a prefix cache serves them best.

        A run holds the prompts of a group, sorted by their text: each finds in the cache what it shares with the one
        before. Groups are sorted too, since those of one subject share its worked examples. A group is cut if there are
        fewer groups than requests at a time.
        """
        texts = [prompt.as_text() for prompt in prompts]
        groups = [sorted(group, key=texts.__getitem__) for group in by_question(prompts, range(len(prompts)))]
        pieces = -(-at_once // max(len(groups), 1))
        result = []
        for members in sorted(groups, key=lambda members: texts[members[0]]):
            size = -(-len(members) // pieces)
            result += [members[start : start + size] for start in range(0, len(members), size)]
        return result

    @cached_property
    def _scores(self) -> LabelScorer:
        most = self._max_completion_tokens
        return LabelScorer(self.server, self.model, self._known(), self.cost, self.top, self._extra, most)


def _entry(listed: Any, model: str) -> Any:
    """The entries of a model in a list of models, or all if it is not listed, without what changes by itself."""
    entries = entries_in(listed)
    entries = [entry for entry in entries if entry.get("id") == model] or entries
    return [{key: value for key, value in entry.items() if key not in _PASSING} for entry in entries]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... sha256 {hashlib.sha256(text.encode()).hexdigest()}"


load_served = ServedModel.load
