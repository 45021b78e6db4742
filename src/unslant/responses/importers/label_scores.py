"""Recorded label scores as a table of responses: published or home-grown score files, with no model.

Two layouts of CSV or Parquet (both also ``.gz``), told apart by their columns; see ``docs/base-rate.md``:

- long: one line per label, with columns ``label`` and ``logprob``;
- wide: one line per question, with one column of log-probabilities per label, such as ``lp_A``, ``lp_B``.

A table of responses that unslant wrote is read as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from unslant.arrays import first_best
from unslant.errors import InputError
from unslant.presentations.controls import CONTROL
from unslant.presentations.nvr import NVR
from unslant.responses.importers.label_columns import (
    FIELDS,
    Rows,
    columns_like,
    find_fields,
    listed,
    long,
    read_table,
    wide,
)
from unslant.responses.importers.registry import Head
from unslant.responses.run import Run
from unslant.responses.table import SCHEMA, Responses

_ELICITATIONS = {"cf": "counterfactual", "counterfactual": "counterfactual", "cloze": "cloze"}
_GIVEN = {"", "given", "plain", "original", "standard"}
_NVR = re.compile(r"(?:nvr|never)[-_ ]?(.+)", re.IGNORECASE)


def recognises(head: Head) -> bool:
    names = sorted(head.names)
    return not head.first and any(columns_like(name, names) for name in FIELDS["logprob"])


def read(path: Path, fields: Mapping[str, str]) -> Responses:
    return load_recorded(path, fields=fields)


def load_recorded(path: str | Path, *, fields: Mapping[str, str] | None = None, model: str | None = None) -> Responses:
    """Read recorded log-probabilities of labels.

    Args:
        path: CSV or Parquet file, also gzipped.
        fields: field (see ``label_columns.FIELDS``) -> column, where the usual names do not fit. In the wide layout
            ``logprob`` is the columns' name with ``*`` for the label. ``""`` leaves a field out.
        model: which model's lines to read, where the file holds several.

    Returns:
        One row per line (wide) or group of lines (long). Presentations are ``given``, ``nvr-X`` and ``control``;
        ``run`` names ``model``, ``source`` and ``recorded`` (the file).
        A line without log-probabilities has status ``error``.

    Raises:
        InputError: naming file, line, field and what is allowed.
    """
    path = Path(path)
    table = read_table(path)
    if set(SCHEMA.names) - {"bounds"} <= set(table.column_names):  # a table that unslant itself has written
        return Responses.from_parquet(path)
    names = find_fields(table.column_names, dict(fields or {}), path)
    rows = (wide if "*" in names["logprob"] else long)(table, names, path)
    if not rows.lines:
        raise InputError.at(path, "holds no lines")
    models = sorted(set(rows.columns["model"]))
    if model is None and len(models) > 1:
        raise InputError.at(path, f"holds several models: {listed(models)}; name the one to read", field=names["model"])
    if model is not None and model not in models:
        raise InputError.at(path, f"no lines of model {model!r}; it holds {listed(models)}", field=names.get("model"))
    return _responses(rows, names, path, model or models[0])


def _responses(rows: Rows, names: Mapping[str, str], path: Path, model: str) -> Responses:
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
        best = first_best(rows.logprobs[r, places]) if scored[r] else None
        columns["chosen"].append(None if best is None else [contents[best]])
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
    run = Run(model=model or path.name, source=source, recorded=path.name, fields=dict(names))
    return Responses(pa.table(columns, schema=SCHEMA), run)


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
            f"cannot tell which of {listed(foreign)} is the set as given; use given, nvr-{labels[0]} ... "
            f"nvr-{labels[-1]} and control (one other name is taken for the given set)",
            field=names.get("variant"),
        )
    ours.update(dict.fromkeys(foreign, _GIVEN_SET))
    return [ours[name] for name in found], foreign[0] if foreign else ""


def _ids(rows: Rows, kept: list[int], variants: list[_Variant]) -> list[str]:
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


def _gold(rows: Rows, r: int, names: Mapping[str, str], path: Path) -> int:
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
