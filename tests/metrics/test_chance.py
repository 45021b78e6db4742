"""Whether a score is above chance."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from benchmarks.planted import Planted, planted_scores
from unslant.metrics import Bootstrap, above_chance, compute, measure


def test_answers_by_hand() -> None:
    chance = np.array([0.5, 0.25, 0.25, 0.2])
    right = np.array([1.0, 1.0, 0.0, 1.0])
    exact = sum(
        math.prod(c if hit else 1 - c for c, hit in zip(chance, hits, strict=True))
        for hits in itertools.product((0, 1), repeat=4)
        if sum(hits) >= 3
    )
    found = above_chance(right, chance, Bootstrap(4))
    assert found.p == pytest.approx(exact)
    assert found.above == (exact < 0.05)
    assert found.excess.value == pytest.approx((right - chance).mean())


@pytest.mark.parametrize(("n", "share"), [(10, 0.1), (20, 0.1), (10, 0.9), (30, 0.97)])
def test_luck_that_went_one_way_counts_where_chances_differ(n: int, share: float) -> None:
    """Of 3 to 5 options, ten wrong answers of ten differ in their chance alone: 0.62 to 0.86 were held."""
    rng, held = np.random.default_rng(n), []
    for _ in range(200):
        chance, right = 1 / rng.integers(3, 6, n), (rng.random(n) < share).astype(float)
        excess = above_chance(right, chance, Bootstrap(n, unsure=np.ones(n, bool))).excess
        held.append(excess.low <= share - (1 / 3 + 1 / 4 + 1 / 5) / 3 <= excess.high)
    assert np.mean(held) >= 0.93


@pytest.mark.thorough
@pytest.mark.parametrize("sizes", [(4,), (2, 3, 4, 5, 6, 7, 8)])
@pytest.mark.parametrize("count", [20, 100])
def test_a_random_model_is_rarely_above_chance(sizes: tuple[int, ...], count: int) -> None:
    found = []
    for seed in range(60):
        scores = planted_scores(Planted(knows=0), count, sizes, seed=seed)
        values = measure(scores)
        found.append(above_chance(values["expected_accuracy"], values["chance"], Bootstrap.of(scores)))
    assert sum(f.above for f in found) <= 7  # 3 expected


def test_a_model_that_knows_something_is() -> None:
    assert all(compute(planted_scores(Planted(knows=0.3), 100, seed=s)).above_chance.above for s in range(10))


def test_always_a_is_exactly_at_chance() -> None:
    found = above_chance(np.full(60, 0.25), np.full(60, 0.25), Bootstrap(60))
    assert (found.p, found.above) == (1.0, False)


def test_nothing_to_test() -> None:
    found = above_chance(np.full(3, np.nan), np.full(3, 0.25), Bootstrap(3))
    assert (found.above, math.isnan(found.p)) == (False, True)
    assert not found.excess.defined


def test_chance_is_known_by_design() -> None:
    scores = planted_scores(Planted(), 40, (2, 4))
    found = compute(scores).means["chance"]
    assert (found.value, found.n) == (pytest.approx(0.375), 40)
    assert math.isnan(found.low)
    assert "by design" in found.note


@pytest.mark.parametrize("n", [5, 8, 20])
def test_all_right_is_above_chance_wherever_its_interval_says_so(n: int) -> None:
    """Five of five printed "1.00 (0.50 to 1.00): cannot be distinguished from guessing (0.25)"."""
    right, chance = np.ones(n), np.full(n, 0.25)
    found = above_chance(right, chance, Bootstrap(n))
    assert Bootstrap(n).mean(right).low > 0.25
    assert found.excess.low > 0
    assert found.above
    assert found.excess.high <= 0.75
