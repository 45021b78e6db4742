"""A run in shards, by a model that follows a rule, so that its scores do not depend on what is asked together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.fakes import RuleModel
from unslant import Question
from unslant.auditing import AuditSettings
from unslant.auditing.study import audit
from unslant.experiment import ShardOptions

QUESTIONS = [
    Question(f"q{i}", f"Which is {i}?" * (1 + i % 4), tuple(f"item {j}" for j in range(n)), frozenset({i % n}))
    for i, n in enumerate([2, 3, 4, 5] * 6)
]


def rule_model(name: str = "rule") -> RuleModel:
    return RuleModel(
        lambda stem, labels, texts: [1.0 + len(stem + text) % 5 + ord(text[-1]) % 3 for text in texts], name
    )


@pytest.fixture
def score(tmp_path: Path) -> Callable[..., Path]:
    """Scores one shard, as ``3/16``, and gives the path of its table."""

    def scored(
        shard: str, questions: Sequence[Question] = QUESTIONS, model: str = "rule", name: str = "", **settings: object
    ) -> Path:
        path = tmp_path / f"{name or 's' + shard.replace('/', 'of')}.parquet"
        found = audit.study.responses(
            rule_model(model), questions, AuditSettings(**settings), shards=ShardOptions(shard=shard)
        )
        found.to_parquet(path)
        return path

    return scored
