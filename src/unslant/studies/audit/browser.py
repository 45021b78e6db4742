"""Data for the question browser of audit reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unslant.metrics import METRICS, Block, OrderScores, View, choose, measure, vote
from unslant.reports.browser import Filter, QuestionBrowser, Sort, packed_bytes, packed_probs

if TYPE_CHECKING:
    from unslant.studies.audit.result import AuditResult

VIEWS = (
    ("given", "as given"),
    ("reversed", "reversed"),
    ("labels_reversed", "labels reversed"),
    ("both_reversed", "both reversed"),
)
FILTERS = (
    Filter("all questions"),
    Filter("answer changes with the order", (("consistency", "=", 0),)),
    Filter("same answer in every order", (("consistency", "=", 1),)),
    Filter("right in some orders only", (("expected_accuracy", ">", 0), ("expected_accuracy", "<", 1))),
    Filter("right as reported, wrong when voted", (("accuracy", "=", 1), ("vote_accuracy", "=", 0))),
    Filter("wrong as reported, right when voted", (("accuracy", "=", 0), ("vote_accuracy", "=", 1))),
    Filter("wrong in every order", (("expected_accuracy", "=", 0),)),
)
SORTS = (
    Sort("PBM, highest first", "pbm", descending=True),
    Sort("share of orders right, lowest first", "expected_accuracy"),
    Sort("file order"),
)
MEASURES = ("pbm", "expected_accuracy", "accuracy", "consistency", "vote_accuracy")
EXPLANATION = (
    "Every question as the model saw it, in every order, with the probability of each option. PBM measures how far the "
    "probabilities move with the order; 0 means not at all."
)


def browser(runs: Mapping[str, AuditResult]) -> QuestionBrowser:
    """The question browser of one or more audits, by name."""
    return QuestionBrowser(EXPLANATION, METRICS["pbm"], FILTERS, SORTS, partial(browser_data, runs))


def browser_data(runs: Mapping[str, AuditResult]) -> dict[str, Any]:
    """Questions in the file order of the first run, and each run's probabilities by question index, for JSON."""
    questions = _questions(runs)
    place = {question["id"]: i for i, question in enumerate(questions)}
    return {"questions": questions, "runs": [_run(name, result, place) for name, result in runs.items()]}


def _questions(runs: Mapping[str, AuditResult]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for result in runs.values():
        for question in result.responses.questions:
            record = {"id": question.id, "s": question.stem, "o": list(question.options), "a": sorted(question.answers)}
            record |= {"u": question.subject, "p": list(question.pinned)}
            found.setdefault(question.id, record | ({"c": question.context} if question.context else {}))
    for result in runs.values():
        scores = result.scores
        for i, name in enumerate(scores.ids):
            if name not in found:  # no question text was recorded; show the numbers alone
                answers, pinned = (np.flatnonzero(row[i]).tolist() for row in (scores.answers, scores.pinned))
                empty = [""] * int(scores.n_options[i])
                found[name] = {"id": name, "s": "", "o": empty, "a": answers, "u": scores.subjects[i], "p": pinned}
    return list(found.values())


def _run(name: str, result: AuditResult, place: dict[str, int]) -> dict[str, Any]:
    scores, values = result.scores, result.metrics.questions
    if scores.stopped is not None:
        values = measure(scores)  # not those that stand for other questions
    return {
        "name": name,
        "labels": list(scores.labels),
        "at": [place[question] for question in scores.ids],
        "measures": {key: _numbers(getattr(values, key)) for key in MEASURES} | {"vote": vote(scores).content.tolist()},
        "blocks": [_block(block) for block in scores.blocks],
        "views": [_view(scores, getattr(scores, view), words) for view, words in VIEWS],
    }


def _block(block: Block) -> dict[str, Any]:
    contents = block.contents[:1] if block.same_orders else block.contents
    return {
        "index": block.index.tolist(),
        "n": block.n,
        "k": block.k,
        "shared": block.same_orders,
        "contents": packed_bytes(contents),  # at each position, from the top
        "probs": packed_probs(block.probs),  # of each content
        "chosen": packed_bytes(choose(block.probs, block.positions)),
    }


def _view(scores: OrderScores, view: View, words: str) -> dict[str, Any]:
    # padding options sort last
    positions = np.where(scores.exists, view.positions, scores.width + np.arange(scores.width))
    contents = np.argsort(positions, axis=1)
    return {
        "name": words,
        "width": scores.width,
        "ok": packed_bytes(view.ok),
        "contents": packed_bytes(contents),
        "labels": packed_bytes(np.take_along_axis(view.labels, contents, axis=1)),  # at each position
        "probs": packed_probs(view.probs),
        "chosen": packed_bytes(choose(view.probs, view.positions)),
    }


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(v) else round(float(v), 6) for v in values]
