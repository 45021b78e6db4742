"""Present, ask, collect: the step every study shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unslant.models.base import ScoringModel
from unslant.presentations.presentation import Presentation
from unslant.prompts.elicitation import Elicitation
from unslant.prompts.prompt import Prompt
from unslant.questions.question import Question
from unslant.responses.table import Response, Responses

Watch = Callable[[str, int, int], None]
"""Called with the phase's name, the prompts done and the prompts in all."""

Asked = tuple[Question, Presentation]


def no_watch(phase: str, done: int, total: int) -> None:
    """The watch of those who do not look."""


def ask(
    model: ScoringModel,
    asked: Sequence[Asked],
    elicitations: Sequence[Elicitation],
    *,
    meta: Mapping[str, object] | None = None,
    watch: Watch = no_watch,
) -> Responses:
    """Score every presentation under every elicitation; equal prompts are scored once.

    Returns:
        One row per presentation and elicitation, elicitation by elicitation, presentations in the order given.
    """
    prompts: dict[Prompt, int] = {}
    wanted: list[tuple[Elicitation, Asked, list[int]]] = []
    for elicitation in elicitations:
        for question, presentation in asked:
            indices = [prompts.setdefault(prompt, len(prompts)) for prompt in elicitation.prompts(presentation)]
            wanted.append((elicitation, (question, presentation), indices))
    scores = score_all(model, list(prompts), watch=watch)
    rows = (
        Response.scored(
            question, presentation, elicitation.name, elicitation.read(presentation, [scores[i] for i in indices])
        )
        for elicitation, (question, presentation), indices in wanted
    )
    return Responses.from_rows(rows, meta)


def score_all(
    model: ScoringModel, prompts: Sequence[Prompt], *, watch: Watch = no_watch, phase: str = "scoring"
) -> list[NDArray[np.float64]]:
    """Scores of all prompts, in their order."""
    scores: list[NDArray[np.float64]] = [np.empty(0)] * len(prompts)
    watch(phase, 0, len(prompts))
    for done, result in enumerate(model.score(prompts), start=1):
        scores[result.index] = result.logprobs
        watch(phase, done, len(prompts))
    return scores
