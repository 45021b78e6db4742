"""The audit: present every question in many orders, and say what the score is worth."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import unslant
from unslant.metrics import Metrics, OrderScores, compute
from unslant.metrics.base_rate import BaseRates, base_rates
from unslant.metrics.nvr import Nvr, nvr_from_scores
from unslant.models.base import Cost, ScoringModel
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
from unslant.studies.asking import Asked, Watch, ask, no_watch
from unslant.studies.corrections import Correction, corrections
from unslant.studies.result import StudyResult

if TYPE_CHECKING:
    from unslant.reports.panels import Panel


@dataclass(frozen=True)
class AuditSettings:
    """How the questions are asked; see :func:`audit`."""

    orders: str = "auto"
    labels: str = "A"
    template: str = "plain"
    chat: bool = False
    shots: int = 0
    seed: int = 0


@dataclass(frozen=True)
class AuditResult(StudyResult):
    """What an audit found.

    Attributes:
        responses: every score, one row per presentation; ``responses.meta`` tells how they came about.
        metrics: every number, with its interval and N.
        nvr: accuracy when the right option never stands under a label (P5), read off the orders.
        base_rates: number of options -> what the labels are worth to the model where there is no content (P5).
        corrections: accuracy after vote, PriDe and gray-box, read off the orders.
        cost: tokens and time.
    """

    responses: Responses
    metrics: Metrics
    nvr: Nvr
    base_rates: dict[int, BaseRates]
    corrections: tuple[Correction, ...]
    cost: Cost
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        from unslant.reports.terminal import headline

        return headline(self)

    def summary(self, width: int = 100, color: bool = False) -> str:
        """The outcome as text for a terminal, led by the headline."""
        from unslant.reports.terminal import summary

        return summary(self, width=width, color=color)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single responses, JSON-able."""
        return {
            "unslant": unslant.__version__,
            "headline": self.headline,
            **self.meta,
            "cost": asdict(self.cost),
            "metrics": self.metrics.to_dict(),
            "nvr": self.nvr.to_dict(),
            "base_rates": {str(n): rates.to_dict() for n, rates in self.base_rates.items()},
            "corrections": [correction.to_dict() for correction in self.corrections],
        }

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of responses; :meth:`from_parquet` reads it back without the model."""
        self.responses.to_parquet(path)

    @classmethod
    def from_parquet(cls, path: str | Path) -> AuditResult:
        """An audit from its table of responses; every metric is computed anew."""
        return _result(Responses.from_parquet(path))

    @classmethod
    def from_responses(cls, responses: Responses) -> AuditResult:
        """The same from a table at hand."""
        return _result(responses)

    def panels(self) -> Sequence[Panel]:
        """The audit as sections of a report."""
        from unslant.reports.html import panels_of
        from unslant.reports.runs import named

        return panels_of(named([self]))


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

    Beside the orders, every question is shown as given, reversed, with its labels reversed, with both reversed, and
    with its labels shifted by one; and a question without content is shown once per label order and number of options.
    All else is read off these.

    Args:
        model: a name or folder for :func:`unslant.load_model`, a loaded model, or a function that loads one (called
            once everything else has been found to be in order).
        questions: a file, recipe or loaded set.
        orders: ``auto`` (all orders of up to four options; of more, whole sets of rotations, so that every option
            stands in every place equally often), ``all``, ``cyclic``, ``reverse``, ``given``, or the number of orders
            to sample.
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
    from unslant.models.loading import load_model

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
    return _result(Responses(responses.table, as_written, tuple(found)))


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
    shown.append(present(question, given, name="labels-reversed", labels=upside_down))
    if reverse != given:
        shown.append(present(question, reverse, name="both-reversed", labels=upside_down))
    if len(labels) > 2:
        shown.append(present(question, given, name="labels-shifted", labels=(*labels[1:], labels[0])))
    return shown


def _question_set(
    questions: str | Path | QuestionSet[Question] | Iterable[Question], limit: int | None, seed: int
) -> QuestionSet[Question]:
    if isinstance(questions, str | Path):
        return load_questions(questions, limit=limit, seed=seed)
    if not isinstance(questions, QuestionSet):
        questions = QuestionSet.of(questions)
    return replace(questions, questions=sample(questions.questions, limit, seed))


def _result(responses: Responses) -> AuditResult:
    meta = {key: value for key, value in responses.meta.items() if key not in ("cost", "study")}
    spent = responses.meta.get("cost")
    cost = Cost(**spent) if isinstance(spent, dict) else Cost()
    scores = OrderScores.from_responses(responses)
    return AuditResult(
        responses,
        compute(scores),
        nvr_from_scores(scores),
        base_rates(responses, labels=scores.labels),
        corrections(scores),
        cost,
        meta,
    )
