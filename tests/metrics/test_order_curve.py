import math
from dataclasses import replace

import numpy as np
import pytest

from tests.metrics.synthetic import ask, make_questions
from unslant.metrics import compute, read_scores
from unslant.metrics.order_curve import MOST_QUESTIONS, OrderPoint, order_curve, set_names
from unslant.questions import Question


def leans(question: Question, contents, labels, rng) -> list[float]:
    """Knows a little, is drawn to the first place, and is noisy."""
    right = [2.0 * (content in question.answers) for content in contents]
    return [r + 1.5 * (place == 0) + rng.normal() for place, r in enumerate(right)]


def points(questions, answerer=leans, orders: str = "auto") -> dict[str, OrderPoint]:
    curve = order_curve(read_scores(ask(questions, answerer, orders=orders)), orders)
    assert curve is not None
    return {point.orders: point for point in curve.points}


@pytest.mark.parametrize("spec", ["given:8", "cyclic:4", "reverse"])
def test_a_set_gives_what_an_audit_in_it_would_have_given(spec: str) -> None:
    questions = make_questions(50)

    def fixed(question: Question, contents, labels, rng) -> list[float]:
        seed = int("".join(map(str, contents))) + 10_000 * int(question.id[1:])
        return leans(question, contents, labels, np.random.default_rng(seed))

    whole, part = (compute(read_scores(ask(questions, fixed, orders=orders))) for orders in ("auto", spec))
    found = points(questions, fixed)[spec]
    for name, distance in (("expected_accuracy", "accuracy"), ("vote_accuracy", "vote"), ("pbm", "pbm")):
        apart = part.questions[name] - whole.questions[name]
        expected = math.hypot(float(apart.mean()), float(apart.std()) / math.sqrt(50))
        assert getattr(found, distance) == pytest.approx(expected)


def test_sets_that_are_drawn_come_nearer_with_their_size_and_with_balance() -> None:
    found = points(make_questions(300))
    assert found["2"].accuracy > found["4"].accuracy > found["12"].accuracy > 0
    assert found["balanced:4"].vote < 0.7 * found["4"].vote
    # nan is not equal to itself, which dataclasses heed from Python 3.13 on
    assert replace(found["auto"], ordinary_runs=0) == OrderPoint("auto", 24, 0, 0, 0, 0, ordinary_runs=0)
    assert math.isnan(found["given"].pbm)
    assert found["given"].apart == math.inf


def test_where_the_order_does_not_matter_two_orders_are_enough() -> None:
    def knows(question: Question, contents, labels, rng) -> list[float]:
        return [5.0 * (content in question.answers) for content in contents]

    curve = order_curve(read_scores(ask(make_questions(20), knows)), "auto", {"2": 2.0, "reverse": 1.5, "auto": 7.0})
    assert curve is not None
    assert curve.enough is not None
    assert (curve.enough.orders, curve.enough.apart, curve.enough.ordinary_runs) == ("reverse", 0, 1.5)
    assert curve.points[-1].ordinary_runs == 7.0


def test_without_right_options_a_set_is_as_far_as_its_votes_differ() -> None:
    """PBM of a Latin square was that of all orders, so the square was said to be enough."""
    questions = [replace(question, answers=frozenset()) for question in make_questions(60)]
    square = points(questions)["latin"]
    assert math.isnan(square.accuracy)
    assert math.isnan(square.vote)
    assert square.apart == square.votes_differ > square.pbm


def test_only_sets_whose_orders_were_all_asked_are_compared() -> None:
    five = points(make_questions(20, (5,)))
    assert set(five) == {"given", "reverse", "cyclic:5", "cyclic:10", "cyclic:15", "cyclic:20", "auto"}
    assert set(points(make_questions(20, (6,)), orders="12")) == {"2", "3", "4", "6", "8", "12"}
    scores = read_scores(ask(make_questions(20, (6,)), leans, orders="balanced:12"))
    assert order_curve(scores, "balanced:12") is None
    assert order_curve(read_scores(ask(make_questions(20), leans, orders="reverse")), "reverse") is None


def test_the_largest_group_is_compared() -> None:
    questions = make_questions(40, (4, 5, 4), pinned=lambda q, n: (3,) * (q % 10 == 0 and n == 4))
    curve = order_curve(read_scores(ask(questions, leans)), "auto")
    assert curve is not None
    assert (curve.n_options, curve.n_orders) == (4, 24)
    assert curve.n_questions == sum(len(q.options) == 4 and not q.pinned for q in questions)


def test_pinned_options_are_counted_out() -> None:
    assert "balanced:3" in points(make_questions(20, pinned=lambda q, n: (3,)))
    assert "balanced:3" in set_names(3, 6)


def test_many_questions_are_sampled_evenly(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_QUESTIONS > 1000
    monkeypatch.setattr("unslant.metrics.order_curve.MOST_QUESTIONS", 100)
    assert 0 < points(make_questions(300))["balanced:4"].accuracy < 0.05


def test_the_distance_printed_is_not_below_the_distance() -> None:
    """Half of all distances were printed as `is within 0.001`, and were 0.0014."""
    printed = {0.0: 0.001, 0.0003: 0.001, 0.001: 0.001, 0.0014: 0.002, 0.0061: 0.007, 0.0099: 0.01}
    assert {apart: OrderPoint("latin", 4, apart, 0, 0, 0, 1).within for apart in printed} == printed
