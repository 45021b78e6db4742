"""``kill -9`` at any request of a study in words: nothing that arrived is asked for again, and no byte changes."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="asking in words needs inspect_ai: pip install 'unslant[inspect]'")
pytest.importorskip("openai", reason="served models are asked through openai: pip install 'unslant[inspect]'")

from tests.studies.killed_study import kill_and_resume

UNBIASED = ["study", "unbiased", "URL#m", "embedded", "--generate", "--limit", "8", "--runs", "2", "--shots", "0"]
PROBE = ["study", "probe", "URL#a,URL#b", "embedded", "--limit", "6", "--strengths", "1"]

AUDIT = ["audit", "URL#m", "embedded", "--elicit", "generate", "--limit", "6", "--reasoning"]
BOUNDARY = ["study", "instruction-boundary", "URL#m", "--settings", "vanilla,reasoning-reflection", "--limit", "16"]
BOUNDARY += ["--temperature", "0"]
BOARD = ["leaderboard", "-m", "URL#a", "-m", "URL#b", "--sets", "embedded", "--elicit", "generate", "--limit", "3"]


@pytest.mark.thorough
@pytest.mark.parametrize("words", [AUDIT, UNBIASED, BOARD], ids=["audit", "unbiased", "leaderboard"])
def test_killed_at_a_few_requests(tmp_path: Path, words: list[str]) -> None:
    kill_and_resume(words, tmp_path, kills=1, seed=3)


@pytest.mark.slow
@pytest.mark.parametrize("words", [AUDIT, UNBIASED, PROBE, BOUNDARY], ids=["audit", "unbiased", "probe", "boundary"])
def test_killed_at_twenty_requests(tmp_path: Path, words: list[str]) -> None:
    shares = kill_and_resume(words, tmp_path, kills=20, seed=11)
    assert sum(0 < share < 1 for share in shares) >= 15, f"kills were not spread over the run: {shares}"
