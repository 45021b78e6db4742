"""A large report stays one that can be sent by mail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.reports.synthetic import synthetic_audit, synthetic_questions
from unslant.studies.leaderboard.study import Leaderboard


@pytest.mark.slow
def test_five_thousand_questions_in_24_orders_stay_under_15_mb(tmp_path: Path) -> None:
    result = synthetic_audit(synthetic_questions(5000, words=12))
    assert len(result.responses) > 5000 * 24
    result.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 15e6


@pytest.mark.slow
def test_a_leaderboard_of_twenty_models_stays_under_5_mb_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    questions = synthetic_questions(1000, words=12)
    board = Leaderboard.of(
        synthetic_audit(questions, knows=0.3 + 0.02 * m, lean=0.1 * m, seed=m, model=f"org/model-{m}-instruct")
        for m in range(20)
    )
    board.to_html(tmp_path / "board.html")
    assert (tmp_path / "board.html").stat().st_size < 5e6
    held = re.search(r"This page holds (\d+) of the 1,000 questions", (tmp_path / "board.html").read_text("utf-8"))
    assert held
    assert 300 < int(held[1]) < 1000
