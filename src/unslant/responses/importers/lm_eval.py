"""``samples_*.jsonl`` of lm-evaluation-harness (0.4), a line for each document and filter.

Where the continuations are labels, the options were on the page; where they are option texts, they usually were not.
The run is described by ``results_*.json`` next to the file, if it exists.
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

from unslant.arrays import Floats
from unslant.errors import InputError
from unslant.presentations import ALPHABETS, labels_for
from unslant.questions.fields import passage_of
from unslant.questions.formats import stem_of
from unslant.questions.records import parse_list
from unslant.responses.importers.logged import (
    Log,
    Logged,
    in_results,
    is_mean,
    main_metric,
    stated,
    understood,
    unit_share,
)
from unslant.responses.importers.page_text import PageText, differing, prompt_text
from unslant.responses.importers.registry import Head, Importer

_IDS = ("id", "question_id", "qid", "idx", "ind")
_QUESTIONS = ("question", "query", "input_text", "goal", "sentence", "premise", "Question", "input")
_TEXTS = ("choices", "options", "endings", "mc1_targets", "mc2_targets", "answers", "candidates")
_FILE = re.compile(r"samples_(.+?)(?:_(\d{4}-\d\d-\d\dT.*))?$")
_RIGHT = ("answers", "answer", "gold", "golds", "targets", "correct", "correct_answers")
"""Keys under which a document lists several right options by their texts."""
_ROUNDED = 1e-6
_HASHES = ("doc_hash", "prompt_hash", "target_hash")


@dataclass(frozen=True)
class _Sample:
    """A page, and what decides how its target is read.

    Attributes:
        number: ``doc_id``.
        kind: what was scored, see :class:`Log`.
        other: the right places if a target that is a number is a label or an option text, not an index.
        hit: whether the logged accuracy counts the page as right; None if it is not logged, or is a share.
        unlisted: more labels were scored than the page lists options.
    """

    number: str
    kind: str
    page: Logged
    other: frozenset[int]
    hit: bool | None
    unlisted: bool = False

    def fits(self, answers: frozenset[int]) -> bool:
        """Whether the logged accuracy is that of these answers; of none if it is not logged."""
        return replace(self.page, answers=answers).is_right() == self.hit


def read(head: Head) -> list[Log]:
    path = head.path
    samples: list[_Sample] = []
    dropped: Counter[str] = Counter()
    filters: dict[object, object] = {}
    hashes, hits, metric = hashlib.sha256(), [], ""
    for record in head.rows():
        with understood(record.place, "sample of lm-eval"):
            number = record.data["doc_id"]
            # There is a row for each document and filter. Filters change how a reply is read; unslant reads it itself.
            repeated = filters.setdefault(number, record.data.get("filter")) != record.data.get("filter")
            new = [] if repeated else _samples(record.data, str(number), record.place, dropped)
            hashes.update("".join(str(record.data.get(key, "")) for key in _HASHES).encode())
            hits.append(record.data.get("acc"))
            metric = metric or main_metric(record.data, record.data.get("metrics") or ())
            score = unit_share(record.data.get(metric))
            samples += [replace(one, page=replace(one.page, score=score)) for one in new]
        if repeated:
            dropped["the same document under another filter"] += 1
        elif not new:
            dropped["requests that are neither one for each option nor one reply about options"] += 1
    ids = {(one.page.id, one.number) for one in samples}
    if len(ids) > len({name for name, _ in ids}):  # the field that looks like an id is shared by several documents
        samples = [replace(one, page=replace(one.page, id=one.number)) for one in samples]
    kinds = {one.kind for one in samples}
    if not kinds:
        raise InputError.at(
            path,
            f"none of its {len(filters):,} documents has options in its prompt or among what is scored (an open "
            "question, for example), so that there is no order to audit; give the samples of a multiple-choice task",
        )
    if len(kinds) > 1:
        raise InputError.at(path, f"holds {' and '.join(sorted(kinds))} scores; give a file of one kind")
    # A target "1" may be an index, the label 1 or the option text "1": the reading that agrees with more of the logged
    # accuracies is taken.
    fits = sum(one.fits(one.page.answers) for one in samples)
    fits_other = sum(one.fits(one.other) for one in samples)
    notes, caveats = [], []
    if fits == fits_other and (unclear := sum(one.other != one.page.answers for one in samples)):
        caveats.append(
            f"In {unclear:,} of {len(samples):,} samples, target is an index, counted from 0, or the label or text of "
            "another option, and no logged acc shows which: it is read as an index."
        )
    if unlisted := sum(one.unlisted for one in samples):
        notes.append(
            f"In {unlisted:,} of {len(samples):,} samples, more labels were scored than the page lists options: each "
            "counts as an option, also in what guessing gives."
        )
    if fits_other > fits:
        samples = [replace(one, page=replace(one.page, answers=one.other)) for one in samples]
    results, task = _results(path, hashes.hexdigest(), hits)
    first_filter = next(iter(filters.values()))
    about = _about(results, task) | ({"filter": str(first_filter)} if first_filter else {})
    expected = results.get("n-samples", {}).get(task, {}).get("effective")
    if isinstance(expected, int) and expected > len(filters):
        dropped["documents of the results that are missing in the file"] += expected - len(filters)
        caveats.append(f"The file holds {len(filters):,} of the {expected:,} documents of its results.")
    if "chat template" in about:
        notes.append(f"A chat template was applied (sha {about['chat template'][:16]}).")
    pages = tuple(one.page for one in samples)
    means = _means(results.get("results", {}).get(task, {}), metric, str(first_filter), pages)
    model, metric = _model(path, results), f"lm-eval's {metric}" if metric else ""
    more: dict[str, Any] = {"notes": tuple(notes), "caveats": tuple(caveats), "metric": metric, "means": means}
    return [Log(model, "lm-eval", kinds.pop(), pages, task, dropped, about, **more)]


def _means(reported: Mapping[str, Any], metric: str, name: str, pages: Sequence[Logged]) -> dict[str, float]:
    """The score that the results report, if the task aggregates it otherwise than as the mean over documents."""
    # As the tinyBenchmarks do, whose score of 100 documents estimates that of the whole data set.
    share = unit_share(reported.get(f"{metric},{name}"))
    scores = [page.score for page in pages if page.score is not None]
    if share is None or not scores or abs(share - np.mean(scores)) < _ROUNDED:
        return {}
    return {f"lm-eval's {metric} in its results file": share}


def _model(path: Path, results: Mapping[str, Any]) -> str:
    if name := results.get("model_name"):
        return str(name)
    named = _FILE.match(stem_of(path)) and "__" in path.parent.name
    return path.parent.name.replace("__", "/") if named else stem_of(path)


def _results(path: Path, digest: str, hits: Sequence[object]) -> tuple[Mapping[str, Any], str]:
    """The results of the same run, empty if there are none, and the task.

    The run is the one with the same time in its file's name; without a time, the one with a task of these documents (by
    hash) and this accuracy.
    """
    named = _FILE.match(stem_of(path))
    task, time = named.groups() if named else (stem_of(path), None)

    def same_run(results: Any) -> tuple[Mapping[str, Any], str] | None:
        if not isinstance(results.get("configs"), Mapping) or not isinstance(results.get("results"), Mapping):
            return None
        if time or task in results["configs"]:
            return results, task
        hashed = (name for name, task_hash in results.get("task_hashes", {}).items() if task_hash == digest)
        name = next((name for name in hashed if is_mean(results["results"].get(name, {}).get("acc,none"), hits)), None)
        return None if name is None else (results, name)

    return in_results([path.parent], time, "lm-eval", same_run) or ({}, task)


def document_id(doc: Mapping[str, Any], number: int) -> str:
    """The id of a document: its own, or its number."""
    return str(next((doc[key] for key in _IDS if doc.get(key) not in (None, "")), number))


def document_text(doc: Mapping[str, Any]) -> str:
    """The question of a document; empty if it has none under a usual name."""
    return str(next((doc[key] for key in _QUESTIONS if doc.get(key)), ""))


def document_subject(doc: Mapping[str, Any]) -> str:
    """The subject of a document; empty if it has none."""
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


def _samples(data: Mapping[str, Any], number: str, place: str, dropped: Counter[str]) -> list[_Sample]:
    arguments = data["arguments"]
    requests: list[tuple[str, Any]] = (
        [(prompt_text(one[0]), one[1]) for one in arguments]  # before 0.4.3
        if arguments and isinstance(arguments, list)
        # Parquet has the requests of the longest sample in every row, those that a row does not have as null.
        else [(prompt_text(one["arg_0"]), one.get("arg_1")) for one in arguments.values() if one is not None]
    )
    doc, context = data["doc"], requests[0][0]
    page_text = PageText(context)
    common: dict[str, Any] = {
        "id": document_id(doc, data["doc_id"]),
        "place": place,
        "question": document_text(doc) or page_text.question,
        "context": passage_of(doc) or page_text.passage,
        "subject": document_subject(doc),
    }
    if isinstance(requests[0][1], Mapping):  # keywords of generation: the answer is a reply
        pages = _replies(data, context, common)
        return [_Sample(number, "words", page, page.answers, None) for page in pages]
    answers = data["resps"] or [[[None]]] * len(requests)  # a sample without answers failed
    if len(requests) != len(answers):
        raise ValueError(f"{len(answers)} answers to {len(requests)} requests")
    contexts, texts = [one for one, _ in requests], [str(text).strip() for _, text in requests]
    half = len(texts) // 2
    # acc_mutual_info asks for each continuation twice, the second time after an empty context.
    if not any(contexts[half:]) and texts[half:] == texts[:half] and any(contexts):
        dropped["scores without the question (acc_mutual_info)"] += half
        contexts, texts = contexts[:half], texts[:half]
    n = len(texts)
    if n < 2:
        return []
    scores = [value[0][0] for value in answers[:n]]  # as strings
    accuracy = next((value for key in ("acc", "em") if (value := unit_share(data.get(key))) is not None), None)
    hit = None if accuracy is None else {0.0: False, 1.0: True}.get(accuracy)
    if len(set(texts)) == 1 and len(set(contexts)) == n:  # the options are in the contexts, as in winogrande
        options = differing(contexts)
        common |= {"question": common["question"] or options[0], "labels": labels_for(ALPHABETS["A"], n)}
        page = Logged.of_scores(scores, options=options, answers=frozenset(), **common)
        if page.logprobs is not None:
            page = replace(page, answers=_by_outcome(page.logprobs, hit))
        return [_Sample(number, "texts", page, page.answers, hit)]
    options = document_options(doc, n)
    bare = tuple(text.strip("().") for text in texts)
    same = list(map(str.strip, options)) == texts
    alphabet = next((sequence[:n] for sequence in ALPHABETS.values() if set(sequence[:n]) == set(bare)), ())
    has_list = bool(page_text.options(bare))
    letters = has_list or (bool(alphabet) and not same)
    on_page = () if letters else page_text.order(texts)
    # Labels may be scored in another sequence than the page lists them in, and texts too: places are those of the page.
    order = tuple(map(bare.index, alphabet)) if letters and not has_list else on_page or tuple(range(n))
    labels = tuple(bare[k] for k in order) if letters else labels_for(ALPHABETS["A"], n)
    options = () if letters and same else options or (() if letters else tuple(texts))
    options = tuple(options[k] for k in order) if options else ()
    options = page_text.shown(options, labels) if letters else options
    several = _several(doc, [texts[k] for k in order])
    index, text = _named(str(data["target"]), labels, options or texts)
    index = None if index is None else frozenset(map(order.index, index))
    readings = [reading for reading in (several, index, text) if reading is not None]
    if not readings:
        raise ValueError(f"target {data['target']!r} is not one of the options")
    kind = "labels" if letters else "listed" if on_page else "texts"
    page = Logged.of_scores([scores[k] for k in order], labels=labels, answers=readings[0], options=options, **common)
    unlisted = letters and not has_list and 1 < len(page_text.options()) < n
    return [_Sample(number, kind, page, readings[0 if several and hit is None else -1], hit, unlisted)]


def _replies(data: Mapping[str, Any], context: str, common: Mapping[str, Any]) -> list[Logged]:
    """The pages of a generated answer; none for an open question, even if its document lists other things."""
    options = PageText(context).shown(document_options(data["doc"]))
    if not options or any(option.strip() not in context for option in options):
        return []
    labels = labels_for(ALPHABETS["A"], len(options))
    by_index, right = _named(str(data["target"]), labels, options)
    right = by_index if right is None else right
    if right is None:
        raise ValueError(f"target {data['target']!r} is not one of the options")
    replies = data["resps"][0] if data["resps"] else []
    if isinstance(replies, str):  # else each of its characters would be a reply
        raise ValueError("resps holds a text, not a list of replies for each request")
    return [
        Logged.of_reply(reply, labels=labels, options=options, answers=right, repeat=i, **common)
        for i, reply in enumerate(replies or [None])
    ]


def _by_outcome(scores: Floats, hit: bool | None) -> frozenset[int]:
    """The right place if the target does not name it: the best if it was right, else the other of two."""
    best = int(np.argmax(scores))
    if hit is None or not (hit or len(scores) == 2):
        raise ValueError("the options are in the contexts, and which is right is not logged")
    return frozenset({best if hit else 1 - best})


def document_options(doc: Mapping[str, Any], n: int | None = None) -> tuple[str, ...]:
    """The option texts of a document, under the names that tasks give them."""
    for key in _TEXTS:
        texts = doc.get(key)
        if isinstance(texts, Mapping):
            texts = texts.get("text") or texts.get("choices")
        fits = isinstance(texts, Sequence) and not isinstance(texts, str) and all(isinstance(t, str) for t in texts)
        if fits and texts and (n is None or len(texts) == n):
            return tuple(map(str, texts))
    return ()


def _several(doc: Mapping[str, Any], texts: Sequence[str]) -> frozenset[int] | None:
    """The right choices if a document marks each by 1 or 0, or lists the texts of several (as ReCoRD does)."""
    for value in doc.values():
        if isinstance(value, Mapping) and isinstance(value.get("labels"), Sequence) and "choices" in value:
            marks, choices = value["labels"], [str(text).strip() for text in value["choices"]]
            if choices == list(texts) and len(marks) == len(choices) and set(marks) <= {0, 1}:
                return frozenset(k for k, mark in enumerate(marks) if mark)
    for value in map(doc.get, _RIGHT):
        if isinstance(value, list) and len(value) > 1 and all(isinstance(text, str) for text in value):
            right = {_plain(text) for text in value}
            places = frozenset(k for k, text in enumerate(texts) if _plain(text) in right)
            if places and len(places) < len(texts):
                return places
    return None


def _plain(text: str) -> str:
    """A text as SQuAD's scorers compare it: without case, punctuation, articles and spaces at its ends."""
    words = re.sub(r"[^\w\s]", "", text.casefold()).split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))


