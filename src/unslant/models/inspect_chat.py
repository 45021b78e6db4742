"""Models that generate replies through inspect_ai: served ones, and those of its providers."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import httpx

from unslant.errors import InputError, ModelError, check_online, first_line, needed, refusal, shortened
from unslant.models.base import ModelInfo
from unslant.models.chat import ChatModel, Reply
from unslant.models.concurrent import Limit, Server, from_several
from unslant.models.first_token import Refusals
from unslant.models.http import causes, error_in, hint_of, is_loopback, redirected
from unslant.models.options import CONNECTIONS, KEY_VARIABLES, GenerateOptions, ModelOptions
from unslant.prompts import Message, Prompt
from unslant.reach import may_have_keys, url_without_secrets, without_secrets
from unslant.replies.extraction import CUT, WITHHELD

if TYPE_CHECKING:
    from inspect_ai.model import ChatMessage

_NOT_ASKED_AGAIN = {401: "the key is not accepted", 403: "the key is not accepted", 404: "no such model or address"}
_NO_CONNECTION = (ConnectionRefusedError, socket.gaierror, ssl.SSLCertVerificationError)
_PLAIN = Prompt("Say yes.", ())
# Another temperature gives other replies, unlike log-probabilities, so it must be asked for.
_OTHER_TEMPERATURE = "for replies of this model, give --temperature=1; a judge must take 0"


class InspectChat(ChatModel):
    """Replies of any model that inspect supports.

    The very first request is a probe, made alone and without repetitions. If it shows that no request can succeed (a
    wrong key, model or address, or no server there), that is an error at once, and not one row after another.

    Args:
        model: one of inspect's models.
        generate: by default temperature 0 and at most 1000 tokens.
        options: connections, retries and timeout.
    """

    def __init__(
        self, model: Any, name: str, generate: GenerateOptions | None = None, options: ModelOptions | None = None
    ) -> None:
        from inspect_ai.model import GenerateConfig

        self._how = options = options or ModelOptions()
        self._options = (generate or GenerateOptions()).filled()
        # Provider, model and address are all that is known about it.
        identity = {"model": str(model), "base_url": _address(model), "engine": "inspect"}
        identity |= options.identity | self._options.identity
        super().__init__(ModelInfo(name=name, identity=identity, engine=type(self).__name__, remote=True))
        _keep_system(model.api)
        self._model, self._probed = model, False
        self._refusals = getattr(model.api, "refusals", Refusals())
        self._secrets = options.secrets()
        self._connections = options.connections or CONNECTIONS
        self._config = GenerateConfig(
            temperature=self._options.temperature,
            max_tokens=self._options.max_tokens,
            max_connections=self._connections,
            max_retries=options.retries,
            attempt_timeout=options.timeout,
            extra_headers=options.headers() or None,
            extra_body=options.body() or None,
        ).merge(_config(self._options.inspect))

    @property
    def info(self) -> ModelInfo:
        return replace(self._info, facts=self._refusals.facts)

    def at(self, generate: GenerateOptions) -> InspectChat:
        other = self.counted_here(InspectChat(self._model, self.name, generate, self._how))
        other._probed = self._probed
        return other

    def replies_to(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        check_online(self.name)
        left = list(range(len(prompts)))
        if left and not self._probed:
            first = self._probe(prompts[0])
            self._probed = True
            if first is not None:
                left = left[1:]
                yield first
        for place, answer in self._answers([prompts[i] for i in left], self._config, self._connections):
            # A failed call is a row with status "error", not the end of the run.
            reply = answer if isinstance(answer, Reply) else Reply(0, None, self._described(answer))
            yield replace(reply, index=left[place])

    def _probe(self, prompt: Prompt) -> Reply | None:
        """The reply to the first prompt, or None if it failed for a reason that says nothing about the others.

        Raises:
            ModelError: if no request can succeed.
        """
        config = self._config.model_copy(update={"max_retries": 0})

        def answer_to(prompt: Prompt) -> Reply | Exception:
            return next(answer for _, answer in self._answers([prompt], config, 1))

        if isinstance(answer := answer_to(prompt), Reply):
            return answer
        wrong = self._wrong(answer)
        # A refusal may be due to this prompt; if a plain one is refused too, it is not.
        if not wrong and not self._may_succeed_again(answer) and isinstance(other := answer_to(_PLAIN), Exception):
            wrong = self._wrong(other) or ("" if self._may_succeed_again(other) else "no request is accepted")
        if wrong:
            url = _address(self._model) if wrong == _NOT_ASKED_AGAIN[404] else ""
            raise ModelError(f"{self.name}: {wrong} ({self._described(answer)}){hint_of(url) if url else ''}") from None
        return None

    def _wrong(self, error: BaseException) -> str:
        """The reason why no request can succeed; empty if none is known."""
        for cause in causes(error):
            status = getattr(cause, "status_code", None) or getattr(cause, "code", None)
            if status in _NOT_ASKED_AGAIN:
                return _NOT_ASKED_AGAIN[status]
            if isinstance(cause, ModelError):
                return "the server does not take a part of the request"
            if isinstance(cause, Exception) and self._model.api.is_auth_failure(cause):
                return _NOT_ASKED_AGAIN[401]
            # By name, as the client's library is httpx or httpx2, depending on its version.
            if isinstance(cause, _NO_CONNECTION) or type(cause).__name__ in ("ConnectError", "ConnectTimeout"):
                return f"no connection to {_address(self._model) or 'the provider'}"
        return ""

    def _may_succeed_again(self, error: BaseException) -> bool:
        return any(isinstance(cause, Exception) and self._model.api.should_retry(cause) for cause in causes(error))

    def _answers(
        self, prompts: Sequence[Prompt], config: Any, connections: int
    ) -> Iterator[tuple[int, Reply | Exception]]:
        async def ask(_: None, prompt: Prompt) -> Reply | Exception:
            messages = inspect_messages(prompt.messages or (Message("user", prompt.text),))
            try:
                return reply_of(await self._model.generate(messages, config=config))
            except Exception as error:
                return error

        return from_several(prompts, [Server(ask, Limit(connections, adaptive=False), nullcontext)])

    def _described(self, error: BaseException) -> str:
        """An error in one line, without secrets."""
        chain = [*causes(error)]
        ours = (cause for cause in chain if isinstance(cause, ModelError))
        cause = next(ours, None) or next((cause for cause in chain if getattr(cause, "status_code", None)), chain[-1])
        moved = redirected(getattr(cause, "response", None))
        kind = f"{type(cause).__name__}: " * (not isinstance(cause, ModelError))
        message = f"{kind}{moved or getattr(cause, 'provider_message', None) or first_line(cause)}"
        # The client drops what a server says in another form than OpenAI's.
        body = next(filter(None, (getattr(cause, "body", None) for cause in chain)), None)
        words = " ".join((body if isinstance(body, str) else error_in(body)[0]).split())
        if words.removeprefix("the server replied: ") not in message and not moved:
            message += f" ({'a web page' if words.startswith('<') else shortened(words, 300)})"
        keys = {*map(os.environ.get, KEY_VARIABLES), getattr(self._model.api, "api_key", None)}
        return without_secrets(message, {*filter(None, keys), *self._secrets})


def _address(model: Any) -> str:
    """The address of a provider; empty if inspect does not give it."""
    return url_without_secrets(str(getattr(model.api, "base_url", None) or ""))


_OURS = {"max_tokens", "temperature", "max_connections", "max_retries", "attempt_timeout"}


def _config(texts: Sequence[str]) -> Any:
    """Settings written NAME=VALUE as inspect's GenerateConfig.

    Raises:
        InputError: on an unknown name, one that has its own option, or a value that it does not take.
    """
    from inspect_ai.model import GenerateConfig
    from pydantic import ValidationError

    settings: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or name not in GenerateConfig.model_fields.keys() - _OURS:
            names = ", ".join(sorted(GenerateConfig.model_fields.keys() - _OURS))
            raise InputError(f"--inspect {text!r}: write it as NAME=VALUE, NAME being one of {names}")
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    try:
        return GenerateConfig(**settings)
    except ValidationError as error:
        wrong = error.errors()[0]
        raise InputError(f"--inspect {wrong['loc'][0]}: {wrong['msg'].lower()}, not {wrong['input']!r}") from None


def _keep_system(api: Any) -> None:
    """Copy the system that answered into a provider's output; inspect leaves it in the record of the call."""
    original = api.generate
    if getattr(original, "keeps_system", False):
        return

    async def generate(*arguments: Any, **keywords: Any) -> Any:
        result = await original(*arguments, **keywords)
        output, call = result if isinstance(result, tuple) else (result, None)
        body = getattr(call, "response", None)
        if isinstance(body, Mapping) and (system := body.get("system_fingerprint")) and hasattr(output, "metadata"):
            output.metadata = {**(output.metadata or {}), "system_fingerprint": system}
        return result

    generate.keeps_system = True  # type: ignore[attr-defined]
    api.generate = generate


