"""The evaluator probe (P4, sec. 3): what happens to a benchmark when a model rewrites its questions.

Every model rephrases, every model judges, and the unbiased evaluator's output is judged beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unslant.asking import Asked, Progress, no_progress
from unslant.errors import InputError
from unslant.presentations.interventions import VANILLA, Composed, apply, compose, pool_of
from unslant.questions import EMBEDDED, Question, QuestionSet
from unslant.studies.options import with_options
from unslant.studies.probe.judging import Participant, accuracy_by_subject, confidence_prompt, with_stem
from unslant.studies.probe.result import ProbeResult, result_of
from unslant.studies.probe.score_table import ScoreTable, load_accuracy, load_scores
from unslant.studies.probe.settings import ProbeSettings

WITHOUT_BINARY = {"BT": 0.0}
"""Judges are shown one item a question, so that the binary transformation, which makes several, is left out."""


def probe(
    participants: Sequence[Participant],
    questions: str | Path | QuestionSet[Question] = EMBEDDED,
    settings: ProbeSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> ProbeResult:
    """Let every model rephrase every question, and every model judge every version.

    Each version is judged once; a strength p then takes the rephrased version of a question with probability p.

    Args:
        participants: two models or more, see :mod:`unslant.studies.probe.judging`.
        questions: a file, recipe or loaded set.
        settings, options: how they are rephrased and judged: a
            :class:`~unslant.studies.probe.settings.ProbeSettings`, its fields as keywords (``strengths=(0.0, 1.0)``,
            ``limit=50``, ...), or both.
        progress: told of progress.

    Raises:
        InputError: on fewer than two models, two of one name, strengths outside [0, 1], or unusable questions.
    """
    chosen = with_options(ProbeSettings, settings, options)
    names, strengths = [participant.name for participant in participants], _strengths(chosen)
    _check(names, strengths)
    writer = chosen.writer()
    whole = questions if isinstance(questions, QuestionSet) else chosen.load(questions)
    published, changed = _presentations(whole, chosen.sampled(whole).questions, chosen.seed)
    shown = [presentation for _, presentation in published]

    def judged(versions: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
        prompts = [confidence_prompt(version, writer) for version in versions]
        return np.array([participant.judge(prompts, progress) for participant in participants], dtype=np.float64)

    original = judged(shown)
    boat = judged([presentation for _, presentation in changed])
    rephrased = np.full((len(names), *original.shape), np.nan)
    for i, participant in enumerate(participants):
        stems = participant.rephrase([presentation.stem for presentation in shown], progress)
        usable = [q for q, stem in enumerate(stems) if stem]
        if usable:
            versions = [with_stem(shown[q], str(stems[q])) for q in usable]
            rephrased[i][:, usable] = judged(versions)
    accuracy = {
        participant.name: accuracy_by_subject(participant.answer(published, progress)) for participant in participants
    }
    table = ScoreTable(
        tuple(names),
        tuple(question.id for question, _ in published),
        tuple(question.subject for question, _ in published),
        original,
        rephrased,
        boat,
    )
    meta = {
        "study": "probe",
        "questions": whole.name,
        "questions_digest": whole.digest,
        "settings": chosen.recorded() | {"strengths": list(strengths)},
    }
    return result_of(table, accuracy, strengths, chosen.seed, meta)


def probe_recorded(
    scores: str | Path,
    accuracy: str | Path | None = None,
    settings: ProbeSettings | None = None,
    **options: Any,
) -> ProbeResult:
    """The same analyses of a recorded table of confidences, see :func:`~unslant.studies.probe.score_table.load_scores`.

    Raises:
        InputError: if a file cannot be read, naming line and field.
    """
    chosen = with_options(ProbeSettings, settings, options)
    table, strengths = load_scores(scores), _strengths(chosen)
    _check(table.models, strengths)
    told = {"strengths": list(strengths), "seed": chosen.seed}
    meta = {"study": "probe", "recorded": Path(scores).name, "settings": told}
    return result_of(table, load_accuracy(accuracy) if accuracy else {}, strengths, chosen.seed, meta)


def _strengths(settings: ProbeSettings) -> tuple[float, ...]:
    return tuple(sorted(set(settings.strengths)))


def _presentations(
    whole: QuestionSet[Question], questions: Sequence[Question], seed: int
) -> tuple[list[Asked], list[Asked]]:
    """Every question as published, and under interventions; questions without a right option are left out."""
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
