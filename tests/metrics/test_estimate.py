from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, multinomial

from benchmarks.planted import Planted, at, planted_scores
from unslant.metrics import Bootstrap, Estimate, compute, measure, wilson
from unslant.metrics.bootstrap import UNBOUNDED, spread_answers
from unslant.metrics.sampling import Sampling


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


def test_wilson_refuses_a_count_outside_its_range() -> None:
    with pytest.raises(ValueError, match="proportion"):
        wilson(1.2, 5)
    with pytest.raises(ValueError, match="proportion"):
        wilson(0.5, 0)


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(0, 10**6))
def test_estimate_survives_json(value: float, n: int) -> None:
    before = Estimate(value, -math.inf, value, n, "m", 0.9, "why")
    after = Estimate.from_dict(json.loads(json.dumps(before.to_dict(), allow_nan=False)))
    assert repr(after) == repr(before)


@pytest.mark.parametrize("change", [{"n": "x"}, {"n": 1.5}, {"confidence": []}, {"value": "much"}, {"more": 1}])
def test_a_changed_estimate_is_an_error(change: dict[str, object]) -> None:
    values = Estimate(0.5, 0.4, 0.6, 100, "Wilson").to_dict()
    with pytest.raises((TypeError, ValueError)):
        Estimate.from_dict({**values, **change})


def test_a_mean_agrees_with_the_normal_interval() -> None:
    values = np.random.default_rng(3).random(2000)
    estimate = Bootstrap(2000).mean(values)
    half = 1.96 * values.std() / math.sqrt(2000)
    assert estimate.value == values.mean()
    assert estimate.low == pytest.approx(values.mean() - half, abs=0.02 * half)
    assert estimate.high == pytest.approx(values.mean() + half, abs=0.02 * half)
    assert estimate.method == "Agresti-Coull over questions"


def test_a_statistic_agrees_with_the_mean_and_is_seeded() -> None:
    values = np.random.default_rng(3).random(300)
    features = np.column_stack([values, np.ones(300)])

    def resampled(seed: int) -> Estimate:
        return Bootstrap(300, seed=seed).statistic(features, lambda t: t[:, 0] / t[:, 1], 300)

    direct = Bootstrap(300).mean(values)
    assert resampled(5) == resampled(5) != resampled(6)
    assert resampled(5).low == pytest.approx(direct.low, abs=0.1 * (direct.high - direct.low))
    assert resampled(5).high == pytest.approx(direct.high, abs=0.1 * (direct.high - direct.low))
    assert resampled(5).method == "bootstrap over questions"


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


@given(
    st.lists(st.sampled_from([0.0, 0.25, 1 / 3, 0.5, 1.0]), min_size=1, max_size=40),
    st.sampled_from([1, 2, 7]),
    st.sampled_from([1, 3]),
)
def test_no_interval_has_zero_width_or_leaves_its_range(values: list[float], subjects: int, context: int) -> None:
    names = [f"s{q % subjects}" for q in range(len(values))]
    passages = [f"c{q // context}" for q in range(len(values))]
    estimate = Bootstrap(len(values), names, contexts=passages).mean(np.array(values))
    if math.isnan(estimate.low):
        assert estimate.note
    else:
        assert 0 <= estimate.low <= estimate.value <= estimate.high <= 1
        assert estimate.high - estimate.low > 1e-3


def test_all_right() -> None:
    exact = Bootstrap(5).mean(np.ones(5))
    assert (exact.low, exact.high, exact.method) == (pytest.approx(0.5, abs=1e-3), 1.0, "Blaker")
    many = Bootstrap(60).mean(np.ones(60))
    assert (many.low, many.high) == (pytest.approx(60 / (60 + 1.96**2), abs=1e-4), 1.0)


