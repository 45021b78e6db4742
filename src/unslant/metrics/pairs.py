"""Two models, or one model before and after a correction, on the same questions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Jsonable
from unslant.errors import InputError
from unslant.metrics.bootstrap import RESAMPLES, Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.measures import Measures, QuestionMeasures, measure
from unslant.metrics.scores import OrderScores


@dataclass(frozen=True)
class PairedDifference(Jsonable):
    """How two sets of answers to the same questions differ.

    Attributes:
        measure: which of :class:`Measures`.
        a, b: each on the questions both have.
        difference: a minus b, its interval from resampling questions (both answers of one together).
        only_a, only_b: questions where the measure is 1 for one and 0 for the other (yes/no measures only).
        p_value: exact McNemar test that both are equally likely; nan for measures that are not yes/no.
        n_unpaired: questions that only one of them has, or that are undefined in either; left out.
    """

    measure: str
    a: Estimate
    b: Estimate
    difference: Estimate
    only_a: int
    only_b: int
    p_value: float
    n_unpaired: int


def paired_difference(
    a: OrderScores,
    b: OrderScores,
    measure_name: str = "accuracy",
    *,
    measures: tuple[QuestionMeasures, QuestionMeasures] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedDifference:
    """Difference of one per-question measure between two sets of scores, over the questions they share.

    Args:
        measures: of ``a`` and ``b``, where they are at hand.

    Raises:
        InputError: if the measure is unknown or no question is shared.
    """
    if measure_name not in Measures.names():
        raise InputError(f"unknown measure {measure_name!r}: use one of {', '.join(Measures.names())}")
    shared, at_a, at_b = np.intersect1d(np.asarray(a.ids), np.asarray(b.ids), return_indices=True)
    if not shared.size:
        raise InputError("the two sets of responses have no question in common")
    values_a, values_b = measures or (measure(a), measure(b))
    of_a, of_b = getattr(values_a, measure_name)[at_a], getattr(values_b, measure_name)[at_b]
    both = ~(np.isnan(of_a) | np.isnan(of_b))
    of_a, of_b = of_a[both], of_b[both]
    subjects = [a.subjects[i] for i in at_a[both]]
    bootstrap = Bootstrap(len(subjects), subjects, resamples=resamples, seed=seed)
    only_a = only_b = 0
    p_value = math.nan
    if of_a.size and np.isin(np.concatenate([of_a, of_b]), (0.0, 1.0)).all():
        only_a, only_b = int((of_a > of_b).sum()), int((of_b > of_a).sum())
        p_value = mcnemar(only_a, only_b)
    return PairedDifference(
        measure_name,
        bootstrap.mean(of_a),
        bootstrap.mean(of_b),
        bootstrap.mean(of_a - of_b, share=False),
        only_a,
        only_b,
        p_value,
        len(set(a.ids) | set(b.ids)) - len(subjects),
    )


def mcnemar(only_a: int, only_b: int) -> float:
    """Two-sided exact p-value of McNemar's test from the two counts of discordant pairs; 1 where there are none."""
    if only_a + only_b == 0:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(only_a, only_a + only_b, 0.5).pvalue)
