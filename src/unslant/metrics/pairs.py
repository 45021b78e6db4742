"""How two sets of answers to the same questions differ in a metric, and whether the difference may be chance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats, Ints, Jsonable
from unslant.errors import InputError, one_of
from unslant.metrics.bootstrap import Bootstrap, spread_answers
from unslant.metrics.estimate import Estimate
from unslant.metrics.measures import extended_measures
from unslant.metrics.registry import METRICS, QuestionMetric, QuestionValues, measure, metric, question_metrics
from unslant.metrics.sampling import student
from unslant.metrics.scores import OrderScores
from unslant.metrics.two_phase import TwoPhaseValues, room_left_out, with_left_out


@dataclass(frozen=True)
class PairedDifference(Jsonable):
    """How two sets of answers to the same questions differ.

    Attributes:
        measure: key of a metric of single questions.
        a, b: each on the questions both have.
        difference: a minus b, paired.
        only_a, only_b: questions where a yes/no measure is 1 for this one alone.
        p_value: see :func:`p_of_pairs`; nan for measures that are not yes/no, or predicted for questions left out.
        n_unpaired: questions left out, because only one set has them or the measure is undefined in either.
    """

    measure: str
    a: Estimate
    b: Estimate
    difference: Estimate
    only_a: int
    only_b: int
    p_value: float
    n_unpaired: int


@metric("difference", "difference", "on the same questions, paired", unit="difference")
@metric("differences.a", "this run", "value on the questions that both have")
@metric("differences.b", "first run", "value on the questions that both have")
def paired_difference(
    a: OrderScores,
    b: OrderScores,
    measure_name: str = "accuracy",
    *,
    measures: tuple[QuestionValues, QuestionValues] | None = None,
    rows: tuple[Ints, Ints] | None = None,
    across_subjects: bool = False,
) -> PairedDifference:
    """Difference of one metric of single questions over the questions that both sets of scores have.

    Args:
        measures: of ``a`` and ``b``, if already computed.
        rows: (P,) each, the rows of the same questions in ``a`` and ``b``; by default those of the same id.
        across_subjects: whether the interval is for other subjects.

    Raises:
        InputError: if the measure is unknown or no question is shared.
    """
    if not isinstance(measured := METRICS.get(measure_name), QuestionMetric):
        names = [one.key for one in question_metrics()]
        raise InputError(f"no metric of single questions is called {measure_name!r}: {one_of(measure_name, names)}")
    at_a, at_b = rows or np.intersect1d(np.asarray(a.ids), np.asarray(b.ids), return_indices=True)[1:]
    if not at_a.size:
        raise InputError("the two sets of responses have no question in common")
    values_a, values_b = measures or (extended_measures(one, TwoPhaseValues.of(one)) for one in (a, b))
    of_a, of_b = values_a[measure_name][at_a], values_b[measure_name][at_b]
    both = ~(np.isnan(of_a) | np.isnan(of_b))
    of_a, of_b, at_a, at_b = of_a[both], of_b[both], at_a[both], at_b[both]
    at = [*zip(at_a, at_b, strict=True)]  # either may lack subjects or contexts, as logs do
    subjects = [a.subjects[i] or b.subjects[j] for i, j in at]
    contexts = [a.contexts[i] or b.contexts[j] for i, j in at]
    unsure = spread_answers(a)[at_a] | spread_answers(b)[at_b]
    bootstrap = Bootstrap(len(at), subjects, contexts=contexts, unsure=unsure, across_subjects=across_subjects)
    bounds, width = measured.bounds, measured.bounds[1] - measured.bounds[0]
    in_a, in_b = (bootstrap.mean(values, bounds=bounds, room="bounds, unsure") for values in (of_a, of_b))
    difference = bootstrap.mean(of_a - of_b, bounds=(-width, width), room="bounds, unsure")
    keys = {measured.key, measured.unmoved}
    asked_a, asked_b = ({} if one.stopped is None else measure(one, keys) for one in (a, b))
    room_a = below_a, above_a = room_left_out(in_a.value, a, bootstrap, asked_a, measured, at_a)
    room_b = below_b, above_b = room_left_out(in_b.value, b, bootstrap, asked_b, measured, at_b)
    room = math.hypot(below_a, above_b), math.hypot(above_a, below_b)
    # a test would count what is predicted for a question left out as its answer
    predicted = measured.unmoved is not None and not (a.stopped is b.stopped is None)
    yes_no = not predicted and of_a.size and np.isin([of_a, of_b], (0.0, 1.0)).all()
    only_a, only_b = (int((of_a > of_b).sum()), int((of_b > of_a).sum())) if yes_no else (0, 0)
    return PairedDifference(
        measure_name,
        with_left_out(in_a, room_a, bounds),
        with_left_out(in_b, room_b, bounds),
        with_left_out(difference, room, (-width, width)),
        only_a,
        only_b,
        p_of_pairs(bootstrap, of_a, of_b) if yes_no else math.nan,
        len(a) + len(b) - len(both) - len(at),
    )


def p_of_pairs(bootstrap: Bootstrap, a: Floats, b: Floats) -> float:
    """p-value of "both are right equally often" for (Q,) yes-or-no values of the same questions; nan if unknown.

    McNemar's exact test, or where questions share passages, Student's t over passages: questions about one passage
    are won or lost together, and McNemar's test would count each as evidence of its own.
    """
    differences = a - b
    if bootstrap.sampling.clustered:
        return student(bootstrap.sampling, differences)[1]
    return mcnemar(int((differences > 0).sum()), int((differences < 0).sum()))


@metric("p_value", "p", "exact McNemar test (with passages, Student's t) that both are right equally often", unit="p")
def mcnemar(only_a: int, only_b: int) -> float:
    """Two-sided exact p-value of McNemar's test from the two counts of discordant pairs; 1 where there are none."""
    if only_a + only_b == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)
