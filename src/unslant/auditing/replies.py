"""What replies tell beside their answers: how many are none, by order, the noise of sampling, and stated confidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unslant.arrays import Jsonable
from unslant.metrics import Bootstrap, Estimate, Numbers, OrderScores
from unslant.metrics.calibration import Calibration, calibration
from unslant.metrics.noise import noise_floor
from unslant.metrics.pages import Repeat
from unslant.metrics.registry import metric
from unslant.metrics.vote import vote
from unslant.replies import stated_confidence
from unslant.responses import Response, Responses, Run
from unslant.responses.table import GENERATE

MOST_ORDERS = 24
"""Where more orders than this were shown, their replies are counted together."""


@dataclass(frozen=True)
class OrderReplies(Jsonable):
    """The replies to questions with ``n_options`` options in one order.

    Attributes:
        order: the option at each place, from the top; empty for all orders together.
        replies: all that came.
        answered: naming one option; none_or_several: naming none or several of them.
        failed: requests that got no reply.
    """

    n_options: int
    order: tuple[int, ...]
    replies: int
    answered: int
    none_or_several: int
    unparsed: int
    refused: int
    failed: int


@dataclass(frozen=True)
class Adaptive(Jsonable):
    """What stopping early has saved, and how far it can be trusted.

    Attributes:
        agreeing: questions whose answers as given and reversed agree.
        checked: those of them that were asked in all orders all the same, at random.
        other_vote: share of the checked ones in which the vote over all orders is another answer.
        requests, requests_of_all: made, without repeats, and needed for every question in all orders.
        tokens_saved: requests saved times the mean tokens of a request, in and out; nan if nobody counted tokens.
    """

    agreeing: int
    checked: int
    other_vote: Estimate
    requests: int
    requests_of_all: int
    tokens_saved: float


@dataclass(frozen=True)
class Replies(Jsonable):
    """See the module.

    Attributes:
        unparsed, refused, none_or_several: share of the replies, over all orders, in which no answer is found, that
            refuse, and that name none or several options.
        calibration: None where no reply states its confidence.
        adaptive: None where every question was asked in all orders.
    """

    by_order: tuple[OrderReplies, ...]
    unparsed: Estimate
    refused: Estimate
    none_or_several: Estimate
    noise: Numbers
    calibration: Calibration | None
    adaptive: Adaptive | None


@metric("replies.none_or_several", "none or several", "replies naming none or several options; not right", unit="share")
@metric(
    "adaptive.other_vote", "other vote", "agreeing questions whose vote over all orders is another answer", unit="share"
)
def replies_of(responses: Responses, scores: OrderScores, bootstrap: Bootstrap) -> Replies | None:
    """None where labels were scored."""
    if scores.elicitation != GENERATE:
        return None
    rows = responses.where(elicitation=GENERATE, kind=("order", "given", "reverse")).rows()
    once = [row for row in rows if not row.repeat]
    by_order: dict[str, list[int]] = {}
    pages: dict[tuple[str, tuple[int, ...]], list[int]] = {}
    for row in once:
        by_order.setdefault(row.question_id, []).append(row.choice)
    for row in rows:
        pages.setdefault((row.question_id, row.contents), []).append(row.choice)
    by_repeat: dict[str, list[list[int]]] = {}
    for (name, _), answers in pages.items():
        if len(answers) > 1:
            by_repeat.setdefault(name, []).append(answers)
    return Replies(
        _by_order(once),
        _share_of("unparsed", once, scores, bootstrap),
        _share_of("refused", once, scores, bootstrap),
        _share_of("none_or_several", once, scores, bootstrap),
        noise_floor(scores.ids, by_order, by_repeat, bootstrap),
        _calibration(once, scores, bootstrap),
        _adaptive(responses.run, len(once), scores, bootstrap),
    )


def repeats_of(responses: Responses, scores: OrderScores) -> list[Repeat]:
    """Further answers to pages that were shown again."""
    kinds = ("order", "given", "reverse")
    again = sorted(set(responses.table["repeat"].unique().to_pylist()) - {0})
    rows = [
        row
        for repeat in again
        for row in responses.where(elicitation=scores.elicitation, kind=kinds, repeat=repeat).rows()
    ]
    place = {name: q for q, name in enumerate(scores.ids)}
    return [(place[r.question_id], r.contents, r.choice in r.answers) for r in rows if r.status != "error"]


def _by_order(rows: Sequence[Response]) -> tuple[OrderReplies, ...]:
    orders: dict[int, set[tuple[int, ...]]] = {}
    for row in rows:
        orders.setdefault(row.n_options, set()).add(row.contents)
    counts: dict[tuple[int, tuple[int, ...]], Counter[str]] = {}
    for row in rows:
        order = row.contents if len(orders[row.n_options]) <= MOST_ORDERS else ()
        counts.setdefault((row.n_options, order), Counter())[_outcome(row)] += 1
    return tuple(
        OrderReplies(*key, c.total() - c["error"], c["ok"], c["none_or_several"], c["unparsed"], c["refused"],
                     c["error"])
        for key, c in sorted(counts.items())
    )  # fmt: skip


def _outcome(row: Response) -> str:
    return row.status if row.status != "ok" or row.choice >= 0 else "none_or_several"


def _share_of(outcome: str, rows: Sequence[Response], scores: OrderScores, bootstrap: Bootstrap) -> Estimate:
    place = {name: q for q, name in enumerate(scores.ids)}
    came = [row for row in rows if row.status != "error"]
    having, every = (
        np.bincount([place[row.question_id] for row in some], minlength=len(scores)).astype(np.float64)
        for some in ([row for row in came if _outcome(row) == outcome], came)
    )
    return bootstrap.ratio(having, every)


def _calibration(rows: Sequence[Response], scores: OrderScores, bootstrap: Bootstrap) -> Calibration | None:
    place = {name: q for q, name in enumerate(scores.ids)}
    found = [
        (place[row.question_id], stated, row.choice in row.answers)
        for row in rows
        if row.choice >= 0 and row.answers and (stated := stated_confidence(row.raw or "")) is not None
    ]
    question, confidence, right = (np.asarray(column) for column in zip(*found, strict=True)) if found else ([],) * 3
    return calibration(np.asarray(question, np.int64), np.asarray(confidence), np.asarray(right), bootstrap)


def _adaptive(run: Run, requests: int, scores: OrderScores, bootstrap: Bootstrap) -> Adaptive | None:
    if run.adaptive is None or scores.stopped is None or scores.checked is None:
        return None
    checked = scores.checked & (scores.order_counts > 0)
    other = np.where(checked, vote(scores).content != scores.given.chosen, np.nan)
    spent, full = run.replies, run.adaptive.requests_of_all
    counted = spent.requests - spent.failed - spent.uncounted
    each = (spent.input_tokens + spent.output_tokens) / counted if counted else float("nan")
    return Adaptive(
        int(scores.stopped.sum() + scores.checked.sum()),
        int(scores.checked.sum()),
        bootstrap.mean(other, note="" if checked.any() else "no agreeing question was asked in all orders"),
        requests,
        full,
        (full - requests) * each,
    )
