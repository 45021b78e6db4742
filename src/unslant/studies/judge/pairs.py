"""Pairs and lists of answers to be judged, as questions whose options are the answers; and pairs of our own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from unslant.presentations import question_rng
from unslant.questions import Question, QuestionSet, load_questions
from unslant.questions.answers import BadRecord
from unslant.questions.loaders import Bad, open_source, ready_made
from unslant.questions.question_set import LoadReport
from unslant.questions.records import Record
from unslant.responses.importers.judgments import check_fields, columns_of, pair_of

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
    if (ready := ready_made(source, Question, None, None, 0)) is not None:
        return ready
    check_fields(fields, "pairs")
    opened, bad = open_source(source, "questions", fields), Bad(skip_bad)
    made = bad.kept((record, partial(_pair, record, fields, opened.name, bad)) for record in opened.records)
    return bad.whole(opened.name, made, opened.records, LoadReport(opened.origin))


def _pair(record: Record, fields: Mapping[str, str], source: str, bad: Bad) -> Question:
    """In an order drawn by id: files of ``chosen`` and ``rejected`` list the right answer first, everywhere."""
    if record.problem:
        raise BadRecord("not a record", record.problem)
    pair = pair_of({key: record.data[column] for key, column in columns_of(record, fields).items()})
    bad.claim(pair.id, record)
    order = list(range(len(pair.options)))
    question_rng(pair.id, 0, "answers").shuffle(order)
    return replace(
        pair,
        options=tuple(pair.options[i] for i in order),
        answers=frozenset(order.index(i) for i in pair.answers),
        source=source,
        authors=tuple(pair.authors[i] for i in order) if pair.authors else (),
    )


def demonstration() -> Iterator[Question]:
    """Two of three invented systems on every embedded question: one is right and one is wrong."""
    for question in load_questions("embedded"):
        rng = question_rng(question.id, 0, "systems")
        two = rng.sample(list(_SYSTEMS), 2)
        wrong = [i for i in range(len(question.options)) if i not in question.answers]
        if len(question.answers) != 1 or not wrong:
            continue
        weights = [_SYSTEMS[one] * (1 - _SYSTEMS[other]) for one, other in (two, two[::-1])]
        right_first = rng.random() < weights[0] / sum(weights)
        texts = [question.options[next(iter(question.answers))], question.options[rng.choice(wrong)]]
        options, answers = tuple(texts if right_first else texts[::-1]), frozenset({0 if right_first else 1})
        yield replace(question, options=options, answers=answers, pinned=(), authors=tuple(two))