@pytest.mark.parametrize("n", [1, 2, 5, 10, 12, 20, 30, 49, 50, 80])
def test_coverage_of_few_yes_or_no_answers_is_exact(n: int) -> None:
    """0.895 was the least, of 5 questions, and 0.912 of 12; Clopper and Pearson's would be 1.2 times as wide."""
    p = np.linspace(0.001, 0.999, 999)
    probs = binom.pmf(np.arange(n + 1)[:, None], n, p)
    found = [Bootstrap(n).mean((np.arange(n) < yes).astype(float)) for yes in range(n + 1)]
    covered = sum(np.where((p >= one.low) & (p <= one.high), own, 0) for one, own in zip(found, probs, strict=True))
    assert covered.min() >= (0.95 if n < 50 else 0.93)
    assert covered[np.minimum(p, 1 - p) * n >= 5].max(initial=0.0) <= 0.985
    for yes, one in enumerate(found):
        plain = wilson(yes / n, n)
        assert one.high - one.low < 1.2 * (plain.high - plain.low)


@given(
    st.lists(st.sampled_from([0.0, 1e-3, 0.2, 0.25, 0.7, 0.999, 1.0]), min_size=2, max_size=60),
    st.sampled_from([1, 5]),
)
def test_no_interval_of_shares_is_much_wider_than_wilsons(values: list[float], times: int) -> None:
    found, plain = (make(np.tile(values, times)) for make in (Bootstrap(len(values) * times).mean, wilson_of))
    assert found.high - found.low < 1.2 * (plain.high - plain.low)


def wilson_of(values: np.ndarray) -> Estimate:
    return wilson(float(values.mean()), len(values))


def test_nearly_yes_or_no_is_yes_or_no() -> None:
    """A normalised PBM of 1e-12 is 0."""
    values = np.array([1.0, 0.0, 1e-12, 0.0, 0.0])
    assert ends(Bootstrap(5).mean(values)) == ends(Bootstrap(5).mean(values.round(6)))


def test_the_same_value_everywhere_is_not_certain() -> None:
    always_a = Bootstrap(60).mean(np.full(60, 0.25))
    assert 0.23 < always_a.low < 0.25 < always_a.high < 0.31
    nothing = Bootstrap(60).mean(np.zeros(60), share=False)
    assert nothing.low == -nothing.high < -0.05
    nats = Bootstrap(60).mean(np.full(60, 7.0), bounds=UNBOUNDED)
    assert math.isnan(nats.low)
    assert "same for every question" in nats.note


def test_counts_beyond_their_bounds_are_not_cut() -> None:
    estimate = Bootstrap(4).mean(np.array([3.0, 4.0, 5.0, 6.0]))
    assert estimate.value == 4.5
    assert "Student" in estimate.method
    for beyond in (1.0, -1.0):  # of values that a regression extends, the mean keeps to the bounds, on either side
        extended = Bootstrap(40).mean(beyond * np.linspace(1.0, 1.4, 40), bounds=(-1.0, 1.0))
        assert "Student" in extended.method
        assert extended.value == beyond
        assert extended.low < extended.high


def test_few_yes_or_no_answers_that_are_no_simple_sample_have_no_exact_interval() -> None:
    values = np.repeat([1.0, 0.0, 1.0, 1.0, 0.0, 1.0], 4)
    assert Bootstrap(24).mean(values).method == "Blaker"
    passages = Bootstrap(24, contexts=[f"c{q // 4}" for q in range(24)]).mean(values)
    assert passages.method == "Agresti-Coull over contexts"
    assert passages.high - passages.low > 1.5 * (Bootstrap(24).mean(values).high - Bootstrap(24).mean(values).low)
    # questions that count for 1 to 3 answers each are no yes-or-no answers, although each has a ratio of 0 or 1
    weights = np.resize([1.0, 2.0, 3.0], 24)
    assert "Agresti-Coull" in Bootstrap(24).ratio(values * weights, weights).method


def test_few_that_differ_on_one_side_widen_the_interval() -> None:
    """Four questions of 60 make up all of the variance: it is known no better than from four."""
    values = np.zeros(60)
    values[:4] = (0.75, 0.5, 0.75, 0.5)
    found = Bootstrap(60).mean(values, share=False)
    plain = 2.0 * values.std(ddof=1) / math.sqrt(60)
    assert found.high - found.value > 1.15 * plain
    # on both sides they cannot make the mean and the variance too low at once: Student's interval will do
    values[:4] = (0.75, -0.75, 0.5, -0.5)
    found = Bootstrap(60).mean(values, share=False)
    plain = 2.0 * values.std(ddof=1) / math.sqrt(60)
    assert plain < found.high - found.value < 1.05 * plain


