"""The simulation behind docs/two-phases.md, in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import two_phase
from benchmarks.two_phase import ESTIMATED, WORLDS, Pool, table, trial

DOCS = Path(__file__).parents[2] / "docs" / "two-phases.md"


@pytest.mark.parametrize("world", ["neighbours and A", pytest.param("2 to 6 options", marks=pytest.mark.thorough)])
def test_intervals_hold_the_truth_and_are_not_much_wider(world: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(two_phase, "POOL", 1_000)
    found, part = trial(Pool.of(WORLDS[world]()), 400, 40)
    assert 100 <= part < 200
    for name in (*ESTIMATED, "expected_accuracy"):
        tally = found[name]
        errors = np.asarray(tally.errors)
        assert tally.printed == 40
        assert tally.held >= 34
        assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(40)
    for name in ("pbm", "consistency", "robust_accuracy"):
        assert found[name].width < 2 * found[name].usual
    assert found["expected_accuracy"].width < 1.15 * found["expected_accuracy"].usual


def test_the_docs_have_every_world_and_number() -> None:
    page = DOCS.read_text("utf-8")
    for world in WORLDS:
        assert f"| {world} | 1,000 |" in page
    empty = table({("", 0): ({name: two_phase.Tally(0.0) for name in (*ESTIMATED, "expected_accuracy")}, 0.0)})
    assert all(head in page for head in empty.splitlines()[0].split("|") if head.strip())
