from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom

from unslant.errors import InputError
from unslant.metrics import (
    Estimate,
    Metrics,
    compute,
    mcnemar,
    measure,
    minimum_detectable_difference,
    paired_difference,
    read_scores,
)
from unslant.metrics.association import pbm_accuracy
from unslant.metrics.registry import Numbers

from .synthetic import always, ask, first, guesses, knows, make_questions


@pytest.fixture(scope="module")
def metrics() -> Metrics:
    questions = make_questions(120, (2, 3, 4, 5), subjects=12)
    return compute(read_scores(ask(questions, knows(0.6, guesses()))))


def estimates(value: object) -> list[dict]:
    if isinstance(value, dict):
        return (
            [value]
            if {"value", "low", "high", "n"} <= set(value)
            else [e for v in value.values() for e in estimates(v)]
        )
    return [e for v in value for e in estimates(v)] if isinstance(value, list) else []


def test_every_number_has_its_interval_and_its_n(metrics: Metrics) -> None:
    written = json.loads(json.dumps(metrics.to_dict(), allow_nan=False))
    found = [Estimate.from_dict(e) for e in estimates(written)]
    assert len(found) > 200
    for estimate in found:
        if estimate.defined and not estimate.note:
            assert estimate.n > 0
            assert estimate.low <= estimate.value <= estimate.high
        elif not estimate.defined:
            assert estimate.note
    assert written["counts"]["by_options"] == {"2": 30, "3": 30, "4": 30, "5": 30}
    assert written["phrase"] == metrics.preference.phrase


def test_same_seed_same_result() -> None:
    scores = read_scores(ask(make_questions(30), guesses()))
    assert compute(scores).to_dict() == compute(scores).to_dict()


def test_means_agree_with_each_other(metrics: Metrics) -> None:
    means = metrics.means
    assert means["robust_accuracy"].value <= means["expected_accuracy"].value
    assert metrics.over_orders["worst"].value <= means["expected_accuracy"].value <= metrics.over_orders["best"].value
    assert means["order_advantage"].value == pytest.approx(means["accuracy"].value - means["expected_accuracy"].value)
    assert means["robust_accuracy"].value <= means["consistency"].value


def test_subjects_add_up(metrics: Metrics) -> None:
    assert list(metrics.by_subject) == [f"s{i:02d}" for i in range(12)]
    for name in ("accuracy", "pbm", "vote_accuracy", "consistency"):
        rows = [row[name] for row in metrics.by_subject.values()]
        pooled = sum(r.value * r.n for r in rows) / sum(r.n for r in rows)
        assert metrics.means[name].value == pytest.approx(pooled)
    assert "subject" in metrics.means["accuracy"].method
    assert all("subject" not in row["accuracy"].method for row in metrics.by_subject.values())


def test_correlation_across_subjects(metrics: Metrics) -> None:
    x = [row["pbm"].value for row in metrics.by_subject.values()]
    y = [row["expected_accuracy"].value for row in metrics.by_subject.values()]
    found = metrics.pbm_accuracy
    assert found["pearson"].value == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert found["pearson"].low < found["pearson"].value < found["pearson"].high
    assert found["pearson"].n == 12
    assert found["pearson_p"].value == pytest.approx(stats.pearsonr(x, y).pvalue)
    assert found["spearman"].value == pytest.approx(stats.spearmanr(x, y).statistic)


def test_pbm_falls_where_more_is_known() -> None:
    questions = make_questions(120, (4,), subjects=12)  # of one option count: PBM depends on it, and so does chance
    found = compute(read_scores(ask(questions, knows(0.6, guesses())))).pbm_accuracy
    assert found["pearson"].value < 0  # guessed questions move, known ones do not


def correlated(pbm: Sequence[float], accuracy: Sequence[float]) -> Numbers:
    rows = [
        {"pbm": Estimate.bare(a, 1, ""), "expected_accuracy": Estimate.bare(b, 1, "")}
        for a, b in zip(pbm, accuracy, strict=True)
    ]
    return pbm_accuracy([Numbers(row) for row in rows])


def test_no_correlation_of_too_little() -> None:
    for x, y in (([0.1, 0.2], [0.5, 0.6]), ([0.1, 0.2, math.nan], [0.5, 0.6, 0.7]), ([0.1] * 4, [0.1, 0.2, 0.3, 0.4])):
        found = correlated(x, y)
        assert not found["pearson"].defined
        assert found["pearson"].note
    assert correlated([1.0, 2.0, 3.0], [2.0, 1.0, 0.0])["pearson"].value == pytest.approx(-1)


