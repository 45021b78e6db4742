"""Recorded label scores as a table of responses: published or home-grown score files, with no model.

Two layouts of CSV or Parquet (both also ``.gz``), told apart by their columns; see ``docs/base-rate.md``:

- long: one line per label, with columns ``label`` and ``logprob``;
- wide: one line per question, with one column of log-probabilities per label, such as ``lp_A``, ``lp_B``.

A table of responses that unslant wrote is read as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from unslant.arrays import Bools, Floats
from unslant.errors import InputError, first_line
from unslant.files import MAX_CELLS, decoded, read_bytes, read_parquet
from unslant.presentations.controls import CONTROL
from unslant.presentations.labels import alphabetical
from unslant.presentations.nvr import NVR
from unslant.responses.importers.registry import Head
from unslant.responses.table import SCHEMA, Responses

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
_ELICITATIONS = {"cf": "counterfactual", "counterfactual": "counterfactual", "cloze": "cloze"}
_GIVEN = {"", "given", "plain", "original", "standard"}
_NVR = re.compile(r"(?:nvr|never)[-_ ]?(.+)", re.IGNORECASE)
_MOST_LISTED = 5


@dataclass
class _Rows:
    """One entry per question, variant and elicitation, whatever the layout."""

    lines: list[int]
    columns: dict[str, list[str]]
    labels: tuple[str, ...]
    logprobs: Floats
    present: Bools
    """(R, N) whether the label is an option at all, scored or not."""
    unique: dict[str, list[str]] = field(default_factory=dict)


def recognises(head: Head) -> bool:
    names = sorted(head.names)
    return not head.first and any(_columns_like(name, names) for name in FIELDS["logprob"])


def read(path: Path, fields: Mapping[str, str]) -> Responses:
    return load_recorded(path, fields=fields)


def load_recorded(path: str | Path, *, fields: Mapping[str, str] | None = None, model: str | None = None) -> Responses:
    """Read recorded log-probabilities of labels.

    Args:
        path: CSV or Parquet file, also gzipped.
        fields: field (see ``FIELDS``) -> column, where the usual names do not fit. In the wide layout ``logprob`` is
            the columns' name with ``*`` for the label. ``""`` leaves a field out.
        model: which model's lines to read, where the file holds several.

    Returns:
        One row per line (wide) or group of lines (long). Presentations are ``given``, ``nvr-X`` and ``control``;
        ``meta`` tells ``model``, ``source`` and ``recorded`` (the file's name).
        A line without log-probabilities has status ``error``.

    Raises:
        InputError: naming file, line, field and what is allowed.
    """
    path = Path(path)
    table = _read(path)
    if set(SCHEMA.names) - {"bounds"} <= set(table.column_names):  # a table that unslant itself has written
        return Responses.from_parquet(path)
    names = _find_fields(table.column_names, dict(fields or {}), path)
    rows = (_wide if "*" in names["logprob"] else _long)(table, names, path)
    if not rows.lines:
        raise InputError.at(path, "holds no lines")
    models = sorted(set(rows.columns["model"]))
    if model is None and len(models) > 1:
        raise InputError.at(path, f"holds several models: {_some(models)}; name the one to read", field=names["model"])
    if model is not None and model not in models:
        raise InputError.at(path, f"no lines of model {model!r}; it holds {_some(models)}", field=names.get("model"))
    return _responses(rows, names, path, model or models[0])


def _some(values: Sequence[str]) -> str:
    listed = ", ".join(repr(value) for value in values[:_MOST_LISTED])
    return listed + (", ..." if len(values) > _MOST_LISTED else "")


def _read(path: Path) -> pa.Table:
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


def _find_fields(columns: Sequence[str], given: dict[str, str], path: Path) -> dict[str, str]:
    unknown = sorted(set(given) - set(FIELDS))
    if unknown:
        raise InputError(f"unknown field {unknown[0]!r} for recorded responses; use one of {', '.join(FIELDS)}")
    found: dict[str, str] = {}
    for name, usual in FIELDS.items():
        tried = (given[name],) if name in given else usual
        hit = next((column for column in tried if column and _columns_like(column, columns)), None)
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


def _columns_like(pattern: str, columns: Sequence[str]) -> list[tuple[str, str]]:
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


def _wide(table: pa.Table, names: Mapping[str, str], path: Path) -> _Rows:
    columns = _columns_like(names["logprob"], table.column_names)
    labels = alphabetical([label for label, _ in columns])
    by_label = dict(columns)
    read = [_numbers(table, by_label[label], path) for label in labels]
    there = np.column_stack([flags for _, flags in read])
    # empty at the end: the question has fewer options; empty before that, or everywhere: not scored
    last = np.where(there.any(axis=1), there.shape[1] - there[:, ::-1].argmax(axis=1), there.shape[1])
    present = np.arange(there.shape[1]) < last[:, None]
    lines = [i + 2 for i in range(table.num_rows)]
    return _Rows(lines, _texts(table, names, path), labels, np.column_stack([values for values, _ in read]), present)


def _long(table: pa.Table, names: Mapping[str, str], path: Path) -> _Rows:
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
    return _Rows([i + 2 for i in first], columns, labels, logprobs[:size], present[:size])


def _responses(rows: _Rows, names: Mapping[str, str], path: Path, model: str) -> Responses:
    kept = [r for r, name in enumerate(rows.columns["model"]) if name == model]
    variants, source = _variants([rows.columns["variant"][r] for r in kept], rows.labels, names, path)
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    ids = _ids(rows, kept, variants)
    seen: dict[tuple[str, str, str, str], int] = {}
    orders: dict[tuple[str, int], list[int] | None] = {}
    counts = rows.present.sum(axis=1)
    in_sequence = np.arange(len(rows.labels)) < counts[:, None]
    without_gap = np.all(rows.present == in_sequence, axis=1)
    is_scored = np.all(~(np.isnan(rows.logprobs) & rows.present), axis=1) & np.any(np.isfinite(rows.logprobs), axis=1)
    sizes, scored, values = (array.tolist() for array in (counts, is_scored, rows.logprobs))
    gold_of: dict[str, int] = {}
    for r, (kind, _), question_id in zip(kept, variants, ids, strict=True):
        if kind == "given":
            gold_of[question_id] = _gold(rows, r, names, path)
    for r, (kind, item), question_id in zip(kept, variants, ids, strict=True):
        line = rows.lines[r]
        elicited = rows.columns["elicitation"][r] or "cloze"
        elicited = _ELICITATIONS.get(elicited.lower(), elicited)
        key = (question_id, kind, item, elicited)
        if key in seen:
            what = f"{kind} {item}".strip()
            again = f"question {question_id!r} occurs twice as {what}, {elicited} (first in line {seen[key]})"
            raise InputError.at(path, again, line=line)
        seen[key] = line
        n = sizes[r]
        own = rows.labels[:n]
        if not without_gap[r]:
            missing = rows.labels[int((~rows.present[r]).argmax())]
            raise InputError.at(path, f"question {question_id!r} has no label {missing!r}", line=line)
        if n < 2:
            raise InputError.at(path, f"question {question_id!r} has {n} labels, at least 2 are needed", line=line)
        written = (rows.columns["order"][r], n)
        if written not in orders:
            orders[written] = _order(written[0], own, names, path, line)
        order = orders[written]
        gold = -1 if kind == CONTROL else _gold(rows, r, names, path)
        if kind == CONTROL:
            places = order if order is not None else list(range(n))
            contents = list(range(n))
        else:
            places = list(range(n))
            contents = order or _contents(n, gold, gold_of.get(question_id, gold))
        columns["question_id"].append(question_id)
        columns["kind"].append(kind)
        columns["run"].append(0)
        columns["item"].append(item)
        columns["elicitation"].append(elicited)
        columns["labels"].append([own[place] for place in places])
        columns["contents"].append(contents)
        columns["logprobs"].append([values[r][place] for place in places] if scored[r] else None)
        columns["chosen"].append(None)
        columns["status"].append("ok" if scored[r] else "error")
        columns["raw"].append(None)
        columns["answers"].append([contents[gold]] if gold >= 0 else [])
        columns["n_options"].append(n)
        columns["pinned"].append([])
        columns["subject"].append(rows.columns["subject"][r])
        columns["source"].append(rows.columns["source"][r] or source)
        columns["interventions"].append([])
        columns["repeat"].append(0)
        columns["text_ranks"].append([])
        columns["suggested"].append(None)
        columns["bounds"].append([])
    meta = {"model": model or path.name, "source": source, "recorded": path.name, "fields": dict(names)}
    return Responses(pa.table(columns, schema=SCHEMA), meta)


_Variant = tuple[str, str]
"""Kind and item of a presentation."""
_GIVEN_SET: _Variant = ("given", "")


def _variants(
    found: list[str], labels: tuple[str, ...], names: Mapping[str, str], path: Path
) -> tuple[list[_Variant], str]:
    """Our variants, and the one name that is none of ours: the set as given."""
    ours: dict[str, _Variant] = {}
    for name in dict.fromkeys(found):
        never = _NVR.fullmatch(name)
        if name.lower() in _GIVEN:
            ours[name] = _GIVEN_SET
        elif name.lower() == CONTROL:
            ours[name] = CONTROL, ""
        elif never and never.group(1) in labels:
            ours[name] = NVR, never.group(1)
    foreign = [name for name in dict.fromkeys(found) if name not in ours]
    if len(foreign) > 1 or (foreign and _GIVEN_SET in ours.values()):
        raise InputError.at(
            path,
            f"cannot tell which of {_some(foreign)} is the set as given; use given, nvr-{labels[0]} ... "
            f"nvr-{labels[-1]} and control (one other name is taken for the given set)",
            field=names.get("variant"),
        )
    ours.update(dict.fromkeys(foreign, _GIVEN_SET))
    return [ours[name] for name in found], foreign[0] if foreign else ""


def _ids(rows: _Rows, kept: list[int], variants: list[_Variant]) -> list[str]:
    """Question ids; the subject goes before them where different subjects use the same."""
    pairs = {
        (rows.columns["subject"][r], rows.columns["question"][r])
        for r, (kind, _) in zip(kept, variants, strict=True)
        if kind != CONTROL
    }
    shared = any(count > 1 for count in Counter(question for _, question in pairs).values())
    ids = []
    for r, (kind, _) in zip(kept, variants, strict=True):
        question = rows.columns["question"][r]
        prefix = CONTROL if kind == CONTROL else rows.columns["subject"][r] if shared else ""
        ids.append(f"{prefix}/{question}" if prefix else question)
    return ids


def _gold(rows: _Rows, r: int, names: Mapping[str, str], path: Path) -> int:
    """Place of the right label, -1 where none is named."""
    answer = rows.columns["answer"][r]
    if not answer:
        return -1
    place = rows.labels.index(answer) if answer in rows.labels else -1
    if place < 0 or not rows.present[r, place]:
        shown = [label for label, there in zip(rows.labels, rows.present[r], strict=True) if there]
        reason = f"{answer!r} is not one of the labels {', '.join(shown)}"
        raise InputError.at(path, reason, line=rows.lines[r], field=names.get("answer"))
    return place


def _order(text: str, labels: tuple[str, ...], names: Mapping[str, str], path: Path, line: int) -> list[int] | None:
    """Indices of the labels that ``order`` names: ``DBCA``, or separated by commas or spaces."""
    if not text:
        return None
    parts = re.split(r"[,\s]+", text) if re.search(r"[,\s]", text) else list(text)
    if sorted(parts) != sorted(labels):
        reason = f"{text!r} does not name each of the labels {', '.join(labels)} once"
        raise InputError.at(path, reason, line=line, field=names["order"])
    return [labels.index(part) for part in parts]


def _contents(n: int, gold: int, original: int) -> list[int]:
    """Some contents with the right one, ``original``, at place ``gold``; which wrong one stands where is not known."""
    if gold < 0 or original < 0:
        return list(range(n))
    rest = [content for content in range(n) if content != original]
    return [*rest[:gold], original, *rest[gold:]]
