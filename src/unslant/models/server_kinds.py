"""Kinds of servers that give label scores: how each is known, and what it has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kind:
    """One kind of server.

    Attributes:
        owner: ``owned_by`` in its list of models; empty where that is no sign.
        route: a GET that only it answers, below its root.
        sign: a name in that answer.
        tokenize: from a text and a model's name, the body of its POST /tokenize; None where it has none.
        by_id: whether it takes ``logprob_token_ids``.
        score_route: whether its ``/v1/score`` gives the probability of every one of some token ids after a prompt.
        echo: whether its completions may echo the prompt with log-probabilities.
        only_chat: why a plain prompt cannot be scored; empty where it can.
        in_ascii: what makes it begin with a whole character, where half of one would come without log-probabilities;
            those that come are of the model, as without it.
        any_name: whether it answers under any model's name, having one model.
        slots: the name, in the answer at ``route``, of how many prompts it keeps in its cache; empty where prompts
            share one.
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


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("vllm", "vllm", "//version", "version", _prompt, by_id=True, echo=True),
        Kind(
            "sglang",
            "sglang",
            "//get_model_info",
            "model_path",
            _prompt,
            score_route=True,
            echo=True,
            any_name=True,
        ),
        Kind(
            "llama.cpp",
            "llamacpp",
            "//props",
            "default_generation_settings",
            lambda text, _: {"content": text, "add_special": False},
            in_ascii={"grammar": "root ::= [ -~]+"},
            any_name=True,
            slots="total_slots",
        ),
        Kind(
            "ollama",
            route="//api/version",
            sign="version",
            only_chat="Ollama puts a plain prompt into the model's chat template: use --chat=True",
        ),
        Kind("openai", echo=True),
        Kind(
            "tgi",
            route="//info",
            sign="docker_label",
            tokenize=lambda text, _: {"inputs": text, "add_special_tokens": False},
            only_chat="TGI's completions return no top log-probabilities: use --chat=True",
        ),
        Kind("unknown", echo=True),
    )
}
"""Name -> what is known of it. The last stands for any other."""
UNKNOWN = KINDS["unknown"]


def known_from(host: str, owners: set[str]) -> Kind | None:
    """The kind of server that its address or its list of models tells."""
    if host == "openai.com" or host.endswith(".openai.com"):
        return KINDS["openai"]
    return next((kind for kind in KINDS.values() if kind.owner and kind.owner in owners), None)


def known_by(answers: Mapping[str, Any]) -> Kind:
    """The kind of server by what it answered, route -> answer, to those that only one kind has."""
    found = (
        kind
        for kind in KINDS.values()
        if kind.route and isinstance(answer := answers.get(kind.route), Mapping) and kind.sign in answer
    )
    return next(found, UNKNOWN)
