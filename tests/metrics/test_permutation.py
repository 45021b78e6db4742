from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from unslant.metrics import compute, normalised_pbm, pbm, read_scores
from unslant.metrics.permutation import consistency
from unslant.metrics.scores import credit

from .synthetic import always, ask, first, guesses, knows, last, make_questions, one_hot


@st.composite
def order_probs(draw: st.DrawFn) -> np.ndarray:
    """(K, n) rows that sum to 1."""
    shape = draw(st.tuples(st.integers(2, 6), st.integers(2, 5)))
    raw = draw(npst.arrays(np.float64, shape, elements=st.floats(0, 1))) + draw(st.sampled_from([1e-9, 0.1]))
    return raw / raw.sum(1, keepdims=True)


@given(order_probs())
def test_range(probs: np.ndarray) -> None:
    n = probs.shape[1]
    assert 0 <= pbm(probs) <= (n - 1) / n**2 + 1e-12 <= 0.25 + 1e-12
    assert 0 <= normalised_pbm(probs) <= 1


@given(order_probs(), st.randoms(use_true_random=False))
def test_does_not_depend_on_names_of_options_or_sequence_of_orders(probs: np.ndarray, random: object) -> None:
    rng = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    renamed = probs[:, rng.permutation(probs.shape[1])][rng.permutation(probs.shape[0])]
    assert pbm(renamed) == pytest.approx(pbm(probs), abs=1e-15)
    assert normalised_pbm(renamed) == pytest.approx(normalised_pbm(probs), abs=1e-12)


@given(order_probs())
def test_zero_exactly_when_all_orders_agree(probs: np.ndarray) -> None:
    assert pbm(np.repeat(probs[:1], 5, axis=0)) == 0
    if np.ptp(probs, axis=0).max() > 1e-12:
        assert pbm(probs) > 0


def test_population_variance() -> None:
    probs = np.array([[0.9, 0.1], [0.5, 0.5]])
    assert pbm(probs) == pytest.approx(0.04)  # the unbiased variance would be 0.08


@pytest.mark.parametrize("n", range(2, 7))
def test_always_a_has_the_largest_bias_there_is(n: int) -> None:
    orders = np.array(list(itertools.permutations(range(n))))
    probs = (orders[:, 0, None] == np.arange(n)).astype(float)
    assert pbm(probs) == pytest.approx((n - 1) / n**2)
    assert normalised_pbm(probs) == pytest.approx(1)


@pytest.mark.thorough
@pytest.mark.parametrize("n", range(2, 7))
@pytest.mark.parametrize("place", [first, last])
def test_closed_forms_of_one_position(n: int, place: object) -> None:
    questions = make_questions(10, [n])
    metrics = compute(read_scores(ask(questions, always(place), orders="all")))  # type: ignore[arg-type]
    means = metrics.means
    spot = 0 if place is first else n - 1
    golds = np.array([min(q.answers) for q in questions])
    assert means["pbm"].value == pytest.approx((n - 1) / n**2)
    assert means["normalised_pbm"].value == pytest.approx(1)
    assert means["expected_accuracy"].value == pytest.approx(1 / n)
    assert means["chance"].value == pytest.approx(1 / n)
    assert means["accuracy"].value == (golds == spot).mean()
    assert (means["consistency"].value, means["robust_accuracy"].value) == (0, 0)
    assert (means["fr"].value, means["fr_labels"].value, means["fr_both"].value) == (1, 0, 1)
    assert means["vote_tie_rate"].value == 1
    # over all orders, the right option stands everywhere equally often
    for j, row in enumerate(metrics.order_labels[:n]):
        assert row["predicted"].value == (j == spot)
        assert row["recall"].value == (j == spot)


