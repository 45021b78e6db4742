"""The plan of a run: which questions are asked in which presentations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from unslant.asking import Asked
from unslant.errors import InputError
from unslant.presentations import Presentation
from unslant.presentations.interventions import (
    BOAT,
    KINDS,
    NEEDS,
    ONLY,
    VANILLA,
    Composed,
    NotApplicable,
    Pool,
    apply,
    compose,
    conflict,
    in_order,
    open_question,
    pool_of,
)
from unslant.presentations.interventions.matrix import FIRST, Kind, check_probabilities
from unslant.questions import MathQuestion, Question, QuestionSet
from unslant.responses.run import ComposedCounts
from unslant.studies.unbiased.settings import UnbiasedSettings

AnySet: TypeAlias = QuestionSet[Question] | QuestionSet[MathQuestion]
VANILLA_RUN = -1


@dataclass(frozen=True)
class Plan:
    """What is asked, and what cannot be.

    Attributes:
        asked: question and presentation of kind ``vanilla``, ``boat`` (one for each run) or ``only``.
        drawn: combination (``DH+AR``; ``none`` for no intervention) -> how often it was composed.
        not_applicable: reason -> number of questions that cannot be asked at all.
        left_out: intervention -> reason -> how often a question could not take it.
    """

    asked: list[Asked]
    drawn: Mapping[str, int]
    not_applicable: Mapping[str, int]
    left_out: Mapping[str, Mapping[str, int]]

    def counts(self) -> ComposedCounts:
        """What the run keeps of it."""
        return ComposedCounts(
            drawn=dict(self.drawn),
            left_out={name: dict(reasons) for name, reasons in self.left_out.items()},
            not_applicable=dict(self.not_applicable),
        )


def plan(
    questions: AnySet, settings: UnbiasedSettings, *, pool_from: AnySet | None = None, shots_from: AnySet | None = None
) -> Plan:
    """Every question as published, in every run, and (``alone``) under each intervention by itself.

    Open maths questions are asked as they are if replies are generated. Otherwise their published form, which has no
    labels, is replaced by answer jitter, always with the same near misses.

    Args:
        pool_from: questions that lend options and second stems; by default ``questions``.
        shots_from: questions used as worked examples; by default those of ``pool_from``.

    Raises:
        InputError: on settings that cannot be used, or if no question can be asked.
    """
    check_probabilities(settings.probabilities)
    pool = _pool(questions if pool_from is None else pool_from)
    lender = pool if shots_from is None else _pool(shots_from)
    shots: dict[str, Any] = {"shots": settings.shots, "shots_from": lender}
    asked: list[Asked] = []
    drawn: Counter[str] = Counter()
    impossible: Counter[str] = Counter()
    left_out: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for question in questions:
        put = partial(apply, question, pool=pool, seed=settings.seed, run=VANILLA_RUN, **shots)
        if settings.generate and isinstance(question, MathQuestion):
            published = open_question(question, lender, settings.seed, VANILLA_RUN, shots=settings.shots)
        else:
            published = put(interventions=as_published(question), kind=VANILLA)
        if isinstance(published, NotApplicable):
            impossible[published.reason] += 1
            continue
        asked += published.items
        for run in range(settings.runs):
            composed = compose(question, pool, settings.probabilities, settings.seed, run, **shots)
            if isinstance(composed, Composed):
                asked += composed.items
                drawn["+".join(composed.interventions) or "none"] += 1
                for code, reason in composed.left_out.items():
                    left_out[code][reason] += 1
        for codes in alone_of(question, settings.generate) if not settings.no_alone else ():
            single = put(interventions=codes, kind=ONLY)
            if isinstance(single, Composed):
                asked += single.items
    if not asked:
        reasons = "; ".join(f"{reason} ({n:,})" for reason, n in impossible.items())
        raise InputError(f"{questions.name}: the unbiased evaluator can ask no question: {reasons}")
    if settings.no_instructions:
        asked = [(question, replace(presentation, instruction="")) for question, presentation in asked]
    return Plan(asked, drawn, impossible, left_out)


def _pool(questions: AnySet) -> Pool:
    try:
        return pool_of(questions)
    except ValueError:
        raise InputError(f"{questions.name}: the unbiased evaluator can use no question") from None


def key_of(question: Question, presentation: Presentation) -> str:
    """Readable id of an item, unique in a plan."""
    codes = "+".join(presentation.interventions) if presentation.kind == ONLY else ""
    run = str(presentation.run) if presentation.kind == BOAT else ""
    return f"{question.id}|{':'.join(filter(None, (presentation.kind, run, codes, presentation.item)))}"


def as_published(question: Question | MathQuestion) -> tuple[str, ...]:
    """The interventions that give a question its labels: answer jitter for open maths, else none."""
    return ("AJ",) if isinstance(question, MathQuestion) else ()


def alone_of(question: Question | MathQuestion, generate: bool = False) -> list[tuple[str, ...]]:
    """Each intervention with what it needs, and nothing else (P4, fig. 6).

    Answer jitter is the published form of maths where labels are scored, and an intervention where replies are read.
    """
    kind: Kind = "maths" if isinstance(question, MathQuestion) else "choice"
    base = as_published(question)
    singles = []
    for code in KINDS[kind]:
        wanted = {code, NEEDS.get(code, code), *(base if code not in FIRST[kind] else ())}
        if (generate or wanted != {*base}) and not conflict(wanted, kind):
            singles.append(in_order(wanted))
    return singles
