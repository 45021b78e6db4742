"""What a single order tells: by hand, on planted truth, and how often its tests are right."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, fisher_exact

from benchmarks.planted import Planted, at, planted_scores
from unslant.metrics import Bootstrap, Estimate, Numbers, compute, read_scores
from unslant.metrics.accuracy import Calibration, calibration, given_calibration
from unslant.metrics.label_bias import cramers_v, label_bias
from unslant.metrics.labels import given_slots
from unslant.metrics.shortcuts import length_bias
from unslant.presentations import present
from unslant.questions import Question
from unslant.responses import Response

Floats = NDArray[np.float64]


def scored(rows: list[list[float]], right: int = 0) -> list[Response]:
    """One order of questions with these log-probabilities, the right option at one place."""
    found = []
    for i, logprobs in enumerate(rows):
        question = Question(f"q{i:03d}", "?", tuple("wxyz"[: len(logprobs)]), frozenset({right}))
        found.append(
            Response.of(question, present(question, range(len(logprobs))), "cloze", logprobs=np.array(logprobs))
        )
    return found


def test_margin_and_ties_by_hand() -> None:
    metrics = compute(read_scores(scored([np.log([0.6, 0.2, 0.2]).tolist(), np.log([0.4, 0.4, 0.2]).tolist()])))
    assert metrics.questions["margin"].tolist() == pytest.approx([0.4, 0.0])
    assert metrics.means["tie_rate"].value == 0.5
    assert not metrics.means["pbm"].defined


def test_label_mass_only_of_scores_that_are_not_normalised() -> None:
    whole = np.log([[0.6, 0.2, 0.2], [0.5, 0.3, 0.2]])
    assert not compute(read_scores(scored(whole.tolist()))).means["label_mass"].defined
    assert compute(read_scores(scored((whole - 0.1).tolist()))).means["label_mass"].value == pytest.approx(np.exp(-0.1))
    # one row that holds everything is no normalisation
    some = [whole[0].tolist(), (whole[1] - 1).tolist()]
    assert compute(read_scores(scored(some))).means["label_mass"].value == pytest.approx((1 + np.exp(-1)) / 2)


def test_cramers_v_by_hand() -> None:
    counts, right = np.array([40.0, 30.0, 50.0]), np.array([30.0, 15.0, 15.0])
    table = np.array([right, counts - right])
    expected = chi2_contingency(table, correction=False)
    n = counts.sum()
    phi = max(0, expected.statistic / n - 2 / (n - 1))  # Bergsma 2013, 2 x 3
    value, p = cramers_v([(counts, right, 1.0)])
    assert value.value == pytest.approx(np.sqrt(phi / (1 - 1 / (n - 1))))
    assert p == pytest.approx(expected.pvalue)
    assert not cramers_v([(counts, counts, 1.0)])[0].defined
    # a place of no question is none
    assert cramers_v([(np.append(counts, 0.0), np.append(right, 0.0), 1.0)])[1] == pytest.approx(p)


def test_few_questions_are_tested_exactly() -> None:
    """Against Fisher's exact test, where two places have equal counts and both orders of tables agree."""
    counts, right = np.array([6.0, 6.0]), np.array([6.0, 1.0])
    exact = fisher_exact(np.array([right, counts - right])).pvalue
    assert cramers_v([(counts, right, 1.0)])[1] == pytest.approx(exact, rel=0.25)
    assert chi2_contingency(np.array([right, counts - right]), correction=False).pvalue < exact / 3


