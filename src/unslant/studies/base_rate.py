"""The base-rate study (P5): labels that a model likes before it has read anything, and what they do to its score."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import unslant
from unslant.errors import InputError
from unslant.metrics.shortcuts import Shortcut, shortcuts
from unslant.models.base import Cost, ScoringModel
from unslant.presentations import ShotChooser, parse_labels, present
from unslant.presentations.controls import control_presentations
from unslant.presentations.nvr import nvr_presentations
from unslant.prompts import Cloze, Counterfactual, Elicitation, Writer, load_template
from unslant.questions import EMBEDDED, Question, QuestionSet, load_questions
from unslant.questions.loaders import sample
from unslant.responses.recorded import load_recorded
from unslant.responses.table import Responses
from unslant.studies.asking import Asked, Watch, ask, no_watch
from unslant.studies.base_rate_findings import ELICITATIONS, GIVEN, Findings, Hypothesis, findings, hypotheses
from unslant.studies.base_rate_paper import PublishedCell, published
from unslant.studies.result import StudyResult

if TYPE_CHECKING:
    from unslant.reports.panels import Panel


@dataclass(frozen=True)
class BaseRateSettings:
    """How the questions are asked; see :func:`base_rate`."""

    labels: str = "A"
    template: str = "base-rate"
    chat: bool = False
    shots: int = 0
    canary: str = "best"
    nvr: bool = True
    seed: int = 0


@dataclass(frozen=True)
class BaseRateResult(StudyResult):
    """What the study found.

    Attributes:
        responses: every score; ``responses.meta`` tells how they came about.
        found: elicitation (``cloze``, ``counterfactual``) -> what was measured under it.
        hypotheses: H1 to H4, decided and in words.
        shortcuts: test-taking shortcuts against the cloze answers; empty without the questions' texts.
        published: the paper's numbers beside ours, for its own models and questions.
        cost: tokens and time.
    """

    responses: Responses
    found: Mapping[str, Findings]
    hypotheses: tuple[Hypothesis, ...]
    shortcuts: tuple[Shortcut, ...]
    published: tuple[PublishedCell, ...]
    cost: Cost
    meta: dict[str, Any]

    @property
    def headline(self) -> str:
        """Which of the paper's hypotheses hold."""
        verdicts: dict[str, list[str]] = {}
        for hypothesis in self.hypotheses:
            verdicts.setdefault(hypothesis.verdict, []).append(hypothesis.name)
        return "Base rates: " + "; ".join(f"{' and '.join(names)}: {verdict}" for verdict, names in verdicts.items())

    def summary(self, width: int = 100, color: bool = False) -> str:
        """The outcome as text for a terminal."""
        from unslant.reports.base_rate import summary

        return summary(self, width=width, color=color)

    def panels(self) -> Sequence[Panel]:
        """The outcome as sections of a report, with its pictures."""
        from unslant.reports.charts_base_rate import base_rate_panels

        return base_rate_panels(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single responses, JSON-able."""
        return {
            "unslant": unslant.__version__,
            **self.meta,
            "cost": asdict(self.cost),
            "hypotheses": [hypothesis.to_dict() for hypothesis in self.hypotheses],
            "elicitations": {name: found.to_dict() for name, found in self.found.items()},
            "shortcuts": [shortcut.to_dict() for shortcut in self.shortcuts],
            "published": [cell.to_dict() for cell in self.published],
        }

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of responses; :func:`base_rate_recorded` reads it back without the model."""
        self.responses.to_parquet(path)


def base_rate(
    model: str | ScoringModel | Callable[[], ScoringModel],
    questions: str | Path | QuestionSet[Question] = EMBEDDED,
    *,
    labels: str = "A",
    template: str = "base-rate",
    chat: bool = False,
    shots: int = 0,
    shots_from: QuestionSet[Question] | None = None,
    canary: str = "best",
    nvr: bool = True,
    limit: int | None = None,
    seed: int = 0,
    watch: Watch = no_watch,
) -> BaseRateResult:
    """Ask every question as given and as Nvr-X, and the control questions, each by cloze and by counterfactual.

    Args:
        model: a name or folder for :func:`unslant.load_model`, a loaded model, or a function that loads one.
        questions: a file, recipe or loaded set.
        labels: label set, see :func:`unslant.presentations.parse_labels`.
        template: prompt template; ``base-rate`` is the paper's layout.
        chat: ask through the tokenizer's chat template.
        shots, shots_from: worked examples before each question (and control); by default from the set itself.
        canary: word or words scored after each label under the counterfactual.
        nvr: ask the Nvr-X variants; without them the cost is that of the given order alone, and H4 is not tested.
        limit: ask only so many questions, sampled by ``seed``.
        seed: of every random choice.
        watch: told of progress.

    Raises:
        InputError: on questions, labels, canary or a template that cannot be used.
        ModelError: if the model cannot be loaded, or cannot take a prompt.
    """
    from unslant.models.loading import load_model

    settings = BaseRateSettings(labels, template, chat, shots, canary, nvr, seed)
    writer = Writer(load_template(template), chat)
    elicitations: list[Elicitation] = [Cloze(writer), Counterfactual(writer, canary)]
    found = questions if isinstance(questions, QuestionSet) else load_questions(questions)
    found = replace(found, questions=sample(found.questions, limit, seed))
    chooser = ShotChooser((shots_from or found).questions, shots, seed, alphabet=parse_labels(labels))
    asked = [
        (question, presentation.with_shots(chooser.of(question)))
        for question, presentation in base_rate_presentations(found.questions, parse_labels(labels), nvr, seed)
    ]
    if isinstance(model, str):
        model = partial(load_model, model)
    asker = model() if callable(model) else model
    before = asker.cost.copy()
    responses = ask(asker, asked, elicitations, watch=watch)
    meta = {
        "study": "base-rate",
        "model": asker.name,
        "questions": found.name,
        "questions_digest": found.digest,
        "loading": asdict(found.report),
        "settings": asdict(settings),
        "engine": getattr(asker, "engine", type(asker).__name__),
        "cost": asdict(asker.cost - before),
    }
    return _result(Responses(responses.table, json.loads(json.dumps(meta))), found.questions, seed)


def base_rate_presentations(
    questions: Sequence[Question], alphabet: tuple[str, ...], nvr: bool = True, seed: int = 0
) -> list[Asked]:
    """Every question as given and (``nvr``) in its Nvr-X variants, then the controls for every number of options."""
    asked: list[Asked] = []
    for question in questions:
        asked.append((question, present(question, alphabet=alphabet, name=GIVEN)))
        if nvr:
            asked += [(question, presentation) for presentation in nvr_presentations(question, alphabet, seed)]
    for n in sorted({len(question.options) for question in questions}):
        asked += control_presentations(n, alphabet, seed=seed)
    return asked


def base_rate_recorded(
    source: str | Path | Responses,
    questions: QuestionSet[Question] | Sequence[Question] | None = None,
    *,
    model: str | None = None,
    fields: Mapping[str, str] | None = None,
    seed: int = 0,
) -> BaseRateResult:
    """The same study from recorded log-probabilities, with no model.

    Args:
        source: a file for :func:`unslant.responses.recorded.load_recorded` (what :meth:`BaseRateResult.to_parquet`
            wrote is one too), or a table of responses.
        questions: the texts, for the shortcut controls. Recorded ids are those of the questions or the last parts of
            them (``abstract_algebra/0`` for ``mmlu/test/abstract_algebra/0``).
        model, fields: see :func:`~unslant.responses.recorded.load_recorded`.
        seed: of the bootstrap.

    Raises:
        InputError: on a file that cannot be used, or questions that are not the recorded ones.
    """
    responses = source if isinstance(source, Responses) else load_recorded(source, fields=fields, model=model)
    return _result(responses, None if questions is None else list(questions), seed)


def _result(responses: Responses, questions: Sequence[Question] | None, seed: int) -> BaseRateResult:
    asked = set(responses.table["elicitation"].unique().to_pylist())
    measured = [name for name in ELICITATIONS if name in asked]
    if not measured:
        raise InputError(f"no responses by {' or '.join(ELICITATIONS)}; there are {', '.join(sorted(asked)) or 'none'}")
    found = {name: findings(responses, name, seed=seed) for name in measured}
    meta = {key: value for key, value in responses.meta.items() if key != "cost"}
    spent = responses.meta.get("cost")
    return BaseRateResult(
        responses,
        found,
        hypotheses(found),
        _shortcuts(questions, found[measured[0]], seed) if questions is not None else (),
        published(str(meta.get("model", "")), str(meta.get("source", "")), found),
        Cost(**spent) if isinstance(spent, dict) else Cost(),
        meta,
    )


def _shortcuts(questions: Sequence[Question], found: Findings, seed: int) -> tuple[Shortcut, ...]:
    given = found.given
    rows = {question_id: row for row, question_id in enumerate(given.ids)}
    chosen: list[int | None] = []
    for question in questions:
        parts = question.id.split("/")
        row = next((rows[end] for i in range(len(parts)) if (end := "/".join(parts[i:])) in rows), None)
        if row is not None and set(np.flatnonzero(given.right[row])) != question.answers:
            raise InputError(
                f"question {question.id!r}: its right option is not the one recorded for {given.ids[row]!r}; "
                "give the question file that the responses were recorded with"
            )
        chosen.append(None if row is None else int(given.chosen[row]))
    if all(choice is None for choice in chosen):
        raise InputError(
            f"no question's id is among the recorded ones: questions have ids like {questions[0].id!r}, "
            f"responses like {given.ids[0]!r}"
        )
    return shortcuts(questions, chosen, seed=seed)
