"""Ten questions of a real model under all 24 orders, recomputed independently."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path

import numpy as np
import pytest

from unslant.auditing.result import AuditResult
from unslant.metrics import OrderScores, compute, read_scores, vote
from unslant.presentations import present
from unslant.questions import Question
from unslant.responses import Response, Responses

PERMUTATIONS = list(itertools.permutations(range(4)))


@pytest.fixture(scope="module")
def recorded(shared_data: Path) -> list[dict]:
    path = shared_data / "recorded" / "llama-7b_arc_24perm_sample.jsonl"
    return [json.loads(line)["data"] for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def responses(recorded: list[dict]) -> Responses:
    rows = []
    for record in recorded:
        gold = frozenset({"ABCD".index(record["ideal"])})
        question = Question(f"arc-{record['idx']:02d}", "?", tuple(record["options"]), gold)
        for order, probs in zip(PERMUTATIONS, record["probs"], strict=True):
            rows.append(Response.of(question, present(question, order), "cloze", logprobs=np.log(probs)))
    return Responses.from_rows(rows)


@pytest.fixture(scope="module")
def scores(responses: Responses) -> OrderScores:
    return read_scores(responses)


def by_content(record: dict) -> np.ndarray:
    """(24, 4): label column k of row i belongs to option p[k] of the i-th permutation p."""
    probs = np.array(record["probs"])
    out = np.empty((24, 4))
    for i, p in enumerate(PERMUTATIONS):
        for k in range(4):
            out[i, p[k]] = probs[i, k] / probs[i].sum()
    return out


def test_permutation_bias(recorded: list[dict], scores: OrderScores) -> None:
    expected = np.mean([((p - p.mean(0)) ** 2).mean(0).mean() for p in map(by_content, recorded)])
    metrics = compute(scores)
    assert metrics.means["pbm"].value == pytest.approx(expected, rel=1e-9)
    assert metrics.means["pbm"].n == 10
    assert 0 < metrics.means["pbm"].low < expected < metrics.means["pbm"].high < 0.25


def test_fluctuation(recorded: list[dict], scores: OrderScores) -> None:
    # permutation 0 is the given order ABCD, permutation 23 is DCBA
    expected = np.mean([p[0].argmax() != p[23].argmax() for p in map(by_content, recorded)])
    assert compute(scores).means["fr"].value == expected


def test_vote_is_the_recorded_one_for_all_ten(recorded: list[dict], scores: OrderScores) -> None:
    voted = vote(scores)
    assert ["ABCD"[i] for i in voted.content] == [record["sampled"] for record in recorded]
    assert list(voted.content) == [by_content(record).mean(0).argmax() for record in recorded]
    assert compute(scores).means["vote_accuracy"].value == np.mean([record["correct"] for record in recorded])


def test_other_metrics_of_orders(recorded: list[dict], scores: OrderScores) -> None:
    choices = np.array([by_content(record).argmax(1) for record in recorded])
    gold = np.array(["ABCD".index(record["ideal"]) for record in recorded])
    right = choices == gold[:, None]
    metrics = compute(scores)
    assert metrics.means["accuracy"].value == right[:, 0].mean()
    assert metrics.means["expected_accuracy"].value == pytest.approx(right.mean())
    assert metrics.means["robust_accuracy"].value == right.all(1).mean()
    assert metrics.means["consistency"].value == (choices == choices[:, :1]).all(1).mean()
    assert metrics.over_orders["acc_std"].value == pytest.approx(right.mean(0).std())
    assert metrics.over_orders["worst"].value == pytest.approx(right.mean(0).min())
    assert metrics.over_orders["best"].value == pytest.approx(right.mean(0).max())
    labels = np.array([record["probs"] for record in recorded]).argmax(-1)
    for k, row in enumerate(metrics.order_labels[:4]):
        assert row.label == "ABCD"[k]
        assert row["predicted"].value == pytest.approx((labels == k).mean())
        assert row["gold"].value == pytest.approx(0.25)
        stands_at_k = np.array([[p[k] == g for p in PERMUTATIONS] for g in gold])
        assert row["recall"].value == pytest.approx(right[stands_at_k].mean())


def test_label_metrics_of_the_given_order(recorded: list[dict], scores: OrderScores) -> None:
    predicted = np.array([np.argmax(record["probs"][0]) for record in recorded])
    gold = np.array(["ABCD".index(record["ideal"]) for record in recorded])
    recalls = np.array([(predicted[gold == k] == k).mean() for k in range(4) if (gold == k).any()])
    p, q = (np.bincount(x, minlength=4) / 10 for x in (gold, predicted))
    bias = compute(scores).label_bias
    assert bias["rstd"].value == pytest.approx(recalls.std())
    assert bias["rsd"].value == pytest.approx(recalls.std() / recalls.mean())
    raw = np.inf if ((p > 0) & (q == 0)).any() else sum(a * np.log(a / b) for a, b in zip(p, q, strict=True) if a)
    assert bias["ckld"].value == pytest.approx(raw)
    p1, q1 = (np.bincount(x, minlength=4) + 1.0 for x in (gold, predicted))
    smoothed = (p1 / 14 * np.log(p1 / q1)).sum()
    assert bias["ckld_smoothed"].value == pytest.approx(smoothed)


def test_what_is_printed_of_it_can_be_said(responses: Responses) -> None:
    """Extremes around the mean, corrections on the same questions, nothing infinite or of zero width."""
    result = AuditResult.of(responses)
    over, mean = result.metrics.over_orders, result.metrics.means["expected_accuracy"]
    assert over["worst"].value <= mean.value <= over["best"].value
    assert {correction.accuracy.n for correction in result.corrections} == {10}
    for text in (result.summary(), result.summary(details=True)):
        assert "∞" not in text.replace("CKLD without smoothing", "")
        assert not re.search(r"(\d\.\d+) (–|to) \1\b", text)