@pytest.mark.parametrize(("n", "unsure"), [(8, 0.5), (10, 0.5), (15, 0.5), (20, 0.3), (30, 0.2), (40, 0.15)])
def test_luck_that_went_one_way_is_not_all_there_is(n: int, unsure: float) -> None:
    """Right or wrong less the mean over orders, where A is taken when unsure: coverage was down to 0.88."""
    shares, values = np.array([1 - unsure, 0.75 * unsure, 0.25 * unsure]), (0.0, -0.25, 0.75)
    covered = 0.0
    for lost in range(n + 1):
        for won in range(n + 1 - lost):
            counts = (n - lost - won, lost, won)
            found = Bootstrap(n).mean(np.repeat(values, counts), share=False, swings=True)
            covered += multinomial.pmf(counts, n, shares) * (found.low <= 0.0 <= found.high)
    assert covered >= 0.93


def test_differences_between_subjects_do_not_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    subjects = [f"s{i // 20}" for i in range(400)]
    values = np.repeat(np.linspace(0.1, 0.9, 20), 20) + rng.uniform(-0.1, 0.1, 400)
    plain, stratified = Bootstrap(400).mean(values), Bootstrap(400, subjects).mean(values)
    assert stratified.method == "Agresti-Coull over questions, within subjects"
    assert plain.value == stratified.value
    assert stratified.high - stratified.low < 0.3 * (plain.high - plain.low)


def test_strata_by_hand() -> None:
    values, subjects = np.random.default_rng(1).random(11), ["a"] * 5 + ["b"] * 6
    by_hand = (5 * np.var(values[:5], ddof=1) + 6 * np.var(values[5:], ddof=1)) / 121
    residuals = (values - values.mean()) / 11
    assert Sampling(11, subjects).variance(residuals) == pytest.approx(by_hand)
    # subjects of few questions are put together
    few = Sampling(11, list("aaabbbccccc"))
    by_hand = (6 * np.var(values[:6], ddof=1) + 5 * np.var(values[6:], ddof=1)) / 121
    assert few.variance(residuals) == pytest.approx(by_hand)
    alone = Sampling(3, ["a", "b", "c"])
    assert alone.variance(np.array([-1.0, 0.0, 1.0])) == pytest.approx(3 * np.var([-1, 0, 1], ddof=1))
    assert not alone.stratified


def test_two_agreeing_questions_of_a_subject_prove_nothing() -> None:
    values = np.ones(20)
    values[4:6] = 0.25
    found = Bootstrap(20, [f"s{q // 2}" for q in range(20)]).mean(values)
    assert found.high - found.low > 0.15


def test_subjects_of_a_piece_are_not_certain() -> None:
    values = np.repeat([0.0, 1.0], 10)
    found = Bootstrap(20, ["a"] * 10 + ["b"] * 10).mean(values)
    assert found.high - found.low > 0.3


def test_questions_that_share_a_context_are_drawn_together() -> None:
    rng = np.random.default_rng(0)
    passages = [f"c{i // 20}" for i in range(400)]
    by_passage = np.repeat(rng.random(20), 20)
    for values in (by_passage, (by_passage > 0.5).astype(float)):
        plain, clustered = Bootstrap(400).mean(values), Bootstrap(400, contexts=passages).mean(values)
        assert clustered.method == "Agresti-Coull over contexts"
        assert plain.value == clustered.value
        # all 20 answers of a passage agree, so there are 20 independent values, not 400
        assert clustered.high - clustered.low > 3 * (plain.high - plain.low)


def test_few_contexts_are_few_degrees_of_freedom() -> None:
    passages = [f"c{i // 10}" for i in range(50)]  # four degrees of freedom, of which half are counted
    values = np.repeat([0.3, 0.4, 0.5, 0.6, 0.7], 10)
    found = Bootstrap(50, contexts=passages).mean(values, bounds=UNBOUNDED)
    error = np.std([0.3, 0.4, 0.5, 0.6, 0.7], ddof=1) / math.sqrt(5)
    assert found.high - found.value == pytest.approx(4.303 * error, rel=1e-3)
    fewer = Bootstrap(40, contexts=passages[:40]).mean(values[:40])
    assert math.isnan(fewer.low)
    assert "fewer than 5 contexts" in fewer.note


