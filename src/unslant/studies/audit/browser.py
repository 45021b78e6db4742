"""The data behind the question browser, small enough for a page: probabilities as 16-bit numbers, all of it compressed.

The page reads what is written here; see ``templates/browser.js`` for the other side.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unslant.metrics import OrderScores, View, vote
from unslant.metrics.scores import Block
from unslant.metrics.ties import choose
from unslant.studies.audit.runs import Run

LEVELS = 65535
"""A probability p is kept as the integer nearest to p * LEVELS: exact to 0.00001."""
VIEWS = (
    ("given", "as given"),
    ("reversed", "reversed"),
    ("labels_reversed", "labels reversed"),
    ("both_reversed", "both reversed"),
)


def browser_data(runs: Sequence[Run]) -> dict[str, Any]:
    """Questions, and every run's probabilities for them, as plain values for JSON.

    ``questions`` come in the order of the first run's file and are referred to by their place in that list.
    """
    questions = _questions(runs)
    place = {question["id"]: i for i, question in enumerate(questions)}
    return {"levels": LEVELS, "questions": questions, "runs": [_run(run, place) for run in runs]}


def packed(data: dict[str, Any]) -> str:
    """JSON, gzipped, in base64: what a page can carry without a word of it being taken for markup."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _questions(runs: Sequence[Run]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for run in runs:
        for question in run.result.responses.questions:
            record = {"id": question.id, "s": question.stem, "o": list(question.options), "a": sorted(question.answers)}
            record |= {"u": question.subject, "p": list(question.pinned)}
            found.setdefault(question.id, record | ({"c": question.context} if question.context else {}))
    for run in runs:
        scores = run.scores
        for i, name in enumerate(scores.ids):
            if name not in found:  # the file holds no texts: the numbers can be looked at all the same
                answers, pinned = (np.flatnonzero(row[i]).tolist() for row in (scores.answers, scores.pinned))
                empty = [""] * int(scores.n_options[i])
                found[name] = {"id": name, "s": "", "o": empty, "a": answers, "u": scores.subjects[i], "p": pinned}
    return list(found.values())


def _run(run: Run, place: dict[str, int]) -> dict[str, Any]:
    scores, values = run.scores, run.metrics.questions
    voted = vote(scores)
    return {
        "name": run.name,
        "labels": list(scores.labels),
        "at": [place[name] for name in scores.ids],
        "pbm": _numbers(values.pbm),
        "right": _numbers(values.expected_accuracy),
        "accuracy": _numbers(values.accuracy),
        "same": _numbers(values.consistency),
        "vote": voted.content.tolist(),
        "vote_right": _numbers(values.vote_accuracy),
        "blocks": [_block(block) for block in scores.blocks],
        "views": [_view(scores, getattr(scores, name), words) for name, words in VIEWS],
    }


def _block(block: Block) -> dict[str, Any]:
    contents = block.contents[:1] if block.same_orders else block.contents
    return {
        "index": block.index.tolist(),
        "n": block.n,
        "k": block.k,
        "shared": block.same_orders,
        "contents": _bytes(contents, np.uint8),  # at each position, from the top
        "probs": _bytes(np.rint(block.probs * LEVELS), np.dtype("<u2")),  # of each content
        "chosen": _bytes(choose(block.probs, block.positions), np.uint8),
    }


def _view(scores: OrderScores, view: View, words: str) -> dict[str, Any]:
    # options a question does not have stand after the ones it has
    positions = np.where(scores.exists, view.positions, scores.width + np.arange(scores.width))
    contents = np.argsort(positions, axis=1)
    return {
        "name": words,
        "width": scores.width,
        "ok": _bytes(view.ok, np.uint8),
        "contents": _bytes(contents, np.uint8),
        "labels": _bytes(np.take_along_axis(view.labels, contents, axis=1), np.uint8),  # at each position
        "probs": _bytes(np.rint(view.probs * LEVELS), np.dtype("<u2")),
        "chosen": _bytes(choose(view.probs, view.positions), np.uint8),
    }


def _bytes(values: NDArray[Any], dtype: Any) -> str:
    return base64.b64encode(np.ascontiguousarray(values.astype(dtype)).tobytes()).decode()


def _numbers(values: NDArray[np.float64]) -> list[float | None]:
    return [None if math.isnan(v) else round(float(v), 6) for v in values]
