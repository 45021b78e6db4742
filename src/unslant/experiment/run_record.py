"""How a result came to be: its block ``provenance``, and the :class:`~unslant.responses.run.Run` of what was asked."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unslant import __version__
from unslant.arrays import jsonable
from unslant.errors import InputError
from unslant.models import facts_of
from unslant.questions import Question, QuestionSet
from unslant.reach import COMMAND, url_without_secrets
from unslant.responses import Responses, Run
from unslant.responses.provenance import AskedModel, AskedQuestions, ChatCost, Cost, Provenance

if TYPE_CHECKING:
    from unslant.models import ChatModel

EXPECTED: ContextVar[Provenance | None] = ContextVar("expected", default=None)
"""How the result was made that a command repeats (``unslant rerun``)."""
_NOT_THE_MODEL = frozenset(
    "model adapter fingerprint engine attention device dtype torch transformers peft base_url".split()
)
"""Entries of an identity that say how, where and under which name a model ran, but not which one it is."""


def provenance(models: Iterable[Any], questions: Iterable[Any], settings: object = None) -> Provenance:
    """The block of a result.

    Args:
        models: models, or their blocks from :func:`model_block`.
        questions: the sets asked; those without a name as ``(name, set)``.
        settings: a dataclass of them, or a mapping.
    """
    values = (
        {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
        if dataclasses.is_dataclass(settings)
        else dict(settings or {})  # type: ignore[call-overload]
    )
    blocks = [model if isinstance(model, dict) else model_block(model.name, facts_of(model)) for model in models]
    versions = {"python": platform.python_version(), "unslant": __version__, "numpy": np.__version__}
    versions |= {name: version for block in blocks for name, version in block.get("versions", {}).items()}
    sample = {"limit": values.get("limit"), "seed": values.get("seed")}
    return Provenance(
        versions=dict(sorted(versions.items())),
        platform=platform.platform(),
        models=[AskedModel(**{key: value for key, value in block.items() if key != "versions"}) for block in blocks],
        questions=[
            AskedQuestions(name=url_without_secrets(str(name)), digest=one.digest, n=len(one), **sample)
            for name, one in (q if isinstance(q, tuple) else (q.name, q) for q in questions)
        ],
        settings={name: _plain(value) for name, value in values.items()},
        command=list(COMMAND.get().repeatable),
        date=_today(),
    )


def model_block(name: str, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The part on one model, and the versions of the libraries that ran it.

    Args:
        facts: :func:`unslant.models.facts_of` the model, if it was loaded.
    """
    facts = facts or {}
    identity: Mapping[str, str] = facts.get("identity", {})
    device = identity.get("device", "")
    if device == "cuda" and "torch" in sys.modules:
        device = f"cuda ({sys.modules['torch'].cuda.get_device_name()})"
    itself = {key: value for key, value in identity.items() if key not in _NOT_THE_MODEL}
    libraries = ["torch", "transformers"] + ["peft"] * bool(identity.get("adapter config"))
    versions = {name: identity[name] for name in libraries if identity.get(name)}
    return {
        "name": url_without_secrets(name),
        "digest": hashlib.sha256(json.dumps(itself, sort_keys=True).encode()).hexdigest() if itself else "",
        "revision": str(facts.get("revision", "")),
        "dtype": identity.get("dtype", ""),
        "device": device,
        "adapter": identity.get("adapter", ""),
        "versions": versions | ({"tokenizers": metadata.version("tokenizers")} if versions else {}),
    }


def combined(blocks: Sequence[Provenance]) -> Provenance:
    """The block of a comparison, from those of its results; settings only if all have the same."""
    models = [model.model_dump() for block in blocks for model in block.models]
    questions = [entry for block in blocks for entry in block.questions]
    settings = [block.settings for block in blocks]
    whole = provenance(models, (), settings[0] if settings and all(one == settings[0] for one in settings) else {})
    versions = {name: version for block in (*blocks, whole) for name, version in block.versions.items()}
    distinct = [entry for i, entry in enumerate(questions) if entry not in questions[:i]]
    return whole.model_copy(update={"questions": distinct, "versions": dict(sorted(versions.items()))})


