"""How numbers are written: one rule each for tiny, infinite and undefined ones, for signs and for percentages."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import unslant.studies.debias.measure_debiased  # noqa: F401  declares change.relative
from unslant.metrics import Estimate
from unslant.metrics.registry import METRICS, Metric
from unslant.reports.numbers import count, interval, listed, number, p_words, percent, significant, with_interval

FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e6, max_value=1e6)
DIGITS = st.integers(0, 6)


def read(text: str) -> float:
    return float(text.replace("−", "-").replace(",", ""))


@given(FLOATS, DIGITS)
def test_a_number_reads_as_what_it_rounds_to(value: float, digits: int) -> None:
    text = number(value, digits)
    least = 10.0**-digits
    if text.startswith(("<", ">")):
        assert 0 < abs(value) < least
        assert text.startswith("<") == (value > 0)
        assert abs(read(text[1:])) == pytest.approx(least)
    else:
        assert abs(read(text) - value) <= least / 2 + 1e-9 * abs(value)
        assert (read(text) == 0) == (abs(value) <= 1e-12)
    assert "-" not in text
    assert text != f"−{0:.{digits}f}"


@given(FLOATS, DIGITS)
def test_signs_tell_a_difference(value: float, digits: int) -> None:
    text = number(value, Metric("k", "n", "m", digits=digits, signed=True))
    assert text.lstrip("<>") == text or abs(value) < 10.0**-digits
    if not text.startswith(("<", ">")):
        assert text.startswith("+") == (value > 1e-12)
        assert text.startswith("−") == (value < -1e-12)
        assert text.lstrip("+") == number(value, digits)


@given(FLOATS.filter(lambda v: abs(v) < 1e4))
def test_a_relative_change_is_a_percentage(value: float) -> None:
    text = number(value, METRICS["change.relative"])
    assert text.endswith("\u00a0%")
    if not text.startswith(("<", ">")):
        assert abs(read(text[:-2]) - 100 * value) <= 0.5 + 1e-6 * abs(value)


@given(st.floats(min_value=1e-300, max_value=1.0))
def test_a_p_value_is_never_0(p: float) -> None:
    assert number(p, METRICS["p_value"]) != "0.000"
    assert p_words(p).startswith("p < 0.001" if p < 0.0005 else "p = ")


@given(st.integers(2, 400_000), st.integers(2, 4), st.integers(0, 2))
def test_all_but_one_is_not_all(n: int, digits: int, of_percent: int) -> None:
    """399 of 400 right answers read 1.00 or 100 %; an interval that begins above 0.995 began at 1.00."""
    share = 1 - 1 / n
    assert share - 0.1 < read(number(share, digits)) < 1
    assert read(number(-share, digits)) > -1
    assert read(percent(share, of_percent)[:-2]) < 100
    assert read(interval(Estimate(1.0, share, 1.0, n, "made"), digits).split()[0]) < 1
    assert number(1.0, digits) == f"{1:.{digits}f}"
    assert percent(1.0, of_percent) == f"{100:.{of_percent}f}\u00a0%"


def test_infinite_and_undefined_are_written_alike_for_every_metric(subtests: pytest.Subtests) -> None:
    for key, metric in METRICS.items():
        with subtests.test(key):
            assert number(math.inf, metric).lstrip("+") == "∞"
            assert number(-math.inf, metric) == "−∞"
            for nothing in (math.nan, None, Estimate.undefined("why")):
                assert number(nothing, metric) == "–"
            tiny = 10.0 ** -(metric.digits + 4)
            assert number(tiny, metric).startswith("<")
            assert number(-tiny, metric).startswith(">−")


@given(FLOATS, FLOATS, DIGITS)
def test_intervals_have_both_ends_and_never_two_dashes(a: float, b: float, digits: int) -> None:
    low, high = sorted((a, b))
    shown = interval(Estimate(low, low, high, 9, "made"), digits)
    joined = " – " if low >= 0 else " to "
    start, end = shown.split(joined)
    assert start == number(low, digits)
    if end != number(high, digits):  # the upper end may be rounded to 1
        assert digits > 1
        assert abs(read(end)) == 1 > abs(high)
    assert with_interval(Estimate(low, low, high, 9, "made"), digits).startswith(number(low, digits))


def test_words_for_counts_lists_and_shares() -> None:
    assert [count(n, "question") for n in (0, 1, 2, 1234)] == [
        "0 questions",
        "1 question",
        "2 questions",
        "1,234 questions",
    ]
    assert count(2, "box", "boxes") == "2 boxes"
    assert [listed(list("abcdefgh")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert listed(list("abcdefgh"), most=3) == "a, b and 6 more"
    assert [percent(v) for v in (0.0, 0.004, 0.53, 1.0)] == ["0\u00a0%", "<1\u00a0%", "53\u00a0%", "100\u00a0%"]


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(1801.4, 3, "1,801"), (0.01234, 3, "0.0123"), (5.0, 3, "5"), (11.26, 2, "11"), (2.44, 2, "2.4"), (0.0, 3, "0")],
)
def test_significant_digits_without_powers_of_ten(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text
