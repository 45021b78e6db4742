"""Every metric of one set of responses: of each question, their means, all in one result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from unslant.arrays import Bools, Floats, json_fields
from unslant.metrics.accuracy import Calibration, ChanceTest, above_chance, given_calibration
from unslant.metrics.bootstrap import Bootstrap, spread_answers
from unslant.metrics.estimate import CONFIDENCE, Estimate, by_design, normal_quantile
from unslant.metrics.labels import LabelShare, Slots, given_slots, label_shares, order_slots
from unslant.metrics.permutation import OrderAccuracy, order_accuracy
from unslant.metrics.preference import Preference, preference
from unslant.metrics.registry import METRICS, Numbers, QuestionMetric, QuestionValues, measure, metric, question_metrics
from unslant.metrics.sampling import Codes
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import TwoPhaseValues, extended, room_left_out, whole_part, with_left_out

if TYPE_CHECKING:
    from unslant.metrics.label_bias import LabelBias

FEW_OF_SUBJECT = "all orders were shown of a random part of all questions: too few of one subject"


def means(
    values: QuestionValues,
    bootstrap: Bootstrap,
    phases: TwoPhaseValues | None,
    scores: OrderScores,
    asked: QuestionValues,
    rows: Bools | slice = slice(None),
) -> Numbers:
    """The mean of every metric over the questions that have it, with its interval.

    Args:
        values: of these rows of ``scores``, extended to the questions that were not asked in all orders.
        phases: the metrics that are estimated in two phases.
        asked: :func:`measure` of all rows, not extended; empty where all were asked in all orders.
    """

    def mean(metric: QuestionMetric, column: Floats) -> Estimate:
        if np.isnan(column).all():
            return Estimate.undefined(metric.missing)
        if phases and metric.key in phases.known:
            return bootstrap.two_phase(column, phases.known[metric.key], phases.shown, bounds=metric.bounds)
        if metric.exact:
            return by_design(column)
        estimate = bootstrap.mean(column, bounds=metric.bounds, swings=metric.swings, room="bounds, unsure")
        room = room_left_out(estimate.value, scores, bootstrap, asked, metric, rows)
        return with_left_out(estimate, room, metric.bounds)

    return Numbers({metric.key: mean(metric, values[metric.key]) for metric in question_metrics()})


def extended_measures(scores: OrderScores, phases: TwoPhaseValues | None) -> dict[str, Floats]:
    """:func:`measure`, with order metrics :func:`extended` to the questions that were not asked in all orders."""
    values = measure(scores)
    if phases:
        return values | phases.values
    if scores.stopped is None:
        return values
    predicted = [one for one in question_metrics() if one.unmoved is not None]
    return values | {one.key: extended(scores, values[one.key], one.predicted(values)) for one in predicted}


@dataclass(frozen=True)
class Counts:
    """How many questions and responses the numbers rest on, and what they leave out.

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
        orders: option count -> the most orders that such a question was shown in; 0 where orders are missing.
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
    orders: Mapping[int, int]


@dataclass(frozen=True, eq=False)
class Metrics:
    """Every metric of the audit; :data:`unslant.metrics.METRICS` says what each number means.

    Attributes:
        means: the mean of every metric of single questions, such as ``metrics.means["pbm"]``.
        above_chance: whether the mean over orders (the accuracy as given, where there is one order) is above chance.
        minimum_difference, minimum_difference_unpaired: least difference from a model like this one that these
            questions show with a power of 80 %, if it answers the same, or others; see :func:`detectable_difference`.
        over_orders: AccStd, worst and best order, and whether orders differ.
        calibration: of the scored labels under the given order; None for replies.
        given_labels, order_labels: shares and recall per label, under the given order and over all orders.
        preference: what the model falls back on when unsure.
        by_subject: the means per subject; empty where there is one subject or none.
        label_bias: RStd, RSD, CKLD of the given order, and whether accuracy differs with the place of the right option.
        pbm_accuracy: the correlation of PBM with accuracy across subjects; both are computed on first use.
        questions: the per-question values themselves (not in :meth:`to_dict`, nor are ``slots`` and ``unit``).
        slots: of the given order.
        unit: (Q,) number of the passage of each question.
    """

    counts: Counts
    means: Numbers
    above_chance: ChanceTest
    minimum_difference: float
    minimum_difference_unpaired: float
    over_orders: OrderAccuracy
    calibration: Calibration | None
    given_labels: tuple[LabelShare, ...]
    order_labels: tuple[LabelShare, ...]
    preference: Preference
    by_subject: Mapping[str, Numbers]
    questions: QuestionValues
    slots: Slots
    unit: Codes

    @cached_property
    def label_bias(self) -> LabelBias:
        from unslant.metrics.label_bias import label_bias

        return label_bias(self.slots, self.unit)

    @cached_property
    def pbm_accuracy(self) -> Numbers:
        """PBM is that over squares, where only these are known of a subject."""
        from unslant.metrics.association import pbm_accuracy

        rows = [*self.by_subject.values()]
        over_squares = any(row["square_pbm"].defined for row in rows)
        return pbm_accuracy(rows, over="square_pbm" if over_squares else "pbm")

    def to_dict(self) -> dict[str, Any]:
        """Everything but the per-question values, as plain values for JSON (no nan, no infinity)."""
        values = json_fields(self, omit=("questions", "slots", "unit"), also=("label_bias", "pbm_accuracy"))
        return values | {"phrase": self.preference.phrase}


