"""Recorded label scores as a table of responses: published or home-made files of scores, with no model.

Two layouts of CSV or Parquet (both also ``.gz``), recognised by their columns; see ``docs/base-rate.md``:

- long: one line per label, with columns ``label`` and ``logprob``;
- wide: one line per question, with one column of log-probabilities per label, such as ``lp_A``, ``lp_B``.

A table of responses that unslant wrote is read as it is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from unslant.arrays import ROUNDING
from unslant.errors import InputError, shown
from unslant.presentations import CONTROL, NVR, alphabetical
from unslant.questions.fields import find_fields
from unslant.questions.formats import format_of, whole_records
from unslant.questions.records import Record
from unslant.responses import Response, Responses
from unslant.responses.importers.logged import as_score
from unslant.responses.importers.registry import Head
from unslant.responses.run import Run

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
"""Field -> its usual column names, tried in turn. ``*`` is a placeholder for the label (wide layout)."""
_ONE = ("model", "variant", "elicitation", "subject", "question")
"""Fields that the lines of one presentation have in common in the long layout."""
_ELICITATIONS = {"cf": "counterfactual", "counterfactual": "counterfactual", "cloze": "cloze"}
_PUBLISHED_NAMES = {"", "given", "plain", "original", "standard"}
_NVR = re.compile(r"(?:nvr|never)[-_ ]?(.+)", re.IGNORECASE)
_MOST_LISTED = 5


class _ScoreLine(NamedTuple):
    """One presentation: its (first) place in the file, its fields as texts, and the score of each of its labels, nan if
    it is missing."""

    place: str
    texts: dict[str, str]
    scores: dict[str, float]


def has_label_scores(head: Head) -> bool:
    """Whether a table has label scores, in either layout."""
    return not head.first and any(_columns_like(name, sorted(head.names)) for name in FIELDS["logprob"])


def load_recorded(path: str | Path, *, fields: Mapping[str, str] | None = None, model: str | None = None) -> Responses:
    """Read recorded log-probabilities of labels.

    Args:
        path: CSV or Parquet file, also gzipped.
        fields: field (see :data:`FIELDS`) -> column, if it has none of the usual names. In the wide layout ``logprob``
            is the columns' name with ``*`` for the label. ``""`` leaves a field out.
        model: which model's lines to read, if the file holds several.

    Returns:
        One row per line (wide) or group of lines (long). Presentations are ``given``, ``nvr-X`` and ``control``;
        ``run`` names ``model``, ``source`` and ``recorded`` (the file).
        A line without log-probabilities has status ``error``.

    Raises:
        InputError: naming file, line, field and what is allowed.
    """
    path = Path(path)
    if format_of(path) not in ("csv", "tsv", "parquet"):
        raise InputError.at(path, "recorded responses are read from .csv, .tsv or .parquet, also with .gz")
    if Head.of(path).is_responses:
        return Responses.from_parquet(path)
    fields = fields or {}
    records = list(whole_records(path, [*chain(*FIELDS.values()), *fields.values()]))
    names = _names(list(records[0].data), fields, path)
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


def _names(columns: list[str], fields: Mapping[str, str], path: Path) -> dict[str, str]:
    """Field -> column; the columns of the wide layout by their common name, with ``*``."""
    patterns = (*FIELDS["logprob"], fields.get("logprob", ""))
    families = [pattern for pattern in patterns if "*" in pattern and _columns_like(pattern, columns)]
    names = find_fields([*columns, *families], fields, shown(path), FIELDS, ("question",))
    if "logprob" not in names:
        reason = f"no column was found for it among {', '.join(columns)}; name it (logprob=COLUMN, or logprob=PREFIX_* "
        raise InputError.at(path, reason + "for one column a label)", field="logprob")
    if "*" not in names["logprob"] and "label" not in names:
        raise InputError.at(path, "one log-probability a line needs a column of labels (label=COLUMN)", field="label")
    return names


def _columns_like(pattern: str, columns: Sequence[str]) -> dict[str, str]:
    """Label -> column, of the columns that match; the label is empty if the pattern has no ``*``."""
    before, star, after = pattern.partition("*")
    if not star:
        return {"": pattern} if pattern in columns else {}
    fit = re.compile(f"{re.escape(before)}(.+){re.escape(after)}", re.DOTALL | re.IGNORECASE)
    return {match[1]: match[0] for match in map(fit.fullmatch, columns) if match}


def _few(values: Sequence[str]) -> str:
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
        score = as_score(value)
    except (TypeError, ValueError):
        hint = "; write decimals with a point" * ("," in str(value))
        raise InputError.at(record.place, f"{value!r} is not a number{hint}", field=column) from None
    if score > ROUNDING:
        raise InputError.at(record.place, f"{score:g} is above 0: natural-log probabilities are expected", field=column)
    return score


def _wide(records: Sequence[Record], names: Mapping[str, str]) -> Iterator[_ScoreLine]:
    """One line per question, one column per label."""
    columns = _columns_like(names["logprob"], list(records[0].data))
    labels = alphabetical(list(columns))
    for record in records:
        scores = {label: _score(record, columns[label]) for label in labels}
        # Empty cells at the end mean that the question has fewer options; before that, or everywhere, that it was not
        # scored.
        n = max((k for k, score in enumerate(scores.values(), 1) if not math.isnan(score)), default=len(labels))
        yield _ScoreLine(record.place, _texts(record, names), {label: scores[label] for label in labels[:n]})


def _long(records: Sequence[Record], names: Mapping[str, str]) -> Iterator[_ScoreLine]:
    """One line per label."""
    groups: dict[tuple[str, ...], _ScoreLine] = {}
    for record in records:
        texts = _texts(record, names)
        line = groups.setdefault(tuple(texts[name] for name in _ONE), _ScoreLine(record.place, texts, {}))
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


def _number(line: _ScoreLine) -> str:
    return line.place.rpartition(", ")[2]


_Variant = tuple[str, str]
"""Kind and item of a presentation."""
_PUBLISHED: _Variant = ("given", "")


def _rows(
    lines: list[_ScoreLine], variants: list[_Variant], labels: tuple[str, ...], names: Mapping[str, str], source: str
) -> Iterator[Response]:
    ids = _ids(lines, variants)
    # Without an order, the right option is the one that is right in the published set.
    published_gold = {
        question_id: _gold(line, names)
        for line, question_id, variant in zip(lines, ids, variants, strict=True)
        if variant == _PUBLISHED
    }
    first_lines: dict[tuple[str, ...], _ScoreLine] = {}
    for line, question_id, (kind, item) in zip(lines, ids, variants, strict=True):
        elicitation = line.texts["elicitation"] or "cloze"
        elicitation = _ELICITATIONS.get(elicitation.lower(), elicitation)
        first = first_lines.setdefault((question_id, kind, item, elicitation), line)
        if first is not line:
            what = f"{f'{kind} {item}'.strip()}, {elicitation} (first in {_number(first)})"
            raise InputError.at(line.place, f"question {question_id!r} occurs twice as {what}")
        n = len(line.scores)
        line_labels = labels[:n]
        if tuple(line.scores) != line_labels:
            missing = next(label for label in labels if label not in line.scores)
            raise InputError.at(line.place, f"question {question_id!r} has no label {missing!r}")
        if n < 2:
            raise InputError.at(line.place, f"question {question_id!r} has one label, at least 2 are needed")
        order, gold, contents = _order(line, line_labels, names), -1, tuple(range(n))
        if kind == CONTROL:
            line_labels = tuple(line_labels[place] for place in order or contents)
        else:
            gold = _gold(line, names)
            contents = order or _contents(n, gold, published_gold.get(question_id, gold))
        logprobs = np.array([line.scores[label] for label in line_labels])
        complete = not np.isnan(logprobs).any() and bool(np.isfinite(logprobs).any())
        yield Response(
            question_id=question_id,
            kind=kind,
            item=item,
            elicitation=elicitation,
            labels=line_labels,
            contents=contents,
            answers=frozenset({contents[gold]}) if gold >= 0 else frozenset(),
            n_options=n,
            logprobs=logprobs if complete else None,
            status="ok" if complete else "error",
            subject=line.texts["subject"],
            source=line.texts["source"] or source,
        )


def _variants(
    texts: list[str], labels: tuple[str, ...], names: Mapping[str, str], path: Path
) -> tuple[list[_Variant], str]:
    """The presentation of each line, and the one name that is none of ours, which means the published set."""
    ours: dict[str, _Variant] = {}
    for name in dict.fromkeys(texts):
        never = _NVR.fullmatch(name)
        if name.lower() in _PUBLISHED_NAMES:
            ours[name] = _PUBLISHED
        elif name.lower() == CONTROL:
            ours[name] = CONTROL, ""
        elif never and never[1] in labels:
            ours[name] = NVR, never[1]
    foreign = [name for name in dict.fromkeys(texts) if name not in ours]
    if len(foreign) > 1 or (foreign and _PUBLISHED in ours.values()):
        raise InputError.at(
            path,
            f"cannot tell which of {_few(foreign)} is the set as given; use given, nvr-{labels[0]} ... "
            f"nvr-{labels[-1]} and control (one other name is taken for the given set)",
            field=names.get("variant"),
        )
    ours.update(dict.fromkeys(foreign, _PUBLISHED))
    return [ours[name] for name in texts], foreign[0] if foreign else ""


def _ids(lines: Sequence[_ScoreLine], variants: Sequence[_Variant]) -> list[str]:
    """Question ids, after their subject if different subjects use the same."""
    named = [
        (kind == CONTROL, line.texts["subject"], line.texts["question"])
        for line, (kind, _) in zip(lines, variants, strict=True)
    ]
    pairs = {(subject, question) for control, subject, question in named if not control}
    shared = len(pairs) > len({question for _, question in pairs})
    prefixes = (CONTROL if control else subject if shared else "" for control, subject, _ in named)
    return ["/".join(filter(None, (prefix, question))) for prefix, (*_, question) in zip(prefixes, named, strict=True)]


def _gold(line: _ScoreLine, names: Mapping[str, str]) -> int:
    """Place of the right label, -1 if none is named."""
    answer, labels = line.texts["answer"], list(line.scores)
    if answer and answer not in labels:
        reason = f"{answer!r} is not one of the labels {', '.join(labels)}"
        raise InputError.at(line.place, reason, field=names.get("answer"))
    return labels.index(answer) if answer else -1


def _order(line: _ScoreLine, labels: tuple[str, ...], names: Mapping[str, str]) -> tuple[int, ...]:
    """Indices of the labels that ``order`` names, ``DBCA`` or separated by commas or spaces; empty without one."""
    text = line.texts["order"]
    parts = re.split(r"[,\s]+", text) if re.search(r"[,\s]", text) else list(text)
    if text and sorted(parts) != sorted(labels):
        reason = f"{text!r} does not name each of the labels {', '.join(labels)} once"
        raise InputError.at(line.place, reason, field=names["order"])
    return tuple(map(labels.index, parts))


def _contents(n: int, gold: int, original: int) -> tuple[int, ...]:
    """Contents with the right one, ``original``, at place ``gold``; the places of the wrong ones are not known."""
    if gold < 0 or original < 0:
        return tuple(range(n))
    rest = [content for content in range(n) if content != original]
    return (*rest[:gold], original, *rest[gold:])
