"""Label scores from a server's replies, in the most exact way that the server has.

1. By their token ids, where it takes ``logprob_token_ids`` (vLLM) or has ``/v1/score`` (SGLang, plain prompts).
2. As some of the most probable first tokens: as many as the labels need and the server gives (llama.cpp any number,
   OpenAI 20 in a chat and 5 elsewhere). A label outside these is only known to lie below: no unseen token is more
   probable than the least probable one returned, nor than what the returned ones leave. Its score is an interval
   (:class:`~unslant.models.first_token.Bounds`).
3. Labels of several tokens: as the end of a prompt that is echoed with its log-probabilities (vLLM, SGLang).

What a server gives is found out from its answers: some accept ``logprobs``, ignore it and answer 200. Of the kinds of
servers, llama.cpp was run; the others are taken from their documentation and source (``docs/served-models.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import httpx
import numpy as np

from unslant.errors import ModelError
from unslant.models.answered import named_in
from unslant.models.base import Cost
from unslant.models.first_token import (
    BY_ID,
    Bounds,
    choice_of,
    echoed,
    label_bounds,
    number,
    prompt_tokens,
    refuse_thoughts,
    top_logprobs,
)
from unslant.models.http import Endpoint, Malformed, Refused
from unslant.models.server_kinds import Kind
from unslant.prompts.prompt import Prompt

TOPS = (100, 20, 5)
"""Most probable tokens asked for, unless a number is given: the first that the server does not refuse."""
MORE = (1_000, 10_000)
"""... and then, where a label is not among them and the server gave as many as were asked for."""
_TOLERANCE = 1e-3
LENGTHS = ("max_tokens", "max_completion_tokens")
"""Names for how long a reply may be: the usual one, and that of servers which refuse it in chats."""
_WRONG_REQUEST = (400, 422)
_TAIL = 16  # characters of a prompt's end, which decide about the tokens of a label behind it
MOST_IDS = 128
"""Token ids that vLLM takes in ``logprob_token_ids``."""


class LabelScores:
    """Scores labels by asking a server, and remembers what it has found out about it.

    ``answered_by`` holds whom the last reply to a prompt named, until that is taken out.

    Args:
        model: name the server knows the model by.
        kind: of the server.
        cost: where tokens are counted.
        top, extra_body, max_completion_tokens: see :class:`unslant.models.served.ServedModel`.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        kind: Kind,
        cost: Cost,
        *,
        top: int | None,
        extra_body: Mapping[str, Any],
        max_completion_tokens: int | None,
    ) -> None:
        self.endpoint, self.model, self.kind, self.top, self._extra = endpoint, model, kind, top, extra_body
        self._cost = cost
        self._tops: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
        self._ids: dict[tuple[str, str], tuple[int, ...] | None] = {}
        self._by_id = self._scores = self._echoes = True
        self.answered_by: dict[Prompt, tuple[str, str]] = {}
        self._one_token = {"max_completion_tokens": max_completion_tokens} if max_completion_tokens else {}

    def check(self, prompts: Sequence[Prompt]) -> None:
        """Refuse what no reply of this server could answer, before anything is asked.

        Raises:
            ModelError: on a label that is to be scored with its end, a reply that has begun, a plain prompt that the
                server would put into a chat, or labels of which one begins another.
        """
        for prompt in dict.fromkeys(
            Prompt(p.text and "...", p.continuations, p.messages[:1], "", p.to_end) for p in prompts
        ):
            if prompt.to_end:
                raise ModelError("a server gives the probability of one token, so not that of a label with its end")
            if prompt.messages and prompt.text:
                raise ModelError("a served chat cannot be continued in the middle of the assistant's turn")
            if self.kind.only_chat and not prompt.messages:
                raise ModelError(self.kind.only_chat)
            if not self.kind.tokenize:
                _check_beginnings(prompt.continuations)

    async def scored(self, client: httpx.AsyncClient, prompt: Prompt) -> Bounds:
        """What is known of the log-probabilities of a prompt's continuations.

        Raises:
            ModelError: if a request fails for good, no log-probabilities come back, labels look alike, or the model
                is about to think.
        """
        kind = self.kind
        ids = [await self._label_ids(client, prompt, label) for label in prompt.continuations] if kind.tokenize else []
        known = [own for own in ids if own]
        if len(known) < len(prompt.continuations):
            _check_beginnings(prompt.continuations)
        elif begun := next((pair for pair in pairwise(sorted(known)) if pair[1][: len(pair[0])] == pair[0]), None):
            _refuse_beginning(*(prompt.continuations[known.index(own)] for own in begun))
        if (long := next((i for i, own in enumerate(ids) if own and len(own) > 1), None)) is not None:
            if bounds := await self._by_echo(client, prompt):
                return bounds
            raise ModelError(
                f"label {prompt.continuations[long]!r} is {len(ids[long] or ())} tokens to this model, and the server "
                "gives the probability of one token only; use --labels=A"
            )
        whole = len(known) == len(prompt.continuations) and not self.top
        if kind.score_route and self._scores and whole and not prompt.messages:
            bounds = await self._by_score_route(client, prompt, [own[0] for own in known])
            if bounds is not None:
                return bounds
        if whole and len(known) <= MOST_IDS and kind.by_id and self._by_id:
            single = [own[0] for own in known]
            asked = {"logprob_token_ids": single, "return_tokens_as_token_ids": True}
            found = self._read(
                await self._reply(client, prompt, len(single), asked), [f"{BY_ID}{own}" for own in single]
            )
            values = np.array([found.get(f"{BY_ID}{own}", np.nan) for own in single])
            if np.isfinite(values).all():
                return Bounds(values, values)
            self._by_id = False  # an older server, which ignores what it does not know
        bounds = await self._by_rank(client, prompt)
        if not kind.tokenize and self._echoes and any(len(label.strip()) > 1 for label in prompt.continuations):
            return bounds if bounds.exact.all() else await self._by_echo(client, prompt) or bounds
        return bounds

    async def _by_score_route(self, client: httpx.AsyncClient, prompt: Prompt, ids: Sequence[int]) -> Bounds | None:
        """From ``/v1/score``, which gives probabilities over the whole vocabulary unless it is asked to normalise them;
        None where an older server has no such route, or a probability is so small that it comes as 0."""
        body = {"model": self.model, "query": prompt.text, "items": [""], "label_token_ids": list(ids)}
        try:
            reply = await self.endpoint.send(
                client, "/score", {**body, "apply_softmax": False, "item_first": False, **self._extra}, timed=True
            )
        except Refused as refused:
            if refused.status not in (*_WRONG_REQUEST, 404, 405):
                raise
            self._scores = False
            return None
        scores: Any = reply.get("scores") if isinstance(reply, Mapping) else None
        try:
            (found,) = scores
            values = np.array([number(one) for one in found])
        except (TypeError, ValueError, OverflowError) as error:
            raise Malformed(f"the scores are not in a known shape ({error})") from None
        if len(values) != len(ids) or not ((values >= 0) & (values <= 1)).all() or values.sum() > 1 + _TOLERANCE:
            raise Malformed(f"the scores are not one probability for each of {len(ids)} labels: {values.tolist()}")
        self.answered_by[prompt] = named_in(reply)
        self._count(reply)
        if not values.all():
            return None
        return Bounds(np.log(values), np.log(values))

    async def _by_rank(self, client: httpx.AsyncClient, prompt: Prompt) -> Bounds:
        """From the most probable tokens: as many as the server gives and the labels need."""
        route = _route(prompt)
        sizes, more = self._tops.get(route, ((self.top,), ()) if self.top else (TOPS, MORE))
        for size in sizes:
            try:
                reply = await self._reply(client, prompt, size)
            except Refused as refused:
                if refused.status not in _WRONG_REQUEST or size == sizes[-1]:
                    raise
                more = ()
            else:
                break
        found = self._read(reply, prompt.continuations)
        bounds, self._tops[route] = label_bounds(found, prompt.continuations), ((size,), more)
        for larger in more:
            if bounds.exact.all() or len(found) < size // 2:  # texts of tokens may coincide
                break
            try:
                reply = await self._reply(client, prompt, larger, timed=False)
            except Refused as refused:
                if refused.status not in _WRONG_REQUEST:
                    raise
                self._tops[route] = self._tops[route][0], more[: more.index(larger)]
                break
            found, size = top_logprobs(reply, prompt.continuations, self._tokens_asked), larger
            bounds = label_bounds(found, prompt.continuations)
        return bounds

    async def _by_echo(self, client: httpx.AsyncClient, prompt: Prompt) -> Bounds | None:
        """From the log-probabilities of the labels' own tokens at the end of the prompt; None if it gives none."""
        if not self.kind.echo or not self._echoes or prompt.messages:
            return None
        values: list[float] = []
        for label in prompt.continuations:
            try:
                reply = await self._reply(client, prompt, 1, {"prompt": prompt.text + label, "echo": True})
            except Refused as refused:
                if refused.status not in _WRONG_REQUEST:
                    raise
                reply = None
            value = None if reply is None else echoed(reply, label)
            if value is None:
                self._echoes = False
                return None
            self._count(reply)
            values.append(value)
        return Bounds(np.array(values), np.array(values))

    async def _reply(
        self,
        client: httpx.AsyncClient,
        prompt: Prompt,
        top: int,
        more: Mapping[str, Any] | None = None,
        timed: bool = True,
    ) -> Any:
        """The reply to one prompt: its first token, with the most probable ones."""
        route = _route(prompt)
        body: dict[str, Any] = {"model": self.model, "max_tokens": 1, "temperature": 0}
        if prompt.messages:
            messages = [{"role": message.role, "content": message.content} for message in prompt.messages]
            body |= {"messages": messages, "logprobs": True, "top_logprobs": top}
            if self._one_token:
                body = {**body, **self._one_token}
                del body["max_tokens"]
        else:
            body |= {"prompt": prompt.text, "logprobs": top}
        try:
            reply = await self.endpoint.send(client, route, {**body, **(more or {}), **self._extra}, timed=timed)
        except Refused as refused:
            if not prompt.messages or self._one_token or "max_completion_tokens" not in str(refused):
                raise
            self._one_token = {"max_completion_tokens": 1}
            return await self._reply(client, prompt, top, more, timed)
        if self.kind.in_ascii and not more and _begins_with_half_a_character(reply):
            return await self._reply(client, prompt, top, self.kind.in_ascii, timed)
        if isinstance(reply, Mapping):
            self.answered_by[prompt] = named_in(reply)
        return reply

    @property
    def _tokens_asked(self) -> int:
        return max(1, *(int(self._extra.get(key) or 1) for key in LENGTHS), *self._one_token.values())

    def _read(self, reply: Any, labels: Sequence[str]) -> dict[str, float]:
        """The first token's log-probabilities, and what else the reply says.

        Raises:
            ModelError: if there are none, or the model is about to think.
        """
        found = top_logprobs(reply, labels, self._tokens_asked)
        refuse_thoughts(choice_of(reply), max(found, key=found.__getitem__))
        self._count(reply)
        return found

    def _count(self, reply: Any) -> None:
        if (counts := prompt_tokens(reply)) is not None:
            self._cost.tokens_plain += counts[0]
            self._cost.tokens += counts[0] - counts[1]

    async def _label_ids(self, client: httpx.AsyncClient, prompt: Prompt, label: str) -> tuple[int, ...] | None:
        """Token ids of a label behind the end of a prompt; None if the server does not tell, or they merge with it."""
        tail = prompt.text[-_TAIL:] or "\n"  # which ends what a chat template writes before a reply
        if (tail, label) not in self._ids:
            before, whole = [await self._tokens(client, text) for text in (tail, tail + label)]
            apart = before and whole and len(whole) > len(before) and whole[: len(before)] == before
            self._ids[tail, label] = tuple(whole[len(before) :]) if before and whole and apart else None
        return self._ids[tail, label]

    async def _tokens(self, client: httpx.AsyncClient, text: str) -> list[int] | None:
        tokenize = self.kind.tokenize
        try:
            return (
                ids_in(await self.endpoint.send(client, "//tokenize", tokenize(text, self.model))) if tokenize else None
            )
        except Refused:
            return None