def compute(scores: OrderScores, bootstrap: Bootstrap | None = None) -> Metrics:
    """All metrics with their intervals: the same scores and seed of the bootstrap give the same result.

    Intervals are over questions, or over contexts that several share, within subjects (see :class:`Bootstrap`).

    Args:
        bootstrap: over the questions of ``scores``, to be shared with other numbers; made here by default.
    """
    phases = TwoPhaseValues.of(scores)
    values, asked = extended_measures(scores, phases), {} if scores.stopped is None else measure(scores)
    # the answers decided which questions were asked in all orders: these are not a random few
    all_orders = replace(scores, blocks=()) if scores.selected else scores
    whole = whole_part(all_orders)
    bootstrap = bootstrap or Bootstrap.of(scores)
    slots = given_slots(scores)
    expected = values["expected_accuracy"]
    score = expected if np.isfinite(expected).any() else values["accuracy"]
    defined = score[np.isfinite(score)]
    least = unpaired = math.nan
    if len(defined):
        # a difference between models does not shrink where subjects differ
        alike = max(1.0, bootstrap.sampling.design_effect(score)) if bootstrap.sampling.clustered else 1.0
        about = len(defined), float(defined.mean()), float(defined.var(ddof=1)) if len(defined) > 1 else 0.0, alike
        least, unpaired = (detectable_difference(*about, correlation=r) for r in (0.5, 0.0))
    habit = preference(scores, bootstrap)
    if phases:
        # An answer that changes over a square is unsure, and what every place gets is balanced there as it is over all
        # orders. But a question that only other orders change is missed, so shares of unsure questions are of the part.
        part = preference(whole, bootstrap)
        habit = replace(habit, labels=part.labels, positions=part.positions, unsure=part.unsure, sticky=part.sticky)
    return Metrics(
        counts=_counts(scores),
        means=means(values, bootstrap, phases, scores, asked),
        above_chance=above_chance(score, values["chance"], bootstrap),
        minimum_difference=least,
        minimum_difference_unpaired=unpaired,
        over_orders=order_accuracy(whole, bootstrap.sampling.unit),
        calibration=given_calibration(scores, values["accuracy"], bootstrap),
        given_labels=label_shares(scores, slots, bootstrap),
        order_labels=label_shares(scores, order_slots(all_orders), bootstrap),
        preference=habit,
        by_subject=_by_subject(scores, values, asked, phases),
        questions=values,
        slots=slots,
        unit=bootstrap.sampling.unit,
    )


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
        orders={n: int(counts[scores.n_options == n].max()) for n in sizes.tolist()},
    )


def _by_subject(
    scores: OrderScores, values: QuestionValues, asked: QuestionValues, phases: TwoPhaseValues | None
) -> dict[str, Numbers]:
    """The means of each subject; of those estimated in two phases, too few questions of a subject have all orders."""
    subjects, unsure = np.asarray(scores.subjects, dtype=str), spread_answers(scores)
    contexts = np.asarray(scores.contexts, dtype=object)  # not as wide as the longest passage, each
    names = np.unique(subjects)
    if len(names) < 2:
        return {}
    table = {}
    several = len(set(scores.contexts)) > 1  # so that the only passage of a subject counts as one
    in_phases = {METRICS[key]: Estimate.undefined(FEW_OF_SUBJECT) for key in (phases.known if phases else ())}
    for subject in names:
        rows = subjects == subject
        part = {key: column[rows] for key, column in values.items()}
        bootstrap = Bootstrap(int(rows.sum()), contexts=contexts[rows].tolist(), unsure=unsure[rows], part=several)
        table[str(subject)] = means(part, bootstrap, None, scores, asked, rows) | in_phases
    return table


