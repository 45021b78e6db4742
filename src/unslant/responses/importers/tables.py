"""Tables: of responses that unslant wrote, of label scores (:mod:`label_scores`), and a general one in JSON lines, CSV
or Parquet with a row for each page that a model was shown:

An answer is ``logprobs`` or ``probs``, ``chosen`` or ``reply``; the columns of a page are those of :data:`FIELDS`, and
``docs/logs.md`` describes them. Without ``id``, rows with the same question and options are one question. ``probs``
with a list for every order of the options, in lexicographic order, is a whole set of pages in one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any

from unslant.errors import InputError, one_of
from unslant.questions.formats import stem_of
from unslant.questions.records import items_of
from unslant.responses import Responses
from unslant.responses.importers.label_scores import has_label_scores, load_recorded
from unslant.responses.importers.logged import BadRow, Consistency, Log, Logged, understood
from unslant.responses.importers.page_rows import (
    ANSWERS,
    FIELDS,
    VERDICTS,
    PageRow,
    Readings,
    columns_of,
    counting_doubt,
)
from unslant.responses.importers.registry import Head, Importer

_TABLES = ("csv", "tsv", "xlsx", "memory")
"""Kinds of files and sources that no other program's logs are in."""
_UNSCORED = (
    "Rows with a choice and no scores: {:,}; with scores: {:,}. A choice counts as certain: PBM, confidence and the "
    "vote over orders mix the two."
)
_INCOMPARABLE = (
    "Column {} is not compared with the answers that are read: {!r} ({}) is not a verdict on one answer, from 0 to 1."
)
_LEFT_OUT = "Rows left out because their question cannot be read: {:,}; the first: {}."
_NO_ID = "The table has no column of ids: rows with the same question and options are taken for one question."


def recognises(head: Head) -> bool:
    if head.is_responses or has_label_scores(head) or head.kind in _TABLES:
        return True
    _, columns = columns_of(tuple(_first(head)), tuple(head.fields.items()))
    return bool(columns["id"] or columns["question"]) and any(columns[key] for key in ANSWERS)


def _first(head: Head) -> Mapping[str, Any]:
    """The first record of a file; some hold all of them in a list, under a key."""
    try:
        items = items_of(head.first) if head.first and head.kind == "json" else []
    except ValueError:
        items = []
    return _record(items[0] if items and isinstance(items[0], Mapping) else head.first) or dict.fromkeys(head.names)


