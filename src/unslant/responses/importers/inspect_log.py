"""Logs of inspect_ai (``.eval``, ``.json``), read with inspect_ai itself (``pip install 'unslant[inspect]'``).

Answers are read from the reply, not from the score, with label scores at the token of the answer if the log has the
most probable tokens. After ``dataset.shuffle_choices`` a sample holds the options as shown. The deprecated
``multiple_choice(shuffle=...)`` turns options, messages and reply back to the file's order when it logs; the page as
sent, and the reply to it, are in the transcript and in the score's explanation, and are read there. Samples of
:func:`unslant.inspect.in_orders` have question, order and labels in their metadata, under :data:`SHOWN`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from unslant.arrays import ROUNDING, Floats, grouped
from unslant.errors import InputError, first_line, needed, printable, shortened
from unslant.presentations import ALPHABETS, labels_for
from unslant.questions.fields import passage_of
from unslant.responses.importers.logged import Log, Logged, stated, understood, unit_share
from unslant.responses.importers.page_text import PageText
from unslant.responses.importers.registry import Head, Importer

SHOWN = "unslant"
"""Key of a sample's metadata: ``id`` of the question, ``order`` (the option's index in it at each place), ``labels``,
``pinned``."""
_SHUFFLED, _REPLY = "Choices were shuffled before generating a response", "Shuffled answer:"


def recognises(head: Head) -> bool:
    return {"header.json", "_journal/start.json"} & head.names != set() or {"eval", "samples", "status"} <= head.names


def read(head: Head) -> list[Log]:
    path = head.path
    read_eval_log = needed("inspect_ai.log", f"{path}, a log of inspect,", InputError).read_eval_log
    try:
        log = read_eval_log(str(path), resolve_attachments=True)
    except Exception as error:  # inspect's reader passes on anything that zip, JSON and pydantic raise
        raise InputError.at(path, f"inspect cannot read it: {type(error).__name__}: {first_line(error)}") from None
    pages = []
    dropped: Counter[str] = Counter()
    notes, caveats = [], []
    _check_one_answer(log, path)
    scorer = _scored_by(log.samples or [])
    for sample in log.samples or []:
        if not sample.choices:
            dropped["samples that are no multiple choice"] += 1
            continue
        place = f"{path}, sample {sample.id} of epoch {sample.epoch}"
        with understood(place, "sample that can be read"):
            page, shuffled = read_page(sample, place)
            pages.append(replace(page, score=_score(sample, scorer)))
            if shuffled:
                notes.append("Options were shuffled by the solver, and logged in the file's order: orders are read "
                             "from the pages as sent.")  # fmt: skip
    expected = len(log.eval.dataset.sample_ids or []) * (log.eval.config.epochs or 1)
    if missing := expected - len(log.samples or []):
        dropped["samples that the log names but does not hold"] += max(0, missing)
    reason = _error(log)
    if log.status != "success":
        held = f"; its log holds {len(log.samples or []):,} of {expected:,} samples" if missing > 0 else ""
        why = f": {reason}" if reason not in ("", log.status) else ""
        caveats.append(f"The run failed (status {log.status}{why}){held}.")
    if not pages:
        why = f"; its run ended with status {log.status}: {reason}" if reason else ""
        raise InputError.at(path, f"holds no multiple-choice samples{why}")
    about = stated(
        {"inspect": log.eval.packages.get("inspect_ai")}
        | {f"task argument {key}": value for key, value in log.eval.task_args.items()}
    )
    metric = f"inspect's {scorer}" if scorer else ""
    logged = Log(log.eval.model, "inspect", "words", tuple(pages), log.eval.task, +dropped, about, tuple(notes))
    return [replace(logged, metric=metric, means=_reduced(log, scorer), caveats=tuple(caveats))]


def _check_one_answer(log: Any, path: Path) -> None:
    """Raises InputError if an answer is a set of choices."""
    # Inspect counts such an answer as right only if the whole set is; one choice a question could not reproduce that.
    several = sum(bool(sample.choices) and len(sample.target) > 1 for sample in log.samples or [])
    if several and any(step.params.get("multiple_correct") for step in log.plan.steps):
        raise InputError.at(
            path,
            f"was run with multiple_correct=True, and in {several:,} of {len(log.samples):,} samples several choices "
            "are right: an answer is then a set of choices, and unslant audits one choice a question. Audit the "
            "samples with one right choice, logged without multiple_correct",
        )


_VERDICTS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Inspect's values for correct, partly correct, incorrect and no answer."""
_ACCURACIES = ("accuracy", "mean")