def reply_of(output: Any) -> Reply:
    """The reply in an output of inspect's models."""
    if not output.choices:  # a body without a reply, with status 200
        return Reply(0, None, "no choices in the reply")
    if len(output.choices) > 1:  # one was requested, and nothing says which of them is it
        return Reply(0, None, f"{len(output.choices)} choices in the reply in place of one")
    if output.stop_reason == "model_length" and not output.usage:
        # inspect makes a reply of a request that was refused as too long: its text is the server's message.
        return Reply(0, None, output.completion or "the prompt is too long for the model")
    used, content = output.usage, output.message.content
    cached = (used.input_tokens_cache_read or 0) + (used.input_tokens_cache_write or 0) if used else 0
    counts = (used.input_tokens + cached, used.output_tokens, used.reasoning_tokens) if used else ()
    refused = not isinstance(content, str) and any(getattr(part, "refusal", None) for part in content)
    by = str(output.model or ""), str((output.metadata or {}).get("system_fingerprint") or "")
    reply = Reply(0, output.completion, "", refused or output.stop_reason == WITHHELD, *counts)
    return replace(reply, cut=output.stop_reason in CUT, by=by)


def inspect_messages(messages: Sequence[Message]) -> list[ChatMessage]:
    """Messages as inspect's own types."""
    from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

    kinds = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
    return [kinds[message.role](content=message.content) for message in messages]


