"""The columns of a file of recorded label scores, in either layout, and its lines by question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from unslant.arrays import Bools, Floats
from unslant.errors import InputError, first_line, one_of
from unslant.files import MAX_CELLS, decoded, read_bytes, read_parquet
from unslant.presentations.labels import alphabetical

FIELDS: dict[str, tuple[str, ...]] = {
    "question": ("question", "question_id", "question_index", "id", "qid", "item"),
    "variant": ("variant", "presentation", "condition"),
    "elicitation": ("elicitation", "prompting", "method"),
    "subject": ("subject", "category"),
    "model": ("model",),
    "label": ("label",),
    "logprob": ("logprob", "log_prob", "logprob_*", "lp_*", "log_prob_*"),
    "answer": ("answer", "correct_label", "correct", "gold", "target"),
    "order": ("order",),
    "source": ("source", "dataset"),
}
"""Field -> the column names it is found under, tried in turn. ``*`` stands for the label (wide layout)."""
_REQUIRED = ("question", "logprob")
_MOST_LISTED = 5


@dataclass
class Rows:
    """One entry per question, variant and elicitation, whatever the layout."""

    lines: list[int]
    columns: dict[str, list[str]]
    labels: tuple[str, ...]
    logprobs: Floats
    present: Bools
    """(R, N) whether the label is an option at all, scored or not."""


def listed(values: Sequence[str]) -> str:
    """The first few of some names."""
    first = ", ".join(repr(value) for value in values[:_MOST_LISTED])
    return first + (", ..." if len(values) > _MOST_LISTED else "")


def read_table(path: Path) -> pa.Table:
    """The file as it is, every CSV column as text.

    Raises:
        InputError: if it cannot be read.
    """
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    if kind == "parquet":
        return read_parquet(path)
    content = read_bytes(path)
    if kind not in ("csv", "tsv"):
        raise InputError.at(path, "recorded responses are read from .csv, .tsv or .parquet, also with .gz")
    delimiter = "," if kind == "csv" else "\t"
    header = decoded(content, path).split("\n", 1)[0].strip().split(delimiter)
    if content.count(delimiter.encode()) > MAX_CELLS:
        raise InputError.at(path, f"holds more than {MAX_CELLS:,} cells; split it")
    try:
        return pacsv.read_csv(
            pa.BufferReader(content),
            parse_options=pacsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            # every column as text: ids keep their zeros, and a bad number is reported with its line
            convert_options=pacsv.ConvertOptions(
                column_types={name.strip('"'): pa.string() for name in header}, strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, ValueError) as error:
        raise InputError.at(path, f"cannot be read: {first_line(error)}") from None


def find_fields(columns: Sequence[str], given: dict[str, str], path: Path) -> dict[str, str]:
    """Field -> column.

    Raises:
        InputError: if a field is unknown, or a required one is not found.
    """
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise InputError(f"unknown field {unknown[0]!r} for recorded responses: {one_of(unknown[0], FIELDS)}")
    found: dict[str, str] = {}
    for name, usual in FIELDS.items():
        tried = (given[name],) if name in given else usual
        hit = next((column for column in tried if column and columns_like(column, columns)), None)
        if hit is not None:
            found[name] = hit
        elif given.get(name):
            raise InputError.at(path, f"no column {given[name]!r}; there are {', '.join(columns)}", field=name)
    for name in _REQUIRED:
        if name not in found:
            raise InputError.at(
                path,
                f"no column was found for it among {', '.join(columns)}; name it ({name}=COLUMN"
                + (", or logprob=PREFIX_* for one column a label)" if name == "logprob" else ")"),
                field=name,
            )
    if "*" not in found["logprob"] and "label" not in found:
        raise InputError.at(path, "one log-probability a line needs a column of labels (label=COLUMN)", field="label")
    return found


def columns_like(pattern: str, columns: Sequence[str]) -> list[tuple[str, str]]:
    """(label, column) of the columns that fit; the label is empty where the pattern has no ``*``."""
    if "*" not in pattern:
        return [("", pattern)] if pattern in columns else []
    before, _, after = pattern.partition("*")
    return [
        (column[len(before) : len(column) - len(after)], column)
        for column in columns
        if column.startswith(before) and column.endswith(after) and len(column) > len(before) + len(after)
    ]


def _cells(table: pa.Table, column: str, path: Path) -> list[Any]:
    try:
        return list(table[column].to_pylist())
    except Exception as error:  # dates beyond year 9999, two columns of one name, and more
        raise InputError.at(path, f"cannot be read: {first_line(error)}", field=column) from None


def _texts(table: pa.Table, names: Mapping[str, str], path: Path) -> dict[str, list[str]]:
    """Every field as texts; empty where the file has no such column."""
    found = {}
    for name in FIELDS:
        if name in names and "*" not in names[name] and name != "logprob":
            values = _cells(table, names[name], path)
            found[name] = ["" if value is None else str(value).strip() for value in values]
        else:
            found[name] = [""] * table.num_rows
    return found


def _numbers(table: pa.Table, column: str, path: Path) -> tuple[Floats, Bools]:
    """A column as log-probabilities and whether each line has one (``nan`` counts as none)."""
    values = _cells(table, column, path)
    numbers = np.full(len(values), np.nan)
    for i, value in enumerate(values):
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        try:
            numbers[i] = float(value)
        except (TypeError, ValueError):
            raise InputError.at(path, f"{value!r} is not a number", line=i + 2, field=column) from None
    positive = np.flatnonzero(numbers > 1e-6)
    if positive.size:
        raise InputError.at(
            path,
            f"{numbers[positive[0]]:g} is above 0: natural-log probabilities are expected",
            line=int(positive[0]) + 2,
            field=column,
        )
    return numbers, ~np.isnan(numbers)


def wide(table: pa.Table, names: Mapping[str, str], path: Path) -> Rows:
    """One line per question, one column per label."""
    columns = columns_like(names["logprob"], table.column_names)
    labels = alphabetical([label for label, _ in columns])
    by_label = dict(columns)
    read = [_numbers(table, by_label[label], path) for label in labels]
    there = np.column_stack([flags for _, flags in read])
    # empty at the end: the question has fewer options; empty before that, or everywhere: not scored
    last = np.where(there.any(axis=1), there.shape[1] - there[:, ::-1].argmax(axis=1), there.shape[1])
    present = np.arange(there.shape[1]) < last[:, None]
    lines = [i + 2 for i in range(table.num_rows)]
    return Rows(lines, _texts(table, names, path), labels, np.column_stack([values for values, _ in read]), present)


def long(table: pa.Table, names: Mapping[str, str], path: Path) -> Rows:
    """One line per label."""
    texts = _texts(table, names, path)
    values, _ = _numbers(table, names["logprob"], path)
    found = texts.pop("label")
    labels = alphabetical(sorted(set(found)))
    column = {label: i for i, label in enumerate(labels)}
    keys = ("model", "variant", "elicitation", "subject", "question")
    groups: dict[tuple[str, ...], int] = {}
    first: list[int] = []
    logprobs = np.full((table.num_rows, len(labels)), np.nan)
    present = np.zeros(logprobs.shape, bool)
    for i in range(table.num_rows):
        key = tuple(texts[name][i] for name in keys)
        if key not in groups:
            groups[key] = len(groups)
            first.append(i)
        row, at = groups[key], column[found[i]]
        if not found[i]:
            raise InputError.at(path, "is empty", line=i + 2, field=names["label"])
        if present[row, at]:
            raise InputError.at(
                path, f"label {found[i]!r} of question {texts['question'][i]!r} occurs twice", line=i + 2
            )
        for name in ("answer", "order"):
            if texts[name][i] != texts[name][first[row]]:
                before = f"line {first[row] + 2} of the same question has {texts[name][first[row]]!r}"
                raise InputError.at(path, f"{texts[name][i]!r}, but {before}", line=i + 2, field=names[name])
        logprobs[row, at], present[row, at] = values[i], True
    columns = {name: [values[i] for i in first] for name, values in texts.items()}
    size = len(first)
    return Rows([i + 2 for i in first], columns, labels, logprobs[:size], present[:size])