def _scored_by(samples: Sequence[Any]) -> str:
    """The score that is compared with the answers read here: that of inspect's ``choice``, else the first that is only
    right or wrong, else the first."""
    values = grouped((name, _score(sample, name)) for sample in samples for name in _values(sample))
    binary = (name for name, scores in values.items() if set(scores) <= {0.0, 1.0, None} and {*scores} != {None})
    choice = (name for name in values if name.rpartition("/")[2].startswith("choice"))
    return next(chain(choice, binary, values), "")


def _reduced(log: Any, scorer: str) -> dict[str, float]:
    """The accuracies of a scorer over several epochs that are not the mean over their samples, by name."""
    means = {}
    for result in log.results.scores if log.results else ():
        name = result.name if result.name == result.scorer else f"{result.scorer}, {result.name}"
        value = next((result.metrics[key].value for key in _ACCURACIES if key in result.metrics), None)
        if name == scorer and result.reducer not in (None, "mean") and (share := unit_share(value)) is not None:
            means[f"inspect's {scorer}, {result.reducer} of {log.eval.config.epochs} epochs"] = share
    return means


def _values(sample: Any) -> dict[str, Any]:
    """The values of a sample's scores by scorer, or by ``scorer, key`` if it gives several."""
    values: dict[str, Any] = {}
    for name, score in (sample.scores or {}).items():
        several = isinstance(score.value, Mapping)
        values |= {f"{name}, {key}": one for key, one in score.value.items()} if several else {name: score.value}
    return values


def _score(sample: Any, name: str) -> float | None:
    """One of a sample's scores, from 0 to 1; None if it has none, or another kind of value."""
    value = None if _failure(sample) else _values(sample).get(name)
    return _VERDICTS[value] if isinstance(value, str) and value in _VERDICTS else unit_share(value)


def _error(log: Any) -> str:
    """The error of the run, or else the most frequent one of its samples, on one line; empty without any."""
    errors = [log.error] if log.error is not None else [one.error for one in log.samples or [] if one.error is not None]
    return Counter(map(_message, errors)).most_common(1)[0][0] if errors else ""


def _message(error: Any) -> str:
    message = "cancelled" if error.message.startswith("CancelledError(") else error.message
    return shortened(printable(first_line(Exception(message))), 300)


def _failure(sample: Any) -> str:
    """Why the answer of a sample does not count: its error, or its invalidation by the user; empty if it does."""
    if sample.error is not None:
        return _message(sample.error)
    mark = getattr(sample, "invalidation", None)  # older versions have none
    return "" if mark is None else f"invalidated: {mark.reason}" if mark.reason else "invalidated"


def read_page(sample: Any, place: str) -> tuple[Logged, bool]:
    """The page of an ``EvalSample``, and whether it was shown in another order than it is logged in."""
    choices, metadata = tuple(map(str, sample.choices)), sample.metadata or {}
    shown_as = metadata.get(SHOWN) or {}
    labels = tuple(shown_as.get("labels") or labels_for(ALPHABETS["A"], len(choices)))
    answers = target_places(sample.target, labels)
    failure = _failure(sample)
    failed = bool(failure) or sample.output is None or not sample.output.choices
    options, reply = choices, None if failed else sample.output.completion
    if sent := _as_sent(sample, labels):
        page, reply = sent[0], None if failure else sent[1]
        options = PageText(page).options(labels)
        if sorted(options) != sorted(text.strip() for text in choices):
            raise InputError.at(
                place,
                "was shown with shuffled options, in an order that is not in the log; shuffle the data set instead "
                "(dataset.shuffle_choices), and log again",
            )
        texts = [choices[k].strip() for k in answers]
        answers = frozenset(k for k, text in enumerate(options) if text.strip() in texts)
    asked = sample.input
    if not isinstance(asked, str):
        asked = "\n".join(one.text for one in sample.messages if one.role == "user")
    reading = Logged.of_reply(
        reply,
        labels=labels,
        options=options,
        finish_reason=None if failed else sample.output.choices[0].stop_reason,
        id=str(shown_as.get("id", sample.id)),
        order=tuple(shown_as["order"]) if "order" in shown_as else None,
        pinned=tuple(shown_as.get("pinned", ())),
        besides=bool(shown_as.get("besides", False)),
        answers=answers,
        place=place,
        question=asked if isinstance(sample.input, str) else PageText(asked).question,
        context=passage_of(metadata) or PageText(asked).passage,
        subject=str(metadata.get("subject", "")),
        repeat=sample.epoch - 1,
    )
    if failed:
        limit = sample.limit.type if sample.limit is not None and not failure else ""
        # Inspect keeps no reply that exceeds the sample's tokens: as one that exceeds its own, it has no answer.
        status = "cut" if limit == "token" else "error"
        reading = replace(reading, status=status, reply=failure or (f"ended by its {limit} limit" if limit else None))
    tokens = [] if failed or not sample.output.choices[0].logprobs else sample.output.choices[0].logprobs.content
    return _scored(reading, tokens), sent is not None