def _record(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The fields of a record, which some files hold under one key, ``data``."""
    return record["data"] if isinstance(record.get("data"), Mapping) else record


def read(head: Head) -> list[Log] | Responses:
    if head.is_responses:
        return Responses.from_parquet(head.path, head.unpacked)
    return load_recorded(head.path, fields=head.fields) if has_label_scores(head) else _pages(head)


def _check_columns(head: Head) -> None:
    """Raises InputError for a field that is not one of a table of pages, or that none of its columns holds."""
    unknown = sorted(set(head.fields) - set(FIELDS))
    if unknown:
        raise InputError(f"unknown field {unknown[0]!r} for a table of pages: {one_of(unknown[0], FIELDS)}")
    keys = tuple(_first(head))
    _, columns = columns_of(keys, tuple(head.fields.items()))
    listed = ", ".join(sorted(keys))
    for key, name in head.fields.items() if head.kind in _TABLES else ():
        if name and not columns[key]:
            raise InputError.at(head.path, f"column {name!r} does not exist: {one_of(name, sorted(keys))}", field=key)
    for needed, what in ((("id", "question"), "id"), (("answer",), "answer"), (ANSWERS, "chosen")):
        if not any(columns[key] for key in needed):
            meant = {"id": "of questions", "answer": "the right option"}.get(what, "the model's answer")
            reason = f"no column was found for it ({meant}) among {listed}; name it: --fields {what}=COLUMN"
            reason += ", or reply=, logprobs= or probs=COLUMN (or COLUMN,COLUMN,...)" * (what == "chosen")
            raise InputError.at(head.path, reason, field=what)


@contextmanager
def _not_skipped(skip_bad: bool) -> Iterator[None]:
    """Say of errors in rows that are left after ``--skip-bad`` why it does not leave these out, too."""
    try:
        yield
    except InputError as error:
        if not skip_bad:
            raise
        raise InputError(f"{error}; --skip-bad leaves out only rows whose question cannot be read") from error


def _pages(head: Head) -> list[Log]:
    path, fields, name_of_file = head.path, head.fields, stem_of(head.path)
    _check_columns(head)
    top = head.first if head.kind == "json" and _first(head) != _record(head.first) else {}
    named_at_top = (top.get(name) for name in FIELDS["model"])
    name_of_model = next((name for name in named_at_top if isinstance(name, str) and name), name_of_file)
    by_model: dict[str, list[Logged]] = {}
    readings, ids = {key: Readings() for key in ("answer", "chosen")}, dict[tuple[str, ...], str]()
    contradicted, incomparable = 0, ""
    answers: set[str] = set()
    name, metric = "", ""
    consistency: dict[str, Consistency] = {}
    bad: dict[str, list[str]] = {}
    with _not_skipped(head.skip_bad):
        for number, record in enumerate(head.rows([*chain(*FIELDS.values()), *head.names])):
            row = PageRow(_record(record.data), fields, record.place)
            model = str(row.get("model") or name_of_model)
            with understood(record.place, "page"):
                try:
                    pages = row.pages(readings)
                except BadRow as error:
                    if not head.skip_bad:
                        raise InputError(f"{error}; fix it, or skip such rows with --skip-bad=True") from None
                    bad.setdefault(model, []).append(str(error))
                    continue
                if not row.names["id"]:
                    text = pages[0].question, pages[0].context, *sorted(pages[0].options)
                    pages = [replace(page, id=ids.setdefault(text, f"{name_of_file}/{number}")) for page in pages]
                row.check_agreement(pages)
            name, metric = row.names["answer"], metric or (row.names["score"] if pages[0].score is not None else "")
            score = row.get("score") if row.names["score"] != row.names["answer"] else None
            if not incomparable and pages[0].score is None and score is not None:
                incomparable = _INCOMPARABLE.format(row.names["score"], str(score)[:40], record.place)
            answers.add(str(row.get("answer")).strip().lower())
            by_model.setdefault(model, []).extend(pages)
            for page in pages:
                consistency.setdefault(model, Consistency()).check(page)
            contradicted += row.contradicts(pages)
    if unread := [model for model in bad if model not in by_model]:
        rows = bad[unread[0]]
        reason = f"{unread[0]}: no question of its rows ({len(rows):,}) can be read; the first: {rows[0]}"
        raise InputError.at(path, reason)
    if name == "correct" and "answer" not in fields and answers <= set(VERDICTS):
        holds = f"holds only {' and '.join(sorted(answers))}: this says whether an answer was right, not which one is"
        raise InputError.at(path, f"{holds}; add a column answer (for places: --fields answer=correct)", field=name)
    for reading in readings.values():
        reading.check()
    if metric == "score" and all(page.score == 1 for page in chain(*by_model.values())):
        # points of a question, right or wrong
        wrong = (page.place for page in chain(*by_model.values()) if page.chosen not in (None, page.answers))
        incomparable = next((_INCOMPARABLE.format(metric, "1", place) for place in wrong), incomparable)
    metric = "" if incomparable else metric  # percentages, for example: 0 would be read as a share, and 100 not
    note = f"Rows whose reply names another option than the scores or choice that are read: {contradicted:,}."
    doubts = counting_doubt([*readings.values()])
    left_out = {model: (_LEFT_OUT.format(len(rows), rows[0]),) for model, rows in bad.items()}
    notes = (note,) * (contradicted > 0) + (_NO_ID,) * bool(ids) + (incomparable,) * bool(incomparable)
    # Of each model, as one may have scores and another choices. One without any answer has failed at what others did.
    scored = {model: sum(page.logprobs is not None for page in pages) for model, pages in by_model.items()}
    named = {model: sum(page.logprobs is None and bool(page.chosen) for page in by_model[model]) for model in by_model}
    return [
        Log(
            model,
            "a table of pages",
            "labels" if scored[model] or (any(scored.values()) and not named[model]) else "words",
            tuple(pages),
            name_of_file,
            notes=notes,
            checked=True,
            metric=metric,
            caveats=left_out.get(model, ())
            + doubts
            + (_UNSCORED.format(named[model], scored[model]),) * bool(scored[model] and named[model]),
        )
        for model, pages in by_model.items()
    ]


def instead(head: Head) -> str:
    """Where the answers are of a result that unslant wrote as JSON; and what reads a probe's table."""
    if {"rephraser", "judge", "score"} <= head.names:
        return "unslant study probe --log reads it"
    ours = {"unslant", "study", "headline"} <= head.names
    return "give the table of --responses, or write one with unslant runs export" if ours else ""


IMPORTER = Importer(
    "a table: of unslant; label scores (columns lp_A, lp_B, ..., or label and logprob); or a row per page (id, answer, "
    "labels, order, logprobs or chosen or reply)",
    recognises,
    read,
    instead,
)
