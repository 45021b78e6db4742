"""Bias left after debiasing: answers to every question, listed in other orders."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unslant.arrays import Bools, Floats, Jsonable
from unslant.debiasing.base import Debiaser, Outcome, left_out
from unslant.metrics import Bootstrap, Estimate, OrderScores, QuestionValues, measure
from unslant.metrics.bootstrap import spread_answers
from unslant.metrics.label_bias import CKLD_PSEUDO_COUNT, ckld, label_bias, rstd, slot_counts
from unslant.metrics.labels import given_slots
from unslant.metrics.permutation import order_accuracy
from unslant.metrics.read_scores import order_scores
from unslant.metrics.registry import bounds_of, metric
from unslant.metrics.sampling import Sampling
from unslant.metrics.scores import ROLES, OrderRows, QuestionArrays
from unslant.presentations import Order, given_order, labels_for, orders_for, question_rng, reversed_order
from unslant.questions import Question
from unslant.responses import text_ranks

_SAME = 1e-6
SPREAD = "a spread: no interval, but a test by swaps"
MEASURES = ("pbm", "rstd", "ckld_smoothed", "fr", "accuracy", "acc_std")
"""The compared measures; raw CKLD is not one of them, because it is infinite if a label is never chosen."""
MEANS = ("accuracy", "pbm", "fr")
"""Those that are means over questions, whose change has an interval."""
INVARIANT = ("pbm", "fr", "acc_std")
"""Those that are 0 for every method whose answer does not depend on how options are listed."""
SWAPS = 2000
_NOISE = 1e-12
_CONSTRUCTED = "0 by construction: the answer does not depend on how options are listed"


def listing_orders(question: Question, orders: str, seed: int) -> list[tuple[str, Order]]:
    """Name and order of every listing: the order set, plus given and reversed where not already included."""
    names = dict.fromkeys(orders_for(question, orders, seed), "order")
    names.setdefault(given_order(question), "given")
    names.setdefault(reversed_order(question), "reverse")
    return [(name, order) for order, name in names.items()]


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
        return left_out([min(outcomes, key=lambda outcome: outcome.choice >= 0) for outcomes in self.outcomes])

    @property
    def answered(self) -> frozenset[str]:
        """Ids of the questions that have an answer in every listing."""
        paired = zip(self.questions, self.outcomes, strict=True)
        return frozenset(question.id for question, outcomes in paired if all(one.choice >= 0 for one in outcomes))

    def scores(self, ids: Collection[str] | None = None) -> OrderScores:
        """The answers to questions of these ids (by default, to all that have any), as scores for the order metrics."""
        ids = self.answered if ids is None else ids
        by_id = sorted(
            (q for q, question in enumerate(self.questions) if question.id in ids), key=lambda q: self.questions[q].id
        )
        arrays = QuestionArrays.of(
            (q.id, q.subject, len(q.options), q.answers, q.pinned, text_ranks(q.options), q.context)
            for q in (self.questions[q] for q in by_id)
        )
        groups = {}
        for n in map(int, np.unique(arrays.n_options)):
            # The role of the row's listing, its content at each place, probabilities by place, and the choice: ties
            # stay broken as the method broke them.
            rows = [
                (place, ROLES.index(name), order, outcome.probs / outcome.probs.sum(), order[outcome.choice])
                for place, q in enumerate(by_id)
                if len(self.questions[q].options) == n
                for (name, order), outcome in zip(self.named[q], self.outcomes[q], strict=True)
            ]
            question, role, contents, by_position, choice = map(np.asarray, zip(*rows, strict=True))
            groups[n] = OrderRows(question, role, contents, by_position, np.ones(len(rows), bool), choice)
        return order_scores(arrays, groups, labels_for(self.alphabet, arrays.width))


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
        invariant: whether the method claims that listings do not matter. Each question is then answered as published
            and in one random listing; if all pairs agree, the other listings are assumed to agree as well, otherwise
            every listing is answered.
    """
    named = [listing_orders(question, orders, seed) for question in questions]
    outcomes = _agreed(debiaser, questions, named, seed) if invariant else None
    if outcomes is None:
        listings = [q.relisted(order) for q, pairs in zip(questions, named, strict=True) for _, order in pairs]
        answers = iter(debiaser.answer(listings))
        outcomes = [[next(answers) for _ in pairs] for pairs in named]
    return Listings(questions, named, outcomes, alphabet)