@pytest.mark.thorough
@pytest.mark.parametrize("size", [24, 60])
def test_the_test_of_places_holds_its_level_and_v_is_0_for_a_fair_model(size: int) -> None:
    """Right answers of a model that knows 90 %: so few are wrong that chi-squared's distribution is no guide."""
    rng = np.random.default_rng(size)
    p, squared = [], []
    for _ in range(300):
        place, right = rng.integers(4, size=size), rng.random(size) < 0.9
        counts = (np.bincount(x, minlength=4).astype(float) for x in (place, place[right]))
        value, own = cramers_v([(*counts, 1.0)])
        if value.defined:
            p.append(own)
            squared.append(value.value**2)
    assert np.mean(np.asarray(p) <= 0.05) < 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(p))
    assert np.mean(np.asarray(p) <= 0.3) > 0.15  # and has power to lose
    assert np.mean(squared) < 0.05


def test_a_planted_place_is_found_from_one_order() -> None:
    slots = given_slots(planted_scores(Planted(label=at(0)), 200, (4,), seed=2))
    assert label_bias(slots)["p"].value < 1e-6
    assert label_bias(slots)["cramers_v"].value > 0.3
    fair = label_bias(given_slots(planted_scores(Planted(), 200, (2, 3, 4, 5), seed=2)))
    assert fair["p"].value > 0.01
    assert fair["cramers_v"].value < 0.15


def test_answers_beyond_the_right_options() -> None:
    metrics = compute(planted_scores(Planted(label=at(0)), 200, (4,), seed=3))
    first, *others = metrics.given_labels[:4]
    assert first["predicted_excess"].value == pytest.approx(first["predicted"].value - first["gold"].value)
    assert first["predicted_excess"].low > 0
    assert all(row["predicted_excess"].value < 0 for row in others)


def calibrated(confidence: Floats, right: Floats, contexts: list[str] | None = None) -> Calibration:
    n = len(confidence)
    found = calibration(np.arange(n), confidence, right > 0, Bootstrap(n, contexts=contexts))
    assert found is not None
    return found


def test_calibration_by_hand() -> None:
    confidence, right = np.array([0.95, 0.95, 0.55, 0.6, 0.0]), np.array([1.0, 0.0, 1.0, 0.0, 0.0])
    found = calibrated(confidence, right)
    # bins above 0.9: 2 answers, 0.95 against 0.5; above 0.5 to 0.6: 2 answers, 0.575 against 0.5; 0: one, right to be 0
    assert found["ece"].value == pytest.approx((2 * 0.45 + 2 * 0.075) / 5)
    assert found["brier"].value == pytest.approx(np.mean((confidence - right) ** 2))
    assert [(b.above, b.to, b.replies) for b in found.bins] == [(0.0, 0.1, 1), (0.5, 0.6, 2), (0.9, 1.0, 2)]
    assert [b.confidence for b in found.bins] == pytest.approx([0.0, 0.575, 0.95])
    assert [b.right.value for b in found.bins] == [0.0, 0.5, 0.5]
    assert calibration(np.arange(0), np.zeros(0), np.zeros(0, bool), Bootstrap(1)) is None


def test_ece_by_chance_is_that_of_calibrated_answers_and_p_holds_its_level() -> None:
    rng = np.random.default_rng(5)
    confidence = rng.uniform(0.25, 1, 80)
    found = [calibrated(confidence, (rng.random(80) < confidence).astype(float)) for _ in range(200)]
    assert np.mean([c["ece"].value for c in found]) == pytest.approx(found[0]["ece_by_chance"].value, rel=0.08)
    assert np.mean([c["p"].value <= 0.05 for c in found]) < 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)
    assert 0.3 < np.mean([c["p"].value for c in found]) < 0.7


def test_the_most_probable_of_four_labels_has_at_least_a_quarter() -> None:
    scores = planted_scores(Planted(knows=1, sure=60), 5)
    found = given_calibration(scores, np.ones(5), Bootstrap(5))
    assert found is not None
    # five of five is at least 0.5 of the range from 0.25 to 1
    assert found["confidence"].low == pytest.approx(0.625, abs=1e-3)


