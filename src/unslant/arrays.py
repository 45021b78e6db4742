"""Array aliases, and dataclasses as plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

ROUNDING = 1e-6
"""How far above 0 rounding may leave a log-probability."""

TIE_TOLERANCE = 1e-9
"""Two options are tied when their log-probabilities differ by no more than this.

Models score in float32 or coarser; a smaller difference comes from renormalising or averaging in float64."""


def are_logprobs(values: Floats) -> bool:
    """Whether these can be natural-log probabilities: finite, and not above 0 but for rounding."""
    return bool((np.isfinite(values) & (values <= ROUNDING)).all())


def first_best(logprobs: Floats) -> int | None:
    """Place of the highest log-probability, of tied ones the first; None if the highest is not finite."""
    best = logprobs.max()
    return int((logprobs >= best - TIE_TOLERANCE).argmax()) if np.isfinite(best) else None


@contextmanager
def compact_tables() -> Iterator[None]:
    """Arrow's tables that are made in the block lie in memory of the C library.

    A long table is made of many parts. In Arrow's own allocator they took 460 bytes a row, here 220, and the data
    themselves are 180 (810,024 rows).
    """
    import pyarrow as pa

    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def release_memory() -> None:
    """Give memory that is free back to the system, where the C library can (glibc's keeps it by itself)."""
    import ctypes

    import pyarrow as pa

    pa.default_memory_pool().release_unused()
    with suppress(OSError, AttributeError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


@runtime_checkable
class Writes(Protocol):
    """What says itself how JSON shows it."""

    def to_dict(self) -> dict[str, Any]: ...


class Jsonable:
    """A dataclass whose fields are what JSON shows of it; override :meth:`to_dict` to leave out or add some."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, see :func:`jsonable`."""
        return json_fields(self)


def json_fields(value: Any, *, omit: Collection[str] = (), also: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass but for ``omit``, then the properties ``also``, each as :func:`jsonable`."""
    names = [f.name for f in fields(value) if f.name not in omit]
    return {name: jsonable(getattr(value, name)) for name in (*names, *also)}


def jsonable(value: Any) -> Any:
    """``value`` as plain values for JSON: no dataclass, array or set, no ``nan`` and no infinity (:func:`json_number`).

    What has a ``to_dict`` is written by it; dataclasses become dictionaries, keys strings, sets sorted lists.
    """
    if isinstance(value, Writes) and not isinstance(value, type):
        return value.to_dict()
    if is_dataclass(value) and not isinstance(value, type):
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
