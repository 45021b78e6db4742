"""Decision endpoints: servers that take a question with its options, and answer with a probability for each.

The last part of the address names the format: ``/v1/systemone`` (System One: ``transformers serve``, vLLM and others)
or ``/v1/decisions`` (OpenAI). The server words the prompt and labels the options, so it gets a prompt with a ``state``
(:class:`unslant.prompts.Decision`), one question per request. Probabilities are normalised over the options and none is
missing, but some servers round them to two decimals.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any, Unpack
from urllib.parse import urlsplit, urlunsplit

import httpx
import numpy as np

from unslant.errors import ModelError
from unslant.models.answered import named_in
from unslant.models.base import Malformed, Scored
from unslant.models.first_token import TOLERANCE, number
from unslant.models.http import Connection, Endpoint, Refused, placed
from unslant.models.http_model import HttpModel, entries_in
from unslant.prompts import Prompt
from unslant.reach import url_without_secrets

SYSTEM_ONE, OPENAI = "systemone", "decisions"
BREAKS_TIE = 1e-8
"""Nats by which the server's choice is raised above options that rounding makes equal to it."""
_NAME = "q"
_OF_THIS_REQUEST = frozenset({400, 413, 422})
"""HTTP statuses that refuse one request; any other refusal concerns all requests."""
_MOST_PLACES = 12
_HELLO = Prompt("Which city is the capital of France?", ("Rome", "Paris"), state="Answer the question.")


class DecisionModel(HttpModel):
    """A model behind a decision endpoint, such as ``http://127.0.0.1:8000/v1/systemone``, as a scoring model that words
    its prompts itself.
    """

    def __init__(
        self, model: str, url: str, *, extra_body: Mapping[str, Any] | None = None, **connection: Unpack[Connection]
    ) -> None:
        at = urlsplit(url)
        path, _, self.format = at.path.rstrip("/").rpartition("/")
        base_url = urlunsplit(at._replace(path=path))
        if self.format not in (SYSTEM_ONE, OPENAI):
            raise ModelError(
                f"{url_without_secrets(url)}: is not a decision endpoint; their addresses end in /{SYSTEM_ONE} or "
                f"/{OPENAI}"
            )
        super().__init__(model, base_url, extra_body=extra_body, **connection)
        at = urlsplit(self.server.base_url)
        self.url = urlunsplit(at._replace(path=f"{at.path}/{self.format}"))
        self._info, self._speaks = replace(self._info, renders_prompts=True), {"engine": self.format}

    def ask_who(self) -> dict[str, str]:
        """Ask the server a small question, and for its list of models.

        Raises:
            ModelError: if it cannot be reached, does not accept the key, or does not decide.
        """
        try:
            ((_, answer),) = self.server.all([_HELLO], self._put)
        except ModelError as error:
            problem = f"{self.model} at {self.url} does not decide: {error}; scores that are stored are used without "
            raise placed(error, f"{problem}asking with --offline") from None
        if answer.logprobs is None and not answer.declined:
            raise ModelError(f"{self.model} at {self.url} does not decide: {answer.error}")
        ((_, listed),) = self.server.all([self.model], self._listed)
        return {**listed, **({"answered_as": answer.by[0]} if answer.by[0] != self.model else {})}

    async def _listed(self, client: httpx.AsyncClient, model: str) -> dict[str, str]:
        """The texts in the model's entry of the server's list of models; most servers have one."""
        try:
            listed = await self.server.send(client, "models", retries=0)
        except ModelError:
            return {}
        entries = [entry for entry in entries_in(listed) if entry.get("id") == model]
        return {f"listed_{key}": text for entry in entries for key, text in entry.items() if isinstance(text, str)}

    def asker(self, prompts: Sequence[Prompt]) -> Callable[[httpx.AsyncClient, Prompt], Awaitable[Scored]]:
        """See :class:`~unslant.models.http_model.HttpModel`; ModelError if a prompt is already worded."""
        if any(prompt.state is None for prompt in prompts):
            raise ModelError(
                f"{self.model} at {self.url} writes the prompts itself, but this command needs its own: a decision "
                "endpoint can be audited, ranked, and debiased by orders (unslant audit, leaderboard, debias)"
            )
        return self._put

    async def _put(self, client: httpx.AsyncClient, prompt: Prompt) -> Scored:
        """The scores of a question; none if the server declines it, or answers it unusably."""
        place = f"question {prompt.group!r}" if prompt.group else "a question"
        options = prompt.continuations
        if twice := next((option for option in options if options.count(option) > 1), None):
            return Scored(0, None, f"{place}: two options read {twice!r}; a decision endpoint names them by text")
        try:
            reply = await self._decided(client, self.server, prompt)
        except ModelError as error:
            alone = isinstance(error, Malformed) or (isinstance(error, Refused) and error.status in _OF_THIS_REQUEST)
            if alone or await self.fails_alone(prompt, error, _HELLO, partial(self._decided, client)):
                return Scored(0, None, f"{place}: {error}")
            raise placed(error, f"{self.model} at {self.url}, {place}: {error}") from None
        try:
            answer, usage = read_answer(self.format, reply, options), reply["usage"]
            by = _text(reply["model"]), named_in(reply)[1]
            used = int(number(usage["input_tokens"]))
            cached = int(number((usage.get("input_tokens_details") or {}).get("cached_tokens", 0)))
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError) as error:
            problem = f"{place}: the reply does not have the shape of /{self.format} ({error!r})"
            if self.answered:  # only the first reply shows that a server does not decide
                return Scored(0, None, problem)
            raise ModelError(f"{self.model} at {self.url}, {problem}") from None
        self.answered = prompt
        self.cost.tokens += used - cached
        self.cost.tokens_plain += used
        return replace(answer, by=by, error=answer.error and f"{place}: {answer.error}")

    async def _decided(self, client: httpx.AsyncClient, endpoint: Endpoint, prompt: Prompt) -> Any:
        body = {**_request(self.format, self.model, prompt), **self._extra}
        return await endpoint.send(client, self.format, body, timed=True)


