"""Label scores from a server's replies, in the most exact way that the server offers.

1. By token ids, if it takes ``logprob_token_ids`` (vLLM) or has ``/v1/score`` (SGLang, plain prompts).
2. As some of the most probable first tokens: as many as the labels need and the server gives (llama.cpp any number,
   OpenAI 20 in a chat and 5 elsewhere). A label outside these only has an upper bound: no unseen token is more probable
   than the least probable one returned, nor than what the returned ones leave.
3. Labels of several tokens: as the end of a prompt that is echoed with its log-probabilities (vLLM, SGLang).

What a server offers shows only in its answers: some accept ``logprobs``, ignore it and answer 200. Of the kinds of
servers, llama.cpp was run; the others follow their documentation and source (``docs/served-models.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import httpx
import numpy as np

from unslant.errors import ModelError
from unslant.models import first_token
from unslant.models.answered import named_in
from unslant.models.base import Cost, Malformed, Scored
from unslant.models.first_token import LENGTHS, TOLERANCE, Refusals, choice_of, scores_in, top_logprobs
from unslant.models.http import Endpoint, Refused
from unslant.prompts import Prompt

TOPS = (100, 20, 5)
"""Most probable tokens to ask for by default: the first number that the server does not refuse."""
MORE = (1_000, 10_000)
"""Then these, if a label is missing although the server gave as many tokens as were asked for."""
_WRONG_REQUEST = (400, 422)
_TOO_MANY = (*_WRONG_REQUEST, 500)
"""HTTP statuses of requests for more tokens than a server gives."""
_TAIL = 16  # characters of a prompt's end, which decide how a label after it is tokenized
MOST_IDS = 128
"""Token ids that vLLM takes in ``logprob_token_ids``."""


@dataclass(frozen=True)
class ServerKind:
    """One kind of server.

    Attributes:
        owner: ``owned_by`` in its list of models; empty if that does not identify it.
        route: a GET that only this kind answers, below its root.
        sign: a key in that answer.
        tokenize: builds the body of its POST /tokenize from a text and a model's name; None if it has no such route.
        by_id: whether it takes ``logprob_token_ids``.
        score_route: whether its ``/v1/score`` gives the probability of each of some token ids after a prompt.
        echo: whether its completions can echo the prompt with log-probabilities.
        only_chat: why a plain prompt cannot be scored; empty if it can.
        in_ascii: entries of a request that make the reply begin with a whole character, since half of one comes without
            log-probabilities; they leave the model's log-probabilities as they are.
        any_name: whether it has one model and answers to any name.
        slots: the key, in the answer at ``route``, of the number of prompts that it keeps in its cache; empty if
            prompts share one cache.
    """

    name: str
    owner: str = ""
    route: str = ""
    sign: str = ""
    tokenize: Callable[[str, str], dict[str, Any]] | None = None
    by_id: bool = False
    score_route: bool = False
    echo: bool = False
    only_chat: str = ""
    in_ascii: Mapping[str, Any] | None = None
    any_name: bool = False
    slots: str = ""


def _prompt(text: str, model: str) -> dict[str, Any]:
    return {"model": model, "prompt": text, "add_special_tokens": False}


KINDS: Mapping[str, ServerKind] = {
    kind.name: kind
    for kind in (
        ServerKind("vllm", "vllm", "//version", "version", _prompt, by_id=True, echo=True),
        ServerKind(
            "sglang", "sglang", "//get_model_info", "model_path", _prompt, score_route=True, echo=True, any_name=True
        ),
        ServerKind(
            "llama.cpp",
            "llamacpp",
            "//props",
            "default_generation_settings",
            lambda text, _: {"content": text, "add_special": False},
            in_ascii={"grammar": "root ::= [ -~]+"},
            any_name=True,
            slots="total_slots",
        ),
        ServerKind(
            "ollama",
            route="//api/version",
            sign="version",
            only_chat="Ollama puts a plain prompt into the model's chat template: use --chat=True",
        ),
        ServerKind("openai", echo=True),
        ServerKind(
            "tgi",
            route="//info",
            sign="docker_label",
            tokenize=lambda text, _: {"inputs": text, "add_special_tokens": False},
            only_chat="TGI's completions return no top log-probabilities: use --chat=True",
        ),
        ServerKind("unknown", echo=True),
    )
}
"""Name -> kind. The last one is every other server."""


def known_from(entries: Sequence[Mapping[str, Any]]) -> ServerKind | None:
    """The kind of server by its list of models; None if that does not identify it."""
    owners = {str(entry.get("owned_by")) for entry in entries}
    return next((kind for kind in KINDS.values() if kind.owner and kind.owner in owners), None)


def known_by(answers: Mapping[str, Any]) -> ServerKind:
    """The kind of server by its answers (route -> answer) at routes that only one kind has."""
    answered = ((kind, answers.get(kind.route)) for kind in KINDS.values() if kind.route)
    return next(
        (kind for kind, answer in answered if isinstance(answer, Mapping) and kind.sign in answer), KINDS["unknown"]
    )


@dataclass
class LabelScorer:
    """Scores labels by asking a server, and remembers what it has learned about it.

    Attributes:
        model: the server's name for the model.
        cost: where tokens are counted.
        top, extra_body: see :class:`unslant.models.served.ServedModel`.
        most: ``max_completion_tokens`` of a chat, where it is sent instead of ``max_tokens`` 1.
        refusals: what the server does not take.
    """

    endpoint: Endpoint
    model: str
    kind: ServerKind
    cost: Cost
    top: int | None
    extra_body: Mapping[str, Any]
    most: int | None
    refusals: Refusals = field(default_factory=Refusals)
    _tops: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)
    _ids: dict[tuple[str, str], tuple[int, ...] | None] = field(default_factory=dict)
    _worked: set[str] = field(default_factory=set)
    """Ways that have given a score: a later refusal is about one prompt."""
    _by_id = _scores = _echoes = True

    def check(self, prompts: Sequence[Prompt]) -> None:
        """Before anything is asked, refuse prompts that no reply of this server can answer (ModelError)."""
        for prompt in dict.fromkeys(
            Prompt(p.text and "...", p.continuations, p.messages[:1], "", p.to_end) for p in prompts
        ):
            if prompt.to_end:
                raise ModelError("a server gives the probability of one token only, not of a label with its end")
            if prompt.messages and prompt.text:
                raise ModelError("a served chat cannot be continued in the middle of the assistant's turn")
            if self.kind.only_chat and not prompt.messages:
                raise ModelError(self.kind.only_chat)
            if not self.kind.tokenize:
                _check_beginnings(prompt.continuations)

    async def scored_at(self, client: httpx.AsyncClient, endpoint: Endpoint, prompt: Prompt) -> Scored:
        """:meth:`scored`, but asked at another endpoint of the server; its tokens are counted too."""
        other = copy(self)
        other.endpoint = endpoint
        return await other.scored(client, prompt)

    async def scored(self, client: httpx.AsyncClient, prompt: Prompt) -> Scored:
        """The scores of a prompt's continuations, some perhaps upper bounds.

        Raises:
            ModelError: if a request fails for good, the server gives none, labels look alike, or the model is thinking.
        """
        kind = self.kind
        ids = [await self._label_ids(client, prompt, label) for label in prompt.continuations] if kind.tokenize else []
        label_ids = [tokens for tokens in ids if tokens]
        if len(label_ids) < len(prompt.continuations):
            _check_beginnings(prompt.continuations)
        elif pair := next((pair for pair in pairwise(sorted(label_ids)) if pair[1][: len(pair[0])] == pair[0]), None):
            _refuse_beginning(*(prompt.continuations[label_ids.index(tokens)] for tokens in pair))
        if (long := next((i for i, tokens in enumerate(ids) if tokens and len(tokens) > 1), None)) is not None:
            if scored := await self._by_echo(client, prompt):
                return scored
            raise ModelError(
                f"label {prompt.continuations[long]!r} is {len(ids[long] or ())} tokens to this model, and the server "
                "gives the probability of one token only; use --labels=A"
            )
        single = [tokens[0] for tokens in label_ids]
        whole = len(single) == len(prompt.continuations) and not self.top
        if kind.score_route and self._scores and whole and not prompt.messages:
            scored = await self._by_score_route(client, prompt, single)
            if scored is not None:
                return scored
        if whole and len(single) <= MOST_IDS and kind.by_id and self._by_id:
            options = {"logprob_token_ids": single, "return_tokens_as_token_ids": True}
            names = [f"{first_token.BY_ID}{token}" for token in single]
            reply = await self._reply(client, prompt, len(single), options)
            scored = scores_in(self._read(reply, names), names)
            if not scored.bounds:
                return replace(scored, by=named_in(reply))
            self._by_id = False  # an older server, which ignores entries that it does not know
        scored = await self._by_rank(client, prompt)
        if not kind.tokenize and self._echoes and any(len(label.strip()) > 1 for label in prompt.continuations):
            return await self._by_echo(client, prompt) or scored if scored.bounds else scored
        return scored

    async def _by_score_route(self, client: httpx.AsyncClient, prompt: Prompt, ids: Sequence[int]) -> Scored | None:
        """From ``/v1/score``, which gives probabilities over the whole vocabulary unless it is asked to normalise them;
        None if an older server has no such route, or a probability is so small that it comes as 0."""
        body = {"model": self.model, "query": prompt.text, "items": [""], "label_token_ids": list(ids)}
        try:
            reply = await self.endpoint.send(
                client, "/score", {**body, "apply_softmax": False, "item_first": False, **self.extra_body}, timed=True
            )
        except Refused as refused:
            if "scores" in self._worked or refused.status not in (*_WRONG_REQUEST, 404, 405):
                raise
            self._scores = False
            return None
        self._worked.add("scores")
        scores: Any = reply.get("scores") if isinstance(reply, Mapping) else None
        try:
            (row,) = scores
            values = np.array([first_token.number(one) for one in row])
        except (TypeError, ValueError, OverflowError) as error:
            raise Malformed(f"the scores are not in a known shape ({error})") from None
        if len(values) != len(ids) or not ((values >= 0) & (values <= 1)).all() or values.sum() > 1 + TOLERANCE:
            raise Malformed(f"the scores are not one probability for each of {len(ids)} labels: {values.tolist()}")
        self._count(reply)
        return Scored(0, np.minimum(np.log(values), 0.0), by=named_in(reply)) if values.all() else None

    async def _by_rank(self, client: httpx.AsyncClient, prompt: Prompt) -> Scored:
        """From the most probable tokens: as many as the server gives and the labels need."""
        route = "/chat/completions" if prompt.messages else "/completions"
        sizes, more = self._tops.get(route, ((self.top,), ()) if self.top else (TOPS, MORE))
        failure: Refused | None = None  # a server may answer 500 to too many tokens, or to everything
        for size in sizes:
            try:
                reply = await self._reply(client, prompt, size, retries=0 if failure else None)
                break
            except Refused as refused:
                if refused.status not in _TOO_MANY or size == sizes[-1]:
                    raise failure or refused from None
                more, failure = (), failure or (refused if refused.status == 500 else None)
        top = self._read(reply, prompt.continuations)
        scored, self._tops[route] = scores_in(top, prompt.continuations), ((size,), more)
        for larger in more:
            # A server that gave fewer has no more. Half is enough, since texts of different tokens may coincide.
            if not scored.bounds or len(top) < size // 2:
                break
            try:
                reply = await self._reply(client, prompt, larger, timed=False)
            except Refused as refused:
                if refused.status not in _TOO_MANY:
                    raise
                self._tops[route] = self._tops[route][0], more[: more.index(larger)]
                break
            top, size = top_logprobs(reply, prompt.continuations, self._most_tokens), larger
            scored = scores_in(top, prompt.continuations)
        return replace(scored, by=named_in(reply))

    async def _by_echo(self, client: httpx.AsyncClient, prompt: Prompt) -> Scored | None:
        """From the log-probabilities of the labels' tokens at the end of an echoed prompt; None if there are none."""
        if not self.kind.echo or not self._echoes or prompt.messages:
            return None
        values: list[float] = []
        for label in prompt.continuations:
            try:
                reply = await self._reply(client, prompt, 1, {"prompt": prompt.text + label, "echo": True})
            except Refused as refused:
                if "echo" in self._worked or refused.status not in _WRONG_REQUEST:
                    raise
                reply = None
            value = None if reply is None else first_token.echoed(reply, label)
            if value is None:
                self._echoes = False
                return None
            self._worked.add("echo")
            self._count(reply)
            values.append(value)
        return Scored(0, np.minimum(values, 0.0), by=named_in(reply))

    async def _reply(
        self,
        client: httpx.AsyncClient,
        prompt: Prompt,
        top: int,
        more: Mapping[str, Any] | None = None,
        timed: bool = True,
        retries: int | None = None,
    ) -> Any:
        """The reply to one prompt: its first token, and the most probable tokens there."""
        route = "/chat/completions" if prompt.messages else "/completions"
        body: dict[str, Any] = {"model": self.model, "max_tokens": 1, "temperature": 0}
        if prompt.messages:
            messages = [asdict(message) for message in prompt.messages]
            body |= {"messages": messages, "logprobs": True, "top_logprobs": top}
            if self.most:
                body["max_completion_tokens"] = self.most
                del body["max_tokens"]
        else:
            body |= {"prompt": prompt.text, "logprobs": top}
        send = partial(self.endpoint.send, client, route, timed=timed, retries=retries)
        given = {name: f"leave out {name} in --extra-body" for name in self.extra_body}
        reply = await self.refusals.reply_to({**body, **(more or {}), **self.extra_body}, send, Refused, given)
        if self.kind.in_ascii and not more and first_token.begins_with_half_a_character(reply):
            return await self._reply(client, prompt, top, self.kind.in_ascii, timed)
        return reply

    @property
    def _most_tokens(self) -> int:
        return max(1, *(int(self.extra_body.get(key) or 1) for key in LENGTHS), self.most or 1)

    def _read(self, reply: Any, labels: Sequence[str]) -> dict[str, float]:
        """The first token's log-probabilities; ModelError if there are none, or the model is about to think."""
        top = top_logprobs(reply, labels, self._most_tokens)
        first_token.refuse_thoughts(choice_of(reply), max(top, key=top.__getitem__))
        self._count(reply)
        return top

    def _count(self, reply: Any) -> None:
        if (counts := first_token.prompt_tokens(reply)) is not None:
            self.cost.tokens_plain += counts[0]
            self.cost.tokens += counts[0] - counts[1]

    async def _label_ids(self, client: httpx.AsyncClient, prompt: Prompt, label: str) -> tuple[int, ...] | None:
        """Token ids of a label after the end of a prompt; None if the server gives none, or the two merge."""
        tail = prompt.text[-_TAIL:] or "\n"  # chat templates end with it before a reply
        if (tail, label) not in self._ids:
            before, whole = [await self._tokens(client, text) for text in (tail, tail + label)]
            apart = before and whole and len(whole) > len(before) and whole[: len(before)] == before
            self._ids[tail, label] = tuple(whole[len(before) :]) if before and whole and apart else None
        return self._ids[tail, label]

    async def _tokens(self, client: httpx.AsyncClient, text: str) -> list[int] | None:
        assert self.kind.tokenize is not None
        try:
            return first_token.ids_in(
                await self.endpoint.send(client, "//tokenize", self.kind.tokenize(text, self.model))
            )
        except Refused:
            return None


def _check_beginnings(labels: Sequence[str]) -> None:
    """Refuse labels where one begins another: the longer one may be more than one token."""
    for short, long in pairwise(sorted(label.strip() for label in labels)):
        if long.startswith(short):
            _refuse_beginning(short, long)


def _refuse_beginning(short: str, long: str) -> None:
    raise ModelError(
        f"labels {short!r} and {long!r}: a server gives the probability of the first token only, which may be that of "
        f"{short!r} for both; use --labels=A"
    )