def test_measures_are_one_per_question(metrics: Metrics) -> None:
    assert len(metrics.questions) == len(metrics.means) > 20
    for values in metrics.questions.values():
        assert values.shape == (120,)


def test_passages_come_from_the_questions_of_the_table() -> None:
    questions = [replace(q, context=f"passage {i // 5}") for i, q in enumerate(make_questions(40))]
    table = ask(questions, knows(0.5, guesses()))
    assert "contexts" not in compute(read_scores(table)).means["accuracy"].method
    known = replace(table, questions=tuple(questions))
    assert "over contexts" in compute(read_scores(known)).means["accuracy"].method


def test_paired_difference() -> None:
    questions = make_questions(100)
    good = read_scores(ask(questions, knows(0.8, always(first))))
    poor = read_scores(ask(questions[:90], knows(0.3, always(first))))
    found = paired_difference(good, poor, "robust_accuracy")
    ours, theirs = measure(good)["robust_accuracy"][:90], measure(poor)["robust_accuracy"]
    assert (found.a.value, found.b.value) == (ours.mean(), theirs.mean())
    assert found.difference.value == pytest.approx(ours.mean() - theirs.mean())
    assert 0 < found.difference.low < found.difference.value < found.difference.high
    assert (found.only_a, found.only_b) == (int((ours > theirs).sum()), 0)
    assert found.p_value == pytest.approx(2 * 0.5**found.only_a)
    assert (found.difference.n, found.n_unpaired) == (90, 10)
    # pairing matters: the same questions are right in both, so the interval is narrower than that of either
    assert found.difference.high - found.difference.low < 2 * (found.a.high - found.a.low)
    json.dumps(found.to_dict(), allow_nan=False)


def test_paired_difference_of_a_spread_has_no_mcnemar() -> None:
    questions = make_questions(40)
    scores = read_scores(ask(questions, guesses()))
    found = paired_difference(scores, scores, "pbm")
    assert found.difference.value == 0
    assert -0.05 < found.difference.low == -found.difference.high < 0  # others may differ
    assert math.isnan(found.p_value)


def test_paired_difference_refuses_what_has_no_pairs() -> None:
    scores = read_scores(ask(make_questions(3), guesses()))
    with pytest.raises(InputError, match="no metric of single questions is called 'speed'"):
        paired_difference(scores, scores, "speed")
    other = read_scores(
        ask([q for q in make_questions(6) if q.id > "q0002"], guesses()),
    )
    with pytest.raises(InputError, match="no question in common"):
        paired_difference(scores, other)


def test_mcnemar_by_hand() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(6, 0) == pytest.approx(2 / 2**6)
    assert mcnemar(3, 3) == 1


def test_minimum_detectable_difference() -> None:
    # Connor's 2.80 sqrt(s / n), and a little more: the exact test is cautious
    for n in (60, 240, 1000):
        assert 1 < minimum_detectable_difference(n) / (2.802 * math.sqrt(0.25 / n)) < 1.03
        assert 1 < minimum_detectable_difference(n, correlation=0) / (2.802 * math.sqrt(0.5 / n)) < 1.04
    assert minimum_detectable_difference(60, power=0.5) < 0.14
    assert minimum_detectable_difference(60, accuracy=0.9) < minimum_detectable_difference(60)
    # fewer than six discordant pairs are never significant, however they fall
    assert mcnemar(6, 0) < 0.05 < mcnemar(5, 0)
    assert minimum_detectable_difference(6) == pytest.approx(0.8 ** (1 / 6), abs=2e-3)
    assert minimum_detectable_difference(5) == minimum_detectable_difference(3) == 1
    with pytest.raises(ValueError, match="n >= 1"):
        minimum_detectable_difference(0)


@pytest.mark.parametrize(("n", "discordant"), [(10, 0.25), (60, 0.25), (60, 0.5), (400, 0.25)])
def test_four_of_five_such_differences_are_found(n: int, discordant: float) -> None:
    """By enumerating every outcome under scipy's own exact test."""
    difference = minimum_detectable_difference(n, correlation=1 - 2 * discordant)
    discordant = max(discordant, difference)
    found = 0.0
    for m in range(1, n + 1):
        if (weight := binom.pmf(m, n, discordant)) > 1e-9:
            k = np.arange(m + 1)
            p = np.minimum(1, 2 * np.minimum(binom.cdf(k, m, 0.5), binom.sf(k - 1, m, 0.5)))
            found += weight * binom.pmf(k, m, (1 + difference / discordant) / 2)[p <= 0.05].sum()
    assert found == pytest.approx(0.8, abs=5e-3)
