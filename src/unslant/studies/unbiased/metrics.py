"""Scores under the unbiased evaluator (P4): vanilla, ours and the drop, by intervention, and what is lost.

Presentations are of kind ``vanilla``, ``boat`` (a random composition, one for each run) or ``only`` (one intervention
alone, with the hint that answer removal needs). A question with several true/false items is right if every one of them
is. A reply that is no answer (``unparsed``, ``refused``) is not right; a presentation without a reply (``error``) is
left out and counted.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from unslant.arrays import Floats, Jsonable
from unslant.errors import InputError
from unslant.metrics import Bootstrap, Estimate, choose
from unslant.metrics.registry import metric
from unslant.presentations import NONE
from unslant.presentations.interventions import BOAT, NAMES, ONLY, VANILLA
from unslant.responses import Response, Responses


@dataclass(frozen=True)
class Alone(Jsonable):
    """Accuracy under one intervention alone (P4, fig. 6), of the same questions as published, and the difference.

    ``unreadable`` as in :class:`Replies`.
    """

    accuracy: Estimate
    vanilla: Estimate
    change: Estimate
    unreadable: Estimate


@dataclass(frozen=True)
class Replies(Jsonable):
    """What came back, as means over questions of shares of presentations.

    Attributes:
        unparsed, refused: shares of the replies.
        unreadable: both together.
        errors: share of the requests.
        readable: accuracy where the reply is an answer.
    """

    unparsed: Estimate
    refused: Estimate
    unreadable: Estimate
    errors: Estimate
    readable: Estimate


@dataclass(frozen=True)
class Confusion(Jsonable):
    """Right or wrong as published against under BOAT (P4, fig. 4): shares of all pairs of question and run.

    ``lost`` is right as published and wrong under BOAT, ``gained`` the other way round.
    """

    both: Estimate
    lost: Estimate
    gained: Estimate
    neither: Estimate


@dataclass(frozen=True)
class BoatMetrics(Jsonable):
    """Everything measured under the unbiased evaluator; :data:`~unslant.metrics.METRICS` says what each number means.

    Attributes:
        run_std: sample standard deviation; nan for one run.
        alone: codes (such as ``OS`` or ``DH+AR``) -> accuracy under that intervention alone.
        by_subject: subject -> ``vanilla`` and ``ours``; empty where there is one subject or none.
        replies: ``vanilla`` and ``ours`` -> what came back.
        no_answer: replies that are no answer, under whatever presentation.
        failed: presentations without a reply, or without a usable score.
    """

    vanilla: Estimate
    ours: Estimate
    drop: Estimate
    runs: tuple[float, ...]
    run_mean: float
    run_std: float
    vanilla_chance: Estimate
    ours_chance: Estimate
    none_found: Estimate
    none_invented: Estimate
    items: Estimate
    alone: Mapping[str, Alone]
    confusion: Confusion
    by_subject: Mapping[str, Mapping[str, Estimate]]
    replies: Mapping[str, Replies]
    no_answer: int
    failed: int


def answered(row: Response) -> frozenset[int] | None:
    """The contents that one row answers, None if it is no answer; of equally probable labels the first counts."""
    if row.status != "ok" or row.logprobs is None:
        return row.chosen if row.status == "ok" else None
    best = row.logprobs.max()
    if not np.isfinite(best):
        return None
    chosen = choose(np.exp(row.logprobs - best), np.arange(len(row.logprobs)))
    return frozenset({row.contents[int(chosen)]})


def correct(row: Response) -> float:
    """1 if one row is right, 0 if not or if its reply is no answer, nan if no reply came.

    A scored label must be one of the right ones. A reply must choose exactly the right contents, options of the same
    text counting as one.
    """
    if row.status in NO_ANSWER:
        return 0.0
    found = answered(row)
    if found is None:
        return math.nan
    if row.logprobs is not None:
        return float(found <= row.answers)
    return float(_texts(row, found) == _texts(row, row.answers))


def _texts(row: Response, contents: frozenset[int]) -> frozenset[int]:
    return frozenset(row.text_ranks[c] if 0 <= c < len(row.text_ranks) else c for c in contents)


class Condition(NamedTuple):
    """The presentations that make one accuracy: a kind, with its run or its interventions (``DH+AR``)."""

    kind: str
    run: int = 0
    codes: str = ""


AS_PUBLISHED = Condition(VANILLA)
NO_ANSWER = ("unparsed", "refused")
"""Statuses of replies that are no answer."""
_ByQuestion: TypeAlias = defaultdict[str, list[float]]


class Outcomes:
    """Per question and :class:`Condition`: right, wrong or failed.

    Attributes:
        ids, subjects: of the Q questions, in the order of their first row.
        no_answer, failed: see :class:`BoatMetrics`.
        replied: whether any row is a reply.
        items, none_found, none_invented: (Q,) see :class:`BoatMetrics`; nan where there is none.

    Raises:
        InputError: if no row belongs to a presentation of the unbiased evaluator.
    """

    def __init__(self, responses: Responses) -> None:
        subjects: dict[str, str] = {}
        right: defaultdict[Condition, _ByQuestion] = defaultdict(partial(defaultdict, list))
        self._status: defaultdict[Condition, defaultdict[str, list[str]]] = defaultdict(partial(defaultdict, list))
        chance: defaultdict[Condition, _ByQuestion] = defaultdict(partial(defaultdict, list))
        noted: defaultdict[str, _ByQuestion] = defaultdict(partial(defaultdict, list))
        self.failed = self.no_answer = 0
        self.replied = False
        for row in responses.rows():
            if row.kind not in (VANILLA, BOAT, ONLY):
                continue
            name = row.question_id
            if unknown := sorted(set(row.interventions) - NAMES.keys()):
                raise InputError(f"question {name!r}: interventions: {unknown[0]!r} is not one of {', '.join(NAMES)}")
            if row.kind == ONLY and not row.interventions:
                raise InputError(f"question {name!r}: interventions: none is named where one was applied alone")
            subjects.setdefault(name, row.subject)
            condition = Condition(row.kind, row.run, "+".join(row.interventions) if row.kind == ONLY else "")
            hit = correct(row)
            right[condition][name].append(hit)
            chance[condition][name].append(sum(c in row.answers for c in row.contents) / max(1, len(row.contents)))
            self._status[condition][name].append("error" if math.isnan(hit) else row.status)
            self.failed += math.isnan(hit)
            self.no_answer += row.status in NO_ANSWER
            self.replied |= row.logprobs is None
            if row.kind == BOAT and {"BT", "QJ"} & set(row.interventions):
                noted["items"][name].append(hit)
            if row.kind == BOAT and NONE in row.contents and not math.isnan(hit):
                kind = "none_found" if NONE in row.answers else "none_invented"
                noted[kind][name].append(float(answered(row) == frozenset({NONE})))
        if not right:
            raise InputError("these responses hold no presentation of the unbiased evaluator (vanilla, boat or only)")
        self.ids, self.subjects = list(subjects), list(subjects.values())
        self._credit = {condition: self._column(math.prod, found) for condition, found in right.items()}
        self._chance = {condition: self._column(math.prod, found) for condition, found in chance.items()}
        self.items = self._column(mean_defined, noted["items"])
        self.none_found = self._column(mean_defined, noted["none_found"])
        self.none_invented = self._column(mean_defined, noted["none_invented"])

    def _column(self, fold: Callable[[list[float]], float], found: _ByQuestion) -> Floats:
        return np.array([fold(found[name]) if name in found else math.nan for name in self.ids])

    def conditions(self, kind: str) -> list[Condition]:
        """The conditions of a kind, by run, or the shorter combinations first."""
        return sorted((c for c in self._credit if c.kind == kind), key=lambda c: (c.run, len(c.codes), c.codes))

    def credit(self, condition: Condition) -> Floats:
        """(Q,) 1 right, 0 not right, nan failed or not asked."""
        return self._credit.get(condition, np.full(len(self.ids), math.nan))

    def readable(self, condition: Condition) -> Floats:
        """(Q,) the same, nan also where a reply is no answer."""
        said = self._status[condition]
        unread = [any(status in NO_ANSWER for status in said.get(name, ())) for name in self.ids]
        return np.where(unread, math.nan, self.credit(condition))

    def share(self, conditions: Iterable[Condition], *statuses: str) -> Floats:
        """(Q,) share of rows with these statuses among those with a reply (``error``: among all); nan where none."""
        shares = []
        for name in self.ids:
            said = [status for condition in conditions for status in self._status[condition].get(name, ())]
            among = [status for status in said if status != "error" or "error" in statuses]
            shares.append(mean_defined(status in statuses for status in among))
        return np.array(shares)

    def runs(self) -> list[Floats]:
        """The credit of each BOAT run."""
        return [self._credit[condition] for condition in self.conditions(BOAT)]

    def ours(self) -> Floats:
        """(Q,) mean credit of each question over its BOAT runs; nan where it has none."""
        return self.over(self.runs())

    def chance(self, kind: str) -> Floats:
        """(Q,) probability that random answers are right, mean over the conditions of a kind; nan where not asked."""
        return self.over([self._chance[condition] for condition in self.conditions(kind)])

    def over(self, columns: Sequence[Floats]) -> Floats:
        """(Q,) mean of columns (Q,) such as runs, each question over those in which it has a value."""
        rows = zip(*columns, strict=True) if columns else [()] * len(self.ids)
        return np.array([mean_defined(row) for row in rows])


def mean_defined(values: Iterable[float]) -> float:
    """Mean of the numbers that are not nan; nan if there are none."""
    kept = [value for value in values if not math.isnan(value)]
    return float(np.mean(kept)) if kept else math.nan


@metric("vanilla", "as published (vanilla)", "accuracy", unit="share", source="P4 table 2", short="as published")
@metric(
    "ours",
    "under interventions (ours)",
    "mean over runs of each question",
    unit="share",
    source="P4 table 2",
    short="under interventions",
)
@metric(
    "drop",
    "drop",
    "as published less under interventions, question by question",
    unit="difference",
    source="P4 table 2",
)
@metric("vanilla_chance", "chance, as published", "answering at random", unit="share")
@metric("ours_chance", "chance, under interventions", "answering at random", unit="share")
@metric("none_found", "none found", "where no option is right, that is answered", unit="share")
@metric("none_invented", "none invented", "where an option is right, none is answered", unit="share")
@metric("items", "true/false items", "each item by itself", unit="share")
@metric("run_mean", "mean over runs", "accuracy under interventions, run by run", unit="share")
@metric("run_std", "std over runs", "sample standard deviation over runs")
@metric("runs", "accuracy of a run", "under interventions", unit="share")
@metric("alone.accuracy", "accuracy", "under one intervention alone", unit="share", source="P4 fig. 6")
@metric("alone.vanilla", "as published", "the same questions as published", unit="share")
@metric(
    "alone.change",
    "change",
    "accuracy less that of the same questions as published",
    unit="difference",
    source="P4 fig. 6",
)
@metric(
    "confusion.both",
    "right as published, right under interventions",
    "of pairs of question and run",
    unit="share",
    source="P4 fig. 4",
)
@metric("confusion.lost", "right as published, wrong under interventions", "of pairs of question and run", unit="share")
@metric(
    "confusion.gained", "wrong as published, right under interventions", "of pairs of question and run", unit="share"
)
@metric(
    "confusion.neither", "wrong as published, wrong under interventions", "of pairs of question and run", unit="share"
)
def boat_metrics(responses: Responses | Outcomes, *, seed: int = 0) -> BoatMetrics:
    """All numbers of the unbiased evaluator from its responses; subjects are resampled whole where there are ten.

    Raises:
        InputError: if the responses are of something else.
    """
    outcomes = responses if isinstance(responses, Outcomes) else Outcomes(responses)
    bootstrap = Bootstrap(len(outcomes.ids), outcomes.subjects, seed=seed)
    vanilla, ours, runs = outcomes.credit(AS_PUBLISHED), outcomes.ours(), outcomes.runs()
    by_run = tuple(map(mean_defined, runs))
    known = [mean for mean in by_run if not math.isnan(mean)]
    alone = {}
    for condition in outcomes.conditions(ONLY):
        credit = outcomes.credit(condition)
        paired = np.where(np.isnan(credit), math.nan, vanilla)
        alone[condition.codes] = Alone(
            bootstrap.mean(credit),
            bootstrap.mean(paired),
            bootstrap.mean(credit - paired, share=False),
            bootstrap.mean(outcomes.share([condition], *NO_ANSWER)),
        )

    def pairs(before: float, after: float) -> Estimate:
        hits = [np.where(np.isnan(run - vanilla), math.nan, (vanilla == before) & (run == after)) for run in runs]
        return bootstrap.mean(outcomes.over(hits))

    def replies(kind: str) -> Replies:
        conditions = outcomes.conditions(kind)
        return Replies(
            unparsed=bootstrap.mean(outcomes.share(conditions, "unparsed")),
            refused=bootstrap.mean(outcomes.share(conditions, "refused")),
            unreadable=bootstrap.mean(outcomes.share(conditions, *NO_ANSWER)),
            errors=bootstrap.mean(outcomes.share(conditions, "error")),
            readable=bootstrap.mean(outcomes.over([outcomes.readable(condition) for condition in conditions])),
        )

    return BoatMetrics(
        vanilla=bootstrap.mean(vanilla),
        ours=bootstrap.mean(ours),
        drop=bootstrap.mean(vanilla - ours, share=False),
        runs=by_run,
        run_mean=mean_defined(by_run),
        run_std=float(np.std(known, ddof=1)) if len(known) > 1 else math.nan,
        vanilla_chance=bootstrap.mean(outcomes.chance(VANILLA)),
        ours_chance=bootstrap.mean(outcomes.chance(BOAT)),
        none_found=bootstrap.mean(outcomes.none_found),
        none_invented=bootstrap.mean(outcomes.none_invented),
        items=bootstrap.mean(outcomes.items),
        alone=alone,
        confusion=Confusion(both=pairs(1, 1), lost=pairs(1, 0), gained=pairs(0, 1), neither=pairs(0, 0)),
        by_subject=_by_subject(outcomes, seed, vanilla=vanilla, ours=ours),
        replies={"vanilla": replies(VANILLA), "ours": replies(BOAT)},
        no_answer=outcomes.no_answer,
        failed=outcomes.failed,
    )


def _by_subject(outcomes: Outcomes, seed: int, **columns: Floats) -> dict[str, dict[str, Estimate]]:
    subjects = np.array(outcomes.subjects)
    names = sorted(set(outcomes.subjects) - {""})
    found = {}
    for name in names if len(names) > 1 else ():
        bootstrap = Bootstrap(int((subjects == name).sum()), seed=seed)
        found[name] = {key: bootstrap.mean(column[subjects == name]) for key, column in columns.items()}
    return found