def with_two_more(n: int, mean: float, variance: float = 0.0) -> tuple[float, float]:
    """Mean and variance of n questions and two more, one right and one wrong.

    60 right answers do not vary, and yet cannot show a difference of one point: a unanimous sample proves little.
    """
    at = (n * mean + 1) / (n + 2)
    return at, (n * (variance + (mean - at) ** 2) + at**2 + (1 - at) ** 2) / (n + 2)


def detectable_difference(
    n: int, mean: float, variance: float, design_effect: float = 1.0, correlation: float = 0.5
) -> float:
    """The smallest difference between two models' scores that n questions show with a power of 80 %.

    :func:`minimum_detectable_difference` for as many yes-or-no answers as would vary as much, :func:`with_two_more`.

    Args:
        n: number of questions, at least 1.
        mean, variance, design_effect: as in :func:`~unslant.metrics.decision_study.half_width`, about those of both.
        correlation: between their values of a question; 0 for other questions.
    """
    at, variance = with_two_more(n, mean, variance)
    size = min(10_000_000, max(1, round(n * at * (1 - at) / variance / design_effect)))
    return minimum_detectable_difference(size, accuracy=at, correlation=correlation)


@metric("minimum_difference", "minimum detectable difference, paired",
        "smallest accuracy difference from another model shown with power 80 %", digits=2, source="Connor 1987",
        plain=True)  # fmt: skip
@metric("minimum_difference_unpaired", "minimum detectable difference, unpaired",
        "the same, if that model answers as many other questions", digits=2, plain=True)  # fmt: skip
def minimum_detectable_difference(
    n: int, *, accuracy: float = 0.5, correlation: float = 0.5, power: float = 0.8, confidence: float = CONFIDENCE
) -> float:
    """The smallest difference in accuracy between two models that n questions show with probability ``power``.

    A difference shows if the exact McNemar test, two-sided at level 1 - ``confidence``, detects it; its power is
    computed exactly. Two models of about the same accuracy a, right on the same questions with correlation r, are
    discordant on a share 2 a (1 - a) (1 - r) of the questions (Connor 1987), or on as many as the difference itself
    where that is more. With a correlation of 0 this is also the difference between models on n questions *each*.

    Args:
        n: questions, at least 1.
        accuracy: about that of the two; 0.5 asks most.
        correlation: between their being right on a question, below 1; 0.5 is usual between models.

    Returns:
        A difference of shares; 1 where none can show, as with fewer than six questions.

    Raises:
        ValueError: if an argument is out of its range.
    """
    if n < 1 or not 0 < accuracy < 1 or not -1 <= correlation < 1 or not 0 < power < 1:
        raise ValueError("n >= 1, accuracy and power between 0 and 1, correlation from -1 to below 1")
    discordant = 2 * accuracy * (1 - accuracy) * (1 - correlation)
    low, high = 0.0, 1.0
    while high - low > 1e-3 * high:
        middle = (low + high) / 2
        shows = _power(n, middle, min(1.0, max(discordant, middle)), confidence) >= power
        low, high = (low, middle) if shows else (middle, high)
    return high


def _power(n: int, difference: float, discordant: float, confidence: float) -> float:
    """Probability that the exact McNemar test finds a difference, given the share of discordant questions."""
    from scipy.special import bdtr, bdtrc

    middle, reach = n * discordant, 6 * math.sqrt(n * discordant * (1 - discordant)) + 6
    m = np.arange(max(1, int(middle - reach)), min(n, int(middle + reach)) + 1)
    level = (1 - confidence) / 2
    # of the rarer kind, the largest count that is too small by chance: approximately, then exactly
    most = np.clip(np.floor(m / 2 - normal_quantile(confidence) * np.sqrt(m) / 2), 0, m - 1)
    while (more := bdtr(most, m, 0.5) > level * (1 + 1e-12)).any():  # of -1 it is nan
        most = most - more
    while (less := (most + 1 < m) & (bdtr(np.minimum(most + 1, m), m, 0.5) <= level)).any():
        most = most + less
    detected = sum(bdtr(most, m, (1 + sign * difference / discordant) / 2) for sign in (-1, 1))
    exactly = bdtrc(m - 1, n, discordant) - np.where(m < n, bdtrc(np.minimum(m, n - 1), n, discordant), 0.0)
    return float((np.where(most >= 0, detected, 0.0) * exactly).sum())
