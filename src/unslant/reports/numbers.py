"""The number format of headlines, tiles, tables and charts, in text and HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from unslant.metrics import METRICS, Estimate, Metric, Verdict
from unslant.reports.escape import one_line

Cell: TypeAlias = str | int | float | Estimate | None
"""A table cell; ``None`` is shown as a dash."""
How: TypeAlias = Metric | int
"""Number format: that of a metric, or the number of decimals."""

DASH = "–"
_NOISE = 1e-12
_SPACE = "\N{NO-BREAK SPACE}"


def number(value: Cell, how: How = 3) -> str:
    """Format a value without its interval.

    Nonzero numbers never print as 0 (``<0.001``), except for rounding noise. Infinity prints as ``∞``, undefined as a
    dash; differences are signed, relative changes are percentages.
    """
    plain = value.value if isinstance(value, Estimate) else value
    if plain is None or plain != plain:
        return DASH
    if isinstance(plain, str):
        return one_line(plain)
    if isinstance(plain, int):
        return f"{plain:,}".replace("-", "−")
    if isinstance(how, int):
        return _written(plain, how)
    noise = 0.0 if how.minute else _NOISE
    return _written(plain, how.digits, "+" if how.signed else "", how.unit == "%", noise)


def interval(estimate: Estimate, how: How = 3) -> str:
    """``low – high``, or empty without an interval."""
    if not has_interval(estimate):
        return ""
    digits, percent = (how, False) if isinstance(how, int) else (how.digits, how.unit == "%")
    joined = "–" if estimate.low >= 0 else "to"
    low, high = (_written(bound, digits, percent=percent) for bound in (estimate.low, estimate.high))
    return f"{low} {joined} {high}"


def with_interval(estimate: Estimate, how: How = 3) -> str:
    """``0.512 (0.400 to 0.600)``, for running text."""
    return number(estimate, how) + (f" ({interval(estimate, how).replace(' – ', ' to ')})" * has_interval(estimate))


def magnitude(difference: Estimate, how: How = 3) -> str:
    """The same without the sign, for sentences whose verb has it: ``loses 0.11 (0.06 to 0.16)``."""
    if difference.value < 0:
        difference = replace(difference, value=-difference.value, low=-difference.high, high=-difference.low)
    return with_interval(difference, how if isinstance(how, int) else how.digits)


def has_interval(cell: Cell) -> bool:
    """Whether the cell is an estimate with an interval."""
    return isinstance(cell, Estimate) and cell.defined and not math.isnan(cell.low)


def percent(share: float, digits: int = 0) -> str:
    """A share in running text: ``53 %``."""
    return _written(share, digits, percent=True)


def p_words(p: float) -> str:
    """``p = 0.012`` or ``p < 0.001``, for running text."""
    shown = number(p, METRICS["p_value"])
    return f"p < {shown[1:]}" if shown.startswith("<") else f"p = {shown}"


def significant(value: float, digits: int = 3) -> str:
    """A positive number to ``digits`` digits, never as a power of ten: 0.0123, 1.23, 1,801 (from 1,801.4)."""
    if not 0 < value < math.inf:
        return number(value, 0)
    decimals = max(digits - 1 - math.floor(math.log10(value)), 0)
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def count(n: int, thing: str, things: str = "") -> str:
    """``1 question``, ``2 questions``."""
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"


def about(n: float) -> str:
    """To two digits: 14,000."""
    return f"{round(n, 1 - math.floor(math.log10(max(n, 1)))):,.0f}"


def unsettled(verdict: Verdict, thing: str = "question") -> str:
    """How far an unclear verdict got: ``on 40 questions; about 600 would settle it``.

    Example::

        f"{a} and {b} cannot be distinguished {unsettled(verdict)}"
    """
    asked = f"on {count(verdict.estimate.n, thing)}"
    if verdict.too_few:
        return f"{asked}: too few for a verdict"
    return f"{asked}; about {about(verdict.needed)} would settle it" if verdict.needed else asked


def listed(words: Sequence[str], most: int = 6) -> str:
    """``a, b and c``; of more than ``most``, the first ones and how many more."""
    if len(words) > most:
        return f"{', '.join(words[: most - 1])} and {len(words) - most + 1} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _written(value: float, digits: int, sign: str = "", percent: bool = False, noise: float = _NOISE) -> str:
    unit = f"{_SPACE}%" if percent else ""
    value *= 100 if percent else 1
    if math.isinf(value):
        return f"{sign}∞" if value > 0 else "−∞"
    if abs(value) <= noise:
        return f"{0:.{digits}f}{unit}"
    text = f"{value:{sign},.{digits}f}"
    if not any(character in "123456789" for character in text):
        least = f"{10.0**-digits:.{digits}f}{unit}"
        return f"<{least}" if value > 0 else f">−{least}"
    return text.replace("-", "−") + unit
