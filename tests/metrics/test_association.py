"""Correlations against every way to pair their values."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Literal

import numpy as np
import pytest
from scipy import stats

from unslant.metrics.association import agreement, correlation

KINDS = {"pearson": stats.pearsonr, "spearman": stats.spearmanr, "kendall": stats.kendalltau}
Kind = Literal["pearson", "spearman", "kendall"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("x", "y", "exact"), [([1, 2, 3], [3, 2, 1], 2 / 6), ([1, 2, 3, 4], [4, 2, 3, 1], 8 / 24)])
def test_p_of_few_pairs_is_a_share_of_all_pairings(kind: Kind, x: list[float], y: list[float], exact: float) -> None:
    assert correlation(x, y, kind)[1] == pytest.approx(exact)


@pytest.mark.parametrize("kind", KINDS)
def test_p_counts_ties_and_values_of_any_size(kind: Kind) -> None:
    rng = np.random.default_rng(0)
    for n in (3, 4, 5, 6):
        x = [*rng.integers(0, 3, n - 1).tolist(), 3.0]
        y = [*(1e-4 * rng.integers(0, 4, n - 1)).tolist(), 1.0]
        r, p = correlation(x, y, kind)
        every = [abs(KINDS[kind](x, list(other)).statistic) for other in permutations(y)]
        assert p == pytest.approx(np.mean(np.array(every) >= abs(r.value) - 1e-9))


def test_from_ten_pairs_p_is_the_usual_one() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 10)).tolist()
    for kind, usual in KINDS.items():
        assert correlation(x, y, kind)[1] == pytest.approx(usual(x, y).pvalue)  # type: ignore[arg-type]
        at_nine = correlation(x[:9], y[:9], kind)[1]  # type: ignore[arg-type]
        assert at_nine == pytest.approx(usual(x[:9], y[:9]).pvalue, abs=0.05)
        assert at_nine * 362_880 == pytest.approx(round(at_nine * 362_880))


def test_p_of_twelve_in_perfect_order_is_not_zero() -> None:
    x = list(map(float, range(12)))
    assert correlation(x, x, "spearman")[1] == pytest.approx(2 / math.factorial(12))
    assert correlation(x, x, "kendall")[1] == pytest.approx(2 / math.factorial(12))  # SciPy's is exact here


def test_three_models_in_reverse_prove_nothing() -> None:
    found = agreement({"a": 0.9, "b": 0.5, "c": 0.4}, {"a": 1.0, "b": 2.0, "c": 3.0})
    assert found["kendall_p"].value == pytest.approx(1 / 3)
    assert found["pearson_p"].value >= 1 / 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", range(5, 16))
def test_perfect_agreement_has_no_interval(kind: Kind, n: int) -> None:
    """As it comes out with rounding: Kendall's tau-b of twelve is 0.9999999999999998."""
    x = [float(i) for i in range(n)]
    for sign in (1.0, -1.0):
        r, _ = correlation(x, [sign * (0.1 * one + 0.3) for one in x], kind)
        assert r.value == pytest.approx(sign)
        assert np.isnan([r.low, r.high]).all()
        assert r.note == "perfect agreement: no interval"


@pytest.mark.parametrize(("levels", "tau", "n"), [(2, 0.0, 20), (2, 0.6, 57), (3, 0.0, 20), (2, 0.8, 57)])
def test_kendalls_interval_holds_the_truth_where_values_are_tied(levels: int, tau: float, n: int) -> None:
    """Fieller's variance, which assumes no ties, held it in 0.53 to 0.89 of the samples."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(300):
        # y copies x in this share of the pairs, which is tau-b of two levels
        x = rng.integers(0, levels, n)
        y = np.where(rng.random(n) < tau, x, rng.integers(0, levels, n))
        r, _ = correlation(x.astype(float).tolist(), y.astype(float).tolist(), "kendall")
        covered.append(r.low <= tau <= r.high)
    assert np.mean(covered) > 0.92
