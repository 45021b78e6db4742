"""Bias left after debiasing: answers to every question, listed in other orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unslant.arrays import Floats
from unslant.debias import Debiaser, Outcome
from unslant.metrics import Bootstrap, Estimate, OrderScores, QuestionMeasures, measure
from unslant.metrics.bootstrap import RESAMPLES
from unslant.metrics.labels import given_slots, label_bias
from unslant.metrics.order_rows import ROLES, OrderRows, order_scores
from unslant.metrics.order_spread import order_accuracy
from unslant.metrics.scores import QuestionArrays
from unslant.presentations import Order, given_order, labels_for, orders_for, question_rng, reversed_order
from unslant.questions import Question

_SAME = 1e-6
MEASURES = ("pbm", "rstd", "ckld_smoothed", "fr", "accuracy", "acc_std")
"""The compared measures; raw CKLD is infinite if a label is never chosen."""


def relisted(question: Question, order: Order) -> Question:
    """The question with its options listed in ``order``."""
    place = {content: position for position, content in enumerate(order)}
    return replace(
        question,
        options=tuple(question.options[i] for i in order),
        answers=frozenset(place[i] for i in question.answers),
        pinned=tuple(sorted(place[i] for i in question.pinned)),
    )


def listing_orders(question: Question, orders: str, seed: int) -> list[tuple[str, Order]]:
    """Name and order of every listing: the order set, plus given and reversed where not already included."""
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
    """The debiased answers to all listings, as scores for the order metrics.

    Args:
        invariant: whether the method claims that listings do not matter. Each question is then answered as given and in
            one random listing; if all pairs agree, the other listings are assumed to, else every listing is answered.
    """
    named = [listing_orders(question, orders, seed) for question in questions]
    outcomes = _agreed(debiaser, questions, named, seed) if invariant else None
    if outcomes is None:
        found = iter(debiaser.answer([relisted(q, o) for q, own in zip(questions, named, strict=True) for _, o in own]))
        outcomes = [[next(found) for _ in own] for own in named]
    return _order_scores(questions, named, outcomes, alphabet)


def _order_scores(
    questions: Sequence[Question],
    named: Sequence[Sequence[tuple[str, Order]]],
    outcomes: Sequence[Sequence[Outcome]],
    alphabet: tuple[str, ...],
) -> OrderScores:
    """The scores of answers to listings; ties are broken as the method did."""
    by_id = sorted(range(len(questions)), key=lambda q: questions[q].id)
    arrays = QuestionArrays.of([questions[q] for q in by_id])
    groups = {}
    for n in map(int, np.unique(arrays.n_options)):
        rows = [
            (place, ROLES.index(name), order, outcome.probs / outcome.probs.sum(), order[outcome.choice])
            for place, q in enumerate(by_id)
            if len(questions[q].options) == n
            for (name, order), outcome in zip(named[q], outcomes[q], strict=True)
        ]
        question, role, contents, by_position, decided = map(np.asarray, zip(*rows, strict=True))
        groups[n] = OrderRows(question, role, contents, by_position, np.ones(len(rows), bool), decided)
    return order_scores(arrays, groups, labels_for(alphabet, arrays.width))


def _agreed(
    debiaser: Debiaser, questions: Sequence[Question], named: Sequence[Sequence[tuple[str, Order]]], seed: int
) -> list[list[Outcome]] | None:
    """Answers to every listing, in its own order, if two listings of each question agree; else ``None``."""
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


@dataclass(frozen=True)
class Measured:
    """One method's per-question values, and estimates of :data:`MEASURES` and raw ``ckld``."""

    scores: OrderScores
    questions: QuestionMeasures
    estimates: Mapping[str, Estimate]


def measured(scores: OrderScores, resamples: int = RESAMPLES) -> Measured:
    """Compute the compared measures only."""
    values = measure(scores)
    bootstrap = Bootstrap.of(scores, resamples=resamples)
    bias = label_bias(given_slots(scores))
    estimates = {
        "pbm": bootstrap.mean(values.pbm, share=False, bounds=(0.0, 0.25)),
        "rstd": bias.rstd,
        "ckld_smoothed": bias.ckld_smoothed,
        "ckld": bias.ckld,
        "fr": bootstrap.mean(values.fr),
        "accuracy": bootstrap.mean(values.accuracy),
        "acc_std": order_accuracy(scores).acc_std,
    }
    return Measured(scores, values, estimates)


def changes(now: Measured, before: Measured) -> dict[str, Estimate]:
    """Relative change of every measure, (debiased - undebiased) / undebiased, on the same questions.

    Means over questions have a bootstrap interval over pairs; the others have none.
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
            value, nan = (new.value - old.value) / old.value, float("nan")
            found[name] = Estimate(value, nan, nan, new.n, "none", note="change of the value; see its own interval")
    return found


def _relative(totals: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        change: Floats = (totals[:, 0] - totals[:, 1]) / totals[:, 1]
    change[~np.isfinite(change)] = np.nan
    return change
