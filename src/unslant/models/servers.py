"""Servers with an OpenAI-compatible interface: how each is known, and how it differs.

llama.cpp was run; the others are taken from their documentation and source (``docs/served-models.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

MOST_IDS = 128
"""Token ids that vLLM takes in ``logprob_token_ids``."""


@dataclass(frozen=True)
class Kind:
    """One kind of server.

    Attributes:
        owner: ``owned_by`` in its list of models; empty where that is no sign.
        route: a GET that only it answers, below its root.
        sign: a name in that answer.
        tokenize: from a text and a model's name, the body of its POST /tokenize; None where it has none.
        by_id: whether it takes ``logprob_token_ids``.
        echo: whether its completions may echo the prompt with log-probabilities.
        only_chat: why a plain prompt cannot be scored; empty where it can.
    """

    name: str
    owner: str = ""
    route: str = ""
    sign: str = ""
    tokenize: Callable[[str, str], dict[str, Any]] | None = None
    by_id: bool = False
    echo: bool = False
    only_chat: str = ""


def _prompt(text: str, model: str) -> dict[str, Any]:
    return {"model": model, "prompt": text, "add_special_tokens": False}


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("vllm", "vllm", "//version", "version", _prompt, by_id=True, echo=True),
        Kind("sglang", "sglang", "//get_model_info", "model_path", _prompt, echo=True),
        Kind(
            "llama.cpp",
            "llamacpp",
            "//props",
            "default_generation_settings",
            lambda text, _: {"content": text, "add_special": False},
        ),
        Kind(
            "ollama",
            route="//api/version",
            sign="version",
            only_chat="Ollama puts a plain prompt into the model's chat template: use --chat",
        ),
        Kind("openai", echo=True),
        Kind(
            "tgi",
            route="//info",
            sign="docker_label",
            tokenize=lambda text, _: {"inputs": text, "add_special_tokens": False},
            only_chat="TGI's completions return no top log-probabilities: use --chat",
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


def ids_in(reply: Any) -> list[int] | None:
    """Token ids in the reply to /tokenize; None where there are none."""
    listed = reply.get("tokens") if isinstance(reply, Mapping) else reply
    if not isinstance(listed, list):
        return None
    ids = [entry.get("id") if isinstance(entry, Mapping) else entry for entry in listed]
    found = [one for one in ids if isinstance(one, int)]
    return found if len(found) == len(ids) else None
