"""Metadata recorded with the responses of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from unslant.models import Cost, facts_of
from unslant.questions import Question, QuestionSet
from unslant.responses import Responses


def about(
    study: str, found: QuestionSet[Any], settings: Mapping[str, Any], model: Any, before: Cost | None = None
) -> dict[str, Any]:
    """Model, questions and settings of a run; given its cost ``before``, also engine, cost and admissions."""
    meta = {
        "study": study,
        "model": model if isinstance(model, str) else model.name,
        "questions": found.name,
        "questions_digest": found.digest,
        "loading": asdict(found.report),
        "settings": dict(settings),
    }
    if before is not None:
        meta |= {**facts_of(model), "cost": asdict(model.cost - before)}
    return meta


def with_meta(responses: Responses, meta: Mapping[str, Any], found: QuestionSet[Any]) -> Responses:
    """The responses with metadata as read back from a file, and the questions."""
    texts = tuple(question for question in found if isinstance(question, Question))
    return Responses(responses.table, json.loads(json.dumps(meta)), texts)
