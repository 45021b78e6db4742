"""Planted variance components are found, and a pilot says how precise a run will be."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from benchmarks.planted import Planted, at, planted_scores
from tests.metrics.synthetic import ask, make_questions
from unslant.metrics import Bootstrap, Estimate, minimum_detectable_difference, read_scores
from unslant.metrics.decision_study import between_questions, half_width
from unslant.metrics.measures import detectable_difference
from unslant.metrics.pages import Pages, pages_of
from unslant.metrics.variance_components import VarianceComponents, _fixed, components_of, variance_components
from unslant.questions import Question

N = 4
ORDERS = list(itertools.permutations(range(N)))
GIVEN, REVERSED = ORDERS.index((0, 1, 2, 3)), ORDERS.index((3, 2, 1, 0))
PLANTED = {
    "question": 0.08,
    "position": 0.01,
    "label": 0.02,
    "order": 0.01,
    "question_position": 0.02,
    "question_label": 0.01,
    "question_order": 0.05,
}


def levels(rng: np.random.Generator, count: int, variance: float) -> np.ndarray:
    """Effects of all levels of a fixed facet, whose squares sum to variance (count - 1)."""
    effects = rng.normal(size=count)
    effects -= effects.mean()
    return effects * math.sqrt(variance * (count - 1) / (effects**2).sum())


def variances(components: VarianceComponents) -> dict[str, float]:
    return {name: numbers["variance"].value for name, numbers in components.components.items()}


def planted(rng: np.random.Generator, questions: int, repeats: float = 0.0, kept: float = 1.0) -> Pages:
    """Normal effects: all 24 orders, three pages with rearranged labels, and perhaps a repeat of 12 pages.

    Args:
        repeats: variance between repeats of a page.
        kept: share of the answers that are there, at random.
    """
    key = rng.integers(N, size=questions)
    place = np.array([[order.index(content) for content in range(N)] for order in ORDERS])
    pages = [(k, place[k][key], place[k][key]) for k in range(24)]
    for k, label in ((GIVEN, lambda p: 3 - p), (REVERSED, lambda p: 3 - p), (GIVEN, lambda p: (p + 1) % N)):
        pages.append((k, place[k][key], label(place[k][key])))
    rows = [(i, *page) for i, page in enumerate(pages)] + [(i, *pages[i]) for i in range(12) if repeats]
    page = np.repeat([row[0] for row in rows], questions)
    order = np.repeat([row[1] for row in rows], questions)
    position, label = (np.concatenate([row[i] for row in rows]) for i in (2, 3))
    question = np.tile(np.arange(questions), len(rows))
    fixed = [
        levels(rng, count, PLANTED[name])[at]
        for name, count, at in (("position", N, position), ("label", N, label), ("order", 24, order))
    ]
    sd = {name: math.sqrt(value) for name, value in PLANTED.items()}
    value = (
        0.5
        + sum(fixed)
        + sd["question"] * rng.normal(size=questions)[question]
        + sd["question_position"] * rng.normal(size=(questions, N))[question, position]
        + sd["question_label"] * rng.normal(size=(questions, N))[question, label]
        + sd["question_order"] * rng.normal(size=(questions, len(pages)))[question, page]
        + math.sqrt(repeats) * rng.normal(size=len(question))
    )
    facets = {"position": position, "label": label, "order": order}
    some = rng.random(len(question)) < kept
    scored = np.arange(len(question)) < 24 * questions
    return Pages(
        value[some],
        question[some],
        page[some],
        {name: codes[some] for name, codes in facets.items()},
        np.zeros(some.sum(), np.int64),
        scored[some],
    )


def found(runs: int, questions: int, **options: float) -> list[VarianceComponents]:
    return [
        variance_components(planted(np.random.default_rng(seed), questions, **options), Bootstrap(questions))
        for seed in range(runs)
    ]


@pytest.mark.parametrize(
    "options", [{}, {"kept": 0.8}, {"repeats": 0.03}], ids=["complete", "unbalanced", "with repeats"]
)
def test_planted_components_are_found_within_a_tenth(options: dict[str, float]) -> None:
    runs = found(12, 300, **options)
    expected = PLANTED | ({"repeat": options["repeats"]} if "repeats" in options else {})
    assert set(runs[0].components) == set(expected)
    for name, variance in expected.items():
        estimates = [run.components[name]["variance"] for run in runs]
        assert np.mean([one.value for one in estimates]) == pytest.approx(variance, rel=0.1), name
        assert np.mean([one.low <= variance <= one.high for one in estimates]) >= 0.75, name
        assert all(one.low <= one.value <= one.high for one in estimates)
    for run in runs:
        for share in ("of_answer", "of_score"):
            assert sum(numbers[share].value for numbers in run.components.values()) == pytest.approx(1)
        assert run.components["position"]["of_score"].value == 0  # balanced orders cancel it


@pytest.mark.thorough
@pytest.mark.parametrize("kept", [1.0, 0.5], ids=["complete", "unbalanced"])
def test_intervals_of_components_hold_the_planted_one(kept: float) -> None:
    """Two standard errors of 200 runs are 0.03; Student's own interval held some in 0.90."""
    runs = found(200, 30, kept=kept)
    for name, variance in PLANTED.items():
        held = [
            one.low <= variance <= one.high
            for run in runs
            if not math.isnan((one := run.components[name]["variance"]).low)
        ]
        assert len(held) > 190
        assert np.mean(held) >= 0.93 - 0.03, name


