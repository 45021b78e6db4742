"""``details_*.parquet`` of lighteval (0.13, and earlier with ``__doc__``). Rows are in no order; ids are ``doc.id``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unslant.errors import InputError
from unslant.files import read_parquet
from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.responses.importers.logged import Log, Logged
from unslant.responses.importers.page_text import options_on_page
from unslant.responses.importers.registry import Head

_DOC, _RESPONSE = ("doc", "__doc__"), ("model_response", "__model_response__")


def recognises(head: Head) -> bool:
    return bool(set(_DOC) & head.names) and bool(set(_RESPONSE) & head.names)


def read(path: Path, fields: Mapping[str, str]) -> list[Log]:
    pages, kinds, task = [], set(), ""
    for i, row in enumerate(read_parquet(path).to_pylist()):
        place = f"{path}, row {i + 1}"
        try:
            doc = next(row[key] for key in _DOC if key in row)
            answer = next(row[key] for key in _RESPONSE if key in row)
            kind, page = _page(doc, answer, place)
        except (KeyError, TypeError, ValueError, IndexError, StopIteration) as error:
            raise InputError.at(place, f"is no row of lighteval: {type(error).__name__}: {error}") from None
        task = str(doc.get("task_name", "")).partition("|")[0]
        kinds.add(kind)
        pages.append(page)
    if len(kinds) != 1:
        raise InputError.at(path, f"holds {' and '.join(sorted(kinds)) or 'no'} scores; give a file of one kind")
    return [Log(path.stem, "lighteval", kinds.pop(), tuple(pages), task)]


def _page(doc: Mapping[str, object], answer: Mapping[str, object], place: str) -> tuple[str, Logged]:
    choices = [str(text).strip() for text in doc["choices"]]  # type: ignore[attr-defined]
    gold = doc["gold_index"]
    answers = frozenset(gold) if isinstance(gold, list) else frozenset({int(gold)})  # type: ignore[call-overload]
    query = str(doc["query"])
    common = {"id": str(doc["id"]), "answers": answers, "place": place, "question": query.split("\n", 1)[0]}
    letters = tuple(choices) == labels_for(ALPHABETS["A"], len(choices))
    labels = labels_for(ALPHABETS["A"], len(choices))
    options = options_on_page(query, labels) if letters else tuple(choices)
    logprobs = answer.get("logprobs")
    if logprobs:
        values = np.minimum(np.array(logprobs, dtype=np.float64), 0.0)
        page = Logged(labels=labels, options=options, logprobs=values, **common)  # type: ignore[arg-type]
        return "labels" if letters else "texts", page
    texts = answer["text"]
    reply = str(texts[0]) if isinstance(texts, list) else None
    return "words", Logged.of_reply(reply, labels=labels, options=options, **common)
