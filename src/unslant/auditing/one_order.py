"""What one order shows (shortcuts, the length of scored texts), and what it leaves open."""

from __future__ import annotations

from statistics import fmean

import numpy as np

from unslant.auditing.phases import MOST_WHOLE, PART
from unslant.auditing.presented import audit_presentations, orders_in_words, square_presentations
from unslant.auditing.settings import AuditSettings
from unslant.metrics import Bootstrap, Numbers, OrderScores
from unslant.metrics.length_bias import length_bias
from unslant.metrics.shortcuts import Shortcut, shortcuts
from unslant.metrics.summary import Counts
from unslant.presentations import auto_square, given_order, parse_labels, present
from unslant.prompts import Cloze
from unslant.reports.numbers import about, count
from unslant.responses import Responses

CHARACTERS_A_TOKEN = 4
"""Of English text, about, where the model's tokenizer is not at hand."""
SAMPLED = 500
"""Prompts whose tokens are counted, at most; the others are taken to be as long on average."""


def scored_texts(responses: Responses) -> bool:
    """Whether texts of options were scored, in place of labels."""
    logged, harness = responses.run.logged, responses.run.lm_eval
    if logged and logged.scores in ("texts", "listed"):
        return True
    return harness is not None and any(task.scored != "labels" for task in harness.tasks.values())


def unlisted(responses: Responses) -> bool:
    """Whether each option was scored without the others on the page, so that their order plays no part."""
    logged = responses.run.logged
    return scored_texts(responses) and not (logged and logged.scores == "listed")


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


def left_open(responses: Responses, scores: OrderScores, counts: Counts) -> str:
    """What an audit of one order leaves open, and the command that would settle it; empty for any other."""
    if counts.one_order < counts.questions:
        return ""
    if unlisted(responses):
        return (
            "Each option was scored by itself, so order plays no part; `unslant audit MODEL FILE` shows them together."
        )
    settings = AuditSettings().resolved(not scores.is_scored)
    alphabet, cloze = parse_labels(settings.labels), Cloze(settings.writer())
    questions = [question for question in responses.questions if question.movable]
    asked: dict[tuple[int, tuple[int, ...]], tuple[int, float]] = {}  # orders and prompts of a kind of question
    part = PART / len(questions) if len(questions) > MOST_WHOLE else 1.0
    tokens = []
    for question in questions[:: max(1, len(questions) // SAMPLED)]:
        kind = len(question.options), question.pinned
        if kind not in asked and scores.is_scored:
            shown = audit_presentations(question, settings.orders, alphabet)
            square = len(square_presentations(question, auto_square(question), alphabet))
            asked[kind] = sum(one.kind == "order" for one in shown), part * len(shown) + (1 - part) * square
        elif kind not in asked:
            asked[kind] = (len(orders_in_words(question, settings.orders)),) * 2
        (prompt,) = cloze.prompts(present(question, given_order(question), alphabet))
        tokens.append(asked[kind][1] * len(prompt.as_text()) / CHARACTERS_A_TOKEN)
    open_question = "Whether the order matters is not known from one; `unslant audit MODEL FILE` would settle it"
    if not tokens:
        return f"{open_question}."
    orders = sorted({n for n, _ in asked.values()})
    span = f"{orders[0]} to " if len(orders) > 1 else ""
    return (
        f"{open_question}, in {span}{count(orders[-1], 'order')}, about {about(fmean(tokens) * len(questions))} tokens."
    )
