"""The audit finds in the reference models what was planted in them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tests.first_screens import said
from tests.models.conftest import tokenizer_cache  # noqa: F401  # a fixture
from tests.models.zoo import build
from training.planted import planted
from training.world import UNTAUGHT_SOURCE, build_world, question_sets
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.presentations import present
from unslant.presentations.orders import all_orders
from unslant.questions import load_questions

pytestmark = pytest.mark.thorough

QUESTIONS = [q for q in question_sets()[0] if len(q.options) == 4][:60]
"""Taught and untaught, four options, all orders shown."""


@cache
def _audited(name: str) -> AuditResult:
    return audit(name, QUESTIONS)


@cache
def _planted_shares(name: str) -> tuple[float, float]:
    """Shares of orders of untaught questions in which the planted answer is the first label, and the last position."""
    model = planted(name, build_world(), question_sets()[0])
    facts = build_world().by_id
    chosen = [
        int(model.answer(present(q, order), facts[q.id]).argmax())
        for q in QUESTIONS
        if q.source == UNTAUGHT_SOURCE
        for order in all_orders(q)
    ]
    return float(np.mean(np.array(chosen) == 0)), float(np.mean(np.array(chosen) == 3))


def _slot(name: str, label: str):
    return next(slot for slot in _audited(name).metrics.preference.slots if slot.label == label)


def test_prefers_a_is_said_to_in_the_first_lines() -> None:
    result = _audited("prefers-a")
    assert "When unsure it falls back on A." in said(result)
    assert result.metrics.preference.phrase == "falls back on A when unsure"
    first, _ = _planted_shares("prefers-a")
    assert first == 1
    assert _slot("prefers-a", "A").chosen.low <= first <= _slot("prefers-a", "A").chosen.high


def test_prefers_last_is_said_to_go_by_position() -> None:
    result = _audited("prefers-last")
    assert "When unsure it falls back on the last position." in said(result)
    assert result.metrics.preference.named == "last"
    _, last = _planted_shares("prefers-last")
    assert last == 1
    assert _slot("prefers-last", "last").chosen.low <= last <= _slot("prefers-last", "last").chosen.high


def test_fair_is_not_accused() -> None:
    result = _audited("fair")
    assert result.metrics.preference.named is None
    assert "It has no preference that moves 5 points of all answers." in said(result)


@pytest.mark.parametrize("name", ["fair", "prefers-a", "prefers-last"])
def test_taught_facts_hold_in_every_order(name: str) -> None:
    result = _audited(name)
    taught = np.array([q.source != UNTAUGHT_SOURCE for q in sorted(QUESTIONS, key=lambda q: q.id)])
    robust = result.metrics.questions["robust_accuracy"]
    assert robust[taught].mean() >= 0.95
    assert result.cost.tokens < result.cost.tokens_baqckv < result.cost.tokens_plain


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "phrase"),
    [
        ("prefers-a", "falls back on A when unsure"),
        ("fair", "no preference that moves 5 points of all answers"),
        ("prefers-last", "falls back on the last position when unsure"),
        ("half-taught", "falls back on the first or second position when unsure"),
        ("memorised", "sticks to one position in 98 % of its unstable questions, not the same one in all"),
    ],
)
def test_the_sentence_is_what_was_planted(name: str, phrase: str) -> None:
    """On all embedded questions, of 2 to 8 options: nothing infinite or of zero width, extremes around the mean."""
    result = audit(name)
    metrics = result.metrics
    assert metrics.preference.phrase == phrase
    assert (
        metrics.over_orders["worst"].value
        <= metrics.means["expected_accuracy"].value
        <= metrics.over_orders["best"].value
    )
    assert {c.accuracy.n for c in result.corrections} == {100}, "not of the part that was asked in all orders"
    for estimate in estimates(metrics.to_dict()):
        assert estimate["low"] is None or estimate["low"] < estimate["high"]
        assert estimate["low"] is not None or estimate["note"]


def estimates(value: object) -> list[dict]:
    if isinstance(value, dict):
        return [value] if "low" in value else [e for v in value.values() for e in estimates(v)]
    return [e for v in value for e in estimates(v)] if isinstance(value, list) else []


@pytest.mark.slow
def test_a_random_model_is_not_above_chance_and_holds_nothing_on_labels(
    shared_data: Path,
    tmp_path: Path,
    tokenizer_cache: Path,  # noqa: F811
) -> None:
    """A Qwen 2 with random weights on real questions: no score, no habit of interest, and a warning."""
    questions = load_questions(shared_data / "arc_challenge_test.jsonl", limit=200, seed=0, skip_bad=True)
    result = audit(str(build("qwen2", tmp_path / "qwen2", tokenizer_cache)), questions)
    assert "cannot be distinguished from guessing (0.25)" in result.headline
    (caveat,) = result.page().caveats
    assert "of the probability" in caveat
    assert "chat=True" in caveat
