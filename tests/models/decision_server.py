"""A server of decisions: its replies in both formats, and a question for it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.serving import Fault, FaultServer
from unslant.presentations import present
from unslant.prompts import Decision, Prompt
from unslant.questions import Question

OPTIONS = ("Fenton", "Redhill", "Millbrook", "Langdale")

ORGOO = Question("orgoo", "In what town does Orgoo live?", OPTIONS, frozenset({0}))


def prompt_of(question: Question, order=None) -> Prompt:
    (prompt,) = Decision().prompts(present(question, order))
    return prompt


def reply_of(probs: dict[str, float], format: str = "systemone", choice: str | None = None) -> dict[str, Any]:
    """A reply in the shape of a format."""
    answer = {"type": "choice", "choice": choice or max(probs, key=lambda o: probs[o]), "confidence": 0.5}
    pairs = [{"value": value, "probability": p} for value, p in probs.items()]
    own = [{**answer, "name": "q", "probabilities": pairs}] if format == "decisions" else {
        "q": {**answer, "probabilities": probs}
    }  # fmt: skip
    return {"model": "m", "answers": own, "usage": {"input_tokens": 10, "output_tokens": 0}}


def options_in(request: dict[str, Any]) -> tuple[str, list[str], str]:
    """Question, options from top to bottom, and format of a request."""
    if isinstance(request["questions"], dict):
        (asked,) = request["questions"].values()
        return asked["instructions"], list(asked["criteria"]), "systemone"
    (asked,) = request["questions"]
    return asked["instructions"], [choice["value"] for choice in asked["choices"]], "decisions"


def answer_of(request: dict[str, Any], digits: int = 17) -> dict[str, Any]:
    """A server that likes some texts more than others, and the first place always."""
    stem, options, format = options_in(request)
    pull = [int(hashlib.sha256(f"{stem} {o}".encode()).hexdigest(), 16) % 1000 / 500 for o in options]
    weights = np.exp(np.array(pull) + 0.9 * (np.arange(len(options)) == 0))
    probs = [round(float(p), digits) for p in weights / weights.sum()]
    best = options[int(weights.argmax())]
    return reply_of(dict(zip(options, probs, strict=True)), format, best)


@contextmanager
def serving(answer: Callable[[dict[str, Any]], Fault | dict[str, Any]] = answer_of):
    def fault(request: dict[str, Any]) -> Fault:
        found = answer(request)
        return found if isinstance(found, Fault) else Fault(body=found)

    with FaultServer(fault).running() as server:
        yield server


def asked(server: FaultServer) -> list[dict[str, Any]]:
    """What the server was asked, but for the question that finds out whether it decides."""
    return [request for request in server.requests if "capital of France" not in options_in(request)[0]]
