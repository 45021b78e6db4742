"""The result of the base-rate study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unslant.arrays import jsonable
from unslant.errors import InputError
from unslant.experiment.result import RecordedResult
from unslant.metrics.shortcuts import Shortcut, shortcuts
from unslant.questions import Question
from unslant.responses import Responses
from unslant.studies.base_rate.findings import ELICITATIONS, Findings, Hypothesis, findings, hypotheses
from unslant.studies.base_rate.published import PublishedCell, published


@dataclass(frozen=True)
class BaseRateResult(RecordedResult):
    """The result of the base-rate study.

    Attributes:
        found: findings by elicitation (``cloze``, ``counterfactual``).
        shortcuts: test-taking shortcuts against the cloze answers; empty without question texts.
        published: comparison with the paper, for its own models and questions.
    """

    study = "base-rate"
    unwritten = ("responses", "found")

    responses: Responses
    found: Mapping[str, Findings]
    hypotheses: tuple[Hypothesis, ...]
    shortcuts: tuple[Shortcut, ...]
    published: tuple[PublishedCell, ...]

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"elicitations": jsonable(self.found)}

    @classmethod
    def of(cls, responses: Responses) -> BaseRateResult:
        return result_of(responses, responses.questions or None, responses.run.settings.get("seed", 0))


def result_of(responses: Responses, questions: Sequence[Question] | None, seed: int) -> BaseRateResult:
    asked = set(responses.table["elicitation"].unique().to_pylist())
    measured = [name for name in ELICITATIONS if name in asked]
    if not measured:
        raise InputError(f"no responses by {' or '.join(ELICITATIONS)}; there are {', '.join(sorted(asked)) or 'none'}")
    found: dict[str, Findings] = {}
    for name in measured:
        found[name] = findings(responses, name, cloze=found.get("cloze"), seed=seed)
    return BaseRateResult(
        responses,
        found,
        hypotheses(found),
        _shortcuts(questions, found[measured[0]], seed) if questions is not None else (),
        published(responses.run.model, responses.run.source, found),
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