@pytest.mark.parametrize(("pull", "part"), [(6.0, "question"), (0.4, "label"), (6.0, "label")])
def test_components_of_answers_that_are_nearly_certain_are_held(pull: float, part: str) -> None:
    """Of a model that knows half and takes A otherwise, no question moves the first: 0.84 were held. Of a label, as of
    questions, samples with too little of an effect show too little error: 0.86 to 0.91."""
    model, held = Planted(label=at(0, pull)), []
    pool = planted_scores(model, 4000, seed=1)
    truth = variances(components_of(pool, Bootstrap.of(pool)))[part]
    for seed in range(60):
        scores = planted_scores(model, 40, seed=100 + seed)
        one = components_of(scores, Bootstrap.of(scores)).components[part]["variance"]
        held.append(one.low <= truth <= one.high)
    assert np.mean(held) >= 0.94


@pytest.mark.thorough
@pytest.mark.parametrize(("known", "n"), [(0.97, 60), (0.97, 100), (0.9, 60), (0.0, 20)])
def test_the_component_of_a_label_is_held_where_few_questions_show_it(known: float, n: int) -> None:
    """Of a strong model that takes A when unsure, 0.76 to 0.83 were held; of one that does nearly always, 0.77."""
    pages = pages_of(planted_scores(Planted(label=at(0), knows=0), 400, seed=1), ())
    rows, rng, held = [np.flatnonzero(pages.question == q) for q in range(400)], np.random.default_rng(n), []

    def component(questions: np.ndarray, unsure: int) -> Estimate:
        some = np.concatenate([rows[q] for q in questions])
        question = np.repeat(np.arange(len(questions)), [len(rows[q]) for q in questions])
        right = np.where(question < unsure, pages.right[some], 1.0)
        facets = {name: levels[some] for name, levels in pages.facets.items()}
        part = Pages(right, question, pages.page[some], facets, pages.group[some], pages.scored[some])
        return _fixed(part, len(questions), facets).estimate("label", Bootstrap(len(questions)))

    truth = component(np.arange(400), 400).value * (1 - known) ** 2
    for _ in range(60):
        estimate = component(rng.permutation(400)[:n], rng.binomial(n, 1 - known))
        if not math.isnan(estimate.low):
            held.append(estimate.low <= truth <= estimate.high)
    assert len(held) > 45
    assert np.mean(held) >= 0.93


def test_interactions_of_questions_with_several_numbers_of_options_are_not_taken_for_fixed_effects() -> None:
    """Ten questions have each number: effects fitted to them took an eighth of the first along, and gave it to the
    second, whose intervals then held the truth in 0.82."""
    model = Planted(label=at(0, 6))
    pool = planted_scores(model, 4000, sizes=(2, 3, 4, 5), seed=1)
    truth = variances(components_of(pool, Bootstrap.of(pool)))
    drawn = [planted_scores(model, 40, sizes=(2, 3, 4, 5), seed=1000 + seed) for seed in range(30)]
    runs = [components_of(scores, Bootstrap.of(scores)) for scores in drawn]
    for name, tolerance in (("question_label", 0.06), ("question_order", 0.25)):
        assert np.mean([variances(run)[name] for run in runs]) == pytest.approx(truth[name], rel=tolerance), name
        ends = [run.components[name]["variance"] for run in runs]
        assert np.mean([one.low <= truth[name] <= one.high for one in ends]) >= 0.9, name


