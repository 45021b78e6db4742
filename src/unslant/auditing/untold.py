"""What one order leaves open, and the command that would tell."""

from __future__ import annotations

import math
from statistics import fmean
from typing import TYPE_CHECKING

from unslant.auditing.one_order import scored_texts
from unslant.auditing.presented import audit_presentations, orders_in_words
from unslant.auditing.settings import AuditSettings
from unslant.presentations import given_order, parse_labels, present
from unslant.prompts import Cloze
from unslant.reports.numbers import count

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult

CHARACTERS_A_TOKEN = 4
"""Of English text, about, where the model's tokenizer is not at hand."""
SAMPLED = 500
"""Prompts whose tokens are counted, at most; the others are taken to be as long on average."""


def untold(result: AuditResult) -> str:
    """What an audit of one order leaves open, and the command that would tell; empty for any other."""
    counts = result.metrics.counts
    if counts.one_order < counts.questions:
        return ""
    if scored_texts(result.responses):
        return (
            "each option scored by itself, so that order plays no part: `unslant audit MODEL FILE` shows them together"
        )
    settings = AuditSettings().resolved(not result.scores.is_scored)
    alphabet, cloze = parse_labels(settings.labels), Cloze(settings.writer())
    questions = [question for question in result.responses.questions if question.movable]
    asked: dict[tuple[int, tuple[int, ...]], tuple[int, int]] = {}  # orders and prompts of a kind of question
    tokens = []
    for question in questions[:: max(1, len(questions) // SAMPLED)]:
        kind = len(question.options), question.pinned
        if kind not in asked and result.scores.is_scored:
            shown = audit_presentations(question, settings.orders, alphabet)
            asked[kind] = sum(presentation.kind == "order" for presentation in shown), len(shown)
        elif kind not in asked:
            asked[kind] = (len(orders_in_words(question, settings.orders)),) * 2
        (prompt,) = cloze.prompts(present(question, given_order(question), alphabet))
        tokens.append(asked[kind][1] * len(prompt.as_text()) / CHARACTERS_A_TOKEN)
    told = "one order: whether the order matters cannot be known; `unslant audit MODEL FILE` would tell"
    if not tokens:
        return told
    orders = sorted({n for n, _ in asked.values()})
    span = f"{orders[0]} to " if len(orders) > 1 else ""
    return f"{told}, {span}{count(orders[-1], 'order')}, about {_about(fmean(tokens) * len(questions))} tokens"


def _about(number: float) -> str:
    """To two digits: 14,000."""
    return f"{round(number, 1 - math.floor(math.log10(max(number, 1)))):,.0f}"