def test_a_passage_that_is_right_as_a_whole_is_not_miscalibration() -> None:
    rng = np.random.default_rng(6)
    contexts = [f"passage {i // 5}" for i in range(100)]
    confidence = np.full(100, 0.7)
    alone, together = [], []
    for _ in range(100):
        right = np.repeat(rng.random(20) < 0.7, 5).astype(float)
        alone.append(calibrated(confidence, right)["p"].value <= 0.05)
        together.append(calibrated(confidence, right, contexts)["p"].value <= 0.05)
    assert np.mean(together) < 0.1 < 0.2 < np.mean(alone)


def test_overconfidence_is_found() -> None:
    rng = np.random.default_rng(7)
    confidence = rng.uniform(0.6, 1, 200)
    found = calibrated(confidence, (rng.random(200) < confidence - 0.25).astype(float))
    assert found["p"].value < 0.01
    assert found["ece"].value > 2 * found["ece_by_chance"].value
    assert found["confidence"].value > found["right"].high


def lengths_of(logprobs: Floats, lengths: Floats, answers: NDArray[np.bool_]) -> Numbers:
    found = length_bias(logprobs, lengths, answers, Bootstrap(len(logprobs)))
    assert found is not None
    return found


def test_planted_length_bias() -> None:
    """A model that pays 0.5 nats a character, and 3 for the truth: the sum takes short options, the mean does not."""
    rng = np.random.default_rng(8)
    lengths = rng.integers(3, 30, (300, 4)).astype(float)
    answers = np.eye(4, dtype=bool)[rng.integers(4, size=300)]
    found = lengths_of(-0.5 * lengths + 3.0 * answers, lengths, answers)
    assert found["shortest_excess"].low > 0.2
    assert found["longest_excess"].value < 0
    assert found["change"].low > 0.2
    assert found["p"].value < 1e-6
    assert found["normalised"].value == 1.0
    # options of one length, and of scores by content alone
    same = lengths_of(rng.normal(size=(300, 4)) - 5, np.full((300, 4), 7.0), answers)
    assert same["change"].value == 0
    assert not same["shortest_excess"].defined
    fair = lengths_of(rng.normal(size=(300, 4)) - 5, lengths, answers)
    assert not fair["shortest_excess"].excludes(0.0)


def test_length_bias_needs_a_score_and_a_length_for_every_option() -> None:
    answers = np.array([[True, False], [True, False]])
    nothing = np.full((2, 2), np.nan)
    assert length_bias(nothing - 1, np.ones((2, 2)), answers, Bootstrap(2)) is None
    assert length_bias(-np.ones((2, 2)), np.array([[0.0, 3.0], [2.0, 0.0]]), answers, Bootstrap(2)) is None
    # two options among questions of three: padding is none
    padded = np.array([[-2.0, -1.0, np.nan], [-3.0, -1.0, -1.0]])
    right = np.array([[False, True, False], [True, False, False]])
    found = lengths_of(padded, np.where(np.isnan(padded), np.nan, 4.0), right)
    assert found["accuracy"].value == 0.5


def test_five_unsure_answers_that_are_right_do_not_show_how_far_off_the_wrong_ones_are() -> None:
    """With four right options in five under A, answers of a model that takes A when unsure are mostly right: intervals
    of the Brier score held the truth in 0.89 of the samples of 40."""
    n, unsure = 40, np.arange(40) < 8
    confidence = np.where(unsure, 0.95, 0.999)

    def brier(right: Floats) -> Estimate:
        found = calibration(np.arange(n), confidence, right > 0, Bootstrap(n, unsure=unsure))
        assert found is not None
        return found["brier"]

    assert brier(np.ones(n)).high > 1 - 0.05 ** (1 / n) > 0.07
    some_wrong = np.where(np.arange(n) < 5, 0.0, 1.0)
    known = Bootstrap(n, unsure=unsure).mean((confidence - some_wrong) ** 2, room="bounds, unsure")
    assert (brier(some_wrong).low, brier(some_wrong).high) == pytest.approx((known.low, known.high))