@pytest.mark.parametrize("passages", [5, 12, 30])
@pytest.mark.parametrize(("times", "least"), [(1, 0.90), (4, 0.94)])
def test_one_passage_with_most_of_the_questions_is_one_passage(passages: int, times: int, least: float) -> None:
    """The mean follows it, so that its distance from the mean says little: 0.58 to 0.9 were covered."""
    rng, held = np.random.default_rng(passages), []
    sizes = np.r_[3 * (passages - 1) * times, np.full(passages - 1, 3)]
    passage = np.repeat(np.arange(passages), sizes)
    for _ in range(150):
        known = rng.random(len(passage)) < rng.beta(2, 2, passages)[passage]
        mean = Bootstrap(len(passage), contexts=[f"c{c}" for c in passage]).mean(np.where(known, 1.0, 0.25))
        held.append(mean.low <= 0.625 <= mean.high)
    assert np.mean(held) >= least


def test_passages_of_one_size_are_measured_as_before() -> None:
    rng = np.random.default_rng(2)
    sampling = Bootstrap(60, contexts=[f"c{q // 5}" for q in range(60)]).sampling
    terms = rng.normal(size=60)
    assert sampling.jackknifed(terms, np.ones(60)) == pytest.approx(terms)
    assert Bootstrap(60).sampling.jackknifed(terms, rng.random(60)) is terms
    # a passage with three quarters of the weight counts as far from the mean as it is from the others
    uneven = np.where(np.arange(60) < 5, 33.0, 1.0)
    changed = sampling.jackknifed(terms, uneven) / terms
    assert changed[0] / changed[5] == pytest.approx((1 - 5 / 220) / (1 - 165 / 220))


def test_questions_without_a_context_are_on_their_own() -> None:
    values = np.random.default_rng(0).random(50)
    assert Bootstrap(50, contexts=[""] * 50).mean(values) == Bootstrap(50).mean(values)
    assert Bootstrap(50, contexts=["all"] * 50).mean(values) == Bootstrap(50).mean(values)


@pytest.mark.parametrize("strata", [1, 10, 200])
def test_resamples_vary_as_much_as_the_mean_does(strata: int) -> None:
    """Also with two questions a subject, where plain resampling within subjects would see half of the variance."""
    values = np.random.default_rng(0).random(400)
    sampling = Sampling(400, [f"s{i % strata}" for i in range(400)])
    weights = sampling.weights(sampling.draws(4000, 0))
    assert weights.sum(axis=1) == pytest.approx(np.full(4000, 400), rel=1e-5)
    means = (weights @ values) / 400
    assert means.var() == pytest.approx(float(sampling.variance((values - values.mean()) / 400)), rel=0.1)


def test_what_is_undefined_stays_undefined_within_bounds() -> None:
    assert Estimate.undefined("no answers").within(0.0, 1.0).to_dict() == Estimate.undefined("no answers").to_dict()


def test_a_statistic_that_nearly_always_is_at_the_edge_has_no_interval() -> None:
    rarely_less = Bootstrap(100).statistic(
        np.ones((100, 1)) * (np.arange(100) < 50)[:, None],
        lambda totals: np.where(totals[:, 0] < 36, 0.9, 1.0),
        100,
        high=1.0,
    )
    assert math.isnan(rarely_less.low)
    assert rarely_less.note == "at the edge of its range: no interval"


def test_a_statistic_that_does_not_vary_has_no_interval() -> None:
    features = np.column_stack([np.ones(10), np.ones(10)])
    found = Bootstrap(10).statistic(features, lambda t: t[:, 0] / t[:, 1], 10)
    assert found.value == 1
    assert math.isnan(found.low)
    assert "too few different questions" in found.note
    nothing = Bootstrap(10).statistic(0 * features, lambda t: t[:, 0], 0)
    assert nothing.note == "no question has a value"
    unknown = Bootstrap(10).statistic(features, lambda t: t[:, 0] * math.nan, 10)
    assert (unknown.defined, unknown.n, unknown.note) == (False, 10, "undefined for these answers")