def _as_sent(sample: Any, labels: Sequence[str]) -> tuple[str, str | None] | None:
    """The page as sent and the reply to it, from the score or the transcript; None if they are logged as sent."""
    # With multiple_choice(shuffle=...) the model says "ANSWER: A", and the log says C: label shares counted from the
    # log would make a model that always says A look uniform.
    for score in (sample.scores or {}).values():
        if (score.explanation or "").startswith(_SHUFFLED):
            page, _, reply = score.explanation.rpartition(_REPLY)
            return page, reply
    sent = [event for event in sample.events or [] if event.event == "model" and event.output.choices]
    if not sent or sample.error is not None:
        return None
    page = next((message.text for message in reversed(sent[-1].input) if PageText(message.text).options(labels)), "")
    options = PageText(page).options(labels)
    turned = bool(options) and list(options) != [str(choice).strip() for choice in sample.choices]
    same = sorted(options) == sorted(str(choice).strip() for choice in sample.choices)
    return (page, sent[-1].output.completion) if turned and same else None


def _scored(page: Logged, tokens: Sequence[Any]) -> Logged:
    """The page with label scores at the token of its answer, and at the first token, where the log has them."""
    first, _ = _label_scores(tokens[0], page.labels) if tokens else (None, ())
    page = replace(page, first=first)
    if page.named is None:
        return page
    label = page.labels[page.named]
    # The last such token: in "ANSWER: A" the label is not the first token, and reasoning names other labels before it.
    token = next((one for one in reversed(tokens) if _bare(one.token) == label), None)
    scores, bounds = _label_scores(token, page.labels) if token is not None else (None, ())
    return page if scores is None else replace(page, logprobs=scores, bounds=bounds)


def _bare(token: str) -> str:
    return token.strip().strip("().:*'\"")


def _label_scores(token: Any, labels: Sequence[str]) -> tuple[Floats | None, tuple[int, ...]]:
    """(n,) log-probability of each label among a token's alternatives, and the places where it is an upper bound.

    The spellings of a label (with a space before it, in brackets) are summed. A label that is not among the
    alternatives has at most the least of their probabilities, and at most what they leave of 1.
    """
    top = {one.token: one.logprob for one in (*(token.top_logprobs or ()), token)}
    if not token.top_logprobs or any(value > ROUNDING or value != value for value in top.values()):
        return None, ()
    logprobs = [[value for text, value in top.items() if _bare(text) == label] for label in labels]
    if not any(logprobs):
        return None, ()
    rest = max(0.0, 1.0 - math.fsum(map(math.exp, top.values())))
    ceiling = min(min(top.values()), math.log(rest + ROUNDING))
    scores = [float(np.logaddexp.reduce(values)) if values else ceiling for values in logprobs]
    return np.minimum(scores, 0.0), tuple(k for k, values in enumerate(logprobs) if not values)


def target_places(target: str | Sequence[str], labels: Sequence[str]) -> frozenset[int]:
    """Places of the right options in a sample's target: ``"B"``, ``["A", "C"]``, or ``"A, C"``, as inspect reads it.

    Raises:
        ValueError: if it names a label that is not there.
    """
    named = re.findall(r"[^\W\d_]|\d+", target if isinstance(target, str) else " ".join(target))
    if unknown := [name for name in named if name.upper() not in labels]:
        raise ValueError(f"target {target!r}: {unknown[0]!r} is not one of the labels {', '.join(labels)}")
    return frozenset(labels.index(name.upper()) for name in named)


IMPORTER = Importer("a log of inspect (.eval or .json)", recognises, read)
