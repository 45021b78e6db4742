"""``samples_*.jsonl`` of lm-evaluation-harness (0.4), a line for each document and filter.

Scores are strings. Where the continuations are labels the options were on the page; where they are option texts they
were not. The second half of the requests of ``acc_mutual_info`` has no context. The run is described by
``results_*.json`` next to the file, if it exists.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unslant.errors import InputError
from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.questions.answer_kinds import parse_list
from unslant.questions.formats import whole_records
from unslant.responses.importers.logged import (
    Log,
    Logged,
    differing,
    in_results,
    is_mean,
    main_metric,
    options_on_page,
    order_on_page,
    question_on_page,
    shown_options,
    stated,
    understood,
    unit_share,
)
from unslant.responses.importers.registry import Head, Importer

_IDS = ("id", "question_id", "qid", "idx", "ind")
_QUESTIONS = ("question", "query", "input_text", "goal", "sentence", "premise", "Question", "input")
_TEXTS = ("choices", "options", "endings", "mc1_targets", "mc2_targets", "answers", "candidates")
_FILE = re.compile(r"samples_(.+?)(?:_(\d{4}-\d\d-\d\dT.*))?$")
_RIGHT = ("answers", "answer", "gold", "golds", "targets", "correct", "correct_answers")
"""Where a document lists several right options by their texts."""
_HASHES = ("doc_hash", "prompt_hash", "target_hash")


def recognises(head: Head) -> bool:
    return {"doc_id", "doc", "arguments", "resps"} <= head.names


@dataclass(frozen=True)
class _Page:
    """A page, and what else is known of it.

    Attributes:
        kind: what was scored, see :class:`Log`.
        other: the right places if a target that is a number is a label or an option text, no index.
        hit: whether the logged accuracy counts it as right; None where it is not logged, or is a share.
    """

    kind: str
    page: Logged
    other: frozenset[int]
    hit: bool | None

    def fits(self, answers: frozenset[int]) -> bool:
        """Whether the logged accuracy is that of these answers."""
        return (
            self.hit is None or self.page.logprobs is None or replace(self.page, answers=answers).is_right() == self.hit
        )


def read(head: Head) -> list[Log]:
    path = head.path
    pages: list[_Page] = []
    numbers: list[str] = []
    documents: dict[str, set[str]] = {}
    dropped: Counter[str] = Counter()
    filters: dict[object, object] = {}
    hashes, hits, metric = hashlib.sha256(), [], ""
    for record in whole_records(path):
        with understood(record.place, "sample of lm-eval"):
            number = record.data["doc_id"]
            kept = filters.setdefault(number, record.data.get("filter"))
            again = kept != record.data.get("filter")
            found = [] if again else _pages(record.data, record.place, dropped)
            hashes.update("".join(str(record.data.get(key, "")) for key in _HASHES).encode())
            hits.append(record.data.get("acc"))
            metric = metric or main_metric(record.data, record.data.get("metrics") or ())
            score = unit_share(record.data.get(metric))
            found = [replace(one, page=replace(one.page, score=score)) for one in found]
        if again:
            dropped["the same document under another filter"] += 1
        elif not found:
            dropped["requests that are neither one for each option nor one reply about options"] += 1
        pages += found
        for one in found:
            documents.setdefault(one.page.id, set()).add(str(number))
        numbers += [str(number)] * len(found)
    if any(len(own) > 1 for own in documents.values()):  # what looks like an id is none
        pages = [replace(one, page=replace(one.page, id=own)) for one, own in zip(pages, numbers, strict=True)]
    kinds = {one.kind for one in pages}
    if not kinds:
        raise InputError.at(
            path,
            f"none of its {len(filters):,} documents has options in its prompt or among what is scored (an open "
            "question, for example), so that there is no order to audit; give the samples of a multiple-choice task",
        )
    if len(kinds) > 1:
        raise InputError.at(path, f"holds {' and '.join(sorted(kinds))} scores; give a file of one kind")
    fits, fits_other = (
        sum(map(_Page.fits, pages, found))
        for found in zip(*((one.page.answers, one.other) for one in pages), strict=True)
    )
    open_ = sum(one.other != one.page.answers for one in pages) if fits == fits_other else 0
    notes = []
    if open_:
        notes.append(
            f"In {open_:,} of {len(pages):,} samples, target is an index, counted from 0, or the label or text of "
            "another option, and no logged acc shows which: it is read as an index."
        )
    if fits_other > fits:
        pages = [replace(one, page=replace(one.page, answers=one.other)) for one in pages]
    results, task = _results(path, hashes.hexdigest(), hits)
    about = _about(results, task) | ({"filter": str(kept)} if (kept := next(iter(filters.values()))) else {})
    asked = results.get("n-samples", {}).get(task, {}).get("effective")
    if isinstance(asked, int) and asked > len(filters):
        dropped["documents of the results that are missing in the file"] += asked - len(filters)
    if "chat template" in about:
        notes.append(f"A chat template was applied (sha {about['chat template'][:16]}).")
    shown = tuple(one.page for one in pages)
    named = f"lm-eval's {metric}" if metric else ""
    return [Log(_model(path, results), "lm-eval", kinds.pop(), shown, task, dropped, about, tuple(notes), metric=named)]


def _model(path: Path, results: Mapping[str, Any]) -> str:
    if name := results.get("model_name"):
        return str(name)
    named = _FILE.match(path.stem) and "__" in path.parent.name
    return path.parent.name.replace("__", "/") if named else path.stem


def _results(path: Path, digest: str, hits: Sequence[object]) -> tuple[Mapping[str, Any], str]:
    """The results of the same run, empty where they are not there, and the task.

    It is the run of the same time. Where names give no time, it is the one with a task of these documents (by its
    hash) and this accuracy.
    """
    named = _FILE.match(path.stem)
    task, time = named.groups() if named else (path.stem, None)

    def same_run(found: Any) -> tuple[Mapping[str, Any], str] | None:
        if not isinstance(found.get("configs"), Mapping) or not isinstance(found.get("results"), Mapping):
            return None
        if time or task in found["configs"]:
            return found, task
        hashed = (name for name, own in found.get("task_hashes", {}).items() if own == digest)
        name = next((name for name in hashed if is_mean(found["results"].get(name, {}).get("acc,none"), hits)), None)
        return None if name is None else (found, name)

    return in_results([path.parent], time, "lm-eval", same_run) or ({}, task)


def document_id(doc: Mapping[str, Any], number: int) -> str:
    """The id of a document: its own, or its number."""
    return str(next((doc[key] for key in _IDS if doc.get(key) not in (None, "")), number))


def document_text(doc: Mapping[str, Any]) -> str:
    """The question of a document; empty where it has none under a usual name."""
    return str(next((doc[key] for key in _QUESTIONS if doc.get(key)), ""))


def document_subject(doc: Mapping[str, Any]) -> str:
    """The subject of a document; empty where it gives none."""
    return str(doc.get("subject") or doc.get("category") or "")


def _about(results: Mapping[str, Any], task: str) -> dict[str, str]:
    config = results.get("config", {})
    facts = {
        "lm-eval": results.get("lm_eval_version"),
        "worked examples": results.get("n-shot", {}).get(task),
        "chat template": results.get("chat_template_sha"),
        "examples as turns": results.get("fewshot_as_multiturn"),
        "model revision": config.get("model_sha") or config.get("model_revision"),
        "dtype": config.get("model_dtype"),
        "limit": config.get("limit"),
    }
    return stated(facts)


def _pages(data: Mapping[str, Any], place: str, dropped: Counter[str]) -> list[_Page]:
    given = data["arguments"]
    requests: list[tuple[str, Any]] = (
        [(str(one[0]), one[1]) for one in given]  # before 0.4.3
        if given and isinstance(given, list)
        else [(str(found["arg_0"]), found.get("arg_1")) for found in given.values()]
    )
    doc, answers = data["doc"], data["resps"]
    context = requests[0][0]
    common: dict[str, Any] = {
        "id": document_id(doc, data["doc_id"]),
        "place": place,
        "question": document_text(doc) or question_on_page(context),
        "subject": document_subject(doc),
    }
    if isinstance(requests[0][1], Mapping):  # generated
        options = shown_options(document_options(doc), context)
        if not options or any(option.strip() not in context for option in options):
            return []  # an open question, even if its document lists other things
        labels = labels_for(ALPHABETS["A"], len(options))
        right = _by_text(str(data["target"]), labels, options)
        right = _by_index(str(data["target"]), len(options)) if right is None else right
        if right is None:
            raise ValueError(f"target {data['target']!r} is not one of the options")
        pages = [
            Logged.of_reply(str(reply), labels=labels, options=options, answers=right, repeat=i, **common)
            for i, reply in enumerate(answers[0])
        ]
        return [_Page("words", page, right, None) for page in pages]
    if len(requests) != len(answers):
        raise ValueError(f"{len(answers)} answers to {len(requests)} requests")
    contexts, texts = [one for one, _ in requests], [str(text).strip() for _, text in requests]
    half = len(texts) // 2
    if len(texts) % 2 == 0 and not any(contexts[half:]) and texts[half:] == texts[:half] and any(contexts):
        dropped["scores without the question (acc_mutual_info)"] += half
        contexts, texts = contexts[:half], texts[:half]
    n = len(texts)
    if n < 2:
        return []
    scores = [value[0][0] for value in answers[:n]]
    score = next((found for key in ("acc", "em") if (found := unit_share(data.get(key))) is not None), None)
    hit = None if score is None else {0.0: False, 1.0: True}.get(score)
    if len(set(texts)) == 1 and len(set(contexts)) == n:  # the options are in the contexts, as in winogrande
        labels = labels_for(ALPHABETS["A"], n)
        options = differing(contexts)
        right = _by_outcome(scores, hit)
        common["question"] = common["question"] or options[0]
        return [_Page("texts", Logged.of_scores(scores, labels=labels, answers=right, options=options, **common),
                      right, hit)]  # fmt: skip
    options = document_options(doc, n)
    bare = tuple(text.strip("().") for text in texts)
    same = list(map(str.strip, options)) == texts
    alphabet = next((own[:n] for own in ALPHABETS.values() if set(own[:n]) == set(bare)), ())
    listed = bool(options_on_page(context, bare))
    letters = listed or (bool(alphabet) and not same)
    on_page = () if letters else order_on_page(context, texts)
    # Labels may be scored in another sequence than the page lists them in, and texts too: places are those of the page.
    order = tuple(map(bare.index, alphabet)) if letters and not listed else on_page or tuple(range(n))
    labels = tuple(bare[k] for k in order) if letters else labels_for(ALPHABETS["A"], n)
    options = () if letters and same else options or (() if letters else tuple(texts))
    options = tuple(options[k] for k in order) if options else ()
    options = shown_options(options, context, labels) if letters else options
    several = _several(doc, [texts[k] for k in order])
    index, text = _by_index(str(data["target"]), n), _by_text(str(data["target"]), labels, options or texts)
    index = None if index is None else frozenset(map(order.index, index))
    answers_of = [found for found in (several, index, text) if found is not None]
    if not answers_of:
        raise ValueError(f"target {data['target']!r} is not one of the options")
    kind = "labels" if letters else "listed" if on_page else "texts"
    page = Logged.of_scores([scores[k] for k in order], labels=labels, answers=answers_of[0], options=options, **common)
    return [_Page(kind, page, answers_of[0 if several and hit is None else -1], hit)]


def _by_outcome(scores: Sequence[object], hit: bool | None) -> frozenset[int]:
    """The right place where the target does not say it: the best if that was right, of two the other if not."""
    best = int(np.argmax([float(score) for score in scores]))  # type: ignore[arg-type]
    if hit is None or not (hit or len(scores) == 2):
        raise ValueError("the options are in the contexts, and which is right is not logged")
    return frozenset({best if hit else 1 - best})


def document_options(doc: Mapping[str, Any], n: int | None = None) -> tuple[str, ...]:
    """The option texts of a document, under the names that tasks give them."""
    for key in _TEXTS:
        found = doc.get(key)
        if isinstance(found, Mapping):
            found = found.get("text") or found.get("choices")
        fits = isinstance(found, Sequence) and not isinstance(found, str) and all(isinstance(t, str) for t in found)
        if fits and found and (n is None or len(found) == n):
            return tuple(map(str, found))
    return ()


def _several(doc: Mapping[str, Any], texts: Sequence[str]) -> frozenset[int] | None:
    """The right choices where a document marks each by 1 or 0, or lists the texts of several (as ReCoRD does)."""
    for found in doc.values():
        if isinstance(found, Mapping) and isinstance(found.get("labels"), Sequence) and "choices" in found:
            marks, named = found["labels"], [str(text).strip() for text in found["choices"]]
            if named == list(texts) and len(marks) == len(named) and set(marks) <= {0, 1}:
                return frozenset(k for k, mark in enumerate(marks) if mark)
    for found in map(doc.get, _RIGHT):
        if isinstance(found, list) and len(found) > 1 and all(isinstance(text, str) for text in found):
            right = {_plain(text) for text in found}
            marked = frozenset(k for k, text in enumerate(texts) if _plain(text) in right)
            if marked and len(marked) < len(texts):
                return marked
    return None


def _plain(text: str) -> str:
    """A text as SQuAD's scorers compare it: without case, punctuation, articles and spaces at its ends."""
    words = re.sub(r"[^\w\s]", "", text.casefold()).split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))