def _agreed(
    debiaser: Debiaser, questions: Sequence[Question], named: Sequence[Sequence[tuple[str, Order]]], seed: int
) -> list[list[Outcome]] | None:
    """Answers to every listing, in its own order, if two listings of each question agree; else ``None``."""
    orders = [
        question_rng(question.id, seed, "listing").choice([order for _, order in pairs])
        for question, pairs in zip(questions, named, strict=True)
    ]
    published = debiaser.answer(questions)
    other = debiaser.answer([question.relisted(order) for question, order in zip(questions, orders, strict=True)])
    for a, b, order in zip(published, other, orders, strict=True):
        if (a.choice < 0) != (b.choice < 0):
            return None
        if a.choice >= 0 and (a.choice != order[b.choice] or np.abs(a.probs[list(order)] - b.probs).max() > _SAME):
            return None
    return [
        [
            outcome
            if outcome.choice < 0
            else replace(outcome, probs=outcome.probs[list(order)], choice=order.index(outcome.choice))
            for _, order in pairs
        ]
        for outcome, pairs in zip(published, named, strict=True)
    ]


@dataclass(frozen=True)
class MethodMeasures:
    """One method's per-question values, and estimates of :data:`MEASURES` and raw ``ckld``.

    Attributes:
        constructed: measures that are 0 by construction, because the answer does not depend on the listing.
    """

    scores: OrderScores
    questions: QuestionValues
    estimates: Mapping[str, Estimate]
    constructed: tuple[str, ...] = ()

    @property
    def chance(self) -> float:
        """Share of options that are right, mean over questions with an answer; nan without any."""
        chances = self.questions["chance"][self.scores.has_answer]
        return float(chances.mean()) if len(chances) else math.nan


def measured(scores: OrderScores, *, invariant: bool = False) -> MethodMeasures:
    """The compared measures; ``invariant``: whether the method claims that listings do not matter."""
    values = measure(scores)
    bootstrap = Bootstrap.of(scores)
    bias = label_bias(given_slots(scores))
    estimates = {
        "pbm": bootstrap.mean(values["pbm"], bounds=bounds_of("pbm"), room="bounds, unsure"),
        **{key: bias[key] for key in ("rstd", "ckld_smoothed", "ckld")},
        "fr": bootstrap.mean(values["fr"], room="bounds, unsure"),
        "accuracy": bootstrap.mean(values["accuracy"], room="bounds, unsure"),
        "acc_std": order_accuracy(scores)["acc_std"],
    }
    # A method's claim to be invariant counts only if its answers bear it out.
    constructed = INVARIANT if invariant and all(not estimates[name].value > _SAME for name in INVARIANT) else ()
    for name in constructed:
        estimates[name] = Estimate.bare(estimates[name].value, estimates[name].n, _CONSTRUCTED)
    return MethodMeasures(scores, values, estimates, constructed)


@dataclass(frozen=True)
class MeasureChange(Jsonable):
    """How one measure differs from that of the undebiased model, on the same questions.

    Attributes:
        relative: (debiased - undebiased) / undebiased, as in P1 table 3; it has no interval, since a ratio to a small
            value has none that covers.
        difference: debiased - undebiased, paired by question; RStd, CKLD and AccStd have no interval, but ``p``.
        p: of "the method changes nothing" for those three: the share of random swaps of a question's two answers that
            move the measure at least as far (2,000 swaps, two-sided); ``nan`` for the others.
    """

    relative: Estimate
    difference: Estimate
    p: float


@dataclass(frozen=True, eq=False)
class PairedValues:
    """Debiased minus undebiased value of each of Q questions.

    Attributes:
        ids, subjects, contexts: (Q,) of the questions.
        values: measure that is a mean over questions -> (Q,) differences, nan where either value is missing.
        unsure: (Q,) where answers are shared among options before debiasing or after it.
    """

    ids: tuple[str, ...]
    subjects: tuple[str, ...]
    contexts: tuple[str, ...]
    values: Mapping[str, Floats]
    unsure: Bools

    @classmethod
    def of(cls, now: MethodMeasures, before: MethodMeasures) -> PairedValues:
        """From a method's and the undebiased model's answers to the same questions."""
        scores = now.scores
        values = {name: now.questions[name] - before.questions[name] for name in MEANS}
        unsure = spread_answers(scores) | spread_answers(before.scores)
        return cls(tuple(scores.ids), tuple(scores.subjects), tuple(scores.contexts), values, unsure)


