"""Bias left after debiasing: answers to every question, listed in other orders."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unslant.arrays import Floats, Jsonable
from unslant.debiasing.base import Debiaser, Outcome, left_out
from unslant.metrics import Bootstrap, Estimate, OrderScores, QuestionValues, measure
from unslant.metrics.bootstrap import RESAMPLES
from unslant.metrics.labels import CKLD_PSEUDO_COUNT, ckld, given_slots, label_bias, rstd
from unslant.metrics.order_rows import ROLES, OrderRows, order_scores
from unslant.metrics.order_spread import order_accuracy
from unslant.metrics.registry import bounds_of, metric
from unslant.metrics.scores import QuestionArrays
from unslant.presentations import Order, given_order, labels_for, orders_for, question_rng, reversed_order
from unslant.questions import Question

_SAME = 1e-6
SPREAD = "a spread: no interval, but a test by swaps"
MEASURES = ("pbm", "rstd", "ckld_smoothed", "fr", "accuracy", "acc_std")
"""The compared measures; raw CKLD is infinite if a label is never chosen."""
MEANS = ("accuracy", "pbm", "fr")
"""Those that are means over questions, whose change has an interval."""
INVARIANT = ("pbm", "fr", "acc_std")
"""Those that are 0 for every method whose answer does not depend on how options are listed."""
SWAPS = 2000
_NOISE = 1e-12
_CONSTRUCTED = "0 by construction: the answer does not depend on how options are listed"


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


@dataclass(frozen=True)
class Listings:
    """The debiased answers to questions in all their listings; aligned."""

    questions: Sequence[Question]
    named: Sequence[Sequence[tuple[str, Order]]]
    outcomes: Sequence[Sequence[Outcome]]
    alphabet: tuple[str, ...]

    @property
    def left_out(self) -> dict[str, int]:
        """Why questions have no answer, and how many."""
        return left_out([next((o for o in own if o.choice < 0), own[0]) for own in self.outcomes])

    @property
    def answered(self) -> frozenset[str]:
        """Ids of the questions that have an answer in every listing."""
        paired = zip(self.questions, self.outcomes, strict=True)
        return frozenset(question.id for question, own in paired if all(one.choice >= 0 for one in own))

    def scores(self, ids: Collection[str] | None = None) -> OrderScores:
        """The answers to questions of these ids (by default, to all that have any), as scores for the order metrics."""
        ids = self.answered if ids is None else ids
        kept = [q for q, question in enumerate(self.questions) if question.id in ids]
        questions, named = [self.questions[q] for q in kept], [self.named[q] for q in kept]
        return _order_scores(questions, named, [self.outcomes[q] for q in kept], self.alphabet)


def answer_listings(
    debiaser: Debiaser,
    questions: Sequence[Question],
    orders: str,
    alphabet: tuple[str, ...],
    seed: int,
    *,
    invariant: bool = False,
) -> Listings:
    """Answer every question in all its listings.

    Args:
        invariant: whether the method claims that listings do not matter. Each question is then answered as given and in
            one random listing; if all pairs agree, the other listings are assumed to, else every listing is answered.
    """
    named = [listing_orders(question, orders, seed) for question in questions]
    outcomes = _agreed(debiaser, questions, named, seed) if invariant else None
    if outcomes is None:
        found = iter(debiaser.answer([relisted(q, o) for q, own in zip(questions, named, strict=True) for _, o in own]))
        outcomes = [[next(found) for _ in own] for own in named]
    return Listings(questions, named, outcomes, alphabet)


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
        if (a.choice < 0) != (b.choice < 0):
            return None
        if a.choice >= 0 and (a.choice != order[b.choice] or np.abs(a.probs[list(order)] - b.probs).max() > _SAME):
            return None
    return [
        [
            outcome
            if outcome.choice < 0
            else replace(outcome, probs=outcome.probs[list(order)], choice=order.index(outcome.choice))
            for _, order in own
        ]
        for outcome, own in zip(given, named, strict=True)
    ]


@dataclass(frozen=True)
class Measured:
    """One method's per-question values, and estimates of :data:`MEASURES` and raw ``ckld``.

    Attributes:
        constructed: measures whose value says nothing, because the answer is the same however options are listed.
    """

    scores: OrderScores
    questions: QuestionValues
    estimates: Mapping[str, Estimate]
    constructed: tuple[str, ...] = ()

    @property
    def chance(self) -> float:
        """Share of options that are right, mean over questions with an answer; nan without any."""
        known = self.questions["chance"][self.scores.has_answer]
        return float(known.mean()) if len(known) else math.nan


def measured(scores: OrderScores, resamples: int = RESAMPLES, *, invariant: bool = False) -> Measured:
    """Compute the compared measures only.

    Args:
        invariant: whether the method claims that listings do not matter.
    """
    values = measure(scores)
    bootstrap = Bootstrap.of(scores, resamples=resamples)
    bias = label_bias(given_slots(scores))
    estimates = {
        "pbm": bootstrap.mean(values["pbm"], bounds=bounds_of("pbm")),
        "rstd": bias["rstd"],
        "ckld_smoothed": bias["ckld_smoothed"],
        "ckld": bias["ckld"],
        "fr": bootstrap.mean(values["fr"]),
        "accuracy": bootstrap.mean(values["accuracy"]),
        "acc_std": order_accuracy(scores)["acc_std"],
    }
    kept = invariant and all(not estimates[name].value > _SAME for name in INVARIANT)
    if kept:
        for name in INVARIANT:
            estimates[name] = Estimate.bare(estimates[name].value, estimates[name].n, _CONSTRUCTED)
    return Measured(scores, values, estimates, INVARIANT if kept else ())


@dataclass(frozen=True)
class Change(Jsonable):
    """How one measure differs from that of the undebiased model, on the same questions.

    Attributes:
        relative: (debiased - undebiased) / undebiased, as in P1 table 3; it has no interval, since a ratio to a small
            value has none that covers.
        difference: debiased - undebiased, paired by question; RStd, CKLD and AccStd have no interval, but ``p``.
        p: of "the method changes nothing" for those three: the share of random swaps of a question's two answers that
            move the measure as far (2,000 swaps, two-sided); ``nan`` for the others.
    """

    relative: Estimate
    difference: Estimate
    p: float


@dataclass(frozen=True, eq=False)
class PairedValues:
    """Debiased minus undebiased value of each of Q questions.

    Attributes:
        ids, subjects, contexts: (Q,) of the questions.
        values: measure that is a mean over questions -> (Q,) differences, nan where either has no value.
    """

    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    contexts: tuple[str, ...]
    values: Mapping[str, Floats]

    @classmethod
    def of(cls, now: Measured, before: Measured) -> PairedValues:
        """Of a method's answers and the undebiased model's, to the same questions."""
        about = now.scores
        values = {name: now.questions[name] - before.questions[name] for name in MEANS}
        return cls(tuple(about.ids), tuple(about.subjects), tuple(about.contexts), values)


@metric("change.relative", "change", "of the undebiased model's", digits=0, unit="%", signed=True, source="P1 table 3")
@metric("change.difference", "difference", "to the undebiased model, same questions", unit="difference")
@metric("change.p", "p", "both answers to a question change places at random: the method changes nothing", unit="p")
def changes(now: Measured, before: Measured, paired: PairedValues) -> dict[str, Change]:
    """The change of every measure of :data:`MEASURES`."""
    bootstrap, p = Bootstrap.of(now.scores), swap_tests(now.scores, before.scores)
    found = {}
    for name in MEASURES:
        old, new = before.estimates[name], now.estimates[name]
        if not (old.defined and new.defined):
            nothing = Estimate.undefined("no value to compare", new.n)
            found[name] = Change(nothing, nothing, math.nan)
            continue
        if name in MEANS:
            difference = bootstrap.mean(paired.values[name], bounds=bounds_of_change(name))
        else:
            difference = Estimate.bare(new.value - old.value, new.n, SPREAD)
        if old.value == 0:
            relative = Estimate.undefined("the undebiased value is 0", new.n)
        else:
            relative = Estimate.bare((new.value - old.value) / old.value, new.n, "relative: see the difference")
        found[name] = Change(relative, difference, p.get(name, math.nan))
    return found


def bounds_of_change(name: str) -> tuple[float, float]:
    """Least and greatest change of a measure on one question."""
    low, high = bounds_of(name)
    return low - high, high - low


def swap_tests(now: OrderScores, before: OrderScores, seed: int = 0) -> dict[str, float]:
    """Two-sided p-values of "both answer alike", for the measures that are no means over questions.

    If they do, the two sets of answers to a question may change places; see :attr:`Change.p`. Questions are the same,
    in the same orders.
    """
    swaps = np.random.default_rng(seed).integers(2, size=(SWAPS + 1, len(now))).astype(np.float64)
    swaps[0] = 0  # as it is
    first, second = (_slot_counts(scores) for scores in (now, before))
    moved = swaps @ (second - first)
    totals = first.sum(axis=0) + moved, second.sum(axis=0) - moved
    found = {
        "rstd": rstd(totals[0]) - rstd(totals[1]),
        "ckld_smoothed": ckld(totals[0], CKLD_PSEUDO_COUNT) - ckld(totals[1], CKLD_PSEUDO_COUNT),
        "acc_std": _spread_changes(now, before, swaps),
    }
    return {name: _share_as_far(values) for name, values in found.items()}


def _slot_counts(scores: OrderScores) -> Floats:
    """(Q, 3N) gold, hit and predicted of the questions with one right option; zeros for the others."""
    slots = given_slots(scores)
    single = ~np.isnan(slots.gold[:, :1])
    return np.concatenate(
        [np.where(single, np.nan_to_num(x), 0.0) for x in (slots.gold, slots.hit, slots.predicted)], 1
    )


def _spread_changes(now: OrderScores, before: OrderScores, swaps: Floats) -> Floats:
    """(R,) change of AccStd under every row of swaps."""
    variances = np.zeros((2, len(swaps)))
    total = 0
    for block, old in zip(now.blocks, before.blocks, strict=True):
        first, second = block.right, old.right
        kept = np.isfinite(first[:, 0]) & np.isfinite(second[:, 0])
        moved = swaps[:, block.index[kept]] @ (second - first)[kept]
        total += int(kept.sum())
        for side, sums in enumerate((first[kept].sum(axis=0) + moved, second[kept].sum(axis=0) - moved)):
            variances[side] += sums.var(axis=1)
    spread: Floats = (np.sqrt(variances[0]) - np.sqrt(variances[1])) / max(total, 1)
    return spread


def _share_as_far(values: Floats) -> float:
    """Share of values as far from 0 as the first, that one included."""
    if not np.isfinite(values[0]):
        return math.nan
    return float((np.abs(values) >= abs(values[0]) - _NOISE).mean())
