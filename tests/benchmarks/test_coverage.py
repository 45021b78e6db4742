"""The simulation behind docs/intervals.md, in small."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.coverage import END, MODELS, SETS, START, Coverage, Number, cover, outside, table

DOCS = Path(__file__).parents[2] / "docs" / "intervals.md"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "model", "n"),
    [
        pytest.param("4 options", "always A", 20, marks=pytest.mark.slow),
        pytest.param("4 options", "fair", 60, marks=pytest.mark.slow),
        ("2 to 8 options", "mostly A, knows 95 %", 400),
        pytest.param("4 options, 10 subjects", "mildly A", 60, marks=pytest.mark.slow),
        ("4 options, 5 questions a context", "fair", 60),
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(name: str, model: str, n: int) -> None:
    found = list(cover(name, model, n, 150))
    assert len(found) > 25
    assert sum(r.printed > 0.5 for r in found) > 15
    assert not outside(found, 150)


def test_too_narrow_and_too_wide_are_told() -> None:
    def coverage(covered: float, edge: bool = False, printed: float = 1.0) -> Coverage:
        return Coverage("x", "4 options", "fair", 60, covered, printed, edge)

    assert outside([coverage(0.85), coverage(1.0)], 2000) == [coverage(0.85), coverage(1.0)]
    assert not outside([coverage(0.95), coverage(1.0, edge=True), coverage(0.5, printed=0.0)], 2000)
    assert outside([coverage(0.85, edge=True)], 2000)


def test_edges() -> None:
    nearly_all = np.ones(1000)
    nearly_all[:40] = 0.0
    assert Number.mean(nearly_all).edge(60)
    assert not Number.mean(nearly_all).edge(400)


def test_the_page_has_the_whole_table() -> None:
    page = DOCS.read_text("utf-8")
    written = page.split(START)[1].split(END)[0]
    for name in SETS:
        for n in (20, 60, 400):
            assert f"{name}, N = {n}" in written
    assert "| accuracy |" in written
    assert "2,000 repeats" in page
    assert all(model in page for model in MODELS)
    assert table([Coverage("x", "4 options", "fair", 60, 0.95, 1.0, False)]).splitlines()[2] == "| x | 0.950 to 0.950 |"
