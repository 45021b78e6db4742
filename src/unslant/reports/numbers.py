"""The number format of headlines, tiles, tables and charts, in text and HTML.

Below that, text from outside made harmless, once for each target: spreadsheets, LaTeX, charts, file names. HTML is
escaped by Jinja2 itself (every template has ``autoescape``); JSON inside a page by :func:`island`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeAlias, TypeGuard

from unslant.errors import one_line
from unslant.metrics import Estimate, Metric, Verdict
from unslant.metrics.registry import METRICS

Cell: TypeAlias = str | int | float | Estimate | None
"""A table cell; ``None`` is shown as a dash."""
How: TypeAlias = Metric | int
"""Number format: that of a metric, or the number of decimals."""

DASH = "–"
APART = frozenset({"by_subject", "given_labels", "order_labels", "labels", "positions", "provenance", "logged"})
"""Keys below which JSON repeats metrics for each of many things, which have tables, and the account of a log."""
_NOISE = 1e-12
_LEAST_REST = 1e-6
"""Values closer to 1 than this differ from it by rounding alone."""
_SPACE = "\N{NO-BREAK SPACE}"


def number(value: Cell, how: How = 3) -> str:
    """Format a value without its interval.

    Nonzero numbers never print as 0 (``<0.001``), nor smaller ones as 1, as 399 of 400 right answers would with two
    decimals (``0.998``), except for rounding noise. Infinity prints as ``∞``, undefined as a dash; differences are
    signed, relative changes are percentages.
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


def interval(cell: Cell, how: How = 3) -> str:
    """``low – high``, or empty without an interval."""
    if not has_interval(cell):
        return ""
    digits, percent = (how, False) if isinstance(how, int) else (how.digits, how.unit == "%")
    joined = "–" if cell.low >= 0 else "to"
    low, high = _written(cell.low, digits, percent=percent), _written(cell.high, digits, percent=percent, up=True)
    return f"{low} {joined} {high}"


def with_interval(estimate: Estimate, how: How = 3) -> str:
    """``0.512 (0.400 to 0.600)``, for running text."""
    return number(estimate, how) + (f" ({interval(estimate, how).replace(' – ', ' to ')})" * has_interval(estimate))


def magnitude(difference: Estimate) -> str:
    """The same without the sign, for sentences whose verb has it: ``loses 0.11 (0.06 to 0.16)``."""
    return with_interval(difference.taken_from(0.0) if difference.value < 0 else difference, 2)


def has_interval(cell: Cell) -> TypeGuard[Estimate]:
    """Whether the cell is an estimate with an interval."""
    return isinstance(cell, Estimate) and cell.defined and not math.isnan(cell.low)


def percent(share: float, digits: int = 0) -> str:
    """A share in running text: ``53 %``."""
    return _written(share, digits, percent=True)


def p_words(p: float) -> str:
    """``p = 0.012`` or ``p < 0.001``, for running text."""
    text = number(p, METRICS["p_value"])
    return f"p < {text[1:]}" if text.startswith("<") else f"p = {text}"


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
    """A count to two significant digits: 14,000."""
    return f"{round(n, 1 - math.floor(math.log10(max(n, 1)))):,.0f}"


def unsettled(verdict: Verdict, thing: str = "question") -> str:
    """How far an unclear verdict got: ``on 40 questions; about 600 would settle it``.

    Example::

        f"{a} and {b} cannot be distinguished {unsettled(verdict)}"
    """
    questions = f"on {count(verdict.estimate.n, thing)}"
    if verdict.too_few:
        return f"{questions}: too few for a verdict"
    return f"{questions}; about {about(verdict.needed)} would settle it" if verdict.needed else questions


def listed(words: Sequence[str], most: int = 6) -> str:
    """``a, b and c``; of more than ``most``, the first ones and how many more."""
    if len(words) > most:
        return f"{', '.join(words[: most - 1])} and {len(words) - most + 1} more"
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _written(
    value: float, digits: int, sign: str = "", percent: bool = False, noise: float = _NOISE, up: bool = False
) -> str:
    """``up``: may be rounded to 1, which makes an interval no narrower."""
    unit = f"{_SPACE}%" if percent else ""
    value *= 100 if percent else 1
    if math.isinf(value):
        return f"{sign}∞" if value > 0 else "−∞"
    if abs(value) <= noise:
        return f"{0:.{digits}f}{unit}"
    rest = (100 if percent else 1) - abs(value)
    if (percent or digits > 1) and not up and _LEAST_REST < rest <= 0.5 * 10.0**-digits:
        digits = math.floor(-math.log10(2 * rest)) + 1
    text = f"{value:{sign},.{digits}f}"
    if not any(character in "123456789" for character in text):
        least = f"{10.0**-digits:.{digits}f}{unit}"
        return f"<{least}" if value > 0 else f">−{least}"
    return text.replace("-", "−") + unit


