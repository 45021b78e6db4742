"""Small tables that come beside questions: scores, rankings, verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unslant.checked import Model, checked
from unslant.errors import InputError
from unslant.questions.formats import read_records


def read_table(path: str | Path, row: type[Model]) -> Iterator[tuple[str, Model]]:
    """Place and row of every line of a CSV, TSV, JSON, JSONL or Parquet file.

    Raises:
        InputError: naming the file, line and field, the value, and what is allowed.
    """
    for record in read_records(Path(path), tuple(row.model_fields)):
        if record.problem:
            raise InputError.at(record.place, record.problem)
        yield record.place, checked(row, record.data, record.place)
