"""What planning and merging hold does not grow with the run."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pyarrow as pa
import pytest

from benchmarks.shards import EACH, merge_all, write_all
from tests.scale.conftest import QUESTIONS
from unslant import Question, QuestionSet
from unslant.auditing import audit_presentations
from unslant.scale import merge as merging
from unslant.scale.plan import planned

pytestmark = pytest.mark.slow


def test_merging_holds_a_few_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "ROWS_AT_ONCE", 1 << 13)
    monkeypatch.setattr("unslant.responses.checks._ROWS_AT_ONCE", 1 << 12)
    peaks, default = [], pa.default_memory_pool()
    for shards in (4, 24):
        folder = tmp_path / str(shards)
        folder.mkdir()
        write_all(folder, 375 * shards, shards)
        pa.set_memory_pool(pool := pa.proxy_memory_pool(default))
        try:
            merge_all(folder, 375 * shards, shards)
        finally:
            pa.set_memory_pool(default)
        peaks.append(pool.max_memory())
    assert peaks[0] > 1 << 20
    assert peaks[1] < 1.3 * peaks[0]


def test_planning_holds_no_presentation() -> None:
    def held(number: int) -> int:
        questions = QuestionSet.of(
            Question(f"q{i}", f"Which is {i}?", QUESTIONS[2].options, frozenset({0})) for i in range(number)
        )
        asked = ((one, shown) for one in questions for shown in audit_presentations(one, "all", tuple("ABCD")))
        tracemalloc.start()
        plan, *_ = planned("audit", questions, {}, ["cloze"], asked)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert plan.n_presentations == EACH * number
        return peak

    held(50)  # fills caches
    assert held(1000) < held(100) + 1000 * 200
