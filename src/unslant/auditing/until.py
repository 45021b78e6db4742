"""The audit with ``--until``: questions in random order, in random rounds of their orders, until intervals are narrow.

Only what the mean over orders, the published accuracy, their difference and PBM need is asked: rounds of orders, and
the given order. If it comes to everything, the rest of the audit is asked, too, and the result is that of the audit.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from unslant.arrays import Floats
from unslant.asking import Asked, Progress, ask
from unslant.auditing.presented import audit_presentations
from unslant.auditing.settings import AuditSettings
from unslant.auditing.until_rule import BOUNDS as NUMBERS
from unslant.auditing.until_rule import LEAST_ROUNDS, Search
from unslant.metrics import METRICS, Bootstrap, Estimate, Metrics, OrderScores, measure, read_scores
from unslant.metrics.estimate import CONFIDENCE
from unslant.metrics.permutation import spread_between_rounds
from unslant.metrics.registry import bounds_of
from unslant.metrics.sampling import Sampling
from unslant.models import ScoringModel
from unslant.presentations import Order, Presentation, ShotChooser, given_order, orders_for, parse_labels, present
from unslant.presentations.orders import question_rng
from unslant.prompts import Elicitation
from unslant.questions import Question, QuestionSet
from unslant.questions.loaders import ranked
from unslant.responses import SCHEMA, Responses, Run
from unslant.responses.run import Step, UntilRun

ANYTIME = "anytime-valid, by betting, over questions"
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
) -> tuple[Responses, QuestionSet[Question], UntilRun]:
    """Ask until every interval is as narrow as ``chosen.until`` says, or nothing is left that would narrow them.

    Args:
        controls: asked in addition to the questions.

    Returns:
        The responses, the questions asked, and how the search went.
    """
    recipe = _Recipe(found, chosen, chooser, own_labels, elicitation)
    rows = _Rows(model, elicitation, progress)
    search = Search(
        float(chosen.until or 0),
        np.asarray([len(draw) for draw in recipe.draws]),
        np.asarray(recipe.counts),
        recipe.cost,
    )
    path: list[Step] = []
    until = UntilRun(half_width=float(chosen.until or 0), confidence=CONFIDENCE, whole=recipe.whole)
    before, ended, known, rounds = model.cost.copy(), "", 0, 0
    while not ended:
        asked = recipe.sequence[: search.questions]
        fresh = asked[known if rounds == search.rounds else 0 :]
        known, rounds = len(asked), search.rounds
        rows.ask([one for question in fresh for one in recipe.some(question, rounds)])
        scores = read_scores(replace(rows.of(asked), run=Run(until=until), questions=tuple(asked)))
        measured = measure(scores)
        at = {name: i for i, name in enumerate(scores.ids)}
        index = np.asarray([at[question.id] for question in asked])
        values = {name: measured[name][index] for name in NUMBERS}
        usual = _Usual(scores, {name: measured[name] for name in NUMBERS})
        intervals = search.look(values, usual.interval)
        path.append(_step(search, scores, values, intervals))
        ended = search.next(intervals, values, _noise(scores)[index])
    if ended == "all":
        asked = list(found)
        rows.ask([one for question in asked for one in recipe.everything(question)])
    rows.ask(controls)
    share = 1.0 if ended == "all" else recipe.cost(rounds) * len(asked) / recipe.cost_of_all
    tokens = 0 if model.taken_over else (model.cost - before).tokens  # those of other runs cost nothing
    until = replace(
        until,
        ended=ended,
        questions=len(asked),
        of_questions=len(found),
        orders=path[-1].orders,
        of_orders=max(recipe.whole.values()),
        prompts=len(rows.at),
        of_prompts=sum(map(recipe.prompts_of_all, found)) + len(controls),
        tokens=tokens or None,
        of_tokens=round(tokens / share) or None,
        share=share,
        path=tuple(path),
    )
    texts = replace(found, questions=tuple(question for question in found if question.id in rows.lines))
    return rows.of([*asked, *{question.id: question for question, _ in controls}.values()]), texts, until


def with_anytime(metrics: Metrics, until: UntilRun | None) -> Metrics:
    """Metrics with the anytime-valid intervals of an audit that stopped before all of its questions were asked."""
    if until is None or until.questions == until.of_questions:
        return metrics
    changed = {}
    for name, step in until.path[-1].numbers.items():
        value = metrics.means[name]
        low, high = min(step["low"], value.value), max(step["high"], value.value)
        changed[METRICS[name]] = replace(value, low=low, high=high, method=ANYTIME, note="")
    return replace(metrics, means=metrics.means | changed)


class _Recipe:
    """In which order questions are asked, and how each is shown.

    Attributes:
        draws: questions, or passages with all of theirs, in the order asked; sequence: their questions.
        counts: rounds of each question, in this order.
        whole: number of movable options -> orders in all.
        cost_of_all: what :meth:`cost` is for the whole audit, all questions together.
    """

    def __init__(
        self,
        found: QuestionSet[Question],
        chosen: AuditSettings,
        chooser: ShotChooser,
        own_labels: bool,
        elicitation: Elicitation,
    ) -> None:
        self._chosen, self._chooser, self._own_labels = chosen, chooser, own_labels
        self._alphabet = parse_labels(chosen.labels)
        questions = found.questions
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
        orders = {len(q.movable): q for q in questions}
        self.whole = {str(n): len(orders_for(q, chosen.orders, chosen.seed)) for n, q in sorted(orders.items())}
        self._elicitation = elicitation
        some = self.sequence[:_MEASURED]
        shapes = {(len(question.options), question.pinned): question for question in questions}
        by_shape = {shape: len(self.rounds(question)) for shape, question in shapes.items()}
        self.counts = [by_shape[len(question.options), question.pinned] for question in self.sequence]
        self._few, self._most = LEAST_ROUNDS, max(self.counts)
        self._costs = [self._cost(one for q in some for one in self.some(q, r)) for r in (self._few, self._most)]
        self.cost_of_all = len(questions) / len(some) * self._cost(one for q in some for one in self.everything(q))
        self._prompts: dict[tuple[int, tuple[int, ...]], int] = {}

    def rounds(self, question: Question) -> list[list[Order]]:
        """The orders of a question in random rounds of rotations; order by order where they are no whole rounds."""
        orders = orders_for(question, self._chosen.orders, self._chosen.seed)
        classes: dict[Order, list[Order]] = {}
        for order in orders:
            movable = [i for i in order if i not in question.pinned]
            start = movable.index(min(movable)) if movable else 0
            classes.setdefault((*movable[start:], *movable[:start]), []).append(order)
        size = max(1, len(question.movable))
        rounds = list(classes.values())
        if any(len(one) != size for one in rounds):
            rounds = [[order] for order in orders]
        question_rng(question.id, self._chosen.seed, "until").shuffle(rounds)
        return rounds

    def some(self, question: Question, rounds: int) -> list[Asked]:
        """Some rounds, and the given order if it is in none of them."""
        given = given_order(question)
        orders = [order for one in self.rounds(question)[:rounds] for order in one]
        shown = [present(question, order, self._alphabet) for order in orders]
        shown += [present(question, given, self._alphabet, "given")] if given not in orders else []
        return self._with_shots(question, shown)

    def everything(self, question: Question) -> list[Asked]:
        """What the audit asks."""
        chosen = self._chosen
        return self._with_shots(
            question,
            audit_presentations(question, chosen.orders, self._alphabet, chosen.seed, own_labels=self._own_labels),
        )

    def _with_shots(self, question: Question, shown: Iterable[Presentation]) -> list[Asked]:
        examples = self._chooser.of(question)
        return [(question, presentation.with_shots(examples)) for presentation in shown]

    def prompts_of_all(self, question: Question) -> int:
        """How many prompts the audit has for a question."""
        shape = len(question.options), question.pinned
        if shape not in self._prompts:
            self._prompts[shape] = len(self.everything(question))
        return self._prompts[shape]

    def cost(self, rounds: int) -> float:
        """Of a question in some rounds: characters of its prompts, beginnings that they share counted once."""
        each = [total / min(_MEASURED, len(self.sequence)) for total in self._costs]
        return float(np.interp(rounds, (self._few, max(self._most, self._few + 1)), each))

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
    """Intervals for as many questions fixed beforehand, as an audit has them."""

    def __init__(self, scores: OrderScores, values: Mapping[str, Floats]) -> None:
        self._scores, self._values = scores, values

    def interval(self, name: str) -> tuple[float, float]:
        found = Bootstrap.of(self._scores).mean(self._values[name], bounds=bounds_of(name))
        return found.low, found.high


def _noise(scores: OrderScores) -> Floats:
    """(Q,) variance between the rounds of a question, of the share right."""
    noise = np.zeros(len(scores))
    for block in scores.blocks:
        noise[block.index] = np.nan_to_num(spread_between_rounds(block, block.right))
    return noise


def _step(
    search: Search, scores: OrderScores, values: Mapping[str, Floats], intervals: Mapping[str, tuple[float, float]]
) -> Step:
    """What was known after a step."""
    numbers = {}
    for name, (low, high) in intervals.items():
        known = values[name][~np.isnan(values[name])]
        method = "usual, over questions" if search.complete else ANYTIME
        numbers[name] = Estimate(float(known.mean()), low, high, len(known), method).to_dict()
    half = [(high - low) / 2 for low, high in intervals.values()]
    orders = int(scores.order_counts.max(initial=0))
    return Step(
        questions=search.questions, orders=orders, half_width=float(max(half)) if half else None, numbers=numbers
    )


def _shared(one: str, other: str) -> int:
    """Length of the beginning that two texts share."""
    lengths = range(min(len(one), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda n: one[:n] != other[:n]) - 1
