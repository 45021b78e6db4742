"""The audit with ``--until``: questions in random order, some in a square of their orders, until intervals are narrow.

Every question is asked in the published order, a random share of them in a Latin square of their orders, and the first
ones in all orders; see :mod:`unslant.auditing.until_rule`. What the audit prints besides is estimated as in two phases
(:mod:`unslant.metrics.two_phase`). If it comes to everything, the result is that of an audit in all orders.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from unslant.arrays import Floats, Ints
from unslant.asking import Asked, Progress, ask
from unslant.auditing.phases import Phases
from unslant.auditing.settings import AuditSettings
from unslant.auditing.until_rule import BOUNDS as NUMBERS
from unslant.auditing.until_rule import PUBLISHED, SQUARE, WHOLE, Search
from unslant.metrics import METRICS, Bootstrap, Estimate, Metrics, OrderScores, measure, read_scores
from unslant.metrics.anytime import ANYTIME
from unslant.metrics.estimate import CONFIDENCE
from unslant.metrics.registry import bounds_of
from unslant.metrics.sampling import Sampling
from unslant.metrics.two_phase import noise_between_squares
from unslant.models import ScoringModel
from unslant.presentations import ShotChooser, given_order, parse_labels, present
from unslant.presentations.orders import question_rng
from unslant.prompts import Elicitation
from unslant.questions import Question, QuestionSet
from unslant.questions.loaders import ranked
from unslant.responses import SCHEMA, Responses, Run
from unslant.responses.run import Step, TwoPhaseRun, UntilRun

_MEASURED = 24
"""Questions whose prompts are measured, for what more orders and the whole audit would take."""


def ask_until(
    model: ScoringModel,
    found: QuestionSet[Question],
    chosen: AuditSettings,
    elicitation: Elicitation,
    chooser: ShotChooser,
    controls: Sequence[Asked],
    *,
    own_labels: bool,
    progress: Progress,
) -> tuple[Responses, QuestionSet[Question], UntilRun, TwoPhaseRun | None]:
    """Ask until every interval is as narrow as ``chosen.until`` says, or nothing is left that would narrow them.

    Args:
        controls: asked in addition to the questions.

    Returns:
        The responses, the questions asked, how the search went, and which of them were asked in all orders; None where
        all were.
    """
    recipe = _Recipe(found, chosen, chooser, own_labels, elicitation)
    rows = _Rows(model, elicitation, progress)
    published, square, whole = recipe.costs
    luck = [question_rng(draw[0].id, chosen.seed, "until").random() for draw in recipe.draws]
    search = Search(
        float(chosen.until or 0),
        np.asarray([len(draw) for draw in recipe.draws]),
        np.asarray(luck),
        square / published - 1,
    )
    path: list[Step] = []
    until = UntilRun(half_width=float(chosen.until or 0), confidence=CONFIDENCE)
    before, ended = model.cost.copy(), ""
    levels = np.zeros(0, np.int64)
    while not ended:
        asked, wanted = recipe.sequence[: search.questions], search.asked
        changed = np.flatnonzero(wanted > np.pad(levels, (0, len(wanted) - len(levels)), constant_values=-1))
        rows.ask([one for i in changed for one in recipe.shown(asked[i], wanted[i])])
        levels = wanted
        phases = TwoPhaseRun(full=tuple(sorted(asked[i].id for i in np.flatnonzero(wanted == WHOLE))))
        run = Run(until=until, two_phase=phases)
        scores = read_scores(replace(rows.of(asked), run=run, questions=tuple(asked)))
        at = {name: i for i, name in enumerate(scores.ids)}
        index = np.asarray([at[question.id] for question in asked])
        known = {name: values[index] for name, values in _known(scores).items()}
        usual = _Usual(scores, index)
        intervals = search.look(known, usual.interval)
        path.append(_step(search, intervals))
        ended = search.next(intervals, noise_between_squares(scores))
    counts = np.bincount(levels, minlength=3)
    if ended == "all":
        asked = list(found)
    rows.ask(controls)
    share = float(counts @ recipe.costs) / (len(found) * whole)
    tokens = 0 if model.taken_over else (model.cost - before).tokens  # those of other runs cost nothing
    of_prompts = sum(map(recipe.prompts_of_all, found)) + len(controls)
    until = replace(
        until,
        ended=ended,
        questions=len(asked),
        of_questions=len(found),
        squares=int(counts[SQUARE:].sum()),
        whole=int(counts[WHOLE]),
        prompts=len(rows.at),
        of_prompts=of_prompts,
        tokens=tokens or None,
        of_tokens=round(tokens / share) or None,
        share=share,
        path=tuple(path),
    )
    texts = replace(found, questions=tuple(question for question in found if question.id in rows.lines))
    responses = rows.of([*asked, *{question.id: question for question, _ in controls}.values()])
    return responses, texts, until, None if ended == "all" else replace(phases, of_prompts=of_prompts)


def with_anytime(metrics: Metrics, until: UntilRun | None) -> Metrics:
    """Metrics with the numbers and intervals of an audit that stopped before everything was asked."""
    if until is None or until.ended == "all":
        return metrics
    changed = {METRICS[name]: Estimate.from_dict(step) for name, step in until.path[-1].numbers.items()}
    return replace(metrics, means=metrics.means | changed)


def certainty(scores: OrderScores) -> Floats:
    """(Q,) probability of the right options in the published order."""
    right: Floats = np.where(scores.answers, scores.given.probs, 0.0).sum(axis=1)
    return right


def _known(scores: OrderScores) -> dict[str, Floats]:
    """(Q,) of each number, over the orders asked; see :meth:`Search.look`."""
    measured = measure(scores)
    return {name: measured[name] for name in NUMBERS} | {"certainty": certainty(scores)}


class _Recipe:
    """In which order questions are asked, and how each is shown.

    Attributes:
        draws: questions, or passages with all of theirs, in the order asked; sequence: their questions.
    """

    def __init__(
        self,
        found: QuestionSet[Question],
        chosen: AuditSettings,
        chooser: ShotChooser,
        own_labels: bool,
        elicitation: Elicitation,
    ) -> None:
        self._chooser, self._elicitation, self._alphabet = chooser, elicitation, parse_labels(chosen.labels)
        questions = found.questions
        self._square = Phases(questions, chosen.seed, self._alphabet, own_labels, frozenset())
        draws: dict[int, list[Question]] = {}
        unit = Sampling(len(questions), None, [question.context for question in questions]).unit.tolist()
        first = {number: i for i, number in reversed(list(enumerate(unit)))}
        for i in ranked(questions, chosen.seed):  # a passage when its first question comes, however many it has
            if first[unit[i]] == i:
                draws[unit[i]] = []
        for question, number in zip(questions, unit, strict=True):
            draws[number].append(question)
        self.draws = list(draws.values())
        self.sequence = [question for draw in self.draws for question in draw]
        self._prompts: dict[tuple[int, tuple[int, ...]], int] = {}

    def shown(self, question: Question, level: int) -> list[Asked]:
        """The published order; a Latin square besides; or what an audit shows in all orders."""
        if level == PUBLISHED:
            shown = [present(question, given_order(question), self._alphabet, "given")]
        else:
            shown = self._square.whole(question) if level == WHOLE else self._square.shown(question)
        examples = self._chooser.of(question)
        return [(question, one.with_shots(examples)) for one in shown]

    def prompts_of_all(self, question: Question) -> int:
        """How many prompts the audit in all orders has for a question."""
        shape = len(question.options), question.pinned
        if shape not in self._prompts:
            self._prompts[shape] = len(self.shown(question, WHOLE))
        return self._prompts[shape]

    @cached_property
    def costs(self) -> list[float]:
        """Of a question at each level: characters of its prompts, beginnings that they share counted once."""
        some = self.sequence[:_MEASURED]
        return [
            self._cost(one for question in some for one in self.shown(question, level)) / len(some)
            for level in (PUBLISHED, SQUARE, WHOLE)
        ]

    def _cost(self, asked: Iterable[Asked]) -> int:
        texts = sorted(prompt.as_text() for _, shown in asked for prompt in self._elicitation.prompts(shown))
        return sum(map(len, texts)) - sum(_shared(a, b) for a, b in pairwise(texts))


class _Rows:
    """Rows as they come; what was asked is not asked again."""

    def __init__(self, model: ScoringModel, elicitation: Elicitation, progress: Progress) -> None:
        self._model, self._elicitation, self._progress = model, elicitation, progress
        self._table = SCHEMA.empty_table()
        self.at: dict[Any, int] = {}
        self.lines: dict[str, list[tuple[int, str]]] = {}

    def ask(self, asked: Sequence[Asked]) -> None:
        """Ask what is new of all presentations of some questions."""
        keys = [(question.id, shown.contents, shown.labels) for question, shown in asked]
        new = [one for one, key in zip(asked, keys, strict=True) if key not in self.at]
        came = ask(self._model, new, [self._elicitation], progress=self._progress)
        for key in keys:
            self.at.setdefault(key, len(self.at))
        self._table = pa.concat_tables([self._table, came.table])
        self.lines |= {question.id: [] for question, _ in asked}
        for (question, shown), key in zip(asked, keys, strict=True):
            self.lines[question.id].append((self.at[key], shown.kind))

    def of(self, questions: Iterable[Question]) -> Responses:
        """The rows of some questions, of the kind that each was last asked as."""
        rows, kinds = zip(*(line for question in questions for line in self.lines[question.id]), strict=True)
        table = self._table.take(pa.array(rows, pa.int64()))
        place = SCHEMA.get_field_index("kind")
        return Responses(table.set_column(place, SCHEMA.field(place), pa.array(kinds, pa.string())))


class _Usual:
    """Intervals for as many questions fixed beforehand, as an audit has them.

    Args:
        index: (n,) rows of the questions in the order asked.
    """

    def __init__(self, scores: OrderScores, index: Ints) -> None:
        self._bootstrap, self._index = Bootstrap.of(scores), index

    def interval(self, name: str, values: Floats) -> tuple[float, float]:
        column = np.empty(len(values))
        column[self._index] = values
        found = self._bootstrap.mean(column, bounds=bounds_of(name))
        return found.low, found.high


def _step(search: Search, intervals: Mapping[str, tuple[float, float]]) -> Step:
    """What was known after a step."""
    numbers = {}
    for name, (low, high) in intervals.items():
        values = search.values[name]
        known = values[~np.isnan(values)]
        method = "usual, over questions" if search.exhausted(name) else ANYTIME
        value = min(high, max(low, float(known.mean())))
        numbers[name] = Estimate(value, low, high, len(known), method).to_dict()
    half = [(high - low) / 2 for low, high in intervals.values()]
    levels = search.asked
    return Step(
        questions=search.questions,
        squares=int((levels >= SQUARE).sum()),
        whole=int((levels == WHOLE).sum()),
        half_width=float(max(half)) if half else None,
        numbers=numbers,
    )


def _shared(one: str, other: str) -> int:
    """Length of the beginning that two texts share."""
    lengths = range(min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda n: one[:n] != other[:n]) - 1
