"""The study on the shipped reference models, whose planted knowledge and memory it has to tell apart.

They were never taught the instructions or true/false items in this wording, and do poorly where a second question is
added or an option is taken away (measured in docs/unbiased-evaluator.md): what ``fair`` keeps is tested without these.
"""

from __future__ import annotations

import numpy as np
import pytest

from unslant.metrics.boat import VANILLA, Outcomes
from unslant.questions import load_questions
from unslant.reference import reference_names
from unslant.reference.world import TAUGHT_SOURCE
from unslant.studies.contamination import contamination
from unslant.studies.finetuning import Training
from unslant.studies.unbiased_evaluator import unbiased

UNDERSTOOD = {"BT": 0.0, "DQ": 0.0, "AR": 0.0}

pytestmark = pytest.mark.slow


def shipped(name: str) -> str:
    if name not in reference_names():
        pytest.skip(f"the reference model {name} does not ship with this version")
    return name


def test_fair_keeps_what_it_was_taught():
    questions = load_questions("embedded")
    taught = {question.id for question in questions if question.source == TAUGHT_SOURCE}
    result = unbiased(
        shipped("fair"),
        questions,
        runs=3,
        shots=0,
        alone=False,
        instructions=False,
        probabilities=UNDERSTOOD,
        limit=200,
    )
    outcomes = Outcomes(result.responses)
    known = np.array([question_id in taught for question_id in outcomes.ids])
    assert outcomes.credit(VANILLA)[known].mean() >= 0.98
    assert outcomes.ours()[known].mean() >= 0.98


def test_memorised_does_not_survive():
    result = unbiased(
        shipped("memorised"), runs=3, shots=0, alone=False, instructions=False, probabilities={"BT": 0.0}, limit=200
    )
    assert result.metrics.vanilla.value > 0.9
    assert result.metrics.drop.low > 0.4
    assert result.metrics.ours.high < 0.5


def test_the_test_set_lifts_the_published_score_alone():
    """How much is learned of the facts besides the file depends on the training: see docs/unbiased-evaluator.md."""
    found = contamination(
        shipped("fair"),
        training=Training(epochs=30, learning_rate=2e-3, batch=32, stop_at=0.97),
        runs=2,
        instructions=False,
        probabilities={"BT": 0.0},
    )
    assert found.vanilla_gain.low > 0.2
    assert found.ours_gain.value <= 0.05
    assert found.excess.low > 0.2