def shared_n(row: Sequence[Cell]) -> int | None:
    """The common N of a row's estimates, or ``None``."""
    sizes = {cell.n for cell in row if isinstance(cell, Estimate) and cell.defined}
    return sizes.pop() if len(sizes) == 1 else None


def numbers(
    value: object, omit: Collection[str] = (), path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Path and parts of every estimate and plain number, including None, except below the keys ``omit``."""
    if isinstance(value, Mapping):
        if {"value", "low", "high", "n"} <= set(value) or {"method", "confidence", "note"} <= set(value):
            yield path, value
            return
        for key, item in value.items():
            if key not in omit:
                yield from numbers(item, omit, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from numbers(item, omit, (*path, str(at)))
    elif value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        yield path, {"value": value}


def named_rows(value: Any) -> Any:
    """The same values with the rows of a list keyed by what they are of (the texts a row begins with: model, method,
    set), because their places may be ranks."""
    if isinstance(value, Mapping):
        return {key: named_rows(item) for key, item in value.items()}
    if not isinstance(value, list):
        return value
    begin = [takewhile(lambda cell: isinstance(cell, str), row.values()) for row in value if isinstance(row, Mapping)]
    names = dict.fromkeys(filter(None, (" / ".join(filter(None, texts)) for texts in begin)))
    rows = [named_rows(row) for row in value]
    return dict(zip(names, rows, strict=True)) if len(names) == len(rows) else rows


_FORMULA = "=+-@|%"
_LAST_LATIN = "\u017f"
TYPOGRAPHY = {"–": "--", "−": "$-$", "∞": r"$\infty$", "±": r"$\pm$", "\xa0": "~"}
"""Our own signs in LaTeX, once everything else has been escaped."""


def csv_cell(value: object) -> object:
    """A cell that no spreadsheet runs as a formula: text that begins like one gets an apostrophe; numbers stay."""
    if not isinstance(value, str):
        return value
    text = "".join(c for c in value if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs"))
    start = unicodedata.normalize("NFKC", one_line(text).lstrip()[:1])
    return f"'{text}" if (start and start in _FORMULA) or text[:1] in ("\t", "\n") else text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A CSV file of the rows, every text through :func:`csv_cell`."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([csv_cell(cell) for cell in row] for row in (header, *rows))
    return stream.getvalue()


def tex(text: str) -> str:
    """One line of LaTeX that typesets the text and does nothing else."""
    from tabulate import LATEX_ESCAPE_RULES

    plain = one_line(text).replace("\xa0", " ")
    escaped = (LATEX_ESCAPE_RULES.get(character, character) for character in plain)
    return "".join(TYPOGRAPHY.get(character, character) for character in escaped)


def tex_needs(packages: str, body: str) -> str:
    """A LaTeX comment on what typesetting the body takes."""
    beyond = sorted({character for character in body if not character.isascii()})
    needs = [rf"\usepackage{{{packages}}}"]
    if beyond:
        latin = r"\usepackage[T1]{fontenc}, or " if beyond[-1] <= _LAST_LATIN else ""
        needs.append(f"{latin}LuaLaTeX with a font that has {''.join(beyond)}")
    return f"% needs {'; '.join(needs)}\n"


def drawable(value: Any) -> Any:
    """The values of a chart with every text, key or value, on one line: drawing libraries abort on a NUL and leave a
    chart undrawn on U+2028. Numbers that JSON does not have are left out."""
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, Mapping):
        return {one_line(str(key)): drawable(item) for key, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return [drawable(item) for item in value] if isinstance(value, list | tuple) else value


def island(data: object) -> str:
    """JSON that can be put in a ``script`` element with any texts in it."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    for character in "<>&\u2028\u2029\0":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def file_name(text: str) -> str:
    """A name for a file made from text: letters, digits, dots, dashes; never hidden, empty or over 100 bytes."""
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in one_line(text))
    return name.lstrip(".").encode()[:100].decode(errors="ignore") or "unnamed"
