"""All metrics of one set of responses in one typed result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unslant.arrays import json_fields
from unslant.metrics.accuracy import Calibration, ChanceTest, above_chance, given_calibration
from unslant.metrics.association import pbm_accuracy
from unslant.metrics.bootstrap import RESAMPLES, Bootstrap
from unslant.metrics.decision_study import detectable_difference
from unslant.metrics.estimate import CONFIDENCE, Estimate
from unslant.metrics.labels import LabelBias, LabelShare, given_slots, label_bias, label_shares, order_slots
from unslant.metrics.measures import QuestionValues, TwoPhaseValues, extended_measures, means, measure
from unslant.metrics.permutation import OrderAccuracy, order_accuracy
from unslant.metrics.preference import Preference, preference
from unslant.metrics.registry import METRICS, Numbers
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import whole_part

FEW_OF_SUBJECT = "all orders were shown of a random part of all questions: too few of one subject"


@dataclass(frozen=True)
class Counts:
    """What the numbers rest on, and what each of them leaves out.

    Attributes:
        questions: all questions with any response.
        rows: responses.
        failed_rows: those of them that got no reply or no usable scores; never counted as wrong.
        unanswered_rows: replies without an answer; counted as not right.
        censored_rows: those of them whose best label may be one that a server did not return.
        bounded_scores: label scores that are only upper bounds, because a server did not return the label.
        incomplete: questions left out of all order metrics because an order is missing or failed.
        without_given: questions without a usable answer to the given order; left out of its metrics.
        no_right_option, several_right: the first are left out of all accuracies, both out of RStd, RSD and CKLD.
        with_pinned: questions with options that keep their place.
        immovable: complete questions with a single order; left out of PBM, consistency and preference.
        one_order: questions shown in a single order though they have more.
        sampled_orders: questions shown in a sample of their orders.
        by_options: questions per option count.
    """

    questions: int
    rows: int
    failed_rows: int
    unanswered_rows: int
    censored_rows: int
    bounded_scores: int
    incomplete: int
    without_given: int
    no_right_option: int
    several_right: int
    with_pinned: int
    immovable: int
    one_order: int
    sampled_orders: int
    by_options: Mapping[int, int]


@dataclass(frozen=True)
class Metrics:
    """Every metric of the audit; :data:`unslant.metrics.METRICS` says what each number means.

    Attributes:
        means: the mean of every metric of single questions, such as ``metrics.means["pbm"]``.
        above_chance: whether the mean over orders (the accuracy as given, where there is one order) is above chance.
        minimum_difference, minimum_difference_unpaired: least difference from the score of a model like this one that
            this many questions show with a power of 80 %, if both answer the same questions, or others of the kind; see
            :func:`~unslant.metrics.decision_study.detectable_difference`.
        over_orders: AccStd, worst and best order, and whether orders differ.
        label_bias: RStd, RSD, CKLD of the given order, and whether accuracy differs with the place of the right option.
        calibration: of the scored labels under the given order; None for replies.
        given_labels, order_labels: shares and recall per label, under the given order and over all orders.
        preference: what is preferred when unsure.
        by_subject: the means per subject; empty where there is one subject or none.
        pbm_accuracy: their correlation across subjects.
        questions: the per-question values themselves (not in :meth:`to_dict`).
    """

    counts: Counts
    means: Numbers
    above_chance: ChanceTest
    minimum_difference: float
    minimum_difference_unpaired: float
    over_orders: OrderAccuracy
    label_bias: LabelBias
    calibration: Calibration | None
    given_labels: tuple[LabelShare, ...]
    order_labels: tuple[LabelShare, ...]
    preference: Preference
    by_subject: Mapping[str, Numbers]
    pbm_accuracy: Numbers
    questions: QuestionValues

    def to_dict(self) -> dict[str, Any]:
        """Everything but the per-question values, as plain values for JSON (no nan, no infinity)."""
        return json_fields(self, omit=("questions",)) | {"phrase": self.preference.phrase}


def compute(
    scores: OrderScores,
    bootstrap: Bootstrap | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    confidence: float = CONFIDENCE,
) -> Metrics:
    """All metrics with their intervals: the same scores and seed give the same result.

    Intervals are over questions, or over contexts that several share, within subjects (see :class:`Bootstrap`).

    Args:
        bootstrap: over the questions of ``scores``, to be shared with other numbers; made here by default.
    """
    phases = TwoPhaseValues.of(scores)
    values = measure(scores) | dict(phases.values) if phases else extended_measures(scores)
    # the answers decided which questions were asked in all orders: these are not a random few
    all_orders = replace(scores, blocks=()) if scores.selected else scores
    whole = whole_part(all_orders)
    bootstrap = bootstrap or Bootstrap.of(scores, resamples=resamples, seed=seed, confidence=confidence)
    slots = given_slots(scores)
    expected = values["expected_accuracy"]
    score = expected if np.isfinite(expected).any() else values["accuracy"]
    defined = score[np.isfinite(score)]
    least = unpaired = math.nan
    if len(defined):
        about = len(defined), float(defined.mean()), float(defined.var(ddof=1)) if len(defined) > 1 else 0.0
        least, unpaired = (detectable_difference(*about, correlation=r) for r in (0.5, 0.0))
    by_subject = _by_subject(scores, values, phases, resamples, seed, confidence)
    return Metrics(
        counts=_counts(scores),
        means=means(values, bootstrap, phases),
        above_chance=above_chance(score, values["chance"], bootstrap),
        minimum_difference=least,
        minimum_difference_unpaired=unpaired,
        over_orders=order_accuracy(whole),
        label_bias=label_bias(slots),
        calibration=given_calibration(scores, values["accuracy"], bootstrap),
        given_labels=label_shares(scores, slots, bootstrap),
        order_labels=label_shares(scores, order_slots(all_orders), bootstrap),
        preference=_preference(scores, whole, bootstrap),
        by_subject=by_subject,
        pbm_accuracy=pbm_accuracy(
            list(by_subject.values()), over="square_pbm" if phases else "pbm", confidence=confidence
        ),
        questions=values,
    )


def _preference(scores: OrderScores, whole: OrderScores, bootstrap: Bootstrap) -> Preference:
    """The preference; of two phases, the numbers are of the questions shown in all orders, and the words of all."""
    words = preference(scores, bootstrap)
    if scores.full is None:
        return words
    # An answer that changes over a square is unsure, and what every place gets is balanced there as it is over all
    # orders. But a question that only other orders change is missed, so shares of unsure questions are of the part.
    numbers = preference(whole, bootstrap)
    return replace(words, labels=numbers.labels, positions=numbers.positions, unsure=numbers.unsure,
                   sticky=numbers.sticky)  # fmt: skip


def _counts(scores: OrderScores) -> Counts:
    answers = scores.answers.sum(axis=1)
    # beyond 20 movable options, every practical order set is a sample
    orders = np.asarray([math.factorial(min(int(m), 20)) for m in scores.movable])
    counts = scores.order_counts
    sizes, numbers = np.unique(scores.n_options, return_counts=True)
    return Counts(
        questions=len(scores),
        rows=scores.n_rows,
        failed_rows=scores.n_failed,
        unanswered_rows=scores.n_unanswered,
        censored_rows=scores.n_censored,
        bounded_scores=scores.n_bounds,
        incomplete=scores.n_incomplete,
        without_given=int((~scores.given.ok).sum()),
        no_right_option=int((answers == 0).sum()),
        several_right=int((answers > 1).sum()),
        with_pinned=int(scores.pinned.any(axis=1).sum()),
        immovable=int((counts == 1).sum()),
        one_order=int(((counts == 1) & (orders > 1)).sum()),
        sampled_orders=int(((counts > 0) & (counts < orders)).sum()),
        by_options={int(n): int(number) for n, number in zip(sizes, numbers, strict=True)},
    )


def _by_subject(
    scores: OrderScores,
    values: QuestionValues,
    phases: TwoPhaseValues | None,
    resamples: int,
    seed: int,
    confidence: float,
) -> dict[str, Numbers]:
    """The means of each subject; of those estimated in two phases, too few questions of a subject have all orders."""
    subjects = np.asarray(scores.subjects, dtype=str)
    names = np.unique(subjects)
    if len(names) < 2:
        return {}
    table = {}
    undefined = Estimate.undefined(FEW_OF_SUBJECT, confidence=confidence)
    in_phases = {METRICS[key]: undefined for key in (phases.known if phases else ())}
    for subject in names:
        rows = subjects == subject
        part = {key: column[rows] for key, column in values.items()}
        bootstrap = Bootstrap(int(rows.sum()), resamples=resamples, seed=seed, confidence=confidence)
        table[str(subject)] = means(part, bootstrap) | in_phases
    return table