def test_of_answers_that_are_half_right_the_variance_has_an_interval() -> None:
    """It can hardly be larger than it is, and all questions are equally far from the mean."""
    right = np.repeat([0.0, 1.0], 20)
    zeros = np.zeros(40, np.int64)
    pages = Pages(right, np.arange(40), zeros, {}, zeros, np.ones(40, bool))
    between = variance_components(pages, Bootstrap(40)).between
    assert 0.2 < between.low < 0.25 < between.high < 0.3


def test_the_interval_of_a_variance_that_can_hardly_grow() -> None:
    """Of yes-or-no answers the variance is 1/4 at most, and its estimate N/(N - 1) times as large."""
    right = np.repeat([0.0, 1.0], [49, 51])
    zeros = np.zeros(100, np.int64)
    pages = Pages(right, np.arange(100), zeros, {}, zeros, np.ones(100, bool))
    between = variance_components(pages, Bootstrap(100)).between
    assert between.value == pytest.approx(0.49 * 0.51 * 100 / 99)
    assert between.low < 0.25 < between.high


def test_passages_that_are_all_alike_count_as_one_question_each() -> None:
    zeros = np.zeros(60, np.int64)
    pages = Pages(np.ones(60), np.arange(60), zeros, {}, zeros, np.ones(60, bool))
    passages = [f"passage {i // 5}" for i in range(60)]
    assert variance_components(pages, Bootstrap(60, contexts=passages)).design_effect == 5


def test_the_variance_between_questions_follows_from_the_components() -> None:
    for run in found(3, 300):
        predicted = sum(between_questions(variances(run), run.positions, run.orders).values())
        assert predicted == pytest.approx(run.between.value, rel=0.05)
        assert (run.positions, run.orders, run.repeats, run.design_effect) == pytest.approx((4, 24, 1, 1))


def test_facets_that_no_page_separates_are_named() -> None:
    pages = planted(np.random.default_rng(0), 50)
    same = Pages(pages.right, pages.question, pages.page, {"position": pages.facets["position"],
                 "shots": pages.facets["position"]}, pages.group, pages.scored)  # fmt: skip
    run = variance_components(same, Bootstrap(50))
    assert run.inseparable == ("shots",)
    assert set(run.components) == {"question", "position", "question_position", "question_order"}


def test_effects_that_fit_every_answer_are_left_out() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        shown = rng.integers(1, 4, 3)
        question, order = np.repeat(np.arange(3), shown), np.concatenate([np.arange(k) for k in shown])
        facets = {"label": order % 2, "position": rng.integers(0, 3, len(order)), "order": order}
        right, same = rng.integers(0, 2, len(order)).astype(float), np.zeros(len(order), int)
        pages = Pages(right, question, 3 * question + order, facets, same, np.ones(len(order), bool))
        found = variance_components(pages, Bootstrap(3))
        assert all(variance >= 0 for variance in variances(found).values())
        if len(order) == 4 and np.ptp(right):  # one question in two orders: their difference is an effect, or noise
            assert found.inseparable
            assert not {"label", "position", "order"} & found.components.keys()


def drawn_to(label: bool):
    """Knows half of the questions; otherwise A, or the first option."""

    def answers(question: Question, contents, labels, rng) -> list[float]:
        knows = int(question.id[1:]) // 4 % 2
        return [
            5.0 * (knows and content in question.answers) + 2.0 * ((labels[place] == "A") if label else place == 0)
            for place, content in enumerate(contents)
        ]

    return answers


@pytest.mark.parametrize("label", [True, False], ids=["label", "position"])
def test_a_habit_is_found_where_it_was_planted(label: bool) -> None:
    scores = read_scores(ask(make_questions(240), drawn_to(label)))
    found = components_of(scores, Bootstrap.of(scores))
    assert found is not None
    here, other = ("label", "position") if label else ("position", "label")
    estimate = found.components[here]["variance"]
    # of the unknown half, right with A alone: (1, 0, 0, 0) / 2 has a variance of 1/16 between the labels
    assert estimate.value == pytest.approx(1 / 16, rel=0.2)
    assert 0.03 < estimate.low < 1 / 16 < estimate.high
    assert found.components[other]["variance"].high < 0.01


