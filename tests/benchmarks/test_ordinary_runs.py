"""The counts behind benchmarks/ORDINARY.md, in small."""

from __future__ import annotations

import pytest

from benchmarks.ordinary_runs import counted
from tests.metrics.synthetic import make_questions
from unslant import open_model


@pytest.mark.thorough
@pytest.mark.parametrize("shots", [0, 2])
def test_more_orders_cost_more_and_worked_examples_are_computed_once(shots: int) -> None:
    questions = make_questions(8)
    tokens = counted(open_model("fair"), {"": questions[:5]}, {"": questions[5:]}, shots, 5)
    assert tokens["ordinary run"] < tokens["latin"] < tokens["given:8"] < tokens["cyclic:24"]
    without = counted(open_model("fair"), {"": questions[:5]}, {"": questions[5:]}, 0, 5)
    examples = tokens["cyclic:24"] - without["cyclic:24"]
    assert tokens["ordinary run"] - without["ordinary run"] == pytest.approx(5 * examples)
