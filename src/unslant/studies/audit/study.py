"""The audit: present every question in many orders, and say what the score is worth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from unslant.asking import Asked, Watch, ask, no_watch
from unslant.models.base import ScoringModel
from unslant.presentations import (
    Presentation,
    given_order,
    labels_for,
    orders_for,
    parse_labels,
    present,
    reversed_order,
)
from unslant.presentations.controls import control_presentations
from unslant.presentations.shots import ShotChooser
from unslant.prompts import Cloze, Writer, load_template
from unslant.questions import EMBEDDED, Question, QuestionSet, load_questions
from unslant.questions.loaders import sample
from unslant.responses.table import Responses
from unslant.studies.audit.result import AuditResult, AuditSettings, result_of

if TYPE_CHECKING:
    pass


def audit(
    model: str | ScoringModel | Callable[[], ScoringModel],
    questions: str | Path | QuestionSet[Question] | Iterable[Question] = EMBEDDED,
    *,
    orders: str = "auto",
    labels: str = "A",
    template: str = "plain",
    chat: bool = False,
    shots: int = 0,
    shots_from: QuestionSet[Question] | None = None,
    limit: int | None = None,
    seed: int = 0,
    watch: Watch = no_watch,
) -> AuditResult:
    """Present every question in many orders, score all of them, and measure what the score is worth.

    Beside the orders, every question is shown as given, reversed, with its labels reversed, and with both reversed; and
    a question without content is shown once per label order and number of options. All else is read off these.

    Args:
        model: a name or folder for :func:`unslant.load_model`, a loaded model, or a function that loads one (called
            once everything else has been found to be in order).
        questions: a file, recipe or loaded set.
        orders: ``auto`` (all when there are at most 24, else 24 in which every
            option stands in every place equally often), ``all``, ``cyclic``, ``reverse``, ``given``,
            or the number of orders to sample.
        labels: label set, see :func:`unslant.presentations.parse_labels`.
        template: prompt template, by name or path.
        chat: ask through the tokenizer's chat template.
        shots: worked examples before each question, the same ones for the whole run.
        shots_from: where the examples come from; by default the set itself (a question is never
            an example for itself).
        limit: ask only so many questions, sampled by ``seed``.
        seed: of every random choice.
        watch: told of progress.

    Raises:
        InputError: on questions, labels, orders or a template that cannot be used.
        ModelError: if the model cannot be loaded, or cannot take a prompt.
    """
    from unslant.models.hf.loading import load_model

    settings = AuditSettings(orders, labels, template, chat, shots, seed)
    alphabet = parse_labels(labels)
    writer = Writer(load_template(template), chat)
    found = _question_set(questions, limit, seed)
    chooser = ShotChooser((shots_from or found).questions, shots, seed, alphabet=alphabet)
    asked: list[Asked] = []
    for question in found:
        examples = chooser.of(question)
        asked += [
            (question, presentation.with_shots(examples))
            for presentation in audit_presentations(question, orders, alphabet, seed)
        ]
    for n in sorted({len(question.options) for question in found}):
        asked += control_presentations(n, alphabet, seed=seed)
    if isinstance(model, str):
        model = partial(load_model, model)
    asker = model() if callable(model) else model
    before = asker.cost.copy()
    elicitation = Cloze(writer)
    responses = ask(asker, asked, [elicitation], watch=watch)
    cost = asker.cost - before
    meta = {
        "model": asker.name,
        "questions": found.name,
        "questions_digest": found.digest,
        "loading": asdict(found.report),
        "settings": asdict(settings),
        "engine": getattr(asker, "engine", type(asker).__name__),
        "example_prompt": elicitation.prompts(asked[0][1])[0].as_text() if asked else "",
        "cost": asdict(cost),
    }
    as_written = json.loads(json.dumps({"study": "audit", **meta}))  # equal to what is read back from a file
    return result_of(Responses(responses.table, as_written, tuple(found)))


def audit_presentations(
    question: Question, orders: str, alphabet: tuple[str, ...], seed: int = 0
) -> list[Presentation]:
    """The order set of a question (named ``order``), then what it lacks of: given, reversed, labels reversed, both.

    Questions whose options are all pinned have one order, and no reversed one.
    """
    found = orders_for(question, orders, seed)
    given, reverse = given_order(question), reversed_order(question)
    shown = [present(question, order, alphabet) for order in found]
    if given not in found:
        shown.append(present(question, given, alphabet, "given"))
    if reverse not in found:
        shown.append(present(question, reverse, alphabet, "reverse"))
    upside_down = labels_for(alphabet, len(question.options))[::-1]
    shown.append(present(question, given, name="labels-reversed", labels=upside_down))
    if reverse != given:
        shown.append(present(question, reverse, name="both-reversed", labels=upside_down))
    return shown


def _question_set(
    questions: str | Path | QuestionSet[Question] | Iterable[Question], limit: int | None, seed: int
) -> QuestionSet[Question]:
    if isinstance(questions, str | Path):
        return load_questions(questions, limit=limit, seed=seed)
    if not isinstance(questions, QuestionSet):
        questions = QuestionSet.of(questions)
    return replace(questions, questions=sample(questions.questions, limit, seed))