def check_same(questions: Any = None, model: Any = None) -> None:
    """Refuse to repeat a command on other questions or another model; does nothing if no command is repeated.

    Args:
        questions: a set of questions.
        model: a model, or its :func:`model_block`.

    Raises:
        InputError: naming what differs.
    """
    expected = EXPECTED.get()
    if expected is None:
        return
    checks = []
    if questions is not None:
        digests = [entry.digest for entry in expected.questions]
        checks.append(("questions", getattr(questions, "name", ""), questions.digest, digests))
    if model is not None:
        block = model if isinstance(model, dict) else model_block(model.name, facts_of(model))
        checks.append(("model", block["name"], block["digest"], [entry.digest for entry in expected.models]))
    for what, name, digest, digests in checks:
        if any(digests) and digest not in digests:
            then = ", ".join(one[:12] for one in digests)
            raise InputError(
                f"{what} {name}: not what the file was made from (digest {digest[:12]}, then {then}); "
                "override with --anyway"
            )


def _plain(value: object) -> Any:
    """A setting for JSON, without secrets."""
    if isinstance(value, QuestionSet):
        return {"name": value.name, "digest": value.digest}
    if isinstance(value, str | Path):
        return url_without_secrets(str(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return jsonable(value) if isinstance(value, int | float | None) else str(value)


def _today() -> str:
    """The day; ``SOURCE_DATE_EPOCH`` can set it, so that equal runs give equal files on any day."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return moment.date().isoformat()


def run_of(
    study: str,
    questions: QuestionSet[Any],
    settings: Mapping[str, Any],
    model: Any,
    before: Cost | ChatCost | None = None,
    chosen: object = None,
) -> Run:
    """Model, questions, settings and provenance of a run; with its cost ``before``, also cost, engine and caveats.

    Args:
        model: a model, or its name where nothing was asked.
        chosen: every setting, by default ``settings``.
    """
    facts: dict[str, Any] = {} if before is None else facts_of(model)
    name = model if isinstance(model, str) else model.name
    run = Run(
        study=study,
        model=name,
        questions=questions.name,
        questions_digest=questions.digest,
        loading=questions.report,
        settings=json.loads(json.dumps(dict(settings))),  # as they are read back: tuples become lists
        provenance=provenance([model_block(name, facts)], [questions], chosen or settings),
    )
    if isinstance(before, ChatCost):
        requests = requests_of({name: (model, before)})
        return replace(run, requests=requests, offline=facts.get("offline", False), **model.answerers.facts)
    if before is None:
        return run
    facts.pop("revision", None)  # in the provenance
    if special := facts.get("special_tokens"):  # the model counts over all runs; keep the questions of this one
        ids = {question.id for question in questions}
        here = tuple(question_id for question_id in special.questions if question_id in ids)
        facts["special_tokens"] = replace(special, questions=here) if here else None
    return replace(run, **facts, cost=model.cost - before)


def requests_of(costs_before: Mapping[str, tuple[ChatModel, ChatCost]]) -> dict[str, ChatCost]:
    """The cost of the replies of each model since an earlier cost, and the most frequent error among them."""

    def why(model: ChatModel) -> str:  # of equally frequent errors the first by name: arrival order is chance
        return min(model.errors, key=lambda text: (-model.errors[text], text), default="")

    return {name: replace(model.cost - before, error=why(model)) for name, (model, before) in costs_before.items()}


def with_run(responses: Responses, run: Run, questions: QuestionSet[Any]) -> Responses:
    """The responses with their run and the questions that have texts."""
    texts = tuple(question for question in questions if isinstance(question, Question))
    return Responses(responses.table, run, texts)
