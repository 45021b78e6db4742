from __future__ import annotations

from collections.abc import Iterator

from benchmarks.reliability import Options, Row


def rows(options: Options) -> Iterator[Row]:
    yield from ()