def test_repeats_of_one_order_vary_within_the_question() -> None:
    rng = np.random.default_rng(3)
    question, ability = np.repeat(np.arange(200), 3), rng.beta(1, 1, 200)
    right = (rng.random(600) < ability[question]).astype(float)
    facets = {"place": rng.integers(4, size=200)[question]}
    zeros = np.zeros(600, np.int64)
    found = variance_components(Pages(right, question, zeros, facets, zeros, np.ones(600, bool)), Bootstrap(200))
    assert set(found.components) == {"question", "repeat"}
    # of a uniform ability: variance 1/12, and E p (1 - p) = 1/6
    assert found.components["question"]["variance"].value == pytest.approx(1 / 12, rel=0.2)
    assert found.components["repeat"]["variance"].value == pytest.approx(1 / 6, rel=0.1)
    assert found.repeats == 3


def test_answers_to_one_order_have_no_components_but_a_variance() -> None:
    scores = read_scores(ask(make_questions(40), drawn_to(True), orders="given"))
    found = components_of(scores, Bootstrap.of(scores))
    assert found is not None
    assert found.between.value == pytest.approx(np.nanvar(scores.blocks[0].right[:, 0], ddof=1))


def questions(rng: np.random.Generator, n: int, orders: int) -> np.ndarray:
    """(n, orders) right or wrong: of the difficulties a half-known subject has."""
    ability = rng.beta(0.6, 0.4, n)
    return (rng.random((n, orders)) < ability[:, None]).astype(float)


@pytest.mark.parametrize(("orders", "then"), [(4, 4), (4, 12), (12, 4), (1, 1)])
def test_the_half_width_of_a_run_follows_from_a_pilot(orders: int, then: int) -> None:
    rng, ratios = np.random.default_rng(orders + then), []
    for _ in range(12):
        pilot = questions(rng, 150, orders)
        q, k = (index.ravel() for index in np.indices(pilot.shape))
        pages = Pages(pilot.ravel(), q, k, {}, np.zeros_like(q), np.ones(len(q), bool))
        found = variance_components(pages, Bootstrap(150))
        parts = (sum(between_questions(variances(found), 1, k).values()) for k in (then, orders))
        variance = found.between.value + next(parts) - next(parts)
        run = Bootstrap(900).mean(questions(rng, 900, then).mean(axis=1))
        ratios.append(half_width(900, found.accuracy, variance) / ((run.high - run.low) / 2))
    assert np.mean(ratios) == pytest.approx(1, abs=0.05)
    assert np.mean(np.abs(np.array(ratios) - 1) < 0.1) >= 0.75


def test_a_half_width_is_that_of_the_interval() -> None:
    right = np.repeat([0.0, 1.0], [30, 70])
    interval = Bootstrap(100).mean(right)
    assert half_width(100, 0.7, 0.21) == pytest.approx((interval.high - interval.low) / 2)
    assert half_width(200, 0.7, 0.21, design_effect=2) == pytest.approx(half_width(100, 0.7, 0.21))
    assert half_width(80_000, 0.7, 0.1) == pytest.approx(half_width(20_000, 0.7, 0.1) / 2)


def test_differences_of_yes_or_no_answers_are_those_of_mcnemar() -> None:
    assert detectable_difference(400, 0.5, 0.25) == minimum_detectable_difference(400)
    assert detectable_difference(400, 0.5, 0.125) == pytest.approx(minimum_detectable_difference(800), rel=0.005)


@pytest.mark.parametrize("n", [20, 60, 400])
@pytest.mark.parametrize("wrong", [0, 1, 0.04])
def test_a_difference_that_no_test_finds_is_not_detectable(n: int, wrong: float) -> None:
    """Nearly all right: the exact test needs six questions with only one of the two right; also one wrong in one order
    of 24."""
    values = np.ones(n)
    values[0] -= wrong
    least = detectable_difference(n, values.mean(), values.var(ddof=1))
    assert least > 6 / n
    at = (values.sum() + 1) / (n + 2)
    assert least == pytest.approx(minimum_detectable_difference(n, accuracy=at), rel=0.06)
