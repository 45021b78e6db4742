"""A pool of questions about the built-in world, and small questions with peculiarities."""

from __future__ import annotations

import pytest

from unslant.presentations.interventions import Pool, pool_of
from unslant.reference.world import question_sets


@pytest.fixture(scope="session")
def world_questions():
    return question_sets()[0]


@pytest.fixture(scope="session")
def world_pool(world_questions) -> Pool:
    return pool_of(world_questions)
