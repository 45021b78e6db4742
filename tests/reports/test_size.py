"""A large report stays one that can be sent by mail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reports.synthetic import synthetic_audit, synthetic_questions


@pytest.mark.slow
def test_five_thousand_questions_in_24_orders_stay_under_15_mb(tmp_path: Path) -> None:
    result = synthetic_audit(synthetic_questions(5000, words=12))
    assert len(result.responses) > 5000 * 24
    result.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 15e6