@metric("change.relative", "change", "of the undebiased model's", digits=0, unit="%", signed=True, source="P1 table 3")
@metric("change.difference", "difference", "to the undebiased model, same questions", unit="difference")
@metric("change.p", "p", "test that the method changes nothing, swapping both answers at random", unit="p")
def changes(now: MethodMeasures, before: MethodMeasures, paired: PairedValues) -> dict[str, MeasureChange]:
    """The change of every measure of :data:`MEASURES`."""
    p = swap_tests(now.scores, before.scores)
    bootstrap = Bootstrap(len(paired.ids), paired.subjects, contexts=paired.contexts, unsure=paired.unsure)
    by_measure = {}
    for name in MEASURES:
        old, new = before.estimates[name], now.estimates[name]
        if not (old.defined and new.defined):
            nothing = Estimate.undefined("no value to compare", new.n)
            by_measure[name] = MeasureChange(nothing, nothing, math.nan)
            continue
        difference = Estimate.bare(new.value - old.value, new.n, SPREAD)
        if name in MEANS:
            difference = bootstrap.mean(paired.values[name], bounds=bounds_of_change(name), room="bounds, unsure")
        relative = Estimate.undefined("the undebiased value is 0", new.n)
        if old.value != 0:
            relative = Estimate.bare((new.value - old.value) / old.value, new.n, "relative: see the difference")
        by_measure[name] = MeasureChange(relative, difference, p.get(name, math.nan))
    return by_measure


def bounds_of_change(name: str) -> tuple[float, float]:
    """Least and greatest change of a measure on one question."""
    low, high = bounds_of(name)
    return low - high, high - low


def swap_tests(now: OrderScores, before: OrderScores, seed: int = 0) -> dict[str, float]:
    """Two-sided p-values of "the method changes nothing", for the measures that are not means over questions.

    Under that hypothesis a question's two sets of answers are exchangeable; see :attr:`MeasureChange.p`. Both must
    answer the same questions in the same orders. Questions that share a passage change places together.
    """
    unit = Sampling(len(now), None, now.contexts).unit
    picks = np.random.default_rng(seed).integers(2, size=(SWAPS + 1, unit.max(initial=-1) + 1))
    swaps = picks[:, unit].astype(np.float64)
    swaps[0] = 0  # the observed answers
    first, second = (slot_counts(given_slots(scores)) for scores in (now, before))
    moved = swaps @ (second - first)
    totals = first.sum(axis=0) + moved, second.sum(axis=0) - moved
    changes_of = {
        "rstd": rstd(totals[0]) - rstd(totals[1]),
        "ckld_smoothed": ckld(totals[0], CKLD_PSEUDO_COUNT) - ckld(totals[1], CKLD_PSEUDO_COUNT),
        "acc_std": _spread_changes(now, before, swaps),
    }
    # _NOISE: swaps that give the observed value again may differ from it by rounding.
    return {
        name: float((np.abs(values) >= abs(values[0]) - _NOISE).mean()) if np.isfinite(values[0]) else math.nan
        for name, values in changes_of.items()
    }


def _spread_changes(now: OrderScores, before: OrderScores, swaps: Floats) -> Floats:
    """(R,) change of AccStd under every row of swaps."""
    variances = np.zeros((2, len(swaps)))
    total = 0
    for block, old in zip(now.blocks, before.blocks, strict=True):
        first, second = block.right, old.right
        defined = np.isfinite(first[:, 0]) & np.isfinite(second[:, 0])
        moved = swaps[:, block.index[defined]] @ (second - first)[defined]
        total += int(defined.sum())
        for side, sums in enumerate((first[defined].sum(axis=0) + moved, second[defined].sum(axis=0) - moved)):
            variances[side] += sums.var(axis=1)
    spread: Floats = (np.sqrt(variances[0]) - np.sqrt(variances[1])) / max(total, 1)
    return spread
