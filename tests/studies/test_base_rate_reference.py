"""The base-rate study on the reference models, whose habits are planted."""

from __future__ import annotations

from functools import cache

import pytest

from unslant.reference import reference_path
from unslant.studies.base_rate.study import BaseRateResult, base_rate

pytestmark = pytest.mark.slow


@cache
def _result(name: str) -> BaseRateResult:
    return base_rate(name)


@pytest.fixture(autouse=True)
def _weights() -> None:
    for name in ("prefers-a", "fair"):
        try:
            there = (reference_path(name) / "config.json").is_file()
        except FileNotFoundError:
            there = False
        if not there:
            pytest.skip(f"reference model {name} is not there: train it with python -m training.train {name}")


def _verdicts(result: BaseRateResult) -> dict[str, str]:
    return {hypothesis.name: hypothesis.verdict for hypothesis in result.hypotheses}


def test_prefers_a() -> None:
    result = _result("prefers-a")
    verdicts = _verdicts(result)
    assert (verdicts["H1"], verdicts["H2"], verdicts["H4"]) == ("holds", "unclear", "holds")
    assert result.found["cloze"].correlation.shows
    cloze = result.found["cloze"]
    assert cloze.nvr is not None
    assert cloze.rates is not None
    assert cloze.rates.top == "A"
    accuracy = dict(zip(cloze.nvr.labels, (e.value for e in cloze.nvr.accuracy), strict=True))
    assert accuracy["A"] < cloze.nvr["plain"].value - 0.08
    assert all(accuracy[x] > cloze.nvr["plain"].value for x in "BCD")
    assert [reading.phrase for reading in cloze.nvr.readings][:1] == ["prefers A when unsure"]


def test_fair() -> None:
    verdicts = _verdicts(_result("fair"))
    # twelve subjects bound r to 0.4 or so, which is no proof that it is below 0.3
    assert (verdicts["H1"], verdicts["H2"]) == ("does not hold", "unclear")
    assert _result("fair").found["cloze"].gold.gap.low < 0.1
