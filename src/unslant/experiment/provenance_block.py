"""The block ``provenance`` of a result (:class:`unslant.responses.provenance.Provenance`), and the command it names."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from unslant.arrays import jsonable
from unslant.errors import InputError
from unslant.experiment.command_line import COMMAND
from unslant.models import facts_of
from unslant.questions import QuestionSet
from unslant.reach import url_without_secrets
from unslant.responses.provenance import AskedModel, AskedQuestions, Provenance
from unslant.version import __version__

T = TypeVar("T")
EXPECTED: ContextVar[Provenance | None] = ContextVar("expected", default=None)
"""What a command that is run again was run on."""
_NOT_THE_MODEL = frozenset(
    "model adapter fingerprint engine attention device dtype torch transformers peft base_url".split()
)
"""Entries of an identity that say how, where and under which name a model ran."""


def provenance(models: Iterable[Any], questions: Iterable[Any], settings: object = None) -> Provenance:
    """The block of a result.

    Args:
        models: models, or their blocks from :func:`model_block`.
        questions: the sets asked; those without a name as ``(name, set)``.
        settings: a dataclass of them, or a mapping.
    """
    given = (
        {f.name: getattr(settings, f.name) for f in dataclasses.fields(settings)}
        if dataclasses.is_dataclass(settings)
        else dict(settings or {})  # type: ignore[call-overload]
    )
    blocks = [found if isinstance(found, dict) else model_block(found.name, facts_of(found)) for found in models]
    libraries = {name: version for block in blocks for name, version in block.get("versions", {}).items()}
    own = {"python": platform.python_version(), "unslant": __version__, "numpy": np.__version__}
    drawn = {"limit": given.get("limit"), "seed": given.get("seed")}
    return Provenance(
        versions=dict(sorted((own | libraries).items())),
        platform=platform.platform(),
        models=[AskedModel(**{key: value for key, value in block.items() if key != "versions"}) for block in blocks],
        questions=[
            AskedQuestions(name=url_without_secrets(str(name)), digest=found.digest, n=len(found), **drawn)
            for name, found in (q if isinstance(q, tuple) else (q.name, q) for q in questions)
        ],
        settings={name: _plain(value) for name, value in given.items()},
        command=list(COMMAND.get().repeatable),
        date=_today(),
    )


def model_block(name: str, facts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The part on one model, and the versions of the libraries that ran it.

    Args:
        facts: :func:`unslant.models.facts_of` it, where it was at hand.
    """
    facts = facts or {}
    identity: Mapping[str, str] = facts.get("identity", {})
    device = identity.get("device", "")
    if device == "cuda" and "torch" in sys.modules:
        device = f"cuda ({sys.modules['torch'].cuda.get_device_name()})"
    return {
        "name": url_without_secrets(name),
        "digest": identity_digest(identity),
        "revision": str(facts.get("revision", "")),
        "dtype": identity.get("dtype", ""),
        "device": device,
        "adapter": identity.get("adapter", ""),
        "versions": _libraries(identity),
    }


def identity_digest(identity: Mapping[str, str]) -> str:
    """A digest of the model itself, independent of its backend and its name; empty where nothing is known."""
    own = {key: value for key, value in identity.items() if key not in _NOT_THE_MODEL}
    return hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest() if own else ""


def combined(blocks: Sequence[Provenance]) -> Provenance:
    """The block of a comparison of results that have their own."""
    models = [model.model_dump() for block in blocks for model in block.models]
    questions = [asked for block in blocks for asked in block.questions]
    settings = [block.settings for block in blocks]
    same = settings[0] if settings and all(own == settings[0] for own in settings) else {}
    unlike = [asked for i, asked in enumerate(questions) if asked not in questions[:i]]
    versions = {name: version for block in blocks for name, version in block.versions.items()}
    made = provenance(models, (), same)
    return made.model_copy(update={"questions": unlike, "versions": dict(sorted((versions | made.versions).items()))})


def check_same(questions: Any = None, model: Mapping[str, str] | None = None) -> None:
    """Refuse to run a command again on other questions or another model than it was run on; does nothing otherwise.

    Args:
        questions: a set of questions.
        model: what :func:`model_block` says of a model.

    Raises:
        InputError: naming what differs.
    """
    expected = EXPECTED.get()
    if expected is None:
        return
    found = []
    if questions is not None:
        known = [asked.digest for asked in expected.questions]
        found.append(("questions", getattr(questions, "name", ""), questions.digest, known))
    if model is not None:
        found.append(("model", model["name"], model["digest"], [asked.digest for asked in expected.models]))
    for what, name, digest, known in found:
        if any(known) and digest not in known:
            then = ", ".join(one[:12] for one in known)
            raise InputError(
                f"{what} {name}: not what the file was made from (digest {digest[:12]}, then {then}); "
                "insist with --anyway"
            )


def same_as_before(load: Callable[[], T], questions: QuestionSet[Any] | None = None) -> Callable[[], T]:
    """``load``, whose model must be one that the command was run on, if it is run again; see :func:`check_same`."""
    check_same(questions)

    def loaded() -> T:
        model: Any = load()
        if EXPECTED.get() is not None:
            check_same(model=model_block(model.name, facts_of(model)))
        return cast("T", model)

    return loaded


def _libraries(identity: Mapping[str, str]) -> dict[str, str]:
    names = ["torch", "transformers"] + ["peft"] * bool(identity.get("adapter config"))
    found = {name: identity[name] for name in names if identity.get(name)}
    return found | ({"tokenizers": metadata.version("tokenizers")} if found else {})


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
    """The day, or that of ``SOURCE_DATE_EPOCH``, so that equal runs can be made to give equal files on any day."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(fixed), UTC) if fixed.isdigit() else datetime.now(UTC)
    return moment.date().isoformat()
