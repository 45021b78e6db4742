"""Whether orders differ, and how far the score moves with them, beyond chance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planted import Planted, at, planted_scores
from unslant.metrics import compute, read_scores
from unslant.metrics.permutation import cochran, order_accuracy

from .synthetic import ask, guesses, make_questions


def test_cochran_by_hand() -> None:
    """Cochran (1950), as in the textbooks: Q = (k-1) (k sum G^2 - T^2) / (k T - sum L^2)."""
    right = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]], float)
    columns, rows, k = right.sum(axis=0), right.sum(axis=1), 3
    by_hand = (k - 1) * (k * (columns**2).sum() - columns.sum() ** 2) / (k * rows.sum() - (rows**2).sum())
    found = cochran(right, 4, np.arange(len(right)))
    assert found.q == pytest.approx(by_hand)
    assert (found.degrees, found.questions, found.orders, found.n_options) == (2, 8, 3, 4)
    assert 0.02 < found.p < 0.1


def test_orders_that_never_decide_do_not_differ() -> None:
    found = cochran(np.array([[1.0, 1.0], [0.0, 0.0]]), 2, np.arange(2))
    assert (found.q, found.p) == (0, 1)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("model", "questions"),
    [(Planted(knows=0), 100), (Planted(label=at(0, 60), knows=0), 100), (Planted(label=at(0, 60), knows=0), 400)],
)
def test_false_alarms_are_as_rare_as_they_should_be(model: Planted, questions: int) -> None:
    """Also for a model that always answers A: its 24 orders are three differences, and plain Q would alarm in 20 %."""
    p = np.array([order_accuracy(planted_scores(model, questions, seed=seed))["p"].value for seed in range(150)])
    assert (p < 0.05).mean() <= 0.10
    assert (p < 0.5).mean() > 0.3


def test_a_lopsided_file_is_found_out() -> None:
    scores = planted_scores(Planted(label=at(0, 60)), 200, right=lambda n, rng: 0)
    found = order_accuracy(scores)
    assert found["p"].value < 1e-6
    assert found["acc_std_corrected"].value == pytest.approx(found["acc_std"].value, rel=0.02)
    assert found["acc_std_by_chance"].value < 0.1 * found["acc_std"].value


def test_the_value_by_chance_is_what_chance_gives() -> None:
    found = [order_accuracy(planted_scores(Planted(knows=0), 100, (3, 4), seed=seed)) for seed in range(60)]
    raw, chance = (np.mean([f[name].value ** 2 for f in found]) for name in ("acc_std", "acc_std_by_chance"))
    assert raw == pytest.approx(chance, rel=0.12)


def test_the_corrected_value_is_the_planted_spread() -> None:
    """Half of the questions have A right in the file and the model takes A when unsure: orders with that option on top
    are right oftener by a known amount."""
    found = [
        order_accuracy(planted_scores(Planted(label=at(0, 6)), 400, seed=s, right=lambda n, rng: int(rng.integers(2))))
        for s in range(12)
    ]
    # right: 1/2 known, and 1/2 times the share of questions whose right option stands on top: 1/2 in half of the orders
    assert np.mean([f["acc_std_corrected"].value for f in found]) == pytest.approx(0.125, rel=0.08)


@pytest.mark.thorough
@given(st.integers(0, 10**6), st.sampled_from([(4,), (2, 3, 5), (6,)]))
def test_worst_mean_best(seed: int, sizes: tuple[int, ...]) -> None:
    metrics = compute(planted_scores(Planted(), 12, sizes, seed=seed))
    over = metrics.over_orders
    assert over["worst"].value <= metrics.means["expected_accuracy"].value <= over["best"].value
    for estimate in (
        over["worst"],
        over["best"],
        over["acc_std"],
        over["acc_std_by_chance"],
        over["acc_std_corrected"],
    ):
        assert math.isnan(estimate.low)
        assert "no interval" in estimate.note


def test_pinned_questions_are_tested_by_their_own_orders() -> None:
    questions = make_questions(40, (4,), pinned=lambda q, n: (3,) if q % 2 else ())
    found = order_accuracy(read_scores(ask(questions, guesses())))
    assert sorted((t.orders, t.questions) for t in found.tests) == [(6, 20), (24, 20)]