def sampled(known: float, sure: float, unsure: float, n: int, repeats: int = 400) -> tuple[float, float]:
    """Coverage, and mean width over that of Wilson's interval, where most questions are known and vary little."""
    spread = 2e-3 if sure < 0.5 else -2e-3
    rng, truth = np.random.default_rng(0), known * sure + (1 - known) * unsure + spread
    covered, width, wilsons = 0, 0.0, 0.0
    for _ in range(repeats):
        values = np.where(rng.random(n) < known, sure, unsure) + spread * rng.exponential(1, n)
        found, plain = Bootstrap(n).mean(values), wilson(float(values.mean()), n)
        covered += found.low <= truth <= found.high
        width, wilsons = width + found.high - found.low, wilsons + plain.high - plain.low
    return covered / repeats, width / wilsons


@pytest.mark.parametrize("n", [10, 20, 50, 500])
@pytest.mark.parametrize(("sure", "unsure"), [(0.0, 0.75), (1.0, 0.25), (1.0, 0.6), (0.15, 0.75), (0.95, 0.25)])
def test_a_sample_without_the_rare_unsure_question_is_not_certain(n: int, sure: float, unsure: float) -> None:
    """PBM, normalised PBM, margin, confidence and mean over orders of a model that knows 97 %, also hardly sure."""
    coverage, width = sampled(0.97, sure, unsure, n)
    assert coverage > 0.93
    assert width < 1.3


@pytest.mark.parametrize("n", [60, 100, 200])
def test_a_rare_kind_of_question_is_bounded_as_tightly_as_by_yes_or_no_answers(n: int) -> None:
    """3 % of questions differ: Student's quantile for so few of them alone would be far too wide."""
    coverage, width = sampled(0.97, 1.0, 0.25, n)
    assert coverage > 0.93
    assert width < 1


def test_values_off_their_bounds_have_their_own_spread_alone() -> None:
    """A guesser's confidence: all questions are unsure, so that no rare sort of them is missing."""
    values = np.random.default_rng(0).normal(0.4, 0.05, 20)
    found = Bootstrap(20).mean(values)
    assert found.high - found.low < 1.3 * 2 * 2.09 * values.std(ddof=1) / math.sqrt(20)


@pytest.mark.parametrize("model", [Planted(), Planted(label=at(0, 0.4)), Planted(knows=0)])
def test_a_fair_model_that_is_often_unsure_has_a_narrow_pbm(model: Planted) -> None:
    """Its PBM is near 0 on all questions: the interval was 3 to 20 times as wide, for questions of a kind not drawn."""
    scores = planted_scores(model, 60)
    found, values = compute(scores).means["pbm"], measure(scores)["pbm"]
    assert found.high - found.low < 1.5 * 2 * 2.0 * values.std(ddof=1) / math.sqrt(60)


@pytest.mark.parametrize(
    ("unsure", "alike", "room"), [(4, False, True), (5, False, False), (9, True, True), (10, True, False)]
)
def test_few_unsure_questions_leave_room_for_others(unsure: int, alike: bool, room: bool) -> None:
    """More of them are needed where none differs from a known question."""
    values, mask = np.random.default_rng(0).normal(0.98, 0.005, 100), np.arange(100) < unsure
    values[:4] = 0.98 if alike else 0.8
    found, sampled_alone = (
        Bootstrap(100, unsure=which).mean(values, room="bounds, unsure") for which in (mask, np.ones(100, bool))
    )
    assert (found.low < sampled_alone.low) == room


