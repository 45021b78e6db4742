"""Metadata recorded with the responses of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from unslant.models import ChatCost, ChatModel, Cost, facts_of
from unslant.models.chat import Chat
from unslant.questions import Question, QuestionSet
from unslant.responses import Responses
from unslant.studies.provenance_block import model_block, provenance


def about(
    study: str,
    found: QuestionSet[Any],
    settings: Mapping[str, Any],
    model: Any,
    before: Cost | ChatCost | None = None,
    chosen: object = None,
) -> dict[str, Any]:
    """Model, questions, settings and provenance of a run; given its cost ``before``, also cost, engine and admissions.

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
    meta["provenance"] = provenance([model_block(str(meta["model"]), facts)], [found], chosen or settings)
    facts.pop("revision", None)
    if isinstance(before, ChatCost):
        meta |= {"requests": requests_of({model.name: (model, before)})}
        meta |= {"offline": True} if getattr(model, "offline", False) else {}
    elif before is not None:
        if spelled := facts.pop("special_tokens", None):  # by questions that this model was asked, now or earlier
            asked = {question.id for question in found}
            own = [question_id for question_id in spelled["questions"] if question_id in asked]
            facts |= {"special_tokens": spelled | {"questions": own}} if own else {}
        meta |= {**facts, "cost": asdict(model.cost - before)}
    return meta


def requests_of(asked: Mapping[str, tuple[ChatModel, ChatCost]]) -> dict[str, dict[str, Any]]:
    """What the replies of each model have cost since that moment, and why most of those failed that did."""
    return {
        name: asdict(model.cost - before)
        | {"error": next((text for text, _ in model.errors.most_common(1)), "")}
        | (model.answerers.facts if isinstance(model, Chat) else {})
        for name, (model, before) in asked.items()
    }


def with_meta(responses: Responses, meta: Mapping[str, Any], found: QuestionSet[Any]) -> Responses:
    """The responses with metadata as read back from a file, and the questions."""
    texts = tuple(question for question in found if isinstance(question, Question))
    return Responses(responses.table, json.loads(json.dumps(meta)), texts)