def _by_index(target: str, n: int) -> frozenset[int] | None:
    """The places that a target names as indices."""
    parts = [str(part) for part in parse_list(target) or [target]]
    right = parts and all(part.strip().isdigit() and int(part) < n for part in parts)
    return frozenset(int(part) for part in parts) if right else None


def _by_text(target: str, labels: Sequence[str], options: Sequence[str]) -> frozenset[int] | None:
    """The places that a target names as labels, or as option texts."""
    parts = [str(part).strip() for part in parse_list(target) or [target]]
    texts = [option.strip() for option in options]
    places = [
        list(labels).index(part.strip("().")) if part.strip("().") in labels
        else texts.index(part) if part in texts else -1
        for part in parts
    ]  # fmt: skip
    return frozenset(places) if places and min(places) >= 0 else None


def instead(head: Head) -> str:
    """The samples of a results file, or how to have them written."""
    if not {"results", "configs", "n-shot"} <= head.names:
        return ""
    time = head.path.stem.removeprefix("results").removeprefix("_")
    samples = sorted(one.name for one in head.path.parent.glob(f"samples_*{time}.jsonl"))
    return f"give {' '.join(samples)}" if samples else "run lm_eval with --log_samples, and give its samples_*.jsonl"


IMPORTER = Importer(
    "samples_*.jsonl of lm-eval (--log_samples), also of the Open LLM Leaderboard", recognises, read, instead
)
