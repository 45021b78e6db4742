"""Numbers of an audit that showed every question in a Latin square, and a part of them in all orders."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.planted import Planted, at, planted_scores
from tests.metrics.synthetic import ask, make_questions
from unslant.metrics import (
    METRICS,
    Bootstrap,
    Estimate,
    OrderScores,
    compute,
    measure,
    paired_difference,
    preference,
    read_scores,
)
from unslant.metrics.labels import place_shares
from unslant.metrics.measures import extended_measures, means
from unslant.metrics.permutation import normalised_pbm, unsure_questions
from unslant.metrics.two_phase import (
    TwoPhaseValues,
    _blocks_of,
    beyond_places,
    known_values,
    over_squares,
    two_phase_values,
    whole_part,
)
from unslant.presentations import auto_square
from unslant.presentations.orders import auto_arrangements, latin_squares
from unslant.questions import Question
from unslant.responses import Responses, Run
from unslant.responses.run import TwoPhaseRun

QUESTIONS = make_questions(120, (4, 4, 4, 3, 2, 5), subjects=3)


def leans(question: Question, contents, labels, rng) -> list[float]:
    """Knows some, is drawn to the first place, and to an option after its neighbour; the same on the same page."""
    rng = np.random.default_rng(int("".join(map(str, contents))) + 100_000 * int(question.id[1:]))
    sure = 3.0 * (int(question.id[1:]) % 2)
    right = [sure * (content in question.answers) for content in contents]
    after = [2.0 * (place > 0 and contents[place - 1] == 0 and contents[place] == 1) for place in range(len(contents))]
    return [r + a + (place == 0) + 0.3 * rng.normal() for place, (r, a) in enumerate(zip(right, after, strict=True))]


@pytest.fixture(scope="module")
def everything() -> Responses:
    return ask(QUESTIONS, leans)


def phased(everything: Responses, full: set[str], seed: int = 0) -> OrderScores:
    """What two phases would have shown of it."""
    squares = {question.id: set(auto_square(question, seed)) for question in QUESTIONS}
    rows = []
    for row in everything.rows():
        given = row.contents == tuple(range(len(row.contents)))
        if row.question_id in full or (row.kind == "order" and row.contents in squares[row.question_id]):
            rows.append(row)
        elif row.kind == "order" and given:
            rows.append(replace(row, kind="given"))
    run = Run(two_phase=TwoPhaseRun(full=tuple(sorted(full))))
    return read_scores(replace(Responses.from_rows(rows), run=run))


@pytest.fixture(scope="module")
def whole(everything: Responses) -> OrderScores:
    return read_scores(everything)


def test_with_every_question_in_the_part_nothing_is_estimated(everything: Responses, whole: OrderScores) -> None:
    scores = phased(everything, {question.id for question in QUESTIONS})
    found, expected = compute(scores), compute(whole)
    for metric, value in expected.means.items():
        if value.defined:
            assert found.means[metric].value == pytest.approx(value.value)
    # nan is not equal to itself, which dataclasses heed from Python 3.13 on
    assert repr(found.preference) == repr(expected.preference)
    assert repr(found.over_orders) == repr(expected.over_orders)


def adaptive(scores: OrderScores, rng: np.random.Generator, n: int, *, at_random: bool = False) -> OrderScores:
    """In all orders only where the reversed order changes the answer, and for n others; or for n of all questions."""
    agree = np.full(len(scores), True) if at_random else scores.given.chosen == scores.reversed.chosen
    checked = np.zeros(len(scores), bool)
    checked[rng.permutation(np.flatnonzero(agree))[:n]] = True
    return replace(scores, blocks=_blocks_of(scores, checked | ~agree), stopped=agree & ~checked, checked=checked)


@pytest.mark.parametrize(("key", "knows", "pull", "at_random"),
                         [("consistency", 0.8, 0.0, False), ("pbm", 0.8, 0.0, False), ("consistency", 0.95, 2.5, True),
                          ("order_advantage", 0.8, 2.5, True)])  # fmt: skip
def test_a_sample_in_which_no_answer_changes_leaves_room_for_others(
    key: str, knows: float, pull: float, at_random: bool
) -> None:
    """Of 120 questions, 12 or 30 in all orders: a sample without a change was taken for certain. 0.75 to 0.88 held."""
    model = Planted(label=at(0, pull), knows=knows, noise=1.0, hard=True)
    truth, held = float(measure(planted_scores(model, 4000, seed=1))[key].mean()), []
    for seed in range(100):
        scores, rng = planted_scores(model, 120, seed=seed + 2), np.random.default_rng(seed)
        asked = adaptive(scores, rng, 30 if at_random else 12, at_random=at_random)
        estimate = means(extended_measures(asked, None), Bootstrap.of(asked), None, asked, measure(asked))[key]
        held.append(estimate.low <= truth <= estimate.high)
    assert np.mean(held) >= 0.93


@pytest.mark.parametrize("key", ["consistency", "robust_accuracy", "pbm"])
def test_a_difference_of_adaptive_runs_has_the_room_of_each(key: str) -> None:
    """It was +-0.06, as if the 50 questions left out had been asked, with p from the values predicted for them."""
    sure = planted_scores(Planted(knows=1.0, hard=True), 60)
    some = adaptive(sure, np.random.default_rng(0), 10)
    values = extended_measures(some, None)
    alone = means(values, Bootstrap.of(some), None, some, measure(some))[key]
    room = max(alone.value - alone.low, alone.high - alone.value)
    assert room > 0.15 * (METRICS[key].bounds[1])
    now, before = (paired_difference(*pair, key) for pair in ((some, sure), (sure, some)))
    falls = key != "pbm"
    assert (-now.difference.low if falls else now.difference.high) >= room
    assert (before.difference.high if falls else -before.difference.low) >= room
    assert (now.a.low, now.a.high) == pytest.approx((alone.low, alone.high))
    both = paired_difference(some, adaptive(sure, np.random.default_rng(1), 10), key)
    assert min(-both.difference.low, both.difference.high) >= room
    assert all(math.isnan(pair.p_value) for pair in (now, before, both))


@pytest.mark.thorough
@pytest.mark.parametrize(("key", "knows", "pull"),
                         [("consistency", (0.8, 0.8), 2.5), ("robust_accuracy", (0.8, 0.95), 0.0),
                          ("pbm", (0.8, 0.95), 0.0)])  # fmt: skip
def test_differences_of_adaptive_runs_hold_the_truth(key: str, knows: tuple[float, float], pull: float) -> None:
    """Of a fair model and one with a habit, or of two fair ones: 0.88 to 0.92 held."""
    models = [Planted(label=at(0, p), knows=k, noise=1.0, hard=True) for p, k in zip((0.0, pull), knows, strict=True)]
    first, second = (float(measure(planted_scores(model, 4000, seed=1))[key].mean()) for model in models)
    held = []
    for seed in range(200):
        runs = (planted_scores(model, 120, seed=seed + 2) for model in models)
        asked = [adaptive(run, np.random.default_rng([seed, i]), 12) for i, run in enumerate(runs)]
        difference = paired_difference(*asked, key).difference
        held.append(difference.low <= first - second <= difference.high)
    assert np.mean(held) >= 0.95


def test_unsure_questions_of_the_calibration_sample_stand_for_those_left_out() -> None:
    """Those whose reversed order changes the answer take A more often, and all of these are asked."""
    model = Planted(label=at(0, 1.0), knows=0.8, noise=1.0, hard=True)
    scores = adaptive(planted_scores(model, 400, seed=3), np.random.default_rng(0), 40)
    unsure = np.nan_to_num(unsure_questions(scores)) == 1
    shares, _ = place_shares(scores, unsure_questions(scores))
    assert scores.stopped is not None
    assert scores.checked is not None
    each = np.where(scores.checked, (scores.stopped | scores.checked).sum() / scores.checked.sum(), 1.0)
    assert (unsure & scores.checked).any()
    assert (unsure & ~scores.checked).any()
    chosen = preference(scores).labels[0].chosen
    assert chosen.value == pytest.approx(np.average(shares[unsure, 0], weights=each[unsure]))
    assert chosen.low < chosen.value < chosen.high


def test_what_is_a_mean_over_orders_is_right_on_average_over_squares(everything: Responses, whole: OrderScores) -> None:
    pairs, rows = over_squares(replace(whole, full=np.ones(len(whole), bool)))
    counts = np.bincount(rows)
    assert set(counts[whole.n_options == 4]) == {24}
    assert set(counts[whole.n_options == 5]) == {5}
    for key in ("expected_accuracy", "order_tie_rate"):
        values = np.bincount(rows, measure(pairs)[key]) / counts
        assert values == pytest.approx(measure(whole)[key])


@pytest.mark.thorough
def test_estimates_are_about_right_on_average_over_parts(everything: Responses, whole: OrderScores) -> None:
    expected, rng, found = measure(whole), np.random.default_rng(0), []
    keys = ("pbm", "consistency", "robust_accuracy", "vote_accuracy")
    ids = [question.id for question in QUESTIONS]
    for seed in range(12):
        scores = phased(everything, set(rng.permutation(ids)[:40]), seed)
        values = extended_measures(scores, TwoPhaseValues.of(scores))
        found.append([np.nanmean(values[key]) - np.nanmean(expected[key]) for key in keys])
    errors = np.asarray(found)
    assert (np.abs(errors.mean(axis=0)) < 3 * errors.std(axis=0) / np.sqrt(len(found)) + 1e-9).all()
    assert (errors.std(axis=0) < [0.008, 0.08, 0.08, 0.1]).all()


def test_each_number_says_what_it_rests_on(everything: Responses) -> None:
    full = {question.id for question in QUESTIONS[::3]}
    found = compute(phased(everything, full))
    means = found.means
    for key in ("accuracy", "expected_accuracy", "order_advantage", "pbm", "vote_accuracy", "square_vote_accuracy"):
        assert means[key].n == len(QUESTIONS)
    for key in ("fr", "fr_labels", "fr_both"):
        assert means[key].n == len(full)
    assert "all orders of 40" in means["pbm"].method
    assert found.preference.unsure.n == len(full)
    assert {test.questions for test in found.over_orders.tests} == {20}
    by_subject = found.by_subject["s00"]
    assert by_subject["expected_accuracy"].defined
    assert by_subject["place_accuracy"].defined
    assert "too few of one subject" in by_subject["pbm"].note


def test_questions_of_one_square_are_known_without_a_part(everything: Responses, whole: OrderScores) -> None:
    scores = phased(everything, {question.id for question in QUESTIONS if len(question.options) > 2})
    values, two = extended_measures(scores, TwoPhaseValues.of(scores)), scores.n_options == 2
    expected = measure(whole)
    for key in ("pbm", "consistency", "vote_accuracy"):
        assert values[key][two] == pytest.approx(expected[key][two])


def test_without_a_part_nothing_is_known_of_all_orders() -> None:
    squares, rows = np.random.default_rng(0).random((40, 2)), np.arange(40)
    values = two_phase_values(np.full(40, np.nan), squares, rows, np.zeros(40, bool))
    assert np.isnan(values).all()
    assert Bootstrap(40).two_phase(values, values, 0, bounds=(0, 1)).note


def test_answers_that_never_agree_over_a_square_leave_no_doubt() -> None:
    squares, rows, none = np.column_stack([np.zeros(1000), np.ones(1000)]), np.arange(1000), np.zeros(1000, bool)
    known = np.where(np.arange(1000) < 100, 0.0, np.nan)
    values = two_phase_values(known, squares, rows, none, key="consistency")
    certain = Bootstrap(1000).two_phase(values, np.zeros(1000), 100, bounds=(0, 1))
    assert certain.value == 0
    assert certain.high == pytest.approx(0.0038, abs=1e-4)
    doubtful = two_phase_values(known, squares, rows, none)
    assert Bootstrap(1000).two_phase(doubtful, known, 100, bounds=(0, 1)).high > 2 * certain.high
    few = Bootstrap(40, contexts=[f"c{q // 10}" for q in range(40)])
    assert "fewer than 5 contexts" in few.two_phase(np.resize([0.0, 1.0], 40), np.zeros(40), 40, bounds=(0, 1)).note


def test_an_interval_of_two_phases_is_students_off_the_bounds_and_has_room_near_them() -> None:
    def interval(values: np.ndarray, unsure: int = 0) -> Estimate:
        bootstrap = Bootstrap(len(values), unsure=np.arange(len(values)) < unsure)
        return bootstrap.two_phase(values, values, 100, bounds=(0, 1))

    spread = interval(np.linspace(0.2, 0.8, 1000))
    assert (spread.high - spread.low) / 2 == pytest.approx(1.96 * 0.6 / math.sqrt(12_000), rel=0.01)
    alike = interval(np.full(1000, 0.5))
    assert 0.49 < alike.low < 0.5 < alike.high < 0.51
    few = np.where(np.arange(1000) < 3, 0.1, 0.0)  # a question that the part missed may be far off: 3 in 1,000 are
    assert min(interval(few).high, interval(few, unsure=9).high) > 0.003 > interval(few, unsure=10).high


def test_what_all_squares_show_alike_is_bounded_by_all_of_them() -> None:
    squares, rows, none = np.column_stack([np.ones(1000), np.ones(1000)]), np.arange(1000), np.zeros(1000, bool)
    whole = np.where(np.arange(1000) < 100, 1.0, np.nan)
    values = two_phase_values(whole, squares, rows, none, "normalised_pbm")
    known = known_values("normalised_pbm", whole, squares[:, 0], rows)
    interval = Bootstrap(1000).two_phase(values, known, 100, bounds=(0, 1))
    assert interval.low == pytest.approx(Bootstrap(1000).mean(np.ones(1000)).low)
    consistent = known_values("consistency", whole, squares[:, 0], rows)  # one order of 24 is enough to spoil it
    assert np.isfinite(consistent).sum() == 100


@pytest.mark.parametrize(("n", "sure"), [(3, 1.0), (4, 1.0), (4, 0.7), (4, 0.5)])
def test_pbm_above_0_moves_no_farther_than_squares_show(n: int, sure: float) -> None:
    rng, orders = np.random.default_rng(0), np.asarray(sorted(auto_arrangements(n)))
    squares = [[sorted(auto_arrangements(n)).index(order) for order in square] for square in latin_squares(n)]
    leaning = np.full(orders.shape, (1 - sure) / (n - 1))
    leaning[np.arange(len(orders)), orders[:, 0]] = sure
    usual = float(normalised_pbm(leaning))
    for _ in range(500):
        probs, some = leaning.copy(), rng.permutation(len(orders))[: rng.integers(1, len(orders) + 1)]
        chosen = rng.integers(n, size=len(some)) if rng.integers(2) else np.full(len(some), rng.integers(n))
        probs[some] = np.eye(n)[chosen]
        moved = float(normalised_pbm(probs)) - usual
        seen = np.mean([abs(float(normalised_pbm(probs[square])) - usual) > 1e-9 for square in squares])
        assert -seen * usual - 1e-9 <= moved <= seen * (1 - usual) + 1e-9


@pytest.mark.parametrize("after", [0.0, 3.0])
def test_orders_matter_beyond_places_only_where_neighbours_pull(after: float) -> None:
    def pulled(question: Question, contents, labels, rng) -> list[float]:
        places = enumerate(contents)
        return [1.5 * (place == 0) + after * (c == 1 and place > 0 and contents[place - 1] == 0) for place, c in places]

    scores = read_scores(ask(make_questions(40), pulled))
    share = beyond_places(whole_part(scores), Bootstrap.of(scores))["beyond_places"]
    assert (share.low > 0.1) == (after > 0)
    assert share.value == pytest.approx(0, abs=1e-9) or after


def test_what_lies_beyond_places_is_weighed_by_how_much_each_question_moves() -> None:
    questions = make_questions(2)
    scores, *each = (read_scores(ask(some, leans)) for some in (questions, questions[:1], questions[1:]))
    shares = [beyond_places(one, Bootstrap.of(one))["beyond_places"].value for one in each]
    moved = [measure(one)["pbm"][0] for one in each]
    together = beyond_places(scores, Bootstrap.of(scores))["beyond_places"].value
    assert min(shares) < together < max(shares)
    assert together == pytest.approx(np.average(shares, weights=moved))


def test_failed_pages_of_the_part_are_left_out(everything: Responses) -> None:
    full = {question.id for question in QUESTIONS[::3]}
    rows = [
        replace(row, status="error", logprobs=None) if row.question_id == "q0000" and row.kind == "order" else row
        for row in everything.rows()
    ]
    scores = phased(Responses.from_rows(rows), full)
    assert scores.n_incomplete == 1
    found = TwoPhaseValues.of(scores)
    assert found is not None
    assert np.isnan(found.values["pbm"][scores.ids.index("q0000")])
    assert np.isfinite(found.values["pbm"]).sum() == len(QUESTIONS) - 1
