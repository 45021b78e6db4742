"""The comparison of two folders of numbers finds what changed, and what only changed its name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.same_numbers import compare

BEFORE = {"date": "then", "accuracy": {"value": 0.5, "n": 4}, "spread": 0.25, "lost": 3, "headline": "takes A"}


def write(folder: Path, data: dict) -> Path:
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.json").write_text(json.dumps(data))
    return folder


def test_equal_folders_differ_in_nothing(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    after = {**BEFORE, "date": "now", "spread": 0.25 + 1e-12}
    assert compare(write(tmp_path / "a", BEFORE), write(tmp_path / "b", after)) == 0
    assert "0 differ, 0 texts differ" in capsys.readouterr().out


def test_changes_renamings_and_losses_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    after = {"accuracy": {"value": 0.6, "n": 4}, "numbers": {"spread": 0.25}, "headline": "falls back on A"}
    assert compare(write(tmp_path / "a", BEFORE), write(tmp_path / "b", after)) == 1
    out = capsys.readouterr().out
    assert "one.json accuracy.value: 0.5 -> 0.6" in out
    assert "spread -> numbers.spread (2 files)" in out
    assert "lost = 3 (2 files)" in out
    assert "takes A\n    falls back on A" in out
