from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planted import Planted, at, planted_scores
from unslant.metrics import Bootstrap, compute, read_scores
from unslant.metrics.label_bias import ckld, label_bias, rsd, rstd
from unslant.metrics.labels import effects_of, given_slots, label_shares
from unslant.metrics.permutation import unsure_questions
from unslant.presentations import present
from unslant.questions import Question
from unslant.responses import Response

from .synthetic import always, ask, first, guesses, knows, make_questions, one_hot


def totals(gold: list[float], hit: list[float], predicted: list[float]) -> np.ndarray:
    return np.array([gold + hit + predicted], dtype=float)


def test_by_hand() -> None:
    counts = totals([10, 10, 20], [5, 10, 10], [10, 20, 10])
    recalls = [0.5, 1.0, 0.5]
    assert rstd(counts)[0] == pytest.approx(np.std(recalls))
    assert rsd(counts)[0] == pytest.approx(np.std(recalls) / np.mean(recalls))
    p, q = np.array([0.25, 0.25, 0.5]), np.array([0.25, 0.5, 0.25])
    assert ckld(counts)[0] == pytest.approx((p * np.log(p / q)).sum())


def test_a_label_never_answered_makes_ckld_infinite_and_the_smoothed_one_finite() -> None:
    counts = totals([10, 10], [10, 0], [20, 0])
    assert math.isinf(ckld(counts)[0])
    p, q = np.array([11, 11]) / 22, np.array([21, 1]) / 22
    assert ckld(counts, 1.0)[0] == pytest.approx((p * np.log(p / q)).sum())


def test_a_label_never_right_has_no_recall_and_no_part_in_ckld() -> None:
    counts = totals([10, 10, 0], [5, 5, 0], [10, 5, 5])
    assert rstd(counts)[0] == 0
    assert ckld(counts)[0] == pytest.approx(0.5 * math.log(0.5 / 0.25))


def test_nothing_right_has_no_relative_spread() -> None:
    assert math.isnan(rsd(totals([10, 10], [0, 0], [10, 10]))[0])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=6))
def test_ckld_is_a_divergence(counts: list[tuple[int, int]]) -> None:
    gold, predicted = ([float(c[i]) for c in counts] for i in (0, 1))
    zero = [0.0] * len(gold)
    assert ckld(totals(gold, zero, predicted), 1.0)[0] >= 0
    assert ckld(totals(gold, zero, gold), 1.0)[0] == pytest.approx(0)
    if sum(gold) and sum(predicted):
        assert ckld(totals(gold, zero, predicted))[0] >= ckld(totals(gold, zero, gold))[0] == pytest.approx(0)


def test_always_a_in_the_given_order() -> None:
    questions = make_questions(200)
    metrics = compute(read_scores(ask(questions, always(first))))
    golds = np.bincount([min(q.answers) for q in questions], minlength=4)
    bias = metrics.label_bias
    assert bias["rstd"].value == pytest.approx(np.std([1, 0, 0, 0]))
    assert bias["rsd"].value == pytest.approx(np.std([1, 0, 0, 0]) / 0.25)
    assert math.isinf(bias["ckld"].value)
    assert math.isfinite(bias["ckld_smoothed"].value)
    assert bias["p"].value < 1e-6
    # noise-free recalls: nothing to take out
    assert bias["rstd_corrected"].value == pytest.approx(bias["rstd"].value)
    assert bias["rsd_corrected"].value == pytest.approx(bias["rsd"].value)
    for estimate in (
        bias["rstd"],
        bias["rsd"],
        bias["ckld"],
        bias["ckld_smoothed"],
        bias["rstd_corrected"],
        bias["rsd_corrected"],
    ):
        assert math.isnan(estimate.low)
        assert estimate.note
    assert [row["predicted"].value for row in metrics.given_labels] == [1, 0, 0, 0, 0]
    assert [row["recall"].value for row in metrics.given_labels] == [1, 0, 0, 0, 0]
    assert [row["gold"].value for row in metrics.given_labels[:4]] == pytest.approx(golds / 200)
    assert [row["recall"].n for row in metrics.given_labels[:4]] == golds.tolist()


def test_mixed_option_counts_count_only_questions_that_have_the_label() -> None:
    scores = read_scores(ask(make_questions(60, (2, 3, 5)), always(first)))
    rows = label_shares(scores, given_slots(scores), Bootstrap(60))
    assert [row.label for row in rows] == ["A", "B", "C", "D", "E", "last"]
    assert [row["predicted"].n for row in rows] == [60, 60, 40, 20, 20, 60]
    assert {row["gold"].note for row in rows} == {"known by design: no interval"}


def test_questions_without_exactly_one_right_option_are_left_out_of_recalls() -> None:
    rows = []
    for i, answers in enumerate([{0}, {1}, set(), {0, 1}]):
        question = Question(f"q{i}", "?", ("x", "y", "z"), frozenset(answers))
        for order in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            rows.append(Response.of(question, present(question, order), "cloze", logprobs=np.array([0.0, -1.0, -2.0])))
    metrics = compute(read_scores(rows))
    assert metrics.label_bias["rstd"].n == 2
    assert metrics.given_labels[0]["predicted"].n == 4
    assert metrics.given_labels[0]["gold"].n == 2
    assert metrics.means["accuracy"].n == 3  # the one with two right answers counts, the one with none does not
    assert metrics.means["accuracy"].value == pytest.approx(2 / 3)
    assert (metrics.counts.no_right_option, metrics.counts.several_right) == (1, 1)
    assert "never has 1 of the labels" in metrics.label_bias["rstd"].note


