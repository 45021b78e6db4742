"""Bring records that hold several questions, or a part of one, into the form of one record per question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from unslant.questions.records import Record

_OPTIONS_IN_CONTEXT = re.compile(r"(?:\A|\n)Options:\n.*\Z", re.DOTALL)


def reshape(records: Sequence[Record]) -> list[Record]:
    """One record per question; records that already are one pass as they are.

    Known are MultiRC in its two nested forms (``paragraph.questions`` and ``passage.questions``) and in the Hub's flat
    form (one row per candidate answer, with ``idx.paragraph`` and ``idx.question``), and the files of P3's authors
    (``correct_answers``, ``dataset_source``), which give several questions about one passage the same id.
    """
    first = next((record.data for record in records if not record.problem), {})
    if any(isinstance(first.get(key), Mapping) and "questions" in first[key] for key in ("paragraph", "passage")):
        return [part for record in records for part in _passage_questions(record)]
    if isinstance(first.get("idx"), Mapping) and {"paragraph", "question", "answer", "label"} <= first.keys():
        return _candidate_rows(records)
    if {"correct_answers", "dataset_source"} <= first.keys():
        return _with_own_ids(records)
    return list(records)


def without_options(context: str) -> str:
    """A passage without the list of options at its end, and without "Background:" before it, as P3's authors write."""
    return _OPTIONS_IN_CONTEXT.sub("", context).removeprefix("Background: ").strip()


def _with_own_ids(records: Sequence[Record]) -> list[Record]:
    """The second question of an id gets "#2" after it, and so on."""
    seen: Counter[str] = Counter()
    parts = []
    for record in records:
        data = dict(record.data)
        name = "id" if data.get("id") else "original_id"
        if data.get(name):
            seen[str(data[name])] += 1
            count = seen[str(data[name])]
            data[name] = f"{data[name]}#{count}" if count > 1 else data[name]
        if isinstance(data.get("Facts"), str):  # elsewhere a column of that name gives the answer away
            data["context"] = without_options(data["Facts"])
        parts.append(Record(record.place, data, record.problem))
    return parts


def _passage_questions(record: Record) -> list[Record]:
    if record.problem:
        return [record]
    passage = record.data.get("paragraph") or record.data.get("passage")
    questions = passage.get("questions") if isinstance(passage, Mapping) else None
    if not isinstance(passage, Mapping) or not isinstance(questions, list):
        return [Record(record.place, {}, "has no list of questions under its paragraph")]
    group = record.data.get("id", record.data.get("idx", ""))
    parts: list[Record] = []
    for number, question in enumerate(questions):
        if not isinstance(question, Mapping):
            parts.append(Record(record.place, {}, f"question {number} of the paragraph is not an object"))
            continue
        data = {
            "id": f"{group}/{question.get('idx', number)}",
            "question": question.get("question"),
            "context": passage.get("text", ""),
            "options": question.get("answers"),
        }
        parts.append(Record(f"{record.place}, question {number + 1}", data))
    return parts


def _candidate_rows(records: Sequence[Record]) -> list[Record]:
    groups: dict[str, dict[str, Any]] = {}
    places: dict[str, str] = {}
    bad: list[Record] = []
    for record in records:
        index = record.data.get("idx")
        if record.problem or not isinstance(index, Mapping):
            bad.append(record if record.problem else Record(record.place, {}, "has no idx of paragraph and question"))
            continue
        key = f"{index.get('paragraph')}/{index.get('question')}"
        data = groups.setdefault(
            key,
            {
                "id": key,
                "question": record.data.get("question"),
                "context": record.data.get("paragraph"),
                "options": [],
            },
        )
        places.setdefault(key, record.place)
        data["options"].append({"text": record.data.get("answer"), "label": record.data.get("label")})
    return [*(Record(places[key], data) for key, data in groups.items()), *bad]
