"""What a debiased model still does with order: its answers to every question, listed in other orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from unslant.debias import Debiaser, Outcome
from unslant.metrics import Bootstrap, Estimate, OrderScores, QuestionMeasures, measure
from unslant.metrics.bootstrap import RESAMPLES
from unslant.metrics.labels import given_slots, label_bias
from unslant.metrics.order_spread import order_accuracy
from unslant.presentations import given_order, orders_for, present, question_rng, reversed_order
from unslant.questions.question import Question
from unslant.responses.table import Response, Responses

Order = tuple[int, ...]
_DECISIVE = 1 + 1e-8
_SAME = 1e-6
MEASURES = ("pbm", "rstd", "ckld", "fr", "accuracy", "acc_std")
"""What the table compares; CKLD is the smoothed one, the raw one being infinite for a label that is never answered."""


def relisted(question: Question, order: Order) -> Question:
    """The same question as a file that lists its options in ``order`` would have it."""
    place = {content: position for position, content in enumerate(order)}
    return replace(
        question,
        options=tuple(question.options[i] for i in order),
        answers=frozenset(place[i] for i in question.answers),
        pinned=tuple(sorted(place[i] for i in question.pinned)),
    )


def listing_orders(question: Question, orders: str, seed: int) -> list[tuple[str, Order]]:
    """Name and order of every listing: the order set, then the given and the reversed order if it lacks them."""
    found = orders_for(question, orders, seed)
    named = [("order", order) for order in found]
    for name, order in (("given", given_order(question)), ("reverse", reversed_order(question))):
        if order not in found and order not in [listed for _, listed in named]:
            named.append((name, order))
    return named


def listing_scores(
    debiaser: Debiaser,
    questions: Sequence[Question],
    orders: str,
    alphabet: tuple[str, ...],
    seed: int,
    *,
    invariant: bool = False,
) -> OrderScores:
    """The debiased answers to all listings, as the scores every order metric is computed from.

    Args:
        invariant: the method claims that listings make no difference. Each question is then answered as given and in
            one other of its listings, drawn by the seed; where the two agree, the rest are taken to. Any two that
            disagree, and every listing is answered.
    """
    named = [listing_orders(question, orders, seed) for question in questions]
    outcomes = _agreed(debiaser, questions, named, seed) if invariant else None
    if outcomes is None:
        found = iter(debiaser.answer([relisted(q, o) for q, own in zip(questions, named, strict=True) for _, o in own]))
        outcomes = [[next(found) for _ in own] for own in named]
    rows = []
    for question, own, answers in zip(questions, named, outcomes, strict=True):
        for (name, order), outcome in zip(own, answers, strict=True):
            shown = present(question, order, alphabet, name)
            with np.errstate(divide="ignore"):
                rows.append(Response.scored(question, shown, "cloze", np.log(_weights(outcome))))
    return OrderScores.from_responses(Responses.from_rows(rows))


def _agreed(
    debiaser: Debiaser, questions: Sequence[Question], named: Sequence[Sequence[tuple[str, Order]]], seed: int
) -> list[list[Outcome]] | None:
    """Every listing's answer, in the listing's own sequence, if two listings of each question have the same answer."""
    drawn = [
        question_rng(question.id, seed, "listing").choice([order for _, order in own])
        for question, own in zip(questions, named, strict=True)
    ]
    given = debiaser.answer(questions)
    other = debiaser.answer([relisted(question, order) for question, order in zip(questions, drawn, strict=True)])
    for a, b, order in zip(given, other, drawn, strict=True):
        if a.choice != order[b.choice] or np.abs(a.probs[list(order)] - b.probs).max() > _SAME:
            return None
    return [
        [replace(outcome, probs=outcome.probs[list(order)], choice=order.index(outcome.choice)) for _, order in own]
        for outcome, own in zip(given, named, strict=True)
    ]


def _weights(outcome: Outcome) -> NDArray[np.float64]:
    """Probabilities in which the method's own way of breaking a tie shows, by a hair."""
    weights = outcome.probs.copy()
    weights[outcome.choice] *= _DECISIVE
    return weights


@dataclass(frozen=True)
class Measured:
    """One method's answers, measured.

    Attributes:
        questions: the per-question values.
        estimates: :data:`MEASURES` and ``ckld_raw``.
    """

    scores: OrderScores
    questions: QuestionMeasures
    estimates: Mapping[str, Estimate]


def measured(scores: OrderScores, resamples: int = RESAMPLES) -> Measured:
    """The compared measures, out of all that :func:`unslant.metrics.compute` has."""
    values = measure(scores)
    bootstrap = Bootstrap.of(scores, resamples=resamples)
    bias = label_bias(given_slots(scores))
    estimates = {
        "pbm": bootstrap.mean(values.pbm, share=False, bounds=(0.0, 0.25)),
        "rstd": bias.rstd,
        "ckld": bias.ckld_smoothed,
        "ckld_raw": bias.ckld,
        "fr": bootstrap.mean(values.fr),
        "accuracy": bootstrap.mean(values.accuracy),
        "acc_std": order_accuracy(scores).std,
    }
    return Measured(scores, values, estimates)


def changes(now: Measured, before: Measured) -> dict[str, Estimate]:
    """Relative change of every measure, (debiased - undebiased) / undebiased, on the same questions.

    Means over questions have a bootstrap interval over the pairs; for the others the change of the value alone is
    known, and the intervals of the two values tell how much it is worth.
    """
    bootstrap = Bootstrap(len(now.scores), now.scores.subjects)
    found = {}
    for name in MEASURES:
        old, new = before.estimates[name], now.estimates[name]
        if not (old.defined and new.defined) or old.value == 0:
            note = "the undebiased value is 0" if old.value == 0 else "no value to compare"
            found[name] = Estimate.undefined(note, new.n)
        elif name in ("pbm", "fr", "accuracy"):
            a, b = getattr(now.questions, name), getattr(before.questions, name)
            both = ~(np.isnan(a) | np.isnan(b))
            features = np.column_stack([np.where(both, a, 0.0), np.where(both, b, 0.0)])
            found[name] = bootstrap.statistic(features, _relative, int(both.sum()))
        else:
            value = (new.value - old.value) / old.value
            nan = float("nan")
            found[name] = Estimate(value, nan, nan, new.n, "none", note="change of the value; see its own interval")
    return found


def _relative(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore", divide="ignore"):
        change: NDArray[np.float64] = (totals[:, 0] - totals[:, 1]) / totals[:, 1]
    change[~np.isfinite(change)] = np.nan
    return change