def test_accuracy_split_by_the_place_of_the_right_option() -> None:
    questions = make_questions(100)
    metrics = compute(read_scores(ask(questions, knows(0.5, always(first)))))
    known = metrics.means["robust_accuracy"].value
    recalls = [row["recall"] for row in metrics.order_labels[:4]]
    assert recalls[0].value == 1
    assert [r.value for r in recalls[1:]] == pytest.approx([known] * 3)
    assert all(r.low <= r.value <= r.high for r in recalls)


def test_recorded_accuracies_of_moved_answers(shared_data: Path) -> None:
    """Our recalls by place, fed an answerer with a recorded run's accuracies, give these accuracies back."""
    runs = json.loads((shared_data / "recorded" / "answer_moving_accuracies.json").read_text("utf-8"))
    recorded = runs["demonstrate-bias-gpt-4o-mini-240-run1"][0]
    accuracies = [recorded[label]["correct"] / recorded[label]["n"] for label in "ABCD"]
    rows = []
    for i in range(240):
        question = Question(f"q{i:03d}", "?", ("a", "b", "c", "d"), frozenset({0}))
        for k in range(4):
            order = [1, 2, 3]
            order.insert(k, 0)  # the right option is moved to place k
            right = i < recorded["ABCD"[k]]["correct"]
            logprobs = np.array(one_hot(4, k if right else (k + 1) % 4, 0.9))
            rows.append(Response.of(question, present(question, order), "cloze", logprobs=logprobs))
    metrics = compute(read_scores(rows))
    assert [row["recall"].value for row in metrics.order_labels[:4]] == pytest.approx(accuracies)
    assert metrics.over_orders["worst"].value == pytest.approx(min(accuracies))
    assert metrics.over_orders["best"].value == pytest.approx(max(accuracies))
    assert metrics.over_orders["acc_std"].value == pytest.approx(np.std(accuracies))


def test_a_guesser_has_even_labels_within_the_intervals() -> None:
    metrics = compute(read_scores(ask(make_questions(150), guesses())))
    for row in metrics.order_labels[:4]:
        assert row["predicted"].low < 0.25 < row["predicted"].high
    assert metrics.label_bias["rstd_corrected"].value < metrics.label_bias["rstd"].value
    assert metrics.label_bias["p"].value > 0.01


def test_spreads_of_recall_less_chance() -> None:
    """By hand, for two numbers of options; a label with few right answers is left out."""
    gold = {3: [20, 25, 5], 4: [40, 40, 30, 30]}
    hits = {3: [10, 20, 5], 4: [10, 30, 15, 15]}
    rows = []
    for n, counts in gold.items():
        for label, (count, right) in enumerate(zip(counts, hits[n], strict=True)):
            for i in range(count):
                order = [(label + k) % n for k in range(n)]  # one wrong label in turn, for the others
                answered = label if i < right else order[1]
                question = Question(f"{n}-{label}-{i}", "?", tuple("wxyz"[:n]), frozenset({label}))
                logprobs = np.array(one_hot(n, answered, 0.9))
                rows.append(Response.of(question, present(question, range(n)), "cloze", logprobs=logprobs))
    bias = compute(read_scores(rows)).label_bias
    assert bias.left_out == 1

    def corrected(recalls: np.ndarray, counts: np.ndarray) -> float:
        size = len(recalls)
        return float(recalls.var() - (recalls * (1 - recalls) / (counts - 1)).mean() * (size - 1) / size)

    kept = {3: np.array([20, 25]), 4: np.array([40, 40, 30, 30])}
    recalls = {3: np.array([0.5, 0.8]), 4: np.array([0.25, 0.75, 0.5, 0.5])}
    total = sum(kept[n].sum() for n in kept)
    pooled = sum(kept[n].sum() * corrected(recalls[n], kept[n]) for n in kept) / total
    relative = sum(kept[n].sum() * corrected(recalls[n], kept[n]) / recalls[n].mean() ** 2 for n in kept) / total
    assert bias["rstd_corrected"].value == pytest.approx(math.sqrt(pooled))
    assert bias["rsd_corrected"].value == pytest.approx(math.sqrt(relative))
    assert bias["rstd_corrected"].n == total


def test_corrected_spreads_are_right_on_average() -> None:
    """A fair model of mixed option counts has a raw RStd far from 0; its corrected variance is 0 on average."""
    raw, corrected = [], []
    for seed in range(20):
        bias = label_bias(given_slots(planted_scores(Planted(), 400, (2, 3, 4, 5, 6, 7, 8), seed=seed)))
        raw.append(bias["rstd"].value)
        corrected.append(bias["rstd_corrected"].value)
    assert np.mean(raw) > 0.08
    assert np.mean(corrected) < 0.05


def test_the_effects_of_questions_too_large_to_be_fitted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 options in their rotations, or eight in all orders, one question alone is more than is fitted at once."""
    scores = planted_scores(Planted(label=at(0, 2.0), knows=0.0), 12)
    unsure = unsure_questions(scores)
    together = effects_of(scores, unsure)
    monkeypatch.setattr("unslant.metrics.labels._AT_ONCE", 1)
    for unit, alone in effects_of(scores, unsure).items():
        for one, other in zip(alone, together[unit], strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)
