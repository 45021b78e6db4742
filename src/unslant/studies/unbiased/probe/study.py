"""The evaluator probe (P4, sec. 3): the bias of benchmarks whose questions a model has rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from unslant.arrays import Floats
from unslant.asking import Asked, Progress, no_progress
from unslant.errors import InputError
from unslant.experiment.options import with_options
from unslant.experiment.provenance_block import provenance
from unslant.experiment.run_record import requests_of
from unslant.models import GenerateOptions, ModelOptions
from unslant.presentations import Presentation
from unslant.presentations.interventions import VANILLA, Composed, apply, compose, pool_of
from unslant.questions import EMBEDDED, Question, QuestionSet
from unslant.responses import Run
from unslant.responses.provenance import Provenance
from unslant.studies.unbiased.probe.judging import Participant, accuracy_by_subject, confidence_prompt, open_participant
from unslant.studies.unbiased.probe.result import ProbeResult, result_of
from unslant.studies.unbiased.probe.score_table import ScoreTable, load_accuracy, load_scores
from unslant.studies.unbiased.probe.settings import ProbeSettings

WITHOUT_BINARY = {"BT": 0.0}
"""The binary transformation makes several items of a question; judges are shown one."""


def probe(
    models: Sequence[str | Participant],
    questions: Any = EMBEDDED,
    settings: ProbeSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> ProbeResult:
    """Let every model rephrase every question, and every model judge every version, also those under interventions.

    Each version is judged once; strength p takes the rephrased version of a question with probability p.

    Args:
        models: two or more: names, or participants of :mod:`unslant.studies.unbiased.probe.judging`.
        questions: whatever :func:`unslant.load_questions` takes.
        settings, options: settings, some of their fields as keywords (``strengths=(0.0, 1.0)``, ...), or both.

    Raises:
        InputError: on fewer than two models, two of one name, strengths outside [0, 1], or unusable questions.
    """
    chosen = with_options(ProbeSettings, settings, options)
    names, strengths = [p if isinstance(p, str) else p.name for p in models], _strengths(chosen)
    _check(names, strengths)
    writer = chosen.writer()
    whole = chosen.load(questions)
    participants = [
        open_participant(p, ModelOptions(), writer, GenerateOptions()) if isinstance(p, str) else p for p in models
    ]
    published, changed = _presentations(whole, chosen.sampled(whole).questions, chosen.seed)
    shown = [presentation for _, presentation in published]

    def judged(versions: Iterable[Presentation]) -> Floats:
        prompts = [confidence_prompt(version, writer) for version in versions]
        return np.array([participant.judge(prompts, progress) for participant in participants], dtype=np.float64)

    spent = {one.name: (one.chat, one.chat.cost.copy()) for one in participants if one.chat is not None}
    original = judged(shown)
    boat = judged(presentation for _, presentation in changed)
    rephrased = np.full((len(names), *original.shape), np.nan)
    for i, participant in enumerate(participants):
        stems = participant.rephrase([presentation.stem for presentation in shown], progress)
        usable = {q: replace(shown[q], stem=stem) for q, stem in enumerate(stems) if stem}
        if usable:
            rephrased[i][:, list(usable)] = judged(usable.values())
    accuracy = {
        participant.name: accuracy_by_subject(participant.answer(published, progress)) for participant in participants
    }
    ids, subjects = zip(*((question.id, question.subject) for question, _ in published), strict=True)
    table = ScoreTable(tuple(names), ids, subjects, original, rephrased, boat)
    run = Run(
        study="probe",
        questions=whole.name,
        questions_digest=whole.digest,
        settings=chosen.recorded() | {"strengths": list(strengths)},
        requests=requests_of(spent),
        provenance=Provenance.model_validate(
            provenance([p.block for p in participants], [chosen.sampled(whole)], chosen)
        ),
    )
    return result_of(table, accuracy, strengths, chosen.seed, run)


def probe_recorded(
    scores: str | Path,
    accuracy: str | Path | None = None,
    settings: ProbeSettings | None = None,
    **options: Any,
) -> ProbeResult:
    """The same from a recorded table of confidences, see :mod:`~unslant.studies.unbiased.probe.score_table`.

    Raises:
        InputError: if a file cannot be read, naming line and field.
    """
    chosen = with_options(ProbeSettings, settings, options)
    table, strengths = load_scores(scores), _strengths(chosen)
    _check(table.models, strengths)
    recorded = {"strengths": list(strengths), "seed": chosen.seed}
    run = Run(study="probe", recorded=Path(scores).name, settings=recorded)
    return result_of(table, load_accuracy(accuracy) if accuracy else {}, strengths, chosen.seed, run)


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
