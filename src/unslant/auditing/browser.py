"""Data for the question browser of audit reports."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.auditing.result import AuditResult
from unslant.metrics import METRICS, Block, OrderScores, View, measure, vote
from unslant.reports.page import QuestionBrowser, packed_bytes, packed_probs

VIEWS = (
    ("given", "as given"),
    ("reversed", "reversed"),
    ("labels_reversed", "labels reversed"),
    ("both_reversed", "both reversed"),
)
FILTERS = {
    "all questions": (),
    "answer changes with the order": (("consistency", "=", 0),),
    "same answer in every order": (("consistency", "=", 1),),
    "right in some orders only": (("expected_accuracy", ">", 0), ("expected_accuracy", "<", 1)),
    "right as published, wrong when voted": (("accuracy", "=", 1), ("vote_accuracy", "=", 0)),
    "wrong as published, right when voted": (("accuracy", "=", 0), ("vote_accuracy", "=", 1)),
    "wrong in every order": (("expected_accuracy", "=", 0),),
}
SORTS = {"PBM, highest first": "-pbm", "share of orders right, lowest first": "expected_accuracy", "file order": ""}
MEASURES = ("pbm", "expected_accuracy", "accuracy", "consistency", "vote_accuracy")
EXPLANATION = (
    "Every question as the model saw it, in every order, with the probability of each option. PBM measures how far the "
    "probabilities move with the order; 0 means not at all."
)


MOST_BYTES, MOST_BYTES_COMPARED = 13_500_000, 3_200_000
"""Of the questions of one audit, for a page under 15 MB, and of several compared, for one under 5 MB."""

Key = tuple[str, str]
"""A question set, where there are several, and the id of a question of it."""


def browser(runs: Mapping[str, AuditResult], sets: Mapping[str, str] | None = None) -> QuestionBrowser:
    """The question browser of one or more audits, by name.

    Args:
        sets: audit -> its question set, where they are of several; ids mean the same question only within a set.
    """
    named = [(name, (sets or {}).get(name, ""), result) for name, result in runs.items()]
    keys = list(
        dict.fromkeys(
            (of, key)
            for _, of, result in named
            for key in [*(question.id for question in result.responses.questions), *result.scores.ids]
        )
    )
    most = MOST_BYTES_COMPARED if len(runs) > 1 else MOST_BYTES

    def data(places: Sequence[int]) -> dict[str, Any]:
        """The questions at these places, and each run's probabilities by question index, for JSON."""
        place = {keys[at]: i for i, at in enumerate(places)}
        return {"questions": _questions(named, place), "runs": [_run(*one, place) for one in named]}

    return QuestionBrowser(EXPLANATION, METRICS["pbm"], FILTERS, SORTS, data, len(keys), most)


def _questions(named: Sequence[tuple[str, str, AuditResult]], place: Mapping[Key, int]) -> list[dict[str, Any]]:
    records: dict[Key, dict[str, Any]] = {}
    for _, of, result in named:
        for question in result.responses.questions:
            if (key := (of, question.id)) in place and key not in records:
                record: dict[str, Any] = {"id": question.id, "s": question.stem, "o": list(question.options)}
                record |= {"a": sorted(question.answers), "u": question.subject, "p": list(question.pinned)}
                records[key] = record | ({"c": question.context} if question.context else {})
    for _, of, result in named:
        scores = result.scores
        for i, name in enumerate(scores.ids):
            if (key := (of, name)) in place and key not in records:  # no text was recorded; show the numbers alone
                answers, pinned = (np.flatnonzero(row[i]).tolist() for row in (scores.answers, scores.pinned))
                empty = [""] * int(scores.n_options[i])
                records[key] = {"id": name, "s": "", "o": empty, "a": answers, "u": scores.subjects[i], "p": pinned}
    return [records[key] for key in place]


def _run(name: str, of: str, result: AuditResult, place: Mapping[Key, int]) -> dict[str, Any]:
    scores, values = result.scores, result.metrics.questions
    rows = np.asarray([i for i, id in enumerate(scores.ids) if (of, id) in place], np.intp)
    if scores.stopped is not None or scores.full is not None:
        values = measure(scores)  # not those that represent other questions
    return {
        "name": name,
        "labels": list(scores.labels),
        "at": [place[of, scores.ids[i]] for i in rows],
        "measures": {
            **{key: [None if math.isnan(v) else round(float(v), 6) for v in values[key][rows]] for key in MEASURES},
            "vote": vote(scores).content[rows].tolist(),
        },
        "blocks": [_block(block, rows) for block in scores.blocks],
        "views": [_view(scores, getattr(scores, view), words, rows) for view, words in VIEWS],
    }


def _block(block: Block, rows: NDArray[np.intp]) -> dict[str, Any]:
    rows_of_block = np.isin(block.index, rows)
    contents = np.argsort(block.positions[:1] if block.same_orders else block.positions[rows_of_block], axis=2)
    return {
        "index": np.searchsorted(rows, block.index[rows_of_block]).tolist(),
        "n": block.n,
        "k": block.k,
        "shared": block.same_orders,
        "contents": packed_bytes(contents),  # at each position, from the top
        "probs": packed_probs(block.probs[rows_of_block]),  # of each content
        "chosen": packed_bytes(block.chosen[rows_of_block]),
    }


def _view(scores: OrderScores, view: View, words: str, rows: NDArray[np.intp]) -> dict[str, Any]:
    # padding options sort last
    positions = np.where(scores.exists[rows], view.positions[rows], scores.width + np.arange(scores.width))
    contents = np.argsort(positions, axis=1)
    return {
        "name": words,
        "width": scores.width,
        "ok": packed_bytes(view.ok[rows]),
        "contents": packed_bytes(contents),
        "labels": packed_bytes(np.take_along_axis(view.labels[rows], contents, axis=1)),  # at each position
        "probs": packed_probs(view.probs[rows]),
        "chosen": packed_bytes(view.chosen[rows]),
    }
