"""The evaluator probe (P4, sec. 3): the bias of benchmarks whose questions a model has rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unslant.arrays import Floats
from unslant.asking import Asked, Progress
from unslant.errors import InputError
from unslant.experiment.job import Given, Job
from unslant.experiment.options import PromptOptions, Temperatures
from unslant.experiment.run_record import check_same, provenance, requests_of
from unslant.experiment.study import Keywords, Study, function
from unslant.models import GenerateOptions
from unslant.models.options import scoring_options
from unslant.presentations import Presentation
from unslant.presentations.interventions import VANILLA, Composed, apply, compose, pool_of
from unslant.questions import Question, QuestionSet
from unslant.responses import Run
from unslant.studies.unbiased.probe.judging import Participant, accuracy_by_subject, confidence_prompt, open_participant
from unslant.studies.unbiased.probe.result import ProbeResult, ScoreTable, load_accuracy, load_scores, result_of


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(PromptOptions):
    """How the questions are rephrased and judged."""

    strengths: Temperatures = (0.0, 0.25, 0.5, 0.75, 1.0)
    """Share of questions rephrased, 0 (the published benchmark) to 1; several separated by commas."""


@dataclass(frozen=True, kw_only=True)
class AccuracyOptions:
    """What recorded confidences are compared with."""

    accuracy: Path | None = None
    """With --log: a file of accuracy by model and subject."""


WITHOUT_BINARY = {"BT": 0.0}
"""The binary transformation makes several items of a question; judges are shown one."""


class Probe(Study[ProbeSettings]):
    """Measure how biased a model's rewritten questions are.

    Every model rephrases the questions and judges every version: consensus errors, over- and under-confidence.

    The questions under random interventions are judged too. Every version is judged once; strength p takes the
    rephrased version of a question with probability p. Scores and replies are stored one by one: the same command
    resumes. --log reads a table of confidences.

    Examples:
      unslant study probe org/one,org/two,inspect:openai/gpt-4o-mini mmlu --limit 200
      unslant study probe --log confidences.csv --accuracy accuracy.csv
    """

    name = "probe"
    settings = ProbeSettings
    result = ProbeResult
    model = None
    inputs = AccuracyOptions
    generate = GenerateOptions
    of_logs = ("strengths", "seed")
    several = True
    in_commas = True
    without = scoring_options()

    def check(self, given: Given[ProbeSettings]) -> None:
        if len(given.log) > 1:
            raise InputError("give models, or --log with one file")
        if given.log:
            return
        if given.inputs.accuracy is not None:
            raise InputError("--accuracy goes with --log: the models' own accuracy is measured here; leave it out")
        if len(given.models) < 2:
            raise InputError("the probe needs two models or more, separated by commas (or --log FILE)")

    def needs(self, settings: ProbeSettings) -> tuple[str, ...]:
        return ("generate",)

    def check_replies(self, given: Given[ProbeSettings], settings: Sequence[ProbeSettings]) -> None:
        """Every model replies here."""

    def measure(self, job: Job[ProbeSettings]) -> ProbeResult:
        given, settings, whole, record = job.given, job.given.settings, job.questions, job.record
        sampled, writer, strengths = settings.sampled(whole), settings.writer(), _strengths(settings)
        _check([model if isinstance(model, str) else model.name for model in given.models], strengths)
        check_same(sampled)
        record.begin(", ".join(map(str, given.models)), sampled)
        participants = [
            open_participant(model, options, writer, given.generate, record.stored) if isinstance(model, str) else model
            for model, options in zip(given.models, given.options, strict=True)
        ]
        for participant in participants:
            check_same(model=participant.block)
        _check([participant.name for participant in participants], strengths)
        return _measured(participants, whole, settings, strengths, job.progress)

    def read(self, given: Given[ProbeSettings]) -> ProbeResult:
        settings, (scores,), accuracy = given.settings, given.log, given.inputs.accuracy
        table, strengths = load_scores(scores), _strengths(settings)
        _check(table.models, strengths)
        run = Run(
            study="probe", recorded=Path(scores).name, settings={"strengths": list(strengths), "seed": settings.seed}
        )
        return result_of(table, load_accuracy(accuracy) if accuracy else {}, strengths, settings.seed, run)


@dataclass(frozen=True, kw_only=True)
class ProbeKeywords(Keywords, AccuracyOptions, GenerateOptions, ProbeSettings):
    """Keywords of :func:`probe`."""


probe = function(
    Probe(),
    ProbeKeywords,
    ProbeResult,
    """
    >>> result = unslant.study.probe(["fair", "words"], "embedded", limit=5)
    >>> sorted(result.models)
    ['fair', 'words']
    """,
)


def _measured(
    participants: Sequence[Participant],
    whole: QuestionSet[Question],
    settings: ProbeSettings,
    strengths: Sequence[float],
    progress: Progress,
) -> ProbeResult:
    writer, sampled = settings.writer(), settings.sampled(whole)
    published, changed = _presentations(whole, sampled.questions, settings.seed)
    presentations = [presentation for _, presentation in published]

    def judged(versions: Iterable[Presentation]) -> Floats:
        prompts = [confidence_prompt(version, writer) for version in versions]
        return np.array([participant.judge(prompts, progress) for participant in participants], dtype=np.float64)

    spent = {one.name: (one.chat, one.chat.cost.copy()) for one in participants}
    original = judged(presentations)
    boat = judged(presentation for _, presentation in changed)
    rephrased = np.full((len(participants), *original.shape), np.nan)
    for i, participant in enumerate(participants):
        stems = participant.rephrase([presentation.stem for presentation in presentations], progress)
        usable = {q: replace(presentations[q], stem=stem) for q, stem in enumerate(stems) if stem}
        if usable:
            rephrased[i][:, list(usable)] = judged(usable.values())
    accuracy = {one.name: accuracy_by_subject(one.answer(published, progress)) for one in participants}
    ids, subjects = zip(*((question.id, question.subject) for question, _ in published), strict=True)
    table = ScoreTable(tuple(one.name for one in participants), ids, subjects, original, rephrased, boat)
    run = Run(
        study="probe",
        questions=whole.name,
        questions_digest=whole.digest,
        settings=settings.recorded() | {"strengths": list(strengths)},
        requests=requests_of(spent),
        provenance=provenance([p.block for p in participants], [sampled], settings),
    )
    return result_of(table, accuracy, tuple(strengths), settings.seed, run)


def _strengths(settings: ProbeSettings) -> tuple[float, ...]:
    return tuple(sorted(set(settings.strengths)))


def _presentations(
    whole: QuestionSet[Question], questions: Sequence[Question], seed: int
) -> tuple[list[Asked], list[Asked]]:
    """Every question with a right option as published, and under interventions."""
    pool = pool_of(whole)
    published, changed = [], []
    for question in questions:
        plain = apply(question, (), pool, seed, kind=VANILLA)
        composed = compose(question, pool, WITHOUT_BINARY, seed)
        if isinstance(plain, Composed) and isinstance(composed, Composed):
            published.append(plain.items[0])
            changed.append(composed.items[0])
    if not published:
        raise InputError(f"{whole.name}: no question has a right option to be judged")
    return published, changed


def _check(names: Sequence[str], strengths: Sequence[float]) -> None:
    if len(set(names)) != len(names) or len(names) < 2:
        raise InputError(f"the probe needs two models or more, each once; given are {', '.join(names) or 'none'}")
    if not strengths or not all(0.0 <= p <= 1.0 for p in strengths):
        raise InputError(f"strengths {', '.join(map(str, strengths)) or '(none)'}: give numbers from 0 to 1")
