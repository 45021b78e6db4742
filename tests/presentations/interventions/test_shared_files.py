"""Random presentations over every question file at hand: each decodes to a right answer that is really right."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.presentations.interventions import render_examples
from tests.presentations.interventions.checks import check_composed
from tests.presentations.interventions.question_files import sets_of
from unslant.presentations.interventions import Composed, compose, pool_of
from unslant.questions import MathQuestion, Question

REASONS = {"no option is right", "the answer is not a number"}
ALL = 100_000
SHARE = 1_000


def check_sets(sets: list[tuple[Question | MathQuestion, ...]], total: int) -> Counter[str]:
    """Compose ``total`` presentations, evenly over the sets, and check each; counts of what happened."""
    counts: Counter[str] = Counter()
    for questions in sets:
        pool = pool_of(questions)
        for i in range(-(-total // len(sets))):
            question = questions[i % len(questions)]
            result = compose(question, pool, run=i // len(questions))
            if isinstance(result, Composed):
                check_composed(question, result)
                counts.update(result.interventions)
                counts["composed"] += 1
            else:
                assert result.reason in REASONS
                assert not getattr(question, "answers", ())
                counts["not applicable"] += 1
            if i % 50 == 0:
                assert compose(question, pool, run=i // len(questions)) == result
    return counts


@pytest.mark.thorough
def test_a_share_of_random_presentations(shared_data):
    counts = check_sets(sets_of(shared_data), SHARE)
    assert counts["composed"] > 0.9 * SHARE
    assert all(counts[code] for code in ("DH", "DQ", "AR", "OS", "LR", "BT", "QJ", "AJ"))


@pytest.mark.slow
def test_a_hundred_thousand_random_presentations(shared_data):
    counts = check_sets(sets_of(shared_data), ALL)
    assert counts["composed"] + counts["not applicable"] >= ALL
    assert counts["composed"] > 0.9 * ALL


@pytest.mark.thorough
@pytest.mark.slow
def test_the_page_of_examples_is_what_is_composed_now(shared_data):
    assert render_examples.PAGE.read_text("utf-8") == render_examples.page(shared_data), (
        "the examples have changed: run python -m tests.presentations.interventions.render_examples and read them"
    )
