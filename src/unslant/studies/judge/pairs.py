"""Pairs and lists of answers to be judged, as questions whose options are the answers; and pairs of our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from unslant.errors import InputError
from unslant.presentations import question_rng
from unslant.questions import Question, QuestionSet, load_questions
from unslant.questions.loaders import IN_MEMORY, open_source, ready_made
from unslant.questions.question_set import LoadReport
from unslant.responses.importers.judgments import FIELDS, answers_of

EMBEDDED = "embedded-pairs"
"""Name of the pairs that ship with unslant."""
_SYSTEMS = {"careful": 0.9, "average": 0.6, "careless": 0.3}
"""Invented systems -> how often each answers an embedded question right."""


def load_pairs(source: Any, fields: Mapping[str, str], skip_bad: bool = False) -> QuestionSet[Question]:
    """Pairs (or lists) of answers from a file, a data set of the Hub, records, or questions made ready.

    A record has ``question`` and ``response_A``, ``response_B`` with a ``label`` ("A>B", "A", "tie"), ``chosen`` and
    ``rejected`` (texts or lists, as in RewardBench), or ``responses`` with a label; see
    :data:`unslant.responses.importers.judgments.FIELDS`.

    Raises:
        InputError: naming place and field.
    """
    if isinstance(source, str) and source == EMBEDDED:
        return QuestionSet.of(demonstration(), EMBEDDED)
    ready = ready_made(source, Question, None, None, 0)
    if ready is not None:
        return ready
    if unknown := sorted(set(fields) - set(FIELDS)):
        raise InputError(f"unknown field {unknown[0]!r} for pairs: use one of {', '.join(FIELDS)}")
    opened = open_source(source, "questions", fields, IN_MEMORY if not isinstance(source, str) else None)
    questions: dict[str, Question] = {}
    skipped: dict[str, str] = {}
    for record in opened.records:
        try:
            if record.problem:
                raise InputError.at(record.place, record.problem)
            question = _question(answers_of(record, fields), opened.name)
            if question.id in questions:
                raise InputError.at(
                    record.place, f"{question.id!r} was used before; give each pair its own", field="id"
                )
        except InputError as error:
            if not skip_bad:
                raise
            skipped[record.place] = str(error)
            continue
        questions[question.id] = question
    if not questions:
        raise InputError.at(opened.origin, next(iter(skipped.values()), "holds no pairs"))
    report = LoadReport(
        opened.origin,
        n_read=len(opened.records),
        skipped={"cannot be read": len(skipped)} if skipped else {},
        first_skipped={"cannot be read": next(iter(skipped.values()))} if skipped else {},
    )
    made = tuple(questions.values())
    return QuestionSet(opened.name, made, report.counting(made))


def _question(answers: Any, source: str) -> Question:
    """In an order drawn by id: files of ``chosen`` and ``rejected`` list the right answer first, everywhere."""
    order = list(range(len(answers.texts)))
    question_rng(answers.id, 0, "answers").shuffle(order)
    try:
        return Question(
            answers.id,
            answers.question,
            tuple(answers.texts[i] for i in order),
            frozenset(order.index(i) for i in answers.right),
            subject=answers.subject,
            source=source,
            authors=tuple(answers.systems[i] for i in order) if answers.systems else (),
        )
    except ValueError as error:
        raise InputError(f"{source}, {answers.id!r}: {error}") from None


def demonstration() -> Iterator[Question]:
    """Two of three invented systems on every embedded question: one is right and one is wrong."""
    names = list(_SYSTEMS)
    for question in load_questions("embedded"):
        rng = question_rng(question.id, 0, "systems")
        two = rng.sample(names, 2)
        wrong = [i for i in range(len(question.options)) if i not in question.answers]
        if len(question.answers) != 1 or not wrong:
            continue
        weights = [_SYSTEMS[one] * (1 - _SYSTEMS[other]) for one, other in (two, two[::-1])]
        right_first = rng.random() < weights[0] / sum(weights)
        texts = [question.options[next(iter(question.answers))], question.options[rng.choice(wrong)]]
        yield replace(
            question,
            options=tuple(texts if right_first else texts[::-1]),
            answers=frozenset({0 if right_first else 1}),
            pinned=(),
            authors=tuple(two),
        )
