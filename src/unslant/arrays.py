"""Array aliases, groups, and dataclasses as plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
K = TypeVar("K")
V = TypeVar("V")

ROUNDING = 1e-6
"""How far above 0 rounding may put a log-probability."""

TIE_TOLERANCE = 1e-9
"""Largest difference of the log-probabilities of tied options.

Models score in float32 or coarser, so that smaller differences come from renormalising or averaging in float64."""


def are_logprobs(values: Floats) -> bool:
    """Whether all are possible natural-log probabilities: finite, and at most 0 but for rounding."""
    return bool((np.isfinite(values) & (values <= ROUNDING)).all())


def first_best(logprobs: Floats) -> int | None:
    """Place of the highest log-probability, the first of tied ones; None if the highest is not finite."""
    best = logprobs.max()
    return int((logprobs >= best - TIE_TOLERANCE).argmax()) if np.isfinite(best) else None


def mean_by(group: Ints, values: Floats | Bools, size: int) -> Floats:
    """(size,) mean over the values of each group, 0 to size - 1, that are not nan; nan where it has none."""
    known = ~np.isnan(values)
    total, n = (np.bincount(group, weights, size) for weights in (np.where(known, values, 0.0), known))
    return np.asarray(np.divide(total, n, out=np.full(size, np.nan), where=n > 0))


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Key -> its values, both in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


@contextmanager
def compact_tables() -> Iterator[None]:
    """Arrow tables that are made in the block use the allocator of the C library."""
    import pyarrow as pa

    # A long table has many parts. For 810,024 rows they took 460 bytes a row in Arrow's own allocator and 220 in this
    # one; the data alone take 180.
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def release_memory() -> None:
    """Give free memory back to the system, which glibc does not do by itself."""
    import ctypes

    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


class Jsonable:
    """A dataclass whose fields are its JSON; override :meth:`to_dict` to leave out or add some."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, see :func:`jsonable`."""
        return json_fields(self)


def json_fields(value: Any, *, omit: Collection[str] = (), also: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass except ``omit``, then the properties ``also``, each as :func:`jsonable`."""
    names = [f.name for f in fields(value) if f.name not in omit]
    return {name: jsonable(getattr(value, name)) for name in (*names, *also)}


def jsonable(value: Any) -> Any:
    """``value`` as plain values for JSON, without ``nan`` and infinities (:func:`json_number`).

    Objects with a ``to_dict`` use it; dataclasses become dictionaries, keys strings, sets sorted lists.
    """
    if isinstance(value, type):
        return value
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return json_fields(value)
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    if isinstance(value, Set):
        return [jsonable(item) for item in sorted(value)]
    if isinstance(value, tuple | list):
        return [jsonable(item) for item in value]
    return json_number(value) if isinstance(value, float) else value


def json_number(value: float) -> float | str | None:
    """A float as JSON can hold it: ``None`` for ``nan``, ``"inf"`` or ``"-inf"`` for infinities."""
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def mean_defined(values: Iterable[float]) -> float:
    """Mean of the numbers that are not nan; nan if there are none."""
    numbers = [value for value in values if not math.isnan(value)]
    return float(np.mean(numbers)) if numbers else math.nan
