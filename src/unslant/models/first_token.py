"""What a server's reply says of the first token: log-probabilities, whether it opens a thought, tokens it saved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unslant.arrays import Bools, Floats, are_logprobs
from unslant.errors import ModelError

BY_ID = "token_id:"
"""What vLLM writes before a token's id where it is asked for ids in place of texts."""
_TOLERANCE = 1e-3  # on a sum of probabilities, which servers round
_ROUNDING = 1e-6  # llama.cpp differs in the sixth decimal between equal calls
_THOUGHTS = ("<think", "<thought", "<reason", "<|start_thinking", "[think]", "◁think", "<seed:think", "<|channel|>")


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
    """A token's text, from its bytes where these are given and are bytes; ``token_id:...`` stays as it is."""
    raw, token = entry.get("bytes"), str(entry.get("token", ""))
    if token.startswith(BY_ID):
        return token
    if isinstance(raw, list) and raw and all(isinstance(b, int) and 0 <= b < 256 for b in raw):
        return bytes(raw).decode("utf-8", "replace")
    return token


def label_bounds(top: Mapping[str, float], continuations: Sequence[str]) -> Bounds:
    """What the most probable tokens say about each continuation."""
    rest = max(0.0, 1.0 - math.fsum(math.exp(value) for value in top.values()))
    ceiling = min(min(top.values()), math.log(rest + _ROUNDING))
    low = np.array([top.get(text, -math.inf) for text in continuations])
    high = np.array([top.get(text, ceiling) for text in continuations])
    return Bounds(low, high)


def refuse_thoughts(reply: Any, first: str) -> None:
    """Refuse a model that is about to think: its first token says nothing of the answer.

    Args:
        first: the most probable first token.

    Raises:
        ModelError: with the option that may help.
    """
    choice = reply["choices"][0]
    message = choice.get("message") if isinstance(choice.get("message"), Mapping) else {}
    thought = next((str(message[key]) for key in ("reasoning_content", "reasoning") if message.get(key)), "")
    begun = [str(text).strip() for text in (first, choice.get("text"), message.get("content")) if text]
    thought = thought or next((text for text in begun if text.lower().startswith(_THOUGHTS)), "")
    if thought:
        raise ModelError(
            f"the model thinks before it answers: its reply begins with {thought!r}, which says nothing of a "
            """label; try --extra-body '{"chat_template_kwargs":{"enable_thinking":false}}' (chat templates differ """
            "in the name), or read its replies: --elicit generate"
        )


def prompt_tokens(reply: Any) -> tuple[int, int] | None:
    """Tokens of the prompt, and how many of these the server had in its prefix cache; None where it does not say.

    ``usage.prompt_tokens_details.cached_tokens`` (OpenAI, vLLM, SGLang, llama.cpp), else llama.cpp's ``timings``.
    """
    if not isinstance(reply, Mapping):
        return None
    usage, timings = (value if isinstance(value := reply.get(key), Mapping) else {} for key in ("usage", "timings"))
    details = usage.get("prompt_tokens_details")
    counts = usage.get("prompt_tokens"), details.get("cached_tokens") if isinstance(details, Mapping) else None
    if None in counts and timings:
        cached, computed = timings.get("cache_n"), timings.get("prompt_n")
        counts = (cached + computed, cached) if isinstance(cached, int) and isinstance(computed, int) else counts
    match counts:
        case int(total), int(cached) if 0 <= cached <= total:
            return total, cached
    return None


def echoed(reply: Any, label: str) -> float | None:
    """Log-probability of a label at the end of a prompt that was echoed with the log-probabilities of its tokens.

    The tokens of the label are counted from the end of the prompt, behind which one token was generated.

    Returns:
        Their sum; None where the reply holds none of the prompt's, or the label is no run of whole tokens.
    """
    try:
        logprobs = reply["choices"][0]["logprobs"]
        tokens, values = logprobs["tokens"], logprobs["token_logprobs"]
        generated = (reply.get("usage") or {}).get("completion_tokens", 1)
    except (KeyError, IndexError, TypeError):
        return None
    found, total, values_of = "", 0.0, {}
    for token, value in reversed(list(zip(tokens, values, strict=True))[: len(tokens) - generated]):
        if value is None or len(found) >= len(label):
            break
        found, total = _spelled(str(token)) + found, total + float(value)
        values_of[found] = total
    total = values_of.get(label, values_of.get(label.lstrip(), math.nan))  # some decoders drop the space before a word
    if math.isnan(total):
        return None
    if not are_logprobs(np.array([total])):
        raise NotLogprobs("the server returned no valid log-probabilities of the prompt")
    return total


def _spelled(token: str) -> str:
    """A token's text, where it is written as in the vocabulary."""
    return token.replace("▁", " ").replace("Ġ", " ")