load_decisions = DecisionModel.load


def _request(format: str, model: str, prompt: Prompt) -> dict[str, Any]:
    question: dict[str, Any] = {"type": "choice", "instructions": prompt.text}
    if format == SYSTEM_ONE:
        question["criteria"] = dict.fromkeys(prompt.continuations)  # shown in this order
        return {"model": model, "state": prompt.state, "questions": {_NAME: question}}
    question |= {"name": _NAME, "choices": [{"value": option} for option in prompt.continuations]}
    return {"model": model, "input": prompt.state, "questions": [question]}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def read_answer(format: str, reply: Any, options: Sequence[str]) -> Scored:
    """Log-probabilities of the options from a reply, or why it has none.

    A probability that was rounded to 0 counts as half of the most that it can be. If rounding makes options equal, the
    server's choice is above the others by :data:`BREAKS_TIE`.

    Raises:
        KeyError, IndexError, TypeError, ValueError, AttributeError: if it does not have the shape of the format.
    """
    answers = reply["answers"]
    if len(answers) != 1:
        raise ValueError(f"{len(answers)} answers to one question")
    name, answer = next(iter(answers.items())) if format == SYSTEM_ONE else (answers[0].get("name", _NAME), answers[0])
    if name != _NAME:
        raise ValueError(f"an answer to {name!r}, which was not asked")
    if answer["type"] == "refusal":
        return Scored(0, None, "the server declined to answer", declined=True)
    listed = answer["probabilities"]
    pairs = listed.items() if format == SYSTEM_ONE else [(one["value"], one["probability"]) for one in listed]
    by_option = {_text(value): number(probability) for value, probability in pairs}
    if sorted(value for value, _ in pairs) != sorted(options):
        return Scored(0, None, f"the reply is about other options: {', '.join(map(repr, by_option))}")
    returned = list(by_option.values())
    if _sorted_by_server(list(by_option), options) and returned != sorted(returned, reverse=True):
        problem = "the server returns the options in a sequence of its own, so they may not be shown as they were sent"
        return Scored(0, None, problem)
    probs = np.array([by_option[option] for option in options])
    places = min(_MOST_PLACES, max(1, *(_places(p) for p in probs)))
    step = 10.0**-places
    if not (np.isfinite(probs) & (probs >= 0) & (probs <= 1)).all() or (
        abs(math.fsum(probs) - 1) > len(probs) * step / 2 + TOLERANCE
    ):
        return Scored(0, None, f"no probabilities, or they do not sum to 1: {probs.tolist()}")
    choice = answer["choice"]
    if choice not in options or by_option[choice] < probs.max() - 1.5 * step:
        return Scored(0, None, f"the server chose {choice!r}, but it is not the most probable option")
    index = options.index(choice)
    # Rounded to 0, a probability is below step / 2; half of that is written. 1 and 0 without decimals may be exact.
    logprobs = np.log(np.maximum(probs, min(step, 0.01) / 4))
    if (np.delete(probs, index) >= probs[index]).any():
        logprobs[index] = logprobs.max() + BREAKS_TIE
    return Scored(0, logprobs)


def _places(probability: float) -> int:
    """Number of decimals with which a number is written."""
    exponent = Decimal(repr(float(probability))).normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _sorted_by_server(returned: Sequence[str], sent: Sequence[str]) -> bool:
    """Whether options came back in another order than sent, because of how the server's language orders objects."""
    # JavaScript puts keys that are whole numbers first, by value; other languages sort all keys.
    numbers = sorted((option for option in sent if option.isdecimal() and str(int(option)) == option), key=int)
    by_number = [*numbers, *(option for option in sent if option not in numbers)]
    return list(returned) != list(sent) and list(returned) in (by_number, sorted(sent))