@pytest.mark.parametrize("n", range(2, 7))
def test_closed_forms_of_an_even_guesser(n: int) -> None:
    # exactly equal probabilities: everything is tied, nothing moves
    metrics = compute(
        read_scores(ask(make_questions(6, [n]), lambda q, contents, labels, rng: [-1.0] * n, orders="all")),
    )
    means = metrics.means
    assert (means["pbm"].value, means["normalised_pbm"].value) == (0, 0)
    assert (means["tie_rate"].value, means["order_tie_rate"].value, means["vote_tie_rate"].value) == (1, 1, 1)
    assert means["accuracy_split_tie"].value == pytest.approx(1 / n)
    assert metrics.preference.named is None
    assert [s.chosen.value for s in metrics.preference.slots] == pytest.approx([1 / n] * (n + 1))


def test_one_who_knows_is_not_moved() -> None:
    questions = make_questions(60, (2, 3, 4, 5, 6), subjects=3)
    metrics = compute(read_scores(ask(questions, knows(1.0, guesses()))))
    means = metrics.means
    for name in ("accuracy", "expected_accuracy", "vote_accuracy", "hard_vote_accuracy", "robust_accuracy"):
        assert means[name].value == 1
    assert means["consistency"].value == 1
    assert means["pbm"].value == pytest.approx(0, abs=1e-30)  # the last bit of a softmax depends on sequence
    assert (means["fr"].value, means["fr_labels"].value, means["fr_both"].value) == (0, 0, 0)
    assert metrics.over_orders["acc_std"].value == 0
    assert metrics.preference.named is None
    assert "0 questions" in metrics.preference.note


def test_consistency_takes_the_first_shown_of_tied_options_unless_something_else_decides() -> None:
    scores = read_scores(ask(make_questions(3), guesses(0.0)))
    (block,) = scores.blocks
    assert np.allclose(block.probs, 0.25)
    assert consistency(scores).tolist() == [0, 0, 0]
    decided = replace(scores, blocks=(replace(block, decided=np.ones((3, block.k), np.int64)),))
    assert consistency(decided).tolist() == [1, 1, 1]
    none = replace(scores, blocks=(replace(block, decided=np.full((3, block.k), -1)),))  # replies without an answer
    assert consistency(none).tolist() == [0, 0, 0]


def test_credit_splits_ties_only() -> None:
    assert credit(np.array([0.4, 0.4 * (1 - 1e-12), 0.2])).tolist() == [0.5, 0.5, 0.0]
    assert credit(np.array([0.4, 0.4 * (1 - 1e-6), 0.2])).tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("sizes", [(4,), (3, 4, 5)])
def test_spread_over_orders_by_direct_count(sizes: tuple[int, ...]) -> None:
    questions = make_questions(30, sizes)
    rng = np.random.default_rng(11)
    scores = read_scores(ask(questions, guesses(), orders="cyclic", rng=rng))
    metrics = compute(scores)
    variance, worst, best = 0.0, 0.0, 0.0
    for block in scores.blocks:
        right = np.array([block.probs[:, k].argmax(1) == block.answers.argmax(1) for k in range(block.k)])
        share = len(block.index) / 30
        variance += share**2 * right.mean(1).var()
        worst, best = worst + share * right.mean(1).min(), best + share * right.mean(1).max()
    assert metrics.over_orders["acc_std"].value == pytest.approx(math.sqrt(variance))
    assert metrics.over_orders["worst"].value == pytest.approx(worst)
    assert metrics.over_orders["best"].value == pytest.approx(best)


def test_spread_over_sampled_orders_says_so() -> None:
    sampled = compute(read_scores(ask(make_questions(12, [6]), guesses(), orders="24")))
    every = compute(read_scores(ask(make_questions(12, [4]), guesses())))
    assert "sampled" in sampled.over_orders["acc_std"].note
    assert "sampled" not in every.over_orders["acc_std"].note
    assert not sampled.over_orders.tests
    assert len(every.over_orders.tests) == 1
    assert (sampled.counts.sampled_orders, every.counts.sampled_orders) == (12, 0)


def test_certainty_of_one_order_is_scaled_out() -> None:
    # leaning to the first place by 0.7: p is 0.7 or 0.3 in turn, variance 0.04, largest 0.25
    probs = np.exp([one_hot(2, 0, 0.7), one_hot(2, 1, 0.7)])
    assert pbm(probs) == pytest.approx(0.04)
    assert normalised_pbm(probs) == pytest.approx(0.16)
