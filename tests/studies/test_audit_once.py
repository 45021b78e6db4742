"""A result is read from its table once and measured once; corrections are the debiasing methods, on the same arrays."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from tests.studies.label_guessers import QUESTIONS, when_unsure
from unslant.auditing.study import audit
from unslant.debiasing import method_named
from unslant.debiasing.asker import ModelAsker, RecordedAsker
from unslant.debiasing.base import debias
from unslant.metrics import Bootstrap, measure, read_scores
from unslant.presentations import cyclic_orders, given_order, reversed_order
from unslant.questions import Question


def counted(monkeypatch: pytest.MonkeyPatch, function: Callable[..., Any]) -> list[object]:
    """Calls of ``function`` from now on, wherever in the package it has been imported."""
    calls: list[object] = []

    def wrapped(*args: object, **settings: object) -> object:
        calls.append(args[0])
        return function(*args, **settings)

    for module in [module for name, module in sys.modules.items() if name.startswith("unslant.")]:
        for name, value in list(vars(module).items()):
            if value is function:
                monkeypatch.setattr(module, name, wrapped)
    return calls


@pytest.mark.thorough
def test_an_audit_is_read_once_measured_once_and_resampled_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    audit(when_unsure({"A": 6.0}), QUESTIONS).to_html(tmp_path / "warm.html")  # import what is imported lazily
    reads, measures = counted(monkeypatch, read_scores), counted(monkeypatch, measure)
    sizes: list[int] = []
    original = Bootstrap.__init__

    def init(self: Bootstrap, n_questions: int, *args: Any, **settings: Any) -> None:
        sizes.append(n_questions)
        original(self, n_questions, *args, **settings)

    monkeypatch.setattr(Bootstrap, "__init__", init)
    result = audit(when_unsure({"A": 6.0}), QUESTIONS)
    result.to_html(tmp_path / "r.html")
    result.to_json(tmp_path / "r.json")
    result.summary()
    assert len(reads) == 1
    assert [scores is result.scores for scores in measures] == [True]
    assert sizes.count(len(QUESTIONS)) == 1


@pytest.mark.parametrize("orders", ["auto", "cyclic", "reverse", "given", "7"])
def test_corrections_are_what_the_methods_answer(orders: str) -> None:
    """Against the debiasers themselves, asking the model, on the questions whose orders were shown for all methods.

    A method that has these for less than half of the questions is left out, and does not narrow the others.
    """
    rng = random.Random(3)
    weights = {f"item {i}": rng.uniform(1, 9) for i in range(6)}

    def rule(stem: str, labels: list[str], texts: list[str]) -> list[float]:
        size = crc32(stem.encode()) % 7 + 1
        return [weights.get(t, 1.0) * (3.0 if i == 0 else 1.0) * (size + i) for i, t in enumerate(texts)]

    model = when_unsure({})
    model.rule = rule
    questions = [replace(q, pinned=(1,)) if i % 5 == 0 and len(q.options) > 2 else q for i, q in enumerate(QUESTIONS)]
    result = audit(model, questions, orders=orders)
    found = {correction.method: correction for correction in result.corrections}
    recorded = {(row.question_id, row.contents) for row in result.responses.rows() if row.labels[0] == "A"}

    def shown(question: Question, *wanted: tuple[int, ...]) -> bool:
        return all((question.id, order) in recorded for order in wanted)

    usable = {
        "pride": [q for q in questions if shown(q, *cyclic_orders(q))],
        "gray-box": [q for q in questions if shown(q, given_order(q), reversed_order(q))],
    }
    if orders == "given":
        assert result.corrections == ()
        return
    enough = {method: asked for method, asked in usable.items() if 2 * len(asked) >= len(questions)}
    common = {q.id for q in questions}.intersection(*({q.id for q in asked} for asked in enough.values()))
    assert {c.accuracy.n for c in result.corrections if c.accuracy.defined} == {len(common)}
    for method, asked in usable.items():
        if method not in enough:
            assert not found[method].accuracy.defined
            assert f"{len(asked)} of {len(questions)} questions were shown" in found[method].accuracy.note
            assert found[method].accuracy.note in result.summary(details=True).replace("\n", " ")
            continue
        answers = debias(method_named(method), ModelAsker(model), asked)
        kept = [(o, q) for q, o in zip(asked, answers.outcomes, strict=True) if q.id in common]
        assert found[method].accuracy.value == pytest.approx(np.mean([o.choice in q.answers for o, q in kept]))
        assert found[method].orders == pytest.approx(np.mean([o.orders for o, _ in kept]))


def test_recorded_orders_answer_as_the_model_did() -> None:
    model = when_unsure({"A": 6.0})
    result = audit(model, QUESTIONS)
    method = method_named("vote")
    live = debias(method, ModelAsker(model), QUESTIONS)
    read = debias(method, RecordedAsker(result.responses), QUESTIONS)
    assert [o.choice for o in live.outcomes] == [o.choice for o in read.outcomes]