def _named(
    target: str, labels: Sequence[str], options: Sequence[str]
) -> tuple[frozenset[int] | None, frozenset[int] | None]:
    """The places that a target names as indices, and those that it names as labels or option texts."""
    parts = [str(part).strip() for part in parse_list(target) or [target]]
    pairs = [(part, part.strip("().")) for part in parts]
    texts, names = [option.strip() for option in options], list(labels)
    by_index = all(part.isdigit() and int(part) < len(names) for part in parts)
    by_text = all(label in names or part in texts for part, label in pairs)
    named = (names.index(label) if label in names else texts.index(part) for part, label in pairs)
    return frozenset(map(int, parts)) if by_index else None, frozenset(named) if by_text else None


def instead(head: Head) -> str:
    """The samples of a results file, or how to have them written."""
    if not {"results", "configs", "n-shot"} <= head.names:
        return ""
    time = head.path.stem.removeprefix("results").removeprefix("_")
    samples = sorted(one.name for one in head.path.parent.glob(f"samples_*{time}.jsonl"))
    return f"give {' '.join(samples)}" if samples else "run lm_eval with --log_samples, and give its samples_*.jsonl"


IMPORTER = Importer(
    "samples_*.jsonl of lm-eval (--log_samples), also of the Open LLM Leaderboard",
    lambda head: {"doc_id", "doc", "arguments", "resps"} <= head.names,
    read,
    instead,
)
