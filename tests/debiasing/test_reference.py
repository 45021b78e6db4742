"""Methods on the reference models, whose bias is known, and two question sets of their world."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from training.world import TAUGHT_SOURCE, skewed
from unslant.debiasing import method_named
from unslant.debiasing.asker import Asker, ModelAsker, ask_orders
from unslant.debiasing.base import debias
from unslant.debiasing.lora1 import TrainSettings, collapsed
from unslant.debiasing.lora1.training import train
from unslant.metrics import pbm
from unslant.models import load_model
from unslant.presentations import orders_for
from unslant.questions import Question, QuestionSet, load_questions
from unslant.reference import embedded_questions_path
from unslant.studies.debias.result import DebiasResult
from unslant.studies.debias.study import debias as compare_methods

BIASED = ("prefers-a", "prefers-last")


def sets(limit: int | None = None) -> dict[str, QuestionSet[Question]]:
    return {
        "embedded": load_questions("embedded", limit=limit),
        "b": load_questions(embedded_questions_path("b"), limit=limit),
    }


def right(questions: list[Question], method: str, model: str, fit: list[Question] | None = None) -> float:
    answers = debias(method_named(method), ModelAsker(load_model(model)), questions, fit)
    return float(np.mean([o.choice in q.answers for q, o in zip(questions, answers.outcomes, strict=True)]))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["embedded", "b"])
def test_vote_lifts_half_learned_facts(name: str) -> None:
    questions = list(sets(limit=120)[name])
    assert right(questions, "vote", "half-taught") > right(questions, "none", "half-taught") + 0.03


@pytest.mark.thorough
def test_adaptive_votes_like_the_full_vote() -> None:
    asker = ModelAsker(load_model("prefers-a"))
    questions = list(load_questions("embedded", limit=100))
    full = debias(method_named("vote:orders=balanced:24"), asker, questions).outcomes
    exact, fast = (debias(method_named(name), asker, questions).outcomes for name in ("adaptive", "adaptive-fast"))
    assert [o.choice for o in exact] == [o.choice for o in full]
    assert np.mean([a.choice != b.choice for a, b in zip(fast, full, strict=True)]) <= 0.01
    assert sum(o.orders for o in fast) < 0.7 * sum(o.orders for o in full)


@cache
def compared(model: str) -> DebiasResult:
    """Methods on both sets, their right answers crowded on the first place in one and on the last in the other.

    Methods are fitted on half of each set, and those with a fit measured on the other set too.
    """
    found = [
        dataclasses.replace(questions, questions=skewed(questions, place))
        for questions, place in zip(sets(limit=200).values(), (0, -1), strict=True)
    ]
    methods = ("vote", "pride", "lora-1", "gray-box", "bnp", "aoi")
    return compare_methods([load_model(model)], found, methods=methods)


@pytest.mark.slow
@pytest.mark.parametrize("model", BIASED)
def test_the_vote_has_no_permutation_bias_left(model: str) -> None:
    for entry in compared(model).entries:
        if entry.method == "vote":
            assert entry.measures["pbm"].value == pytest.approx(0, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("model", BIASED)
def test_lora1_on_skewed_sets(model: str) -> None:
    """PBM at least halved and AccStd lower by a quarter, on the set it was trained on and on the other one."""
    entries = [entry for entry in compared(model).entries if entry.method == "lora-1"]
    assert sorted(entry.transferred for entry in entries) == [False, False, True, True]
    for entry in entries:
        assert entry.change["pbm"].relative.value <= -0.5
        assert entry.change["acc_std"].relative.value <= -0.25


@pytest.mark.slow
def test_pride_lowers_rstd_of_prefers_a() -> None:
    entries = [entry for entry in compared("prefers-a").entries if entry.method == "pride" and not entry.transferred]
    assert len(entries) == 2
    for entry in entries:
        assert entry.change["rstd"].relative.value < 0


def bias(asker: Asker, questions: list[Question]) -> float:
    orders = [orders_for(q, "24") for q in questions]
    return float(np.mean([pbm(np.stack(rows)) for rows in ask_orders(asker, questions, orders)]))


def accuracy(asker: Asker, questions: list[Question]) -> float:
    outcomes = debias(method_named("none"), asker, questions).outcomes
    return float(np.mean([o.choice in q.answers for q, o in zip(questions, outcomes, strict=True)]))


@pytest.mark.slow
@pytest.mark.parametrize("name", BIASED)
def test_lora1_halves_the_bias_and_keeps_what_is_known(name: str, tmp_path: Path) -> None:
    """With P1's settings, on questions that were not trained on."""
    others = list(sets(limit=100)["b"])
    taught = [q for q in others if q.source == TAUGHT_SOURCE]
    untaught = [q for q in others if q.source != TAUGHT_SOURCE]
    asker = ModelAsker(load_model(name))
    before, known = bias(asker, untaught), accuracy(asker, taught)
    adapted, _ = train(asker, list(sets()["embedded"]), [], TrainSettings(), out=tmp_path)
    asker.forget()
    after, still = bias(asker, untaught), accuracy(asker, taught)
    adapted.close()
    assert after < 0.5 * before
    assert still >= known - 0.01


@pytest.mark.slow
def test_a_rate_far_too_high_collapses_and_is_warned_about() -> None:
    """The prototype collapsed at ten times the learning rate; these models bear that, and collapse at thirty times."""
    questions = list(sets()["embedded"])
    asker = ModelAsker(load_model("prefers-a"))
    with pytest.warns(UserWarning, match="collapsed"):
        adapted, log = train(asker, questions[64:], questions[:64], TrainSettings(learning_rate=3e-3))
    adapted.close()
    assert collapsed(log)
    assert log[-1].accuracy < log[0].accuracy - 0.2
    assert log[-1].entropy > 0.9
