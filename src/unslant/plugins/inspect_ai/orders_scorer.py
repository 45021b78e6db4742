"""The scorer of samples in several orders, and the metrics over all orders. Needs ``unslant[inspect]``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from inspect_ai.log import EvalSample
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState

from unslant.arrays import Floats
from unslant.errors import InputError
from unslant.metrics import preference, read_scores
from unslant.metrics.measures import QuestionValues, measure
from unslant.responses.importers import Log, Logged, joined
from unslant.responses.importers.inspect_log import SHOWN, read_page
from unslant.responses.table import GENERATE


@metric(scores="unreduced")
def over_orders() -> Metric:
    """The results of one question's answers in several orders; needs the scores of :func:`choice_in_orders`.

    - ``mean_over_orders``: accuracy, mean over the orders of each question, then over questions; a reply without an
      answer is not right. ``stderr`` takes questions as independent, not their orders.
    - ``consistency``: share of questions that get the same answer in every order.
    - ``pbm``: permutation bias (P1), where every answer has top log-probabilities.
    - ``unanswered``: share of replies without an answer: unparsed, refused, or naming several options.
    - what is preferred when unsure, in words ("falls back on A when unsure"), with the share of questions whose answer
      changes with the order.

    Numbers are of each epoch, averaged over epochs; the words are of the first. Questions with a missing order are left
    out of all but ``unanswered``.
    """

    def compute(scores: list[SampleScore]) -> Value:
        return _numbers([(score.score.metadata or {})["page"] for score in scores])

    return compute


@scorer(metrics=[over_orders()])
def choice_in_orders() -> Scorer:
    """Right if exactly the right choices are named; for samples of :func:`in_orders`.

    Replies are read as ``unslant audit --log`` reads them from the log. The score's metadata has the ``page``: what was
    shown and what came back, with the log-probabilities of the labels where the reply has them.
    """

    async def score(state: TaskState, target: Target) -> Score:
        place = f"sample {state.sample_id}"
        if SHOWN not in state.metadata:
            raise InputError.at(place, "has no order in its metadata; make its data set with unslant.inspect.in_orders")
        if any(choice.original_position != k for k, choice in enumerate(state.choices)):
            raise InputError.at(place, "is shuffled by its solver; take shuffle off multiple_choice()")
        sample = EvalSample(
            id=state.sample_id,
            epoch=state.epoch,
            input=state.input,
            choices=[choice.value for choice in state.choices],
            target=list(target),
            messages=state.messages,
            output=state.output,
            metadata=state.metadata,
        )
        page, _ = read_page(sample, place)
        said = state.output.completion
        reasons = {"unparsed": "invalid_response_format" if said.strip() else "no_response", "refused": "refusal"}
        return Score(
            value="C" if page.status == "ok" and page.chosen == page.answers else "I" if said.strip() else "N",
            answer=", ".join(page.labels[k] for k in sorted(page.chosen or ())),
            explanation=said,
            reason=reasons.get(page.status),
            metadata={"page": {**_plain(page), "epoch": state.epoch}},
        )

    return score


_TEXTS = {"place", "question", "options", "reply"}
"""What the sample has already."""
_READ: Mapping[str, Callable[[Any], Any]] = {
    "tuple[str, ...]": tuple,
    "tuple[int, ...]": tuple,
    "Order | None": tuple,
    "frozenset[int]": frozenset,
    "frozenset[int] | None": frozenset,
    "Floats | None": np.asarray,
}
"""Type of a field of a page -> how it is made from a list."""


def _plain(page: Logged) -> dict[str, Any]:
    """A page without its texts, for JSON; :func:`_page` inverts it."""
    values = {f.name: getattr(page, f.name) for f in fields(page) if f.name not in _TEXTS}
    return {name: list(value) if isinstance(value, _LISTS) else value for name, value in values.items()}


_LISTS = (tuple, frozenset, np.ndarray)


def _page(plain: Mapping[str, Any]) -> Logged:
    made = {
        f.name: _READ[str(f.type)](plain[f.name]) if isinstance(plain[f.name], list) else plain[f.name]
        for f in fields(Logged)
        if f.name in plain
    }
    return Logged(place=f"question {plain['id']}", **made)


def _numbers(pages: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    epochs: dict[int, list[Logged]] = {}
    for page in pages:
        epochs.setdefault(page["epoch"], []).append(_page(page))
    tables = [joined([Log("", "inspect", "words", tuple(epochs[epoch]))]) for epoch in sorted(epochs)]
    scores = [read_scores(table) for table in tables]
    found = [measure(one) for one in scores]
    rights: dict[str, list[float]] = {}
    for one, values in zip(scores, found, strict=True):
        for name, value in zip(one.ids, _right(values), strict=True):
            if not math.isnan(value):
                rights.setdefault(name, []).append(value)
    right = np.array([np.mean(values) for values in rights.values()])
    unsure = preference(scores[0])
    numbers = {
        "mean_over_orders": _mean([right]),
        "stderr": float(right.std(ddof=1)) / math.sqrt(len(right)) if len(right) > 1 else math.nan,
        "consistency": _mean([values["consistency"] for values in found]),
        "pbm": _mean([m["pbm"] for one, m in zip(scores, found, strict=True) if one.elicitation != GENERATE]),
        "unanswered": sum(one.n_unanswered + one.n_failed for one in scores) / len(pages),
        unsure.phrase: unsure.unsure.value,
    }
    return {name: None if math.isnan(value) else value for name, value in numbers.items()}


def _right(values: QuestionValues) -> Floats:
    """Of each question, the share of orders in which it is right; of the given order, where there is only one."""
    expected = values["expected_accuracy"]
    return expected if np.isfinite(expected).any() else values["accuracy"]


def _mean(epochs: Sequence[Floats]) -> float:
    known = [value for values in epochs for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan
