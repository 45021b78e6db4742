"""``*_samples.jsonl`` of Every Eval Ever, the instance-level records of its schema 0.3.0, a line for each sample.

The answer is the terminal ``answer_attribution``, or else read from the reply. Answers, also the right ones, are texts
of ``choices``, labels, or places counted from 0, whichever fits first. Records that unslant exports also hold the order
of the options and the scores of their labels, in ``metadata``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from unslant.files import parse_json
from unslant.presentations.presentation import ALPHABETS, labels_for
from unslant.questions.formats import whole_records
from unslant.responses.importers.logged import Log, Logged, question_on_page, understood, unit_share
from unslant.responses.importers.registry import Head, Importer

LOGPROBS, ORDER, LABELS = "unslant_logprobs", "unslant_order", "unslant_labels"
"""Keys of ``metadata`` in records that unslant exports; their values are JSON."""


def recognises(head: Head) -> bool:
    return {"sample_id", "interaction_type", "answer_attribution", "evaluation"} <= head.names


def read(head: Head) -> list[Log]:
    models: dict[tuple[str, str], list[Logged]] = {}
    tasks: dict[tuple[str, str], dict[str, None]] = {}
    dropped: Counter[str] = Counter()
    for record in whole_records(head.path):
        with understood(record.place, "sample of Every Eval Ever"):
            row = record.data
            if len(row["input"].get("choices") or ()) < 2:
                dropped["samples without choices"] += 1
                continue
            page = _page(row, record.place)
            key = str(row["model_id"]), "words" if page.logprobs is None else "labels"
            models.setdefault(key, []).append(page)
            tasks.setdefault(key, {})[str(row["evaluation_name"])] = None
    if not models:
        raise ValueError("none of its samples has choices, so that there is no order to audit")
    return [
        Log(model, "Every Eval Ever", scores, tuple(pages), ", ".join(tasks[model, scores]), dropped, metric="score")
        for (model, scores), pages in models.items()
    ]


def _page(row: Mapping[str, Any], place: str) -> Logged:
    page, metadata = row["input"], row.get("metadata") or {}
    options = tuple(str(choice).strip() for choice in page["choices"])
    labels = tuple(parse_json(metadata[LABELS])) if LABELS in metadata else labels_for(ALPHABETS["A"], len(options))
    common: dict[str, Any] = {
        "id": str(row["sample_id"]),
        "place": place,
        "question": question_on_page(str(page["raw"])),
        "labels": labels,
        "options": options,
        "answers": frozenset(_place(str(one), labels, options) for one in page["reference"]),
        "order": tuple(parse_json(metadata[ORDER])) if ORDER in metadata else None,
        "subject": str(metadata.get("subject") or ""),
        "score": unit_share(row["evaluation"].get("score")),
    }
    if row.get("error"):
        return Logged(status="error", **common)
    if LOGPROBS in metadata:
        return Logged.of_scores(parse_json(metadata[LOGPROBS]), **common)
    answer = next((str(one["extracted_value"]) for one in row["answer_attribution"] if one.get("is_terminal")), "")
    reply = str(next(iter((row.get("output") or {}).get("raw") or ()), ""))
    try:
        return Logged(chosen=frozenset({_place(answer, labels, options)}), reply=reply or answer, **common)
    except ValueError:
        return Logged.of_reply(reply, **common)


def _place(text: str, labels: Sequence[str], options: Sequence[str]) -> int:
    """The place of an option given by its text, its label or its number; ValueError if it is none of them."""
    text = text.strip()
    for names in (options, labels):
        if text in names:
            return list(names).index(text)
    if text.isdecimal() and int(text) < len(options):
        return int(text)
    raise ValueError(f"{text!r} is not one of its {len(options)} choices")


def instead(head: Head) -> str:
    """The file with the answers, if this one is the record of the run."""
    record = {"evaluation_id", "evaluation_results", "model_info"} <= head.names
    return f"give {head.path.stem}_samples.jsonl" if record else ""


IMPORTER = Importer("*_samples.jsonl of Every Eval Ever", recognises, read, instead)
