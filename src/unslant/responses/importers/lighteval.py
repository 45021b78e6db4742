"""``details_*.parquet`` of lighteval (0.13, and earlier with ``__doc__``). Rows are in no order; ids are ``doc.id``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.questions.formats import read_records
from unslant.responses.importers.logged import Log, Logged, understood
from unslant.responses.importers.page_text import options_on_page
from unslant.responses.importers.registry import Head

_DOC, _RESPONSE = ("doc", "__doc__"), ("model_response", "__model_response__")


def recognises(head: Head) -> bool:
    return bool(set(_DOC) & head.names) and bool(set(_RESPONSE) & head.names)


def read(path: Path, fields: Mapping[str, str]) -> list[Log]:
    pages, kinds, task = [], set(), ""
    for record in read_records(path):
        if record.problem:
            raise InputError.at(record.place, record.problem)
        with understood(record.place, "row of lighteval"):
            doc = next(record.data[key] for key in _DOC if key in record.data)
            answer = next(record.data[key] for key in _RESPONSE if key in record.data)
            kind, page = _page(doc, answer, record.place)
            task = str(doc.get("task_name", "")).partition("|")[0]
        kinds.add(kind)
        pages.append(page)
    if len(kinds) != 1:
        raise InputError.at(path, f"holds {' and '.join(sorted(kinds)) or 'no'} scores; give a file of one kind")
    return [Log(path.stem, "lighteval", kinds.pop(), tuple(pages), task)]


def _page(doc: Mapping[str, Any], answer: Mapping[str, Any], place: str) -> tuple[str, Logged]:
    choices = [str(text).strip() for text in doc["choices"]]
    gold = doc["gold_index"]
    answers = frozenset(gold) if isinstance(gold, list) else frozenset({int(gold)})
    query = str(doc["query"])
    common = {"id": str(doc["id"]), "answers": answers, "place": place, "question": query.split("\n", 1)[0]}
    letters = tuple(choices) == labels_for(ALPHABETS["A"], len(choices))
    labels = labels_for(ALPHABETS["A"], len(choices))
    options = options_on_page(query, labels) if letters else tuple(choices)
    logprobs = answer.get("logprobs")
    if logprobs:
        page = Logged.of_scores(logprobs, labels=labels, options=options, **common)
        return "labels" if letters else "texts", page
    texts = answer["text"]
    reply = str(texts[0]) if isinstance(texts, list) else None
    return "words", Logged.of_reply(reply, labels=labels, options=options, **common)
