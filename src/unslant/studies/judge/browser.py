"""The pairs themselves, those whose verdict changes with the order first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from unslant.arrays import Ints
from unslant.metrics import METRICS
from unslant.presentations import ALPHABETS
from unslant.reports.browser import Filter, QuestionBrowser, Sort, packed_bytes, packed_probs

if TYPE_CHECKING:
    from unslant.studies.judge.result import JudgeResult
    from unslant.studies.judge.verdicts import Verdicts

MOST_BYTES = 5_000_000
"""Of the pairs in a page."""
EXPLANATION = "Every pair in every order, with the verdict or its probabilities; a tie gives each answer its part."
FILTERS = (
    Filter("verdict changes with the order", (("consistency", "=", 0),)),
    Filter("all pairs"),
    Filter("same verdict in every order", (("consistency", "=", 1),)),
)
SORTS = (Sort("moved by the place, most first", "places.moved", descending=True), Sort("file order"))


def browser(results: Mapping[str, JudgeResult]) -> QuestionBrowser | None:
    """The pairs of one or more judges; None where no text is known."""
    texts = {question.id: question for one in results.values() for question in one.responses.questions}
    ids = list(texts)

    def data(places: Sequence[int]) -> dict[str, Any]:
        at = {ids[place]: i for i, place in enumerate(places)}
        questions = [
            {"id": q.id, "s": q.stem, "o": list(q.options), "a": sorted(q.answers), "u": q.subject, "p": []}
            for q in (texts[name] for name in at)
        ]
        return {"questions": questions, "runs": [_run(name, one.verdicts, at) for name, one in results.items()]}

    metric = METRICS["places.moved"]
    return QuestionBrowser(EXPLANATION, metric, FILTERS, SORTS, data, len(ids), MOST_BYTES) if ids else None


def _run(name: str, v: Verdicts, at: Mapping[str, int]) -> dict[str, Any]:
    rows = np.flatnonzero([own in at for own in v.ids])
    voted = np.where(v.voted.sum(axis=1) == 1, v.voted.argmax(axis=1), -1)
    right = (np.nan_to_num(v.credit) * v.right[v.pair]).sum(axis=1)
    measures = {
        "consistency": np.where(v.in_orders, v.same, np.nan),
        "expected_accuracy": np.where(v.labelled, v.per_pair(right), np.nan),
        "vote_accuracy": v.right[np.arange(len(v)), voted] & (voted >= 0),
        "places.moved": v.moved,
    }
    pages = [np.flatnonzero((v.pair == q) & (v.repeat == 0)) for q in rows]
    blocks: dict[tuple[int, int], list[int]] = {}
    for i, q in enumerate(rows):
        blocks.setdefault((int(v.exists[q].sum()), len(pages[i])), []).append(i)
    return {
        "name": name,
        "labels": list(ALPHABETS["A"][: v.exists.shape[1]]),
        "at": [at[v.ids[q]] for q in rows],
        "measures": {
            key: [None if np.isnan(x) else round(float(x), 6) for x in np.asarray(values, float)[rows]]
            for key, values in measures.items()
        }
        | {"vote": voted[rows].tolist()},
        "blocks": [_block(v, np.stack([pages[i] for i in own]), own, n) for (n, k), own in blocks.items() if k],
        "views": [],
    }


def _block(v: Verdicts, pages: Ints, members: Sequence[int], n: int) -> dict[str, Any]:
    probs = np.where(np.isfinite(v.probs[pages]), v.probs[pages], np.nan_to_num(v.credit[pages]))[..., :n]
    clear = probs.max(axis=2) > probs.min(axis=2)
    return {
        "index": list(members),
        "n": n,
        "k": pages.shape[1],
        "shared": False,
        "contents": packed_bytes(v.order[pages][..., :n]),
        "probs": packed_probs(probs),
        "chosen": packed_bytes(np.where(clear, probs.argmax(axis=2), 255)),
    }
