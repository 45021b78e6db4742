"""Five questions about one passage that are answered alike are one observation in every test."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from unslant.metrics import Bootstrap, above_chance, compute, read_scores
from unslant.metrics.measures import Metrics
from unslant.metrics.order_curve import order_curve
from unslant.metrics.scores import OrderScores
from unslant.metrics.variance_components import components_of
from unslant.questions import Question
from unslant.studies.debias.measure_debiased import swap_tests

from .synthetic import Answerer, ask, guesses, knows, make_questions, one_hot

SIZE = 5


def repeated(questions: list[Question]) -> list[Question]:
    """Every question as a passage with ``SIZE`` of them."""
    return [replace(one, id=f"{one.id}-{k}", context=f"Passage {one.id}.") for one in questions for k in range(SIZE)]


def alike(answerer: Answerer, seed: int) -> Answerer:
    """The same answer to all copies of a question on the same page."""

    def answer(question: Question, contents: tuple[int, ...], labels: tuple[str, ...], rng: np.random.Generator):
        own = np.random.default_rng([seed, int(question.id[1:5]), *contents, *map(ord, labels)])
        return answerer(replace(question, id=question.id[:5]), contents, labels, own)

    return answer


def one_hot_first(
    question: Question, contents: tuple[int, ...], labels: tuple[str, ...], rng: np.random.Generator
) -> list[float]:
    return one_hot(len(labels), 0 if rng.random() < 0.5 else int(rng.integers(len(labels))), 0.9)


def scores_of(questions: list[Question], answerer: Answerer, orders: str = "cyclic") -> OrderScores:
    return read_scores(replace(ask(questions, answerer, orders=orders), questions=tuple(questions)))


@pytest.fixture(scope="module")
def alone_and_together() -> tuple[Metrics, Metrics]:
    questions = make_questions(160, (3, 4), subjects=4)

    def pulled(
        question: Question, contents: tuple[int, ...], labels: tuple[str, ...], rng: np.random.Generator
    ) -> list[float]:
        share = 0.5 if question.subject == "s00" else 0.2
        return one_hot(len(labels), 0 if rng.random() < share else int(rng.integers(len(labels))), 0.9)

    answerer = alike(knows(0.3, pulled), 3)
    return compute(scores_of(questions, answerer)), compute(scores_of(repeated(questions), answerer))


def test_whether_orders_differ(alone_and_together: tuple[Metrics, Metrics]) -> None:
    alone, together = (one.over_orders for one in alone_and_together)
    assert together["p"].value == pytest.approx(alone["p"].value, rel=1e-6)
    assert 0 < together["p"].value < 1
    for key in ("acc_std", "acc_std_by_chance", "acc_std_corrected"):
        assert together[key].value == pytest.approx(alone[key].value, rel=1e-9)
    assert [(test.questions, test.q) for test in together.tests] == [
        (SIZE * test.questions, pytest.approx(test.q)) for test in alone.tests
    ]


def test_whether_recall_differs_by_place(alone_and_together: tuple[Metrics, Metrics]) -> None:
    alone, together = (one.label_bias for one in alone_and_together)
    assert 0 < alone["p"].value < 0.9
    assert together["p"].value == pytest.approx(alone["p"].value, rel=1e-6)
    # (N - 1) / N, of one and of five times as many
    assert together["cramers_v"].value == pytest.approx(alone["cramers_v"].value, rel=0.02)
    assert together["rstd_corrected"].value == pytest.approx(alone["rstd_corrected"].value, rel=0.1)


def test_whether_subjects_differ_in_their_habit(alone_and_together: tuple[Metrics, Metrics]) -> None:
    alone, together = (one.preference for one in alone_and_together)
    assert 0 < alone.subjects_p < 1
    assert together.subjects_p == pytest.approx(alone.subjects_p, rel=1e-6)


def test_what_difference_can_be_shown(alone_and_together: tuple[Metrics, Metrics]) -> None:
    alone, together = alone_and_together
    assert together.minimum_difference == pytest.approx(alone.minimum_difference, rel=0.05)
    assert together.minimum_difference_unpaired == pytest.approx(alone.minimum_difference_unpaired, rel=0.05)


def test_how_far_fewer_orders_are_from_all() -> None:
    questions = make_questions(60)
    answerer = alike(knows(0.3, guesses()), 4)
    alone, together = (order_curve(scores_of(one, answerer), "cyclic") for one in (questions, repeated(questions)))
    assert alone is not None
    assert together is not None
    given, same = (next(point for point in curve.points if point.orders == "given") for curve in (alone, together))
    assert (same.accuracy, same.vote) == pytest.approx((given.accuracy, given.vote), rel=0.02)


def test_a_few_passages_show_no_difference() -> None:
    """Of two that go the same way by chance, Cochran's Q would have p = 0.003."""
    questions = [replace(one, context=f"{i % 4}") for i, one in enumerate(make_questions(40))]
    metrics = compute(scores_of(questions, knows(0.3, guesses())))
    assert math.isnan(metrics.over_orders["p"].value)
    assert math.isnan(metrics.label_bias["p"].value)
    three = compute(scores_of(make_questions(3), knows(0.3, guesses())))
    assert not math.isnan(three.over_orders["p"].value)


