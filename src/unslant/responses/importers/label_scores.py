"""Recorded label scores as a table of responses: published or home-grown score files, with no model.

Two layouts of CSV or Parquet (both also ``.gz``), known by their columns; see ``docs/base-rate.md``:

- long: one line per label, with columns ``label`` and ``logprob``;
- wide: one line per question, with one column of log-probabilities per label, such as ``lp_A``, ``lp_B``.

A table of responses that unslant wrote is read as it is.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unslant.errors import InputError, shown
from unslant.presentations.controls import CONTROL, NVR
from unslant.presentations.labels import alphabetical
from unslant.questions.fields import find_fields
from unslant.questions.formats import format_of, whole_records
from unslant.questions.records import Record
from unslant.responses.importers.registry import Head
from unslant.responses.run import Run
from unslant.responses.table import Response, Responses

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
"""Field -> the column names it is found under, tried in turn. ``*`` is a placeholder for the label (wide layout)."""
_ONE = ("model", "variant", "elicitation", "subject", "question")
"""What the lines of one presentation have in common in the long layout."""
_ELICITATIONS = {"cf": "counterfactual", "counterfactual": "counterfactual", "cloze": "cloze"}
_GIVEN = {"", "given", "plain", "original", "standard"}
_NVR = re.compile(r"(?:nvr|never)[-_ ]?(.+)", re.IGNORECASE)
_ROUNDING = 1e-6
_MOST_LISTED = 5


class _Line(NamedTuple):
    """One presentation: its (first) place in the file, its fields as texts, and the score of each of its labels, nan
    where that is missing."""

    place: str
    texts: dict[str, str]
    scores: dict[str, float]


def own_table(head: Head) -> bool:
    """Whether unslant wrote a file."""
    return {"question_id", "contents", "elicitation", "status"} <= head.names


def has_label_scores(head: Head) -> bool:
    """Whether a table has label scores, in either layout."""
    return not head.first and any(_columns_like(name, sorted(head.names)) for name in FIELDS["logprob"])


def load_recorded(path: str | Path, *, fields: Mapping[str, str] | None = None, model: str | None = None) -> Responses:
    """Read recorded log-probabilities of labels.

    Args:
        path: CSV or Parquet file, also gzipped.
        fields: field (see :data:`FIELDS`) -> column, where the usual names do not fit. In the wide layout ``logprob``
            is the columns' name with ``*`` for the label. ``""`` leaves a field out.
        model: which model's lines to read, where the file holds several.

    Returns:
        One row per line (wide) or group of lines (long). Presentations are ``given``, ``nvr-X`` and ``control``;
        ``run`` names ``model``, ``source`` and ``recorded`` (the file).
        A line without log-probabilities has status ``error``.

    Raises:
        InputError: naming file, line, field and what is allowed.
    """
    path = Path(path)
    if own_table(Head.of(path)):
        return Responses.from_parquet(path)
    if format_of(path) not in ("csv", "tsv", "parquet"):
        raise InputError.at(path, "recorded responses are read from .csv, .tsv or .parquet, also with .gz")
    named = fields or {}
    records = list(whole_records(path, [*chain(*FIELDS.values()), *named.values()]))
    names = _names(list(records[0].data), named, path)
    lines = list((_wide if "*" in names["logprob"] else _long)(records, names))
    models = sorted({line.texts["model"] for line in lines})
    if model is None and len(models) > 1:
        raise InputError.at(path, f"holds several models: {_few(models)}; name the one to read", field=names["model"])
    if model is not None and model not in models:
        raise InputError.at(path, f"no lines of model {model!r}; it holds {_few(models)}", field=names.get("model"))
    labels = alphabetical(sorted({label for line in lines for label in line.scores}))
    lines = [line for line in lines if line.texts["model"] == (model or models[0])]
    variants, source = _variants([line.texts["variant"] for line in lines], labels, names, path)
    run = Run(model=model or models[0] or path.name, source=source, recorded=path.name, fields=dict(names))
    return Responses.from_rows(_rows(lines, variants, labels, names, source), run)


def _names(columns: list[str], given: Mapping[str, str], path: Path) -> dict[str, str]:
    """Field -> column; the columns of the wide layout under their common name, with ``*``."""
    patterns = [name for name in (*FIELDS["logprob"], given.get("logprob", "")) if "*" in name]
    families = [pattern for pattern in patterns if _columns_like(pattern, columns)]
    names = find_fields([*columns, *families], given, shown(path), FIELDS, ("question",))
    if "logprob" not in names:
        reason = f"no column was found for it among {', '.join(columns)}; name it (logprob=COLUMN, or logprob=PREFIX_* "
        raise InputError.at(path, reason + "for one column a label)", field="logprob")
    if "*" not in names["logprob"] and "label" not in names:
        raise InputError.at(path, "one log-probability a line needs a column of labels (label=COLUMN)", field="label")
    return names


def _columns_like(pattern: str, columns: Sequence[str]) -> dict[str, str]:
    """Label -> column of the columns that fit; the label is empty where the pattern has no ``*``."""
    before, star, after = pattern.partition("*")
    if not star:
        return {"": pattern} if pattern in columns else {}
    fit = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL)
    return {match[1]: match[0] for match in map(fit.fullmatch, columns) if match}


def _few(values: Sequence[str]) -> str:
    """The first few of some names."""
    return ", ".join(map(repr, values[:_MOST_LISTED])) + (", ..." if len(values) > _MOST_LISTED else "")


def _texts(record: Record, names: Mapping[str, str]) -> dict[str, str]:
    """Every field as a text; empty where the file has no such column."""
    values = {name: record.data.get(names[name]) if name in names else None for name in FIELDS}
    return {name: "" if value is None else str(value).strip() for name, value in values.items()}


def _score(record: Record, column: str) -> float:
    """A log-probability; nan where there is none."""
    value = record.data[column]
    if value is None or (isinstance(value, str) and not value.strip()):
        return math.nan
    try:
        score = float(value)
    except (TypeError, ValueError):
        raise InputError.at(record.place, f"{value!r} is not a number", field=column) from None
    if score > _ROUNDING:
        reason = f"{score:g} is above 0: natural-log probabilities are expected"
        raise InputError.at(record.place, reason, field=column)
    return score


def _wide(records: Sequence[Record], names: Mapping[str, str]) -> Iterator[_Line]:
    """One line per question, one column per label."""
    columns = _columns_like(names["logprob"], list(records[0].data))
    labels = alphabetical(list(columns))
    for record in records:
        scores = {label: _score(record, columns[label]) for label in labels}
        # Empty at the end: the question has fewer options. Empty before that, or everywhere: not scored.
        n = max((k for k, score in enumerate(scores.values(), 1) if not math.isnan(score)), default=len(labels))
        yield _Line(record.place, _texts(record, names), {label: scores[label] for label in labels[:n]})


def _long(records: Sequence[Record], names: Mapping[str, str]) -> Iterator[_Line]:
    """One line per label."""
    groups: dict[tuple[str, ...], _Line] = {}
    for record in records:
        texts = _texts(record, names)
        line = groups.setdefault(tuple(texts[name] for name in _ONE), _Line(record.place, texts, {}))
        if not (label := texts["label"]):
            raise InputError.at(record.place, "is empty", field=names["label"])
        if label in line.scores:
            raise InputError.at(record.place, f"label {label!r} of question {texts['question']!r} occurs twice")
        for name in ("answer", "order"):
            if texts[name] != line.texts[name]:
                before = f"{_number(line)} of the same question has {line.texts[name]!r}"
                raise InputError.at(record.place, f"{texts[name]!r}, but {before}", field=names[name])
        line.scores[label] = _score(record, names["logprob"])
    order = alphabetical(sorted({label for line in groups.values() for label in line.scores}))
    for line in groups.values():
        yield line._replace(scores={label: line.scores[label] for label in order if label in line.scores})


def _number(line: _Line) -> str:
    return line.place.rpartition(", ")[2]


_Variant = tuple[str, str]
"""Kind and item of a presentation."""
_GIVEN_SET: _Variant = ("given", "")


def _rows(
    lines: Sequence[_Line],
    variants: Sequence[_Variant],
    labels: tuple[str, ...],
    names: Mapping[str, str],
    source: str,
) -> Iterator[Response]:
    ids = _ids(lines, variants)
    # Where the order is not known, the right option is the one that is right in the set as given.
    known = {
        own: _gold(line, names)
        for line, own, variant in zip(lines, ids, variants, strict=True)
        if variant == _GIVEN_SET
    }
    seen: dict[tuple[str, ...], _Line] = {}
    for line, question_id, (kind, item) in zip(lines, ids, variants, strict=True):
        elicitation = line.texts["elicitation"] or "cloze"
        elicitation = _ELICITATIONS.get(elicitation.lower(), elicitation)
        first = seen.setdefault((question_id, kind, item, elicitation), line)
        if first is not line:
            what = f"{f'{kind} {item}'.strip()}, {elicitation} (first in {_number(first)})"
            raise InputError.at(line.place, f"question {question_id!r} occurs twice as {what}")
        n = len(line.scores)
        own = labels[:n]
        if tuple(line.scores) != own:
            missing = next(label for label in labels if label not in line.scores)
            raise InputError.at(line.place, f"question {question_id!r} has no label {missing!r}")
        if n < 2:
            raise InputError.at(line.place, f"question {question_id!r} has {n} labels, at least 2 are needed")
        order, gold, contents = _order(line, own, names), -1, tuple(range(n))
        if kind == CONTROL:
            own = tuple(own[place] for place in order or contents)
        else:
            gold = _gold(line, names)
            contents = order or _contents(n, gold, known.get(question_id, gold))
        logprobs = np.array([line.scores[label] for label in own])
        scored = not np.isnan(logprobs).any() and bool(np.isfinite(logprobs).any())
        yield Response(
            question_id=question_id,
            kind=kind,
            item=item,
            elicitation=elicitation,
            labels=own,
            contents=contents,
            answers=frozenset({contents[gold]}) if gold >= 0 else frozenset(),
            n_options=n,
            logprobs=logprobs if scored else None,
            status="ok" if scored else "error",
            subject=line.texts["subject"],
            source=line.texts["source"] or source,
        )


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
        elif never and never[1] in labels:
            ours[name] = NVR, never[1]
    foreign = [name for name in dict.fromkeys(found) if name not in ours]
    if len(foreign) > 1 or (foreign and _GIVEN_SET in ours.values()):
        raise InputError.at(
            path,
            f"cannot tell which of {_few(foreign)} is the set as given; use given, nvr-{labels[0]} ... "
            f"nvr-{labels[-1]} and control (one other name is taken for the given set)",
            field=names.get("variant"),
        )
    ours.update(dict.fromkeys(foreign, _GIVEN_SET))
    return [ours[name] for name in found], foreign[0] if foreign else ""


def _ids(lines: Sequence[_Line], variants: Sequence[_Variant]) -> list[str]:
    """Question ids; the subject goes before them where different subjects use the same."""
    named = [(line.texts["subject"], line.texts["question"]) for line in lines]
    asked = {pair for pair, (kind, _) in zip(named, variants, strict=True) if kind != CONTROL}
    shared = any(count > 1 for count in Counter(question for _, question in asked).values())
    prefixes = (
        CONTROL if kind == CONTROL else subject if shared else ""
        for (subject, _), (kind, _) in zip(named, variants, strict=True)
    )
    return ["/".join(filter(None, (prefix, question))) for prefix, (_, question) in zip(prefixes, named, strict=True)]


def _gold(line: _Line, names: Mapping[str, str]) -> int:
    """Place of the right label, -1 where none is named."""
    answer, labels = line.texts["answer"], list(line.scores)
    if answer and answer not in labels:
        reason = f"{answer!r} is not one of the labels {', '.join(labels)}"
        raise InputError.at(line.place, reason, field=names.get("answer"))
    return labels.index(answer) if answer else -1


def _order(line: _Line, labels: tuple[str, ...], names: Mapping[str, str]) -> tuple[int, ...]:
    """Indices of the labels that ``order`` names, ``DBCA`` or separated by commas or spaces; empty without one."""
    text = line.texts["order"]
    parts = re.split(r"[,\s]+", text) if re.search(r"[,\s]", text) else list(text)
    if text and sorted(parts) != sorted(labels):
        reason = f"{text!r} does not name each of the labels {', '.join(labels)} once"
        raise InputError.at(line.place, reason, field=names["order"])
    return tuple(map(labels.index, parts))


def _contents(n: int, gold: int, original: int) -> tuple[int, ...]:
    """Some contents with the right one, ``original``, at place ``gold``; where each wrong one is, is not known."""
    if gold < 0 or original < 0:
        return tuple(range(n))
    rest = [content for content in range(n) if content != original]
    return (*rest[:gold], original, *rest[gold:])
