"""A served model: an OpenAI-compatible server that returns log-probabilities of first tokens, as a scoring model.

:mod:`unslant.models.label_scores` describes how labels are scored. The key is sent in the request's header and kept
nowhere else. A server is asked who it is, for its address says little about the weights behind it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Unpack
from urllib.parse import urlsplit

import httpx
import numpy as np

from unslant.errors import ModelError, one_of
from unslant.models.base import NOBODY, Scored
from unslant.models.concurrent import Limit
from unslant.models.first_token import Bounds, NoScores
from unslant.models.http import Connection, Malformed, Refused, Unusable, hint_of, is_lost
from unslant.models.http_model import HttpModel, connection_of, joined
from unslant.models.label_scores import LENGTHS, LabelScores
from unslant.models.options import ModelOptions
from unslant.models.server_kinds import KINDS, Kind, known_by, known_from
from unslant.prompts.prompt import Prompt

LOOK = 5.0
"""Seconds to look what a server has below its root."""
LOOKS = 1
"""Retries of what only says who the server is, but for the first chat; some servers answer 500 for good."""
_HELLO = "/completions", {"prompt": "1 + 1 =", "max_tokens": 1}
_HELLO_CHAT = "/chat/completions", {"messages": [{"role": "user", "content": "1 + 1 ="}]}
_PROPS = ("model_path", "model_alias", "build_info", "chat_template", "bos_token", "eos_token", "modalities")
_PASSING = frozenset({"created", "permission", "status", "last_used", "expires_at"})
_SHOWN = 300


class ServedModel(HttpModel):
    """A model behind an OpenAI-compatible server, as a scoring model.

    Args:
        model: name the server knows it by.
        base_url: such as ``http://127.0.0.1:8080/v1``.
        server: one of :data:`~unslant.models.server_kinds.KINDS`; by default the server is asked.
        top: most probable tokens to ask for; by default :data:`TOPS` and :data:`MORE`.
        max_completion_tokens: sent in a chat in place of ``max_tokens`` 1.
        connection: see :class:`~unslant.models.http_model.HttpModel`.
    """

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
        self.top = top
        self._kind = KINDS.get(server)
        self._scores: LabelScores | None = None
        self._gave_scores = False
        self._max_completion_tokens = max_completion_tokens
        self._slots = 0  # not asked yet

    @property
    def _address(self) -> Mapping[str, str]:
        return {"top_logprobs": str(self.top or "auto"), "engine": "served"}

    @property
    def _facts(self) -> Mapping[str, object]:
        return {"server": self._kind.name} if self._kind else {}

    def ask_who(self) -> dict[str, str]:
        """What the server says of itself: its list of models, llama.cpp's properties, the name that its replies give.

        What it does not say is left out; so is the fingerprint of its system, since it may have several (see
        :mod:`unslant.models.answered`). Plain completions are asked for only where no chat gave a reply: after a route
        that its backend does not have, a proxy such as LiteLLM refuses every request to that backend for seconds.

        Raises:
            ModelError: if it cannot be reached, does not accept the key, or serves another model than the one named.
        """
        try:
            route, body = _HELLO_CHAT
            chats = [(route, {**body, name: self._max_completion_tokens or 1}) for name in LENGTHS]
            models, props, reply = self._all_replies([("/models", None), ("//props", None), chats[0]])
            for other in (*chats[1:], _HELLO):
                if not isinstance(reply, Mapping):
                    (reply,) = self._all_replies([other])
        except ModelError as error:
            raise (Unusable if is_lost(error) else ModelError)(
                f"{self.model} at {self.server.base_url} does not say who it is: {error}; scores that are stored are "
                "used without asking with --offline"
            ) from None
        self._check_name(models)
        names = {str(reply.get("model") or "") if isinstance(reply, Mapping) else ""} - {"", self.model}
        facts = {
            "models": _entry(models, self.model),
            "props": {key: props[key] for key in _PROPS if key in props} if isinstance(props, Mapping) else {},
            "answered_as": sorted(names),
        }
        return {name: _short(value) for name, value in facts.items() if value}

    def _all_replies(self, asked: Sequence[tuple[str, Mapping[str, Any] | None]]) -> list[Any]:
        found = dict(self.server.all(asked, self._reply))
        return [found[i] for i in range(len(asked))]

    def _check_name(self, listed: Any) -> None:
        """Refuse a name that the server does not list, where it would answer under any name.

        Raises:
            ModelError: with the names it has.
        """
        entries = _entries(listed)
        names = [str(name) for entry in entries for name in (entry.get("id"), *(entry.get("aliases") or ()))]
        kind = known_from("", {str(entry.get("owned_by")) for entry in entries})
        files = {name.replace("\\", "/").rpartition("/")[2] for name in names}  # llama.cpp may list the file's path
        if kind and kind.any_name and self.model not in {*names, *files, *(f.removesuffix(".gguf") for f in files)}:
            raise ModelError(
                f"{self.model} at {self.url}: no such model, although the server answers to any name; "
                f"{one_of(self.model, dict.fromkeys(names))}"
            )

    async def _reply(self, client: httpx.AsyncClient, asked: tuple[str, Mapping[str, Any] | None]) -> Any:
        route, body = asked
        if route.startswith("//"):  # which only some servers have; anything else there says nothing
            with suppress(ModelError, TimeoutError):
                async with asyncio.timeout(LOOK):
                    return await self.server.send(client, route, retries=LOOKS)
            return None
        try:
            first = body is not None and body.keys() >= {"messages", LENGTHS[0]}
            body = body and {"model": self.model, **body, **self._extra}
            return await self.server.send(client, route, body, retries=None if first else LOOKS)
        except Malformed:
            return None  # which says nothing of who it is
        except Refused as refused:
            if refused.status in (401, 403, 429):
                raise
            return None  # a server without this route

    def _known(self) -> Kind:
        """What kind of server it is; it is asked once."""
        if self._kind is None:
            host = urlsplit(self.server.base_url).hostname or ""
            self._kind = known_from(host, set())
        if self._kind is None:
            (models,) = self._all_replies([("/models", None)])
            self._check_name(models)
            owners = {str(entry.get("owned_by")) for entry in _entry(models, self.model)}
            self._kind = known_from(host, owners)
        if self._kind is None:
            routes = [kind.route for kind in KINDS.values() if kind.route]
            answers = self._all_replies([(route, None) for route in routes])
            self._kind = known_by(dict(zip(routes, answers, strict=True)))
        return self._kind

    def _limit_to_slots(self) -> None:
        """Ask no more at once than the server has caches: one that is asked more drops a cache for each of them."""
        if (kind := self._known()).slots and not self._slots:
            (about,) = self._all_replies([(kind.route, None)])
            found = about.get(kind.slots) if isinstance(about, Mapping) else None
            self._slots = found if isinstance(found, int) and found > 0 else self.server.limit.most
            self.server.limit = Limit(min(self.server.limit.most, self._slots))

    def bounds(self, prompts: Sequence[Prompt]) -> Iterator[tuple[int, Bounds]]:
        """Index of each prompt and what is known of its continuations, as replies come in.

        Raises:
            ModelError: see :meth:`score`; also if a reply's numbers are no log-probabilities.
        """
        for index, found in self.answers(prompts):
            if not isinstance(found, Bounds):
                raise ModelError(found)
            yield index, found

    def read(self, index: int, answer: Bounds | str) -> Scored:
        """A continuation outside the returned tokens gets the upper end of its interval.

        These are marked in :attr:`Scored.bounds`. Use :meth:`bounds` to have the intervals themselves. A reply whose
        numbers are no log-probabilities gives an error in place of scores.
        """
        if isinstance(answer, str):
            return Scored(index, None, answer)
        bounds = tuple(np.flatnonzero(~answer.exact).tolist())
        return Scored(index, np.minimum(answer.high, 0.0), bounds=bounds, by=answer.by)

    def asker(self, prompts: Sequence[Prompt]) -> Callable[[httpx.AsyncClient, Prompt], Awaitable[Bounds | str]]:
        """See :class:`~unslant.models.http_model.HttpModel`.

        Raises:
            ModelError: if no log-probabilities come back, labels are indistinguishable, or the model is about to think.
        """
        try:
            scores = self._label_scores()
            self._limit_to_slots()
        except ModelError as error:
            named = str(error).startswith(f"{self.model} at ")
            raise ModelError(str(error) if named else f"{self.model} at {self.url}: {error}") from None
        scores.check(prompts)

        async def ask(client: httpx.AsyncClient, prompt: Prompt) -> Bounds | str:
            place = f"question {prompt.group!r}" if prompt.group else "a prompt"
            try:
                found = await scores.scored(client, prompt)
            except Malformed as error:
                return f"{place}: {error}"
            except NoScores as error:
                if self._gave_scores:  # that it gives none can be said of its first reply only
                    return f"{place}: {error}"
                raise ModelError(f"{self.model} at {self.url}, {place}: {error}{hint_of(self.url)}") from None
            except ModelError as error:
                kind = Unusable if is_lost(error) else ModelError
                hint = hint_of(self.url) if isinstance(error, Refused) and error.status in (404, 405) else ""
                raise kind(f"{self.model} at {self.url}, {place}: {error}{hint}") from None
            finally:
                by = scores.answered_by.pop(prompt, NOBODY)
            self._gave_scores = True
            return replace(found, by=by)

        return ask

    def runs(self, prompts: Sequence[Prompt], at_once: int) -> list[list[int]]:
        """The prompts of a group, in the order of the tree of their beginnings, and so the groups.

        So each finds in the server's prefix cache what it shares with the one before; several groups at a time.
        """
        return runs(prompts, at_once)

    def _label_scores(self) -> LabelScores:
        if self._scores is None:
            self._scores = LabelScores(
                self.server,
                self.model,
                self._known(),
                self.cost,
                top=self.top,
                extra_body=self._extra,
                max_completion_tokens=self._max_completion_tokens,
            )
        return self._scores


def runs(prompts: Sequence[Prompt], at_once: int) -> list[list[int]]:
    """Indices of prompts that are to be asked one after the other, so that a prefix cache serves them best.

    The prompts of a group, sorted by their text, which is the order of a walk through the tree of their beginnings. The
    groups are sorted likewise, since those of one subject share its worked examples. A group is cut where there are
    fewer groups than may be asked at once.
    """
    texts = [prompt.as_text() for prompt in prompts]
    groups: dict[str | int, list[int]] = {}
    for i, prompt in enumerate(prompts):
        groups.setdefault(prompt.group or i, []).append(i)
    pieces = -(-at_once // max(len(groups), 1))
    found = []
    for own in groups.values():
        own.sort(key=texts.__getitem__)
    for own in sorted(groups.values(), key=lambda own: texts[own[0]]):
        size = -(-len(own) // pieces)
        found += [own[start : start + size] for start in range(0, len(own), size)]
    return found


def _entries(listed: Any) -> list[Mapping[str, Any]]:
    """The models of a list of models."""
    entries = listed.get("data") if isinstance(listed, Mapping) else None
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list) else []


def _entry(listed: Any, model: str) -> Any:
    """What a list of models says of one of them, or of all where it is not there, but for what changes by itself."""
    entries = _entries(listed)
    found = [entry for entry in entries if entry.get("id") == model] or entries
    return [{key: value for key, value in entry.items() if key not in _PASSING} for entry in found]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... sha256 {hashlib.sha256(text.encode()).hexdigest()}"


def load_served(name: str, options: ModelOptions) -> ServedModel:
    """A model behind one server or several, with the key that the environment has; see :mod:`unslant.models.open`."""
    return joined(
        [
            ServedModel(
                name,
                url,
                server=options.server,
                top=options.top,
                max_completion_tokens=options.max_completion_tokens,
                extra_body=options.body(),
                **connection_of(options),
            )
            for url in options.addresses
        ]
    )
