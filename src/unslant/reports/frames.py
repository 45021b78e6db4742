"""Tables and numbers of a result as pandas DataFrames."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError
from unslant.extras import needed
from unslant.metrics.registry import metric_at
from unslant.reports.figure import Table
from unslant.reports.tables import columns_of

if TYPE_CHECKING:
    from pandas import DataFrame

APART = frozenset({"by_subject", "given_labels", "order_labels", "labels", "positions", "provenance"})
"""Keys below which JSON repeats metrics for each of many things; tables of their own have those."""
COLUMNS = ("key", "name", "value", "low", "high", "n", "method", "note", "meaning", "unit")


def table_frame(table: Table) -> DataFrame:
    """A table of the report, with the columns of its CSV file (:func:`unslant.reports.tables.columns_of`)."""
    heads, rows = columns_of(table)
    found: DataFrame = needed("pandas", "to_pandas", InputError).DataFrame(rows, columns=heads)
    return found


def metrics_frame(values: Mapping[str, Any]) -> DataFrame:
    """Every number of a result that has a record in :mod:`unslant.metrics.registry`, one row each.

    Args:
        values: the result as for JSON.

    Returns:
        Columns :data:`COLUMNS`; ``key`` is the path in JSON, ``name``, ``meaning`` and ``unit`` are of the record.
    """
    rows = []
    for path, found in numbers(values, APART):
        record = metric_at(path)
        if record is not None and (found["value"] is not None or "n" in found):
            about = {"key": ".".join(path), "name": record.name, "meaning": record.meaning, "unit": record.scale}
            rows.append(about | {key: value for key, value in found.items() if key in COLUMNS})
    frame: DataFrame = needed("pandas", "to_pandas", InputError).DataFrame(rows, columns=list(COLUMNS))
    return frame


def numbers(
    value: object, omit: Collection[str] = (), path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Path and parts of every estimate and plain number, None among them, but for what is below the keys ``omit``."""
    if isinstance(value, Mapping):
        if {"value", "low", "high", "n"} <= set(value):
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