def _begins_with_half_a_character(reply: Any) -> bool:
    choice = choice_of(reply)
    said = choice.get("text") or dict(choice.get("message") or {}).get("content")
    return not choice.get("logprobs") and "\N{REPLACEMENT CHARACTER}" in str(said)


def _route(prompt: Prompt) -> str:
    return "/chat/completions" if prompt.messages else "/completions"


def _check_beginnings(labels: Sequence[str]) -> None:
    """Refuse labels of which one's text begins another's: the longer one may be more than one token."""
    for short, long in pairwise(sorted(label.strip() for label in labels)):
        if long.startswith(short):
            _refuse_beginning(short, long)


def _refuse_beginning(short: str, long: str) -> None:
    raise ModelError(
        f"labels {short!r} and {long!r}: a server gives the probability of the first token only, which may be that of "
        f"{short!r} for both; use --labels=A"
    )


def ids_in(reply: Any) -> list[int] | None:
    """Token ids in the reply to /tokenize; None where there are none."""
    listed = reply.get("tokens") if isinstance(reply, Mapping) else reply
    if not isinstance(listed, list):
        return None
    ids = [entry.get("id") if isinstance(entry, Mapping) else entry for entry in listed]
    found = [one for one in ids if isinstance(one, int)]
    return found if len(found) == len(ids) else None