def _served(get_model: Any, name: str, url: str) -> Any:
    """A model of an OpenAI-compatible server, whose key and headers go nowhere else."""
    from openai import DefaultAsyncHttpxClient

    at = urlsplit(url)
    keys = [os.environ[variable] for variable in KEY_VARIABLES if variable in os.environ] if may_have_keys(url) else []
    # Never through a proxy, as for scores; inspect's client takes one from the environment for this machine too.
    direct = {"http_client": DefaultAsyncHttpxClient(trust_env=False)} if is_loopback(at.hostname or "") else {}
    model = get_model(
        f"openai-api/unslant/{name}",
        base_url=urlunsplit(at._replace(query="")),
        default_query=dict(parse_qsl(at.query)),
        api_key=next(iter(keys), "none"),
        max_retries=0,  # inspect itself repeats failed requests
        memoize=False,
        **direct,
    )
    # The openai client follows redirects, and sends headers other than Authorization along to any host.
    model.api.http_client.follow_redirects = False
    model.api.http_client.event_hooks["response"].append(_with_status)
    completions = model.api.client.chat.completions
    model.api.refusals = Refusals()  # shared by all that ask this model, as InspectChat.at makes
    completions.create = _adapted(completions.create, model.api.refusals)
    return model


def _adapted(original: Callable[..., Awaitable[Any]], refusals: Refusals) -> Callable[..., Awaitable[Any]]:
    """The openai client's method for completions, for servers that do not take all of a request, reply in parts, or
    count only some tokens.

    Raises:
        ModelError: from that method, if the server refuses what must not change.
        ValueError: from that method, if a reply has no message.
    """
    from openai import APIStatusError
    from openai.types.chat import ChatCompletion

    async def create(**request: Any) -> Any:
        given = {name: f"leave out {name} in --extra-body" for name in request.get("extra_body") or ()}
        completion = await refusals.reply_to(
            request, lambda body: original(**body), APIStatusError, {"temperature": _OTHER_TEMPERATURE, **given}
        )
        if not isinstance(completion, ChatCompletion):
            return completion  # inspect refuses it
        completion.choices = completion.choices or []
        for choice in completion.choices:
            if (message := choice.message) is None:
                raise ValueError("a choice in the reply has no message")
            if isinstance(message.content, list):  # Mistral's, whose thoughts are parts of another type
                message.content = "".join(part["text"] for part in message.content if part.get("type") == "text")
        if (usage := completion.usage) and None in (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens):
            completion.usage = None
        return completion

    return create


async def _with_status(response: httpx.Response) -> None:
    """Give a reply of status 200 that holds an error the status that it means: inspect retries by status."""
    kind = response.headers.get("Content-Type", "") if response.is_success else ""
    if kind.startswith("text/html"):  # of a login, for example: no model answers at this address
        response.status_code = 404
    if kind.startswith("application/json"):
        try:
            problem, status = error_in(json.loads(await response.aread()))
        except ValueError:
            problem, status = "not JSON", 502
        if problem:
            response.status_code = status or 400


def load_inspect(name: str, options: ModelOptions, generate: GenerateOptions) -> InspectChat:
    """A model that generates, of a server or of one of inspect's providers; see :mod:`unslant.models.open`.

    Raises:
        ModelError: if no server listens at its address, or inspect is not installed or cannot load it.
    """
    base_url = next(iter(options.addresses), "")
    if base_url and (reason := refusal(base_url)):  # before the seconds that importing inspect takes
        raise ModelError(f"{name}: no connection to {url_without_secrets(base_url)} ({reason})")
    get_model = needed("inspect_ai.model", f"{name}, asked for replies,").get_model
    try:
        # Not memoized: a model's connections belong to the event loop that it runs on.
        model = _served(get_model, name, base_url) if base_url else get_model(name, memoize=False)
    except Exception as error:  # providers raise many kinds; the first line says what is wrong
        lines = [line.strip() for line in re.sub(r"\[/?[a-z]+\]", "", str(error)).splitlines()]  # markup for terminals
        reason = " ".join(filter(None, lines)) or type(error).__name__
        raise ModelError(f"{name}: inspect cannot load it: {reason}") from error
    return InspectChat(model, name, generate, options)
