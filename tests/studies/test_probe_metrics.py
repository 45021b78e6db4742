"""Consensus rates on tables worked out by hand, correlations on known data, and the decomposition by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from unslant.metrics.association import EXACT_BELOW, agreement, associate
from unslant.studies.unbiased.probe.metrics import consensus_rates, consensus_values, decompose


@pytest.mark.parametrize(
    ("own", "others", "cer", "ocr", "ucr"),
    [
        (1, 1, 1.0, 0, 0),  # both surest that the answer no longer holds
        (5, 5, 0.2, 0, 0),  # both barely
        (3, 1, 0.8, 0, 0),
        (10, 2, 0.0, 1, 0),  # sure of itself, the others are not
        (6, 5, 0.0, 1, 0),
        (2, 9, 0.0, 0, 1),
        (5, 6, 0.0, 0, 1),
        (10, 10, 0.0, 0, 0),
        (4, 5.5, 0.0, 0, 0),  # a mean between "no" and "yes" is neither
        (7, 5.5, 0.0, 0, 0),
    ],
)
def test_each_kind_of_question(own, others, cer, ocr, ucr):
    values = consensus_values(np.array([float(own)]), np.array([float(others)]))
    assert [float(v[0]) for v in values] == pytest.approx([cer, ocr, ucr])


def test_a_table_by_hand():
    scores = np.array(
        [  # judge 0 is the rephraser
            [1, 9, 2, 10, 4, np.nan],
            [1, 2, 8, 10, 2, 3],
            [3, 4, 10, 9, np.nan, 4],
        ]
    )
    found = consensus_rates(scores, 0)
    # means of the others: 2, 3, 9, 9.5, 2 (one judge), and the last has no own score
    assert found["cer"].value == pytest.approx((0.9 + 0 + 0 + 0 + 0.6) / 5)
    assert (found["ocr"].value, found["ucr"].value, found["rejected"].value) == (
        pytest.approx(0.2),
        pytest.approx(0.2),
        0.4,
    )
    assert found["cer"].n == found["ocr"].n == 5


def test_rates_by_subject():
    scores = np.array([[1.0, 1, 9, 9], [1, 9, 9, 9]])
    found = consensus_rates(scores, 0, ["law", "law", "art", "art"])
    assert found.by_subject == {"art": 0.0, "law": 0.5}


@given(st.integers(2, 5), st.integers(1, 30), st.integers(0, 1000))
def test_rates_lie_between_0_and_1_and_exclude_each_other(judges, questions, seed):
    scores = np.random.default_rng(seed).integers(1, 11, (judges, questions)).astype(float)
    found = consensus_rates(scores, judges - 1)
    assert 0 <= found["cer"].value <= found["rejected"].value <= 1
    assert found["rejected"].value + found["ocr"].value + found["ucr"].value <= 1 + 1e-12


def test_bad_scores_are_refused():
    with pytest.raises(ValueError, match="between 1 and 10"):
        consensus_rates(np.array([[0.0], [5]]), 0)
    with pytest.raises(ValueError, match="at least two judges"):
        consensus_rates(np.array([[5.0]]), 0)


def test_data_bias_by_hand():
    accuracy = {"a": 0.9, "b": 0.7, "c": 0.5, "d": 0.3, "left out": 0.1}
    found = agreement(accuracy, {"a": 0.0, "b": 0.1, "c": 0.3, "d": 0.2}, of="subjects")
    assert found["kendall"].value == pytest.approx(-2 / 3)  # one of six pairs is the other way round
    assert found["pearson"].value == pytest.approx(stats.pearsonr([0.9, 0.7, 0.5, 0.3], [0, 0.1, 0.3, 0.2]).statistic)
    assert found["pearson"].n == 4


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=5, max_size=40))
def test_correlations_are_scipys_and_inside_their_intervals(pairs):
    x, y = ([float(p[i]) for p in pairs] for i in (0, 1))
    found = associate(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert not found["pearson"].defined
        assert found["pearson"].note
        return
    assert found["kendall"].value == pytest.approx(stats.kendalltau(x, y).statistic)
    if len(x) >= EXACT_BELOW:
        assert found["kendall_p"].value == pytest.approx(stats.kendalltau(x, y).pvalue)
    for estimate in (found["pearson"], found["kendall"]):
        assert math.isnan(estimate.low) or estimate.low <= estimate.value <= estimate.high


def test_agreement_uses_the_models_in_both():
    found = agreement({"s": 0.2, "m": 0.5, "l": 0.9, "x": 0.1}, {"s": 30, "m": 50, "l": 60, "y": 99})
    assert found["kendall"].value == pytest.approx(1.0)
    assert found["kendall"].n == 3


def test_too_few_pairs_have_no_correlation():
    assert not associate([1, 2], [2, 1])["kendall"].defined


@pytest.mark.parametrize("counteracts", [0.0, 0.5, 1.0])
def test_every_term_of_a_simulation_is_recovered(counteracts):
    contamination, noise, n = 0.2, 0.05, 40_000
    rng = np.random.default_rng(0)
    ability, bias = rng.uniform(0.3, 0.7, n), rng.normal(contamination, noise, n)
    delta = -counteracts * bias + rng.normal(0.0, noise, n)
    found = decompose(ability, ability + bias, ability + bias + delta)
    square = contamination**2 + noise**2
    assert found.original.value == pytest.approx(square, rel=0.02)
    assert found.related.value == pytest.approx(-2 * counteracts * square, rel=0.02, abs=5e-4)
    assert found.independent.value == pytest.approx(counteracts**2 * square + noise**2, rel=0.03)
    assert found.total.value == pytest.approx((1 - counteracts) ** 2 * square + noise**2, rel=0.03)


@given(st.integers(1, 50), st.integers(0, 999))
def test_the_terms_add_up(n, seed):
    rng = np.random.default_rng(seed)
    found = decompose(rng.random(n), rng.random(n), rng.random(n))
    parts = found.original.value + found.related.value + found.independent.value
    assert parts == pytest.approx(found.total.value)


def test_the_mean_square_of_few_biases_has_no_interval():
    """20 exponential biases held the true mean square in 0.85 of the samples, 5 in 0.73."""
    bias = np.random.default_rng(0).exponential(0.1, 149)
    few, enough = (decompose(np.zeros(n), np.resize(bias, n), 0.5 * np.resize(bias, n)) for n in (149, 150))
    for name in ("original", "related", "independent", "total"):
        assert np.isnan(getattr(few, name).low)
        assert getattr(few, name).note == "fewer than 150 units: no interval"
        assert getattr(enough, name).low < getattr(enough, name).value < getattr(enough, name).high


def test_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match="equally long"):
        decompose([1.0], [1.0, 2.0], [1.0])


def test_a_unit_without_a_score_is_refused():
    with pytest.raises(ValueError, match="leave out units without a score"):
        decompose([1.0, 0.5], [0.4, float("nan")], [0.4, 0.5])
