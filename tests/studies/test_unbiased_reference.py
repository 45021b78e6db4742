"""The study on the shipped reference models, whose planted knowledge and memory it has to tell apart."""

from __future__ import annotations

import numpy as np
import pytest

from training.world import TAUGHT_SOURCE
from unslant.metrics.estimate import wilson
from unslant.questions import load_questions
from unslant.reference import reference_names
from unslant.studies.unbiased.contamination.study import contamination
from unslant.studies.unbiased.metrics import AS_PUBLISHED, Outcomes
from unslant.studies.unbiased.study import unbiased

pytestmark = pytest.mark.slow


def shipped(name: str) -> str:
    if name not in reference_names():
        pytest.skip(f"the reference model {name} does not ship with this version")
    return name


@pytest.mark.parametrize(("shots", "instructions"), [(5, True), (0, True), (0, False)])
def test_fair_keeps_what_it_was_taught(shots: int, instructions: bool):
    """Under every intervention, drawn as P4 draws them: within the interval of the published score."""
    questions = load_questions("embedded")
    taught = {question.id for question in questions if question.source == TAUGHT_SOURCE}
    result = unbiased(
        shipped("fair"), questions, runs=2, shots=shots, no_alone=True, no_instructions=not instructions, limit=200
    )
    outcomes = Outcomes(result.responses)
    known = np.array([question_id in taught for question_id in outcomes.ids])
    right = outcomes.credit(AS_PUBLISHED)[known]
    low = wilson(float(right.mean()), len(right)).low
    assert right.mean() >= 0.98
    assert outcomes.ours()[known].mean() >= low


@pytest.mark.parametrize("shots", [0, 5])
def test_memorised_does_not_survive(shots: int):
    result = unbiased(shipped("memorised"), runs=2, shots=shots, no_alone=True, limit=200)
    assert result.metrics.vanilla.value > 0.9
    assert result.metrics.drop.low > 0.5
    assert result.metrics.ours.high < 0.4


@pytest.mark.parametrize("training", [{"learning_rate": 1.5e-3}, {"learning_rate": 1e-3, "last_layers": 1}])
def test_the_test_set_lifts_the_published_score_alone(training: dict[str, float]):
    """How much is learned of the facts besides the file depends on the training: see docs/unbiased-evaluator.md."""
    found = contamination(shipped("fair"), epochs=60, batch=32, stop_at=0.97, **training, runs=2)
    assert found.vanilla_gain.low > 0.2
    assert found.ours_gain.value <= 0.05
    assert found.excess.low > 0.2
