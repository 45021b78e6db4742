"""A pool of questions about the built-in world, and small questions with peculiarities."""

from __future__ import annotations

import pytest

from training.world import question_sets
from unslant.presentations.interventions import Pool, pool_of


@pytest.fixture(scope="session")
def world_questions():
    return question_sets()[0]


@pytest.fixture(scope="session")
def world_pool(world_questions) -> Pool:
    return pool_of(world_questions)
