"""``*_samples.jsonl`` of Every Eval Ever, the instance-level records of its schema 0.3.0, a line for each sample.

The answer is the terminal ``answer_attribution``, or else read from the reply. Answers, also the right ones, are texts
of ``choices``, labels, or places counted from 0, whichever fits first. Records that unslant exports also hold the order
of the options and the scores of their labels, in ``metadata``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from unslant.files import parse_json
from unslant.presentations import ALPHABETS, labels_for
from unslant.responses import STATUSES
from unslant.responses.importers.logged import Log, Logged, understood, unit_share
from unslant.responses.importers.page_text import PageText, named_place
from unslant.responses.importers.registry import Head, Importer

LOGPROBS, ORDER, LABELS = "unslant_logprobs", "unslant_order", "unslant_labels"
ANSWERS, CHOSEN = "unslant_answers", "unslant_chosen"
"""Keys of ``metadata`` in records that unslant exports; their values are JSON. The last two are places, because texts
do not say which of two identical options is meant."""


def read(head: Head) -> list[Log]:
    logs: dict[tuple[str, str], list[Logged]] = {}
    dropped: Counter[str] = Counter()
    for record in head.rows():
        with understood(record.place, "sample of Every Eval Ever"):
            row = record.data
            lists = {key: row["input"].get(key) for key in ("choices", "reference")}
            if text := next((key for key, value in lists.items() if isinstance(value, str)), ""):
                raise ValueError(f"input.{text} is {lists[text]!r}, not a list")  # else each character would count
            if len(lists["choices"] or ()) < 2:
                dropped["samples without choices"] += 1
                continue
            page = _page(row, record.place)
            logs.setdefault((str(row["model_id"]), str(row["evaluation_name"])), []).append(page)
    if not logs:
        raise ValueError("none of its samples has choices, so that there is no order to audit")
    # A log for each kind of answers; failures are scores that failed where there are scores.
    by_kind: dict[tuple[str, str, str], list[Logged]] = {}
    for names, pages in logs.items():
        failed = "labels" if any(page.logprobs is not None for page in pages) else "words"
        for page in pages:
            kind = "words" if page.chosen is not None else "labels" if page.logprobs is not None else failed
            by_kind.setdefault((*names, kind), []).append(page)
    return [
        # What is left out is of the file, and is counted once.
        Log(model, "Every Eval Ever", kind, tuple(of_kind), task, Counter() if i else dropped, metric="score")
        for i, ((model, task, kind), of_kind) in enumerate(by_kind.items())
    ]


def _page(row: Mapping[str, Any], place: str) -> Logged:
    page, metadata = row["input"], row.get("metadata") or {}
    options = tuple(str(choice).strip() for choice in page["choices"])
    labels = tuple(parse_json(metadata[LABELS])) if LABELS in metadata else labels_for(ALPHABETS["A"], len(options))
    page_text = PageText(str(page["raw"]))
    common: dict[str, Any] = {
        "id": str(row["sample_id"]),
        "place": place,
        "question": page_text.question,
        "context": page_text.passage,
        "labels": labels,
        "options": options,
        "answers": frozenset(
            parse_json(metadata[ANSWERS])
            if ANSWERS in metadata
            else (named_place(str(one), labels, options) for one in page["reference"])
        ),
        "order": tuple(parse_json(metadata[ORDER])) if ORDER in metadata else None,
        "subject": str(metadata.get("subject") or ""),
        "score": unit_share(row["evaluation"].get("score")),
    }
    raw = (row.get("output") or {}).get("raw") or ()
    reply = raw if isinstance(raw, str) else str(next(iter(raw), ""))
    if error := str(row.get("error") or ""):
        # Records that unslant exports have a status here, and the reply; those of others say what went wrong.
        known = error in STATUSES and error != "ok"
        return Logged(status=error if known else "error", reply=(reply or None) if known else error, **common)
    if LOGPROBS in metadata:
        return Logged.of_scores(parse_json(metadata[LOGPROBS]), **common)
    if CHOSEN in metadata:
        return Logged(chosen=frozenset(parse_json(metadata[CHOSEN])), reply=reply, **common)
    answer = next((str(one["extracted_value"]) for one in row["answer_attribution"] if one.get("is_terminal")), "")
    try:
        return Logged(chosen=frozenset({named_place(answer, labels, options)}), reply=reply or answer, **common)
    except ValueError:
        return Logged.of_reply(reply, **common)


_RECORD = {"evaluation_id", "evaluation_results", "model_info"}
"""Keys of the record of a run; its samples are next to it."""
IMPORTER = Importer(
    "*_samples.jsonl of Every Eval Ever",
    lambda head: {"sample_id", "interaction_type", "answer_attribution", "evaluation"} <= head.names,
    read,
    lambda head: f"give {head.path.stem}_samples.jsonl" if head.names >= _RECORD else "",
)