def test_whether_one_order_is_above_chance() -> None:
    questions = make_questions(100)
    answerer = alike(knows(0.12, guesses()), 1)
    alone, together = (compute(scores_of(one, answerer, "given")) for one in (questions, repeated(questions)))
    assert 0.001 < alone.above_chance.p < 0.5
    assert together.above_chance.p == pytest.approx(alone.above_chance.p, rel=0.5)


@pytest.mark.thorough
def test_whether_a_method_changes_anything() -> None:
    questions = make_questions(80)
    before, now = (
        [scores_of(one, alike(knows(0.3, guesses()), seed)) for one in (questions, repeated(questions))]
        for seed in (1, 2)
    )
    alone, together = (swap_tests(*one) for one in zip(now, before, strict=True))
    assert {*alone} == {"rstd", "ckld_smoothed", "acc_std"}
    for key, p in alone.items():
        assert p > 0.02
        assert together[key] == pytest.approx(p, abs=0.05), key


def test_the_only_passage_of_a_subject_is_one_observation() -> None:
    questions = make_questions(60, (4,), subjects=6)
    only = [one for one in questions if one.subject == "s00"][:1]
    few = [one for one in questions if one.subject == "s01"][:4]
    many = [one for one in questions if one.subject > "s01"]
    numbers = compute(scores_of(repeated([*only, *few, *many]), alike(guesses(), 5))).by_subject
    for subject in ("s00", "s01"):  # five questions on one passage had an interval, and twenty on four had none
        accuracy = numbers[subject]["expected_accuracy"]
        assert math.isnan(accuracy.low), subject
        assert "fewer than 5 contexts" in accuracy.note
    assert numbers["s02"]["expected_accuracy"].low > 0


def test_variance_components() -> None:
    questions = make_questions(60, (4,))
    answerer = alike(knows(0.4, one_hot_first), 11)
    scores = [scores_of(one, answerer) for one in (questions, repeated(questions))]
    alone, together = (components_of(one, Bootstrap.of(one)) for one in scores)
    assert alone is not None
    assert together is not None
    pairs = [(alone.between, together.between)]
    pairs += [(alone.components[name][key], together.components[name][key]) for name in alone.components
              for key in ["components.variance"]]  # fmt: skip
    for one, other in pairs:
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.1, abs=2e-3)


@pytest.mark.thorough
def test_passages_that_differ_in_their_favourite_position_are_no_subjects_that_differ() -> None:
    """Each of twenty passages has a favourite position by chance: none of the tests may see more than chance."""
    p = {"orders": [], "places": [], "subjects": []}
    for seed in range(100):
        rng = np.random.default_rng(seed)
        passages = rng.integers(4, size=(2, 20))  # the favourite position, and that of the right options
        questions = [
            replace(one, context=f"{i // SIZE}", subject=f"{i // SIZE % 4}", answers=frozenset({int(gold)}))
            for i, (one, gold) in enumerate(zip(make_questions(100, rng=rng), passages[1].repeat(SIZE), strict=True))
        ]

        def answer(
            question: Question,
            contents: tuple[int, ...],
            labels: tuple[str, ...],
            rng: np.random.Generator,
            favourites: np.ndarray = passages[0],
        ) -> list[float]:
            place = favourites[int(question.context)] if rng.random() < 0.6 else rng.integers(4)
            return one_hot(4, int(place), 0.97)

        metrics = compute(scores_of(questions, answer), Bootstrap(100, contexts=[one.context for one in questions]))
        p["orders"].append(metrics.over_orders["p"].value)
        p["places"].append(metrics.label_bias["p"].value)
        p["subjects"].append(metrics.preference.subjects_p)
    # question by question, 37, 39 and 88 of 100
    assert {name: sum(one < 0.05 for one in values) <= 12 for name, values in p.items()} == dict.fromkeys(p, True)


@pytest.mark.parametrize(("share", "passages"), [(0.5, 20), (0.5, 60), (0.8, 8), (0.8, 20)])
def test_one_passage_with_most_questions_is_no_proof(share: float, passages: int) -> None:
    """The mean follows it, so that it seemed to vary little: 0.15 to 0.43 of the differences of equal models, and 0.08
    to 0.21 of guesses, were significant, and the design effect was down to an eighth of what it is."""
    rng, n = np.random.default_rng(0), 3 * max(20, passages)
    unit = np.concatenate([np.zeros(round(share * n), int), 1 + np.arange(n - round(share * n)) % (passages - 1)])
    bootstrap = Bootstrap(n, contexts=[f"c{c}" for c in unit])
    ahead = 1 / (1 + np.exp(-rng.normal(0, 1, (passages, 2000))[unit]))  # of two models that are equal on average
    differences = np.where(rng.random((n, 2000)) < 0.3, np.where(rng.random((n, 2000)) < ahead, 1.0, -1.0), 0.0)
    assert (bootstrap.sampling.student(differences, np.ones(n, bool))[1] < 0.05).mean() <= 0.06
    right = (rng.random((300, n)) < rng.beta(1, 3, (300, passages))[:, unit]).astype(float)
    assert np.mean([above_chance(one, np.full(n, 0.25), bootstrap).above for one in right]) <= 0.06
    varies = right.mean(axis=1).var() * n / (0.25 * 0.75)
    assert np.mean([bootstrap.sampling.design_effect(one) for one in right]) == pytest.approx(varies, rel=0.9)
