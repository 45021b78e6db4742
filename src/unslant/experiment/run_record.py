"""The :class:`~unslant.responses.run.Run` of what a study has asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from unslant.experiment.provenance_block import model_block, provenance
from unslant.models import ChatCost, ChatModel, Cost, facts_of
from unslant.questions import Question, QuestionSet
from unslant.responses import Responses, Run


def run_of(
    study: str,
    questions: QuestionSet[Any],
    settings: Mapping[str, Any],
    model: Any,
    before: Cost | ChatCost | None = None,
    chosen: object = None,
) -> Run:
    """Model, questions, settings and provenance of a run; given its cost ``before``, also cost, engine and caveats.

    Args:
        model: a model, or its name where nothing was asked.
        chosen: every setting, by default ``settings``.
    """
    facts: dict[str, Any] = {} if before is None else facts_of(model)
    name = model if isinstance(model, str) else model.name
    made_with = provenance([model_block(name, facts)], [questions], chosen or settings)
    run = Run(
        study=study,
        model=name,
        questions=questions.name,
        questions_digest=questions.digest,
        loading=questions.report,
        settings=json.loads(json.dumps(dict(settings))),  # as a file gives them back
        provenance=made_with,
    )
    if isinstance(before, ChatCost):
        asked_here = requests_of({name: (model, before)})
        return replace(run, requests=asked_here, offline=facts.get("offline", False), **answerers(model))
    if before is None:
        return run
    facts.pop("revision", None)  # in the provenance
    if spelled := facts.get("special_tokens"):  # by questions that this model was asked, now or for another run
        asked = {question.id for question in questions}
        own = tuple(question_id for question_id in spelled.questions if question_id in asked)
        facts["special_tokens"] = replace(spelled, questions=own) if own else None
    return replace(run, **facts, cost=model.cost - before)


def answerers(model: ChatModel) -> dict[str, Any]:
    """Fields of a run that say who replied; see :class:`unslant.responses.run.AnsweredBy`."""
    return dict(model.answerers.facts)


def requests_of(asked: Mapping[str, tuple[ChatModel, ChatCost]]) -> dict[str, ChatCost]:
    """What the replies of each model have cost since that moment, and why most of those failed that did."""

    def why(model: ChatModel) -> str:  # of equally common errors the first by name, whichever came first
        return min(model.errors, key=lambda text: (-model.errors[text], text), default="")

    return {name: replace(model.cost - before, error=why(model)) for name, (model, before) in asked.items()}


def with_run(responses: Responses, run: Run, questions: QuestionSet[Any]) -> Responses:
    """The responses with their run and the questions that have texts."""
    texts = tuple(question for question in questions if isinstance(question, Question))
    return Responses(responses.table, run, texts)
