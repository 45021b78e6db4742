"""What is going to be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from unslant.arrays import json_fields
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
from unslant.studies.unbiased.settings import UnbiasedSettings

AnySet: TypeAlias = QuestionSet[Question] | QuestionSet[MathQuestion]
VANILLA_RUN = -1


@dataclass(frozen=True)
class Plan:
    """What is going to be asked, and what could not be.

    Attributes:
        asked: question and presentation of kind ``vanilla``, ``boat`` (one for each run) or ``only``.
        drawn: combination (``DH+AR``; ``none`` for no intervention) -> how often it was composed.
        not_applicable: reason -> questions that could not be put at all.
        left_out: intervention -> reason -> how many times the question could not take it.
    """

    asked: list[Asked]
    drawn: Mapping[str, int]
    not_applicable: Mapping[str, int]
    left_out: Mapping[str, Mapping[str, int]]

    def to_dict(self) -> dict[str, object]:
        """Counts only."""
        return json_fields(self, omit=("asked",))


def plan(
    questions: AnySet,
    settings: UnbiasedSettings,
    *,
    pool_from: AnySet | None = None,
    shots_from: AnySet | None = None,
    generate: bool = False,
) -> Plan:
    """Every question as published, in every run, and (``alone``) under each intervention by itself.

    An open maths question has no labels to be scored as published; unless replies are generated, its answer jitter,
    always with the same near misses, stands for it.

    Args:
        generate: replies are read, so that open maths questions are asked as they are (without worked examples).
        pool_from: questions that lend options and second stems; by default ``questions``.
        shots_from: questions that serve as worked examples; by default those of ``pool_from``.

    Raises:
        InputError: on settings that cannot be used, or where no question can be put.
    """
    check_probabilities(settings.probabilities)
    lenders = pool_from if pool_from is not None else questions
    pool = _pool(lenders)
    examples = _pool(shots_from) if shots_from is not None else pool

    def put(question: Question | MathQuestion, codes: tuple[str, ...], kind: str) -> Composed | NotApplicable:
        return apply(
            question, codes, pool, settings.seed, VANILLA_RUN, shots=settings.shots, shots_from=examples, kind=kind
        )

    asked: list[Asked] = []
    drawn: Counter[str] = Counter()
    impossible: Counter[str] = Counter()
    left_out: dict[str, Counter[str]] = {}
    for question in questions:
        published: Composed | NotApplicable
        if generate and isinstance(question, MathQuestion):
            published = open_question(question, VANILLA)
        else:
            published = put(question, as_published(question), VANILLA)
        if isinstance(published, NotApplicable):
            impossible[published.reason] += 1
            continue
        asked += published.items
        for run in range(settings.runs):
            composed = compose(
                question,
                pool,
                settings.probabilities,
                settings.seed,
                run,
                shots=settings.shots,
                shots_from=examples,
            )
            if isinstance(composed, Composed):
                asked += composed.items
                drawn["+".join(composed.interventions) or "none"] += 1
                for code, reason in composed.left_out.items():
                    left_out.setdefault(code, Counter())[reason] += 1
        for codes in alone_of(question) if settings.alone else ():
            single = put(question, codes, ONLY)
            if isinstance(single, Composed):
                asked += single.items
    if not asked:
        reasons = "; ".join(f"{reason} ({n:,})" for reason, n in impossible.items())
        raise InputError(f"{questions.name}: no question can be put by the unbiased evaluator: {reasons}")
    if not settings.instructions:
        asked = [(question, replace(presentation, instruction="")) for question, presentation in asked]
    return Plan(asked, drawn, impossible, left_out)


def _pool(questions: AnySet) -> Pool:
    try:
        return pool_of(questions)
    except ValueError:
        raise InputError(f"{questions.name}: no question can be used for the unbiased evaluator") from None


def key_of(question: Question, presentation: Presentation) -> str:
    """What sets an item apart from all others of a plan, for ids that people see."""
    codes = "+".join(presentation.interventions) if presentation.kind == ONLY else ""
    run = str(presentation.run) if presentation.kind == BOAT else ""
    return f"{question.id}|{':'.join(filter(None, (presentation.kind, run, codes, presentation.item)))}"


def as_published(question: Question | MathQuestion) -> tuple[str, ...]:
    """The interventions without which a question has no labels: answer jitter for open maths, else none."""
    return ("AJ",) if isinstance(question, MathQuestion) else ()


def alone_of(question: Question | MathQuestion) -> list[tuple[str, ...]]:
    """Each intervention with what it needs, and nothing else (P4, fig. 6)."""
    kind: Kind = "maths" if isinstance(question, MathQuestion) else "choice"
    base = set(as_published(question))
    singles = []
    for code in KINDS[kind]:
        wanted = {code, *({NEEDS[code]} if code in NEEDS else ()), *(base if code not in FIRST[kind] else ())}
        if wanted != base and not conflict(wanted, kind):
            singles.append(in_order(wanted))
    return singles