@pytest.mark.parametrize("n", [100, 200])
def test_one_unsure_question_in_five_that_differs_from_known_ones_is_not_forgotten(n: int) -> None:
    """A model that knows 95 % and takes A otherwise, one time in five with doubts: its margin was held in 0.845."""
    rng, odd = np.random.default_rng(0), 0.3
    truth = 0.95 * 0.995 + 0.05 * (0.8 * 0.98 + 0.2 * odd)
    covered = 0
    for _ in range(400):
        unsure, differs = rng.random(n) < 0.05, rng.random(n) < 0.2
        values = np.where(unsure, np.where(differs, odd, 0.98), 0.995) + rng.uniform(-0.004, 0.004, n)
        found = Bootstrap(n, unsure=unsure).mean(values, room="bounds, unsure")
        covered += found.low <= truth <= found.high
    assert covered / 400 > 0.92


@pytest.mark.parametrize(("unsure", "room"), [(0, True), (5, False)])
def test_shares_of_a_label_have_room_for_unsure_questions(unsure: int, room: bool) -> None:
    """A is chosen in one order of four of each known question: where 3 % take A always, intervals covered 0.54."""
    values = np.where(np.arange(20) < 17, 0.25, 0.29)
    found = Bootstrap(20, unsure=np.arange(20) < unsure).mean(values, room="unsure")
    assert (found.high > 0.25 + 0.1 * 0.75) == room


def test_always_a_is_unsure_however_certain() -> None:
    certain = planted_scores(Planted(label=at(0, 60), knows=0.5, sure=90, hard=True), 60)
    known = planted_scores(Planted(knows=1), 60)
    assert 20 < spread_answers(certain).sum() < 40
    assert not spread_answers(known).any()
    one_order = replace(certain, blocks=())
    assert not spread_answers(one_order).any(), "one order does not show it"


@pytest.mark.parametrize("subjects", [10, 57])
@pytest.mark.parametrize(("right", "n"), [(1, 400), (119, 120), (118, 120), (2, 400), (399, 400)])
def test_subjects_never_make_an_interval_wider(right: int, n: int, subjects: int) -> None:
    """A single question that differs from its subject says nothing about the variance within subjects."""
    rng = np.random.default_rng(right)
    values = rng.permutation(np.arange(n) < right).astype(float)
    plain, within = Bootstrap(n).mean(values), Bootstrap(n, [f"s{q % subjects}" for q in range(n)]).mean(values)
    yes_or_no = wilson(right / n, n)
    assert within.high - within.low <= plain.high - plain.low
    assert within.high - within.low < 1.2 * (yes_or_no.high - yes_or_no.low)
    effects = Bootstrap(n, [f"s{q % subjects}" for q in range(n)]).mean(values, bounds=UNBOUNDED)
    assert effects.high - effects.low <= 1.0001 * np.ptp(list(ends(Bootstrap(n).mean(values, bounds=UNBOUNDED))))


def ends(estimate: Estimate) -> tuple[float, float]:
    return estimate.low, estimate.high


def test_one_right_answer_of_400() -> None:
    values = np.zeros(400)
    values[7] = 1.0
    found = Bootstrap(400, [f"s{q % 57}" for q in range(400)]).mean(values)
    assert 0 < found.low < 0.0025
    assert found.high == pytest.approx(0.0139, abs=1e-4)  # Clopper and Pearson's


def test_other_subjects_leave_more_open_than_other_questions() -> None:
    rng = np.random.default_rng(0)
    subjects = [f"s{q % 12}" for q in range(240)]
    values = (rng.random(240) < np.tile(np.linspace(0.2, 0.9, 12), 20)).astype(float)
    these = Bootstrap(240, subjects).mean(values)
    others = Bootstrap(240, subjects, across_subjects=True).mean(values)
    assert others.value == these.value
    assert others.method == "Agresti-Coull over subjects"
    assert others.high - others.low > 1.8 * (these.high - these.low)
    one = Bootstrap(240, ["law"] * 240, across_subjects=True).mean(values)
    assert math.isnan(one.low)
    assert "fewer than 5 subjects" in one.note
    assert ends(Bootstrap(240, [""] * 240, across_subjects=True).mean(values)) == ends(Bootstrap(240).mean(values))
    # within two sets of other subjects, subjects are still what is drawn
    halves = Bootstrap(240, subjects, across_subjects=True, sets=[q % 2 for q in range(240)]).mean(values)
    assert halves.high - halves.low > 2.2 * (these.high - these.low)
