from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unslant.metrics import Bootstrap, Estimate, read_scores, wilson
from unslant.metrics.accuracy import order_accuracy

from .synthetic import ask, guesses, make_questions


@given(st.integers(1, 5000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_contains_the_share_and_stays_inside_0_1(case: tuple[int, int]) -> None:
    hits, n = case
    estimate = wilson(hits / n, n)
    assert 0 <= estimate.low <= hits / n <= estimate.high <= 1
    assert estimate.high > estimate.low
    assert estimate.n == n


def test_wilson_known_value() -> None:
    # Newcombe 1998, table I: 81 of 263 and 0 of 20
    assert (round(wilson(81 / 263, 263).low, 4), round(wilson(81 / 263, 263).high, 4)) == (0.2553, 0.3662)
    assert (wilson(0, 20).low, round(wilson(0, 20).high, 4)) == (0.0, 0.1611)


def test_wilson_refuses_what_is_no_proportion() -> None:
    with pytest.raises(ValueError, match="proportion"):
        wilson(1.2, 5)
    with pytest.raises(ValueError, match="proportion"):
        wilson(0.5, 0)


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(0, 10**6))
def test_estimate_survives_json(value: float, n: int) -> None:
    before = Estimate(value, -math.inf, value, n, "m", 0.9, "why")
    after = Estimate.from_dict(json.loads(json.dumps(before.to_dict(), allow_nan=False)))
    assert repr(after) == repr(before)


def test_bootstrap_mean_agrees_with_the_normal_interval() -> None:
    values = np.random.default_rng(3).random(2000)
    estimate = Bootstrap(2000, resamples=4000).mean(values)
    half = 1.96 * values.std() / math.sqrt(2000)
    assert estimate.value == values.mean()
    assert estimate.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert estimate.high == pytest.approx(values.mean() + half, abs=0.1 * half)
    assert estimate.method == "bootstrap over questions"


def test_bootstrap_is_repeatable_and_seeded() -> None:
    values = np.random.default_rng(3).random(50)
    assert Bootstrap(50, seed=5).mean(values) == Bootstrap(50, seed=5).mean(values)
    assert Bootstrap(50, seed=5).mean(values) != Bootstrap(50, seed=6).mean(values)


def test_undefined_values_are_left_out_and_counted_out() -> None:
    values = np.array([np.nan, 0.25, 0.75, np.nan])
    estimate = Bootstrap(4).mean(values)
    assert (estimate.value, estimate.n) == (0.5, 2)
    nothing = Bootstrap(4).mean(np.full(4, np.nan), note="because")
    assert math.isnan(nothing.value)
    assert (nothing.n, nothing.note, nothing.defined) == (0, "because", False)


def test_one_question_has_no_interval_of_a_mean() -> None:
    estimate = Bootstrap(1).mean(np.array([0.3]))
    assert estimate.value == 0.3
    assert math.isnan(estimate.low)
    assert "one question" in estimate.note


@pytest.mark.parametrize("values", ["binary", "real"])
def test_answers_alike_within_subjects_widen_the_interval(values: str) -> None:
    rng = np.random.default_rng(0)
    subjects = [f"s{i // 20}" for i in range(400)]
    by_subject = np.repeat(rng.random(20), 20)
    x = (by_subject > 0.5).astype(float) if values == "binary" else by_subject
    plain, clustered = Bootstrap(400).mean(x), Bootstrap(400, subjects).mean(x)
    assert "subject" in clustered.method
    assert plain.value == clustered.value
    # all 20 answers of a subject agree, so there are 20 independent values, not 400
    assert clustered.high - clustered.low > 3 * (plain.high - plain.low)


def test_few_subjects_are_not_resampled() -> None:
    assert Bootstrap(100, [f"s{i % 9}" for i in range(100)]).method == "bootstrap over questions"
    assert Bootstrap(100, [f"s{i % 10}" for i in range(100)]).method == "bootstrap over subjects"


def test_interval_of_a_spread_covers_zero_where_orders_do_not_matter() -> None:
    covered = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        responses = ask(make_questions(40, rng=rng), guesses(), orders="cyclic", relabelled=False, rng=rng)
        scores = read_scores(responses)
        std = order_accuracy(scores, Bootstrap(40, resamples=300)).acc_std
        assert std.low <= std.value <= std.high
        covered += std.low == 0
    assert covered >= 18
