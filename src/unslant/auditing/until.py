"""The audit with ``--until``: ask questions in random order until the intervals are narrow enough.

Every question is asked in the published order, a random share of them in a Latin square of their orders, and the first
ones in all orders; see :mod:`unslant.auditing.until_rule`. All other numbers are estimated as in an audit in two phases
(:mod:`unslant.metrics.two_phase`). If everything has to be asked, the result is that of an audit in all orders.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from unslant.arrays import Floats, Ints, grouped
from unslant.asking import Asked, Progress, ask
from unslant.auditing import OrderDesign
from unslant.auditing.until_rule import ANYTIME, SQUARE, WHOLE, UntilSearch
from unslant.auditing.until_rule import BOUNDS as NUMBERS
from unslant.metrics import Bootstrap, Estimate, OrderScores, measure, read_scores
from unslant.metrics.estimate import CONFIDENCE
from unslant.metrics.order_curve import noise_between_squares
from unslant.metrics.registry import bounds_of
from unslant.metrics.sampling import Sampling
from unslant.models import ScoringModel
from unslant.presentations.orders import question_rng
from unslant.prompts import Elicitation
from unslant.questions import Question, QuestionSet
from unslant.questions.loaders import ranked
from unslant.responses import SCHEMA, Responses, Run
from unslant.responses.run import TwoPhaseRun, UntilRun, UntilStep

_MEASURED = 24
"""Questions whose prompts are measured to estimate what squares, all orders and the whole audit cost."""


def ask_until(
    model: ScoringModel, design: OrderDesign, *, progress: Progress
) -> tuple[Responses, QuestionSet[Question], UntilRun, TwoPhaseRun | None]:
    """Ask until every interval is as narrow as ``settings.until``, or nothing left to ask would narrow them.

    Returns:
        The responses, the questions asked, how the search went, and which were asked in all orders (None: all).
    """
    questions, settings, controls = design.questions, design.settings, design.controls
    rows = _Rows(model, design.elicitation, progress)
    draws = _draws(questions.questions, settings.seed)
    every = list(chain.from_iterable(draws))
    shown = (design.published, design.square, design.whole)  # by level
    some = every[:_MEASURED]
    costs = [_cost(chain.from_iterable(map(pages, some)), design.elicitation) / len(some) for pages in shown]
    published, square, whole = costs
    luck = [question_rng(draw[0].id, settings.seed, "until").random() for draw in draws]
    search = UntilSearch(
        float(settings.until or 0), np.asarray([len(draw) for draw in draws]), np.asarray(luck), square / published - 1
    )
    path: list[UntilStep] = []
    until = UntilRun(half_width=float(settings.until or 0), confidence=CONFIDENCE)
    before, ended = model.cost.copy(), ""
    levels = np.zeros(0, np.int64)
    while not ended:
        sequence, last = every[: search.questions], levels
        levels = search.asked
        raised = np.flatnonzero(levels > np.pad(last, (0, len(levels) - len(last)), constant_values=-1))
        rows.ask([page for i in raised for page in shown[levels[i]](sequence[i])])
        phases = TwoPhaseRun(full=tuple(sorted(sequence[i].id for i in np.flatnonzero(levels == WHOLE))))
        run = Run(until=until, two_phase=phases)
        scores = read_scores(replace(rows.of(sequence), run=run, questions=tuple(sequence)))
        index = np.asarray([scores.place[question.id] for question in sequence])
        columns = measure(scores)
        values = {name: columns[name][index] for name in NUMBERS} | {"certainty": certainty(scores)[index]}
        intervals = search.look(values, partial(_usual, Bootstrap.of(scores), index))
        path.append(_step(search, intervals))
        ended = search.next(intervals, noise_between_squares(scores))
    counts = np.bincount(levels, minlength=3)
    if ended == "all":
        sequence = list(questions)
    rows.ask(controls)
    share = float(counts @ costs) / (len(questions) * whole)
    tokens = 0 if model.taken_over else (model.cost - before).tokens  # those of other runs cost nothing
    until = replace(
        until,
        ended=ended,
        questions=len(sequence),
        of_questions=len(questions),
        squares=int(counts[SQUARE:].sum()),
        whole=int(counts[WHOLE]),
        prompts=len(rows.at),
        of_prompts=design.prompts_of_all,
        tokens=tokens or None,
        of_tokens=round(tokens / share) or None,
        share=share,
        path=tuple(path),
    )
    texts = replace(questions, questions=tuple(question for question in questions if question.id in rows.lines))
    responses = rows.of([*sequence, *{question.id: question for question, _ in controls}.values()])
    return responses, texts, until, None if ended == "all" else replace(phases, of_prompts=design.prompts_of_all)


def certainty(scores: OrderScores) -> Floats:
    """(Q,) probability of the right options in the published order."""
    right: Floats = np.where(scores.answers, scores.given.probs, 0.0).sum(axis=1)
    return right


def _draws(questions: Sequence[Question], seed: int) -> list[list[Question]]:
    """The questions in the order asked, those of one passage together."""
    unit = Sampling(len(questions), None, [question.context for question in questions]).unit.tolist()
    first = {number: i for i, number in reversed(list(enumerate(unit)))}  # a passage comes with its first question
    members = grouped(zip(unit, questions, strict=True))
    return [members[unit[i]] for i in ranked(questions, seed) if first[unit[i]] == i]


def _cost(pages: Iterable[Asked], elicitation: Elicitation) -> int:
    """Characters of the prompts, counting shared beginnings once."""
    texts = sorted(prompt.as_text() for _, shown in pages for prompt in elicitation.prompts(shown))
    return sum(map(len, texts)) - sum(_shared(a, b) for a, b in pairwise(texts))


class _Rows:
    """The rows asked so far; nothing is asked twice."""

    def __init__(self, model: ScoringModel, elicitation: Elicitation, progress: Progress) -> None:
        self._model, self._elicitation, self._progress = model, elicitation, progress
        self._table = SCHEMA.empty_table()
        self.at: dict[Any, int] = {}
        self.lines: dict[str, list[tuple[int, str]]] = {}

    def ask(self, pages: Sequence[Asked]) -> None:
        """Ask those presentations that were not asked before."""
        keys = [(question.id, shown.contents, shown.labels) for question, shown in pages]
        new = [page for page, key in zip(pages, keys, strict=True) if key not in self.at]
        answers = ask(self._model, new, [self._elicitation], progress=self._progress)
        self._table = pa.concat_tables([self._table, answers.table])
        self.lines |= {question.id: [] for question, _ in pages}
        for (question, shown), key in zip(pages, keys, strict=True):
            at = self.at.setdefault(key, len(self.at))
            self.lines[question.id].append((at, shown.kind))

    def of(self, questions: Iterable[Question]) -> Responses:
        """The rows of some questions, each with the kind that it was last asked as."""
        rows, kinds = zip(*(line for question in questions for line in self.lines[question.id]), strict=True)
        table = self._table.take(pa.array(rows, pa.int64()))
        place = SCHEMA.get_field_index("kind")
        return Responses(table.set_column(place, SCHEMA.field(place), pa.array(kinds, pa.string())))


def _usual(bootstrap: Bootstrap, index: Ints, name: str, values: Floats) -> tuple[float, float]:
    """The interval of a number for as many questions fixed beforehand.

    Args:
        index: (n,) rows of the questions in the order asked.
        values: (n,) in this order.
    """
    column = np.empty(len(values))
    column[index] = values
    estimate = bootstrap.mean(column, bounds=bounds_of(name), room="bounds, unsure")
    return estimate.low, estimate.high


def _step(search: UntilSearch, intervals: Mapping[str, tuple[float, float]]) -> UntilStep:
    """The numbers and intervals after a step."""
    numbers = {}
    for name, (low, high) in intervals.items():
        column = search.values[name]
        defined = column[~np.isnan(column)]
        method = "usual, over questions" if search.exhausted(name) else ANYTIME
        value = min(high, max(low, float(defined.mean())))
        numbers[name] = Estimate(value, low, high, len(defined), method).to_dict()
    half = [(high - low) / 2 for low, high in intervals.values()]
    levels = search.asked
    return UntilStep(
        questions=search.questions,
        squares=int((levels >= SQUARE).sum()),
        whole=int((levels == WHOLE).sum()),
        half_width=float(max(half)) if half else None,
        numbers=numbers,
    )


def _shared(one: str, other: str) -> int:
    """Length of the common beginning of two texts."""
    lengths = range(min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda n: one[:n] != other[:n]) - 1
