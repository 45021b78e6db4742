"""Intervals that may be looked at after every question."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.until import ever_excluded
from unslant.auditing.until_rule import ConfidenceSequence

DRAWS = 300


def fed(values: np.ndarray, horizon: float = DRAWS, bounds: tuple[float, float] = (0.0, 1.0)) -> ConfidenceSequence:
    sequence = ConfidenceSequence(bounds)
    for part in np.array_split(values, 5):
        sequence.add(part, np.ones(len(part)), horizon)
    return sequence


@pytest.mark.parametrize("p", [0.03, 0.5, 0.97])
@pytest.mark.parametrize("horizon", [20, 5000])
def test_looking_after_every_question_misses_the_truth_in_no_more_than_5_percent(p: float, horizon: float) -> None:
    rng = np.random.default_rng(1)
    missed = [ever_excluded(fed((rng.random(DRAWS) < p) * 1.0, horizon), p) for _ in range(200)]
    assert np.mean(missed) < 0.05 + 0.02
    assert ever_excluded(fed((rng.random(DRAWS) < p) * 1.0, horizon), 1 - p + 0.02) == (p != 0.5)


def test_width_at_the_horizon_is_that_of_the_paper() -> None:
    values = np.random.default_rng(2).beta(2, 3, 3000)
    low, high = fed(values, 3000).interval()
    expected = math.sqrt(2 * math.log(40)) * values.std() / math.sqrt(3000)
    assert (high - low) / 2 == pytest.approx(expected, rel=0.06)
    assert low < values.mean() < high


def test_means_outside_the_interval_were_won_against_and_those_well_inside_never() -> None:
    sequence = fed(np.random.default_rng(3).random(DRAWS))
    low, high = sequence.interval()
    assert ever_excluded(sequence, low - 1e-5)
    assert ever_excluded(sequence, high + 1e-5)
    assert not any(ever_excluded(sequence, mean) for mean in np.linspace(low, high, 9)[2:-2])


def test_questions_that_are_all_alike_leave_something_open() -> None:
    low, high = fed(np.ones(60), 60).interval()
    assert 0.85 < low < 0.95
    assert high == 1.0
    assert ConfidenceSequence((-1.0, 1.0)).interval() == (-1.0, 1.0)
    (nothing := ConfidenceSequence()).add(np.zeros(0), np.zeros(0), 10.0)  # as of questions without any PBM
    assert nothing.interval() == (0.0, 1.0)


def test_other_bounds_are_the_same_scaled() -> None:
    values = np.random.default_rng(4).random(DRAWS)
    plain, scaled = fed(values).interval(), fed(2 * values - 1, bounds=(-1.0, 1.0)).interval()
    assert scaled == pytest.approx([2 * end - 1 for end in plain], abs=1e-5)


def test_questions_of_one_passage_count_as_one_draw() -> None:
    rng = np.random.default_rng(5)
    missed, widths = 0, []
    for _ in range(200):
        sizes = rng.integers(1, 6, 80)
        chance = rng.choice([0.1, 0.9], 80)  # a passage is known or not; the mean over questions is 0.5
        sequence = ConfidenceSequence()
        sequence.add(rng.binomial(sizes, chance) / 5, sizes / 5, 80)
        missed += ever_excluded(sequence, 0.5)
        widths.append(np.ptp(sequence.interval()))
    assert missed / 200 < 0.05 + 0.02
    alone = fed(rng.binomial(1, 0.5, 240) * 1.0, 240).interval()
    assert np.mean(widths) > 1.4 * np.ptp(alone)  # 240 questions, but 80 passages
