"""Metadata recorded with the responses of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from unslant.models import Cost, facts_of
from unslant.questions import Question, QuestionSet
from unslant.responses import Responses
from unslant.studies.provenance_block import model_block, provenance


def about(
    study: str,
    found: QuestionSet[Any],
    settings: Mapping[str, Any],
    model: Any,
    before: Cost | None = None,
    chosen: object = None,
) -> dict[str, Any]:
    """Model, questions, settings and provenance of a run; given its cost ``before``, also engine, cost and admissions.

    Args:
        chosen: every setting, by default ``settings``.
    """
    meta: dict[str, Any] = {
        "study": study,
        "model": model if isinstance(model, str) else model.name,
        "questions": found.name,
        "questions_digest": found.digest,
        "loading": asdict(found.report),
        "settings": dict(settings),
    }
    facts: dict[str, Any] = {} if before is None else facts_of(model)
    block = model_block(str(meta["model"]), facts)
    facts.pop("revision", None)
    meta["provenance"] = provenance([block], [found], chosen or settings)
    if before is not None:
        if spelled := facts.pop("special_tokens", None):  # by questions that this model was asked, now or earlier
            asked = {question.id for question in found}
            own = [question_id for question_id in spelled["questions"] if question_id in asked]
            facts |= {"special_tokens": spelled | {"questions": own}} if own else {}
        meta |= {**facts, "cost": asdict(model.cost - before)}
    return meta


def with_meta(responses: Responses, meta: Mapping[str, Any], found: QuestionSet[Any]) -> Responses:
    """The responses with metadata as read back from a file, and the questions."""
    texts = tuple(question for question in found if isinstance(question, Question))
    return Responses(responses.table, json.loads(json.dumps(meta)), texts)
