"""Methods on the reference models, whose bias is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from unslant.debias import ModelAsker, debias, method_named
from unslant.debias.asking import ask_orders
from unslant.debias.lora1 import TrainSettings
from unslant.debias.lora1.training import train
from unslant.metrics import pbm
from unslant.models import load_model
from unslant.presentations import orders_for
from unslant.questions import Question, load_questions
from unslant.reference import embedded_questions_path

TAUGHT = "world/taught"


def right(questions: list[Question], method: str, model: str, fit: list[Question] | None = None) -> float:
    answers = debias(method_named(method), ModelAsker(load_model(model)), questions, fit)
    return float(np.mean([o.choice in q.answers for q, o in zip(questions, answers.outcomes, strict=True)]))


def test_vote_lifts_half_learned_facts() -> None:
    questions = list(load_questions("embedded", limit=120))
    assert right(questions, "vote", "half-taught") > right(questions, "none", "half-taught") + 0.03


def test_adaptive_votes_like_the_full_vote() -> None:
    asker = ModelAsker(load_model("prefers-a"))
    questions = list(load_questions("embedded", limit=100))
    full = debias(method_named("vote:orders=balanced:24"), asker, questions).outcomes
    exact, fast = (debias(method_named(name), asker, questions).outcomes for name in ("adaptive", "adaptive-fast"))
    assert [o.choice for o in exact] == [o.choice for o in full]
    assert np.mean([a.choice != b.choice for a, b in zip(fast, full, strict=True)]) <= 0.01
    assert sum(o.orders for o in fast) < 0.7 * sum(o.orders for o in full)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prefers-a", "prefers-last"])
def test_lora1_halves_the_bias_and_keeps_what_is_known(name: str, tmp_path: Path) -> None:
    training = list(load_questions("embedded"))
    others = list(load_questions(embedded_questions_path("b"), limit=100))
    taught = [q for q in others if q.source == TAUGHT]
    orders = [orders_for(q, "24") for q in others]

    def bias(asker: ModelAsker) -> float:
        return float(np.mean([pbm(np.stack(rows)) for rows in ask_orders(asker, others, orders)]))

    asker = ModelAsker(load_model(name))
    before = bias(asker)
    known = debias(method_named("none"), asker, taught).outcomes
    trained = train(asker, training, [], TrainSettings(epochs=8), out=tmp_path)
    asker.forget()
    assert bias(asker) < 0.5 * before
    still = debias(method_named("none"), asker, taught).outcomes
    trained.adapted.close()
    a, b = (np.mean([o.choice in q.answers for q, o in zip(taught, found, strict=True)]) for found in (known, still))
    assert b >= a - 0.01
