"""What one order tells: shortcuts, and the length of scored texts."""

from __future__ import annotations

import numpy as np

from unslant.metrics import Bootstrap, Numbers, OrderScores
from unslant.metrics.length_bias import length_bias
from unslant.metrics.shortcuts import Shortcut, shortcuts
from unslant.responses import Responses


def scored_texts(responses: Responses) -> bool:
    """Whether texts of options were scored, each by itself, so that their order plays no part."""
    logged, harness = responses.run.logged, responses.run.lm_eval
    if logged and logged.scores == "texts":
        return True
    return harness is not None and any(task.scored != "labels" for task in harness.tasks.values())


def shortcuts_of(responses: Responses, scores: OrderScores, bootstrap: Bootstrap) -> tuple[Shortcut, ...]:
    """Test-taking shortcuts against the answers as given; empty where the texts of questions are not known."""
    place = {name: q for q, name in enumerate(scores.ids)}
    questions = [question for question in responses.questions if question.id in place]
    rows = [place[question.id] for question in questions]
    chosen = np.where(scores.given.ok, scores.given.chosen, -1)[rows]
    if not any(question.answers for question in questions):
        return ()
    if len(questions) < len(scores):
        return shortcuts(questions, chosen)
    return shortcuts(questions, chosen, bootstrap=bootstrap, rows=rows)


def length_bias_of(responses: Responses, scores: OrderScores, bootstrap: Bootstrap) -> Numbers | None:
    """Length bias of a log with scores of option texts; None for others."""
    if responses.run.logged is None or not scored_texts(responses):
        return None
    place = {name: q for q, name in enumerate(scores.ids)}
    logprobs, lengths = (np.full(scores.answers.shape, np.nan) for _ in range(2))
    for question in responses.questions:
        if question.id in place:
            lengths[place[question.id], : len(question.options)] = [len(option.strip()) for option in question.options]
    for row in responses.rows():
        if row.logprobs is not None and not row.repeat:
            logprobs[place[row.question_id], list(row.contents)] = row.logprobs
    return length_bias(logprobs, lengths, scores.answers, bootstrap)
