"""The audit: present every question in many orders, and say what the score is worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from unslant.asking import Asked, Progress, ask, no_progress
from unslant.models import ScoringModel
from unslant.models.open import opened
from unslant.presentations import (
    Presentation,
    ShotChooser,
    control_presentations,
    given_order,
    labels_for,
    orders_for,
    parse_labels,
    present,
    reversed_order,
)
from unslant.prompts import Cloze
from unslant.questions import EMBEDDED, Question, QuestionSet
from unslant.studies.audit.result import AuditResult, result_of
from unslant.studies.audit.settings import AuditSettings
from unslant.studies.meta import about, with_meta
from unslant.studies.options import with_options


def audit(
    model: str | ScoringModel | Callable[[], ScoringModel],
    questions: str | Path | QuestionSet[Question] | Iterable[Question] = EMBEDDED,
    settings: AuditSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> AuditResult:
    """Present every question in many orders, score all of them, and measure what the score is worth.

    Beside the orders, every question is shown as given, reversed, with its labels reversed, with both reversed, and
    with its labels shifted by one; and a question without content is shown once per label order and number of options.
    All else is read off these.

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one (called once
            everything else has been found to be in order).
        questions: a file, recipe or loaded set.
        settings, options: how they are asked: an :class:`~unslant.studies.audit.settings.AuditSettings`, its fields as
            keywords (``orders="cyclic"``, ``labels="1"``, ``limit=100``, ...), or both.
        progress: told of progress.

    Raises:
        InputError: on questions, labels, orders, a template or a keyword that cannot be used.
        ModelError: if the model cannot be loaded, or cannot take a prompt.
    """
    chosen = with_options(AuditSettings, settings, options)
    alphabet, writer, seed = parse_labels(chosen.labels), chosen.writer(), chosen.seed
    found = chosen.sampled(_question_set(questions, chosen))
    chooser = ShotChooser((chosen.pool(chosen.shots_from) or found).questions, chosen.shots, seed, alphabet=alphabet)
    asked: list[Asked] = []
    for question in found:
        examples = chooser.of(question)
        asked += [
            (question, presentation.with_shots(examples))
            for presentation in audit_presentations(question, chosen.orders, alphabet, seed)
        ]
    for n in sorted({len(question.options) for question in found}):
        asked += control_presentations(n, alphabet, seed=seed)
    asker = opened(model)
    before = asker.cost.copy()
    elicitation = Cloze(writer)
    responses = ask(asker, asked, [elicitation], progress=progress)
    meta = {
        **about("audit", found, chosen.recorded(), asker, before),
        "example_prompt": elicitation.prompts(asked[0][1])[0].as_text() if asked else "",
    }
    return result_of(with_meta(responses, meta, found))


def audit_presentations(
    question: Question, orders: str, alphabet: tuple[str, ...], seed: int = 0
) -> list[Presentation]:
    """The order set of a question (named ``order``), then what it lacks of: given, reversed, labels in other places.

    Labels are reversed (on the given and on the reversed order), and with three options or more shifted by one, so
    that the pull of a label and the pull of a position come apart wherever they stand; reversal alone leaves the
    middle where it is. Questions whose options are all pinned have one order, and no reversed one.
    """
    found = orders_for(question, orders, seed)
    given, reverse = given_order(question), reversed_order(question)
    shown = [present(question, order, alphabet) for order in found]
    if given not in found:
        shown.append(present(question, given, alphabet, "given"))
    if reverse not in found:
        shown.append(present(question, reverse, alphabet, "reverse"))
    labels = labels_for(alphabet, len(question.options))
    upside_down = labels[::-1]
    shown.append(present(question, given, kind="labels-reversed", labels=upside_down))
    if reverse != given:
        shown.append(present(question, reverse, kind="both-reversed", labels=upside_down))
    if len(labels) > 2:
        shown.append(present(question, given, kind="labels-shifted", labels=(*labels[1:], labels[0])))
    return shown


def _question_set(
    questions: str | Path | QuestionSet[Question] | Iterable[Question], settings: AuditSettings
) -> QuestionSet[Question]:
    if isinstance(questions, str | Path):
        return settings.load(questions)
    return questions if isinstance(questions, QuestionSet) else QuestionSet.of(questions)
