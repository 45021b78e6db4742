"""``samples_*.jsonl`` of lm-evaluation-harness (0.4), a line for each document and filter.

Scores are strings. A request whose context is empty is the unconditional half of ``acc_mutual_info``. Where the
continuations are labels the options were on the page; where they are option texts they were not.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from unslant.errors import InputError
from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.questions.answers import parse_list
from unslant.questions.formats import read_records
from unslant.responses.importers.logged import Log, Logged, understood
from unslant.responses.importers.page_text import options_on_page
from unslant.responses.importers.registry import Head

_IDS = ("id", "question_id", "qid", "idx")
_TEXTS = ("choices", "options", "endings", "mc1_targets", "answers", "candidates")
_FILE = re.compile(r"samples_(.+?)(?:_\d{4}-\d\d-\d\dT.*)?$")


def recognises(head: Head) -> bool:
    return {"doc_id", "doc", "arguments", "resps"} <= head.names


def read(path: Path, fields: Mapping[str, str]) -> list[Log]:
    pages: list[Logged] = []
    dropped: Counter[str] = Counter()
    seen: set[object] = set()
    kinds = set()
    for record in read_records(path):
        if record.problem:
            raise InputError.at(record.place, record.problem)
        with understood(record.place, "sample of lm-eval"):
            number = record.data["doc_id"]
            again = number in seen
            seen.add(number)
            kind, page = ("", None) if again else _page(record.data, record.place)
        if again:
            dropped["the same document under another filter"] += 1
            continue
        if page is None:
            dropped["requests that are neither one for each option nor one reply"] += 1
            continue
        kinds.add(kind)
        pages.append(page)
    if len(kinds) != 1:
        raise InputError.at(path, f"holds {' and '.join(sorted(kinds)) or 'no'} scores; give a file of one kind")
    named = _FILE.match(path.stem)
    model = path.parent.name if named and "__" in path.parent.name else path.stem
    return [Log(model, "lm-eval", kinds.pop(), tuple(pages), named.group(1) if named else path.stem, dropped)]


def document_id(doc: Mapping[str, Any], number: int) -> str:
    """The id of a document: its own, or its number."""
    return str(next((doc[key] for key in _IDS if doc.get(key) not in (None, "")), number))


def document_text(doc: Mapping[str, Any]) -> str:
    """The question of a document; empty where it has none under a usual name."""
    return str(doc.get("question") or doc.get("query") or doc.get("input_text") or "")


def document_subject(doc: Mapping[str, Any]) -> str:
    """The subject of a document; empty where it tells none."""
    return str(doc.get("subject") or doc.get("category") or "")


def _page(data: Mapping[str, Any], place: str) -> tuple[str, Logged | None]:
    requests = [(str(found["arg_0"]), found.get("arg_1")) for found in data["arguments"].values()]
    doc = data["doc"]
    common: dict[str, Any] = {
        "id": document_id(doc, data["doc_id"]),
        "place": place,
        "question": document_text(doc),
        "subject": document_subject(doc),
    }
    if isinstance(requests[0][1], Mapping):  # generated
        options = _options(doc, None) or options_on_page(requests[0][0])
        if not options:
            return "words", None
        labels = labels_for(ALPHABETS["A"], len(options))
        reply = str(data["resps"][0][0])
        answers = _target(data["target"], labels, options)
        return "words", Logged.of_reply(reply, labels=labels, options=options, answers=answers, **common)
    scored = [
        (context, str(text), answer[0][0])
        for (context, text), answer in zip(requests, data["resps"], strict=True)
        if context
    ]
    texts = [text.strip() for _, text, _ in scored]
    options = _options(doc, len(scored))
    letters = len(scored) > 1 and all(len(text) <= 3 for text in texts) and len(set(texts)) == len(texts)
    letters = letters and (not options or list(map(str.strip, options)) != texts)
    if len(scored) < 2:
        return "labels", None
    labels = tuple(texts) if letters else labels_for(ALPHABETS["A"], len(scored))
    if letters and not options:
        options = options_on_page(scored[0][0], labels)
    answers = _target(data["target"], labels, options)
    shown = options or (() if letters else tuple(texts))
    scores = [value for *_, value in scored]
    page = Logged.of_scores(scores, labels=labels, answers=answers, options=shown, **common)
    return "labels" if letters else "texts", page


def _options(doc: Mapping[str, Any], n: int | None) -> tuple[str, ...]:
    """The option texts of a document, under the names that tasks give them."""
    for key in _TEXTS:
        found = doc.get(key)
        if isinstance(found, Mapping):
            found = found.get("text") or found.get("choices")
        fits = isinstance(found, Sequence) and not isinstance(found, str) and all(isinstance(t, str) for t in found)
        if fits and found and (n is None or len(found) == n):
            return tuple(map(str, found))
    return ()


def _target(target: object, labels: Sequence[str], options: Sequence[str]) -> frozenset[int]:
    """Places of the right options: an index, a label, a text, or a list of them, written as text."""
    text = str(target).strip()
    if (parts := parse_list(text)) is not None:
        return frozenset().union(*(_target(part, labels, options) for part in parts))
    if text.strip("()") in labels:
        return frozenset({list(labels).index(text.strip("()"))})
    if text in [option.strip() for option in options]:
        return frozenset({[option.strip() for option in options].index(text)})
    if text.isdigit() and int(text) < len(labels):
        return frozenset({int(text)})
    raise ValueError(f"target {text!r} is no option")
