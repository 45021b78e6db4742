"""The result of the base-rate study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from unslant.arrays import json_fields, jsonable
from unslant.errors import InputError
from unslant.experiment.result import RecordedResult
from unslant.metrics import Estimate
from unslant.metrics.registry import metric
from unslant.metrics.shortcuts import Shortcut, shortcuts
from unslant.questions import Question
from unslant.responses import Responses
from unslant.studies.base_rate.findings import ELICITATIONS, GIVEN, Findings, Hypothesis, findings, hypotheses

PRESENTATIONS = ("nvr-A", "nvr-B", "nvr-C", "nvr-D", GIVEN)
SOURCE = "MMLU"

TABLE_3: dict[str, dict[str, tuple[float, ...]]] = {
    "gpt2": {"cloze": (0.007, 0.336, 0.333, 0.324, 0.231), "counterfactual": (0.134, 0.326, 0.320, 0.227, 0.248)},
    "llama2": {"cloze": (0.314, 0.398, 0.346, 0.417, 0.348), "counterfactual": (0.238, 0.270, 0.201, 0.308, 0.260)},
    "llama3": {"cloze": (0.560, 0.586, 0.571, 0.629, 0.574), "counterfactual": (0.341, 0.402, 0.314, 0.450, 0.341)},
    "mistral": {"cloze": (0.273, 0.445, 0.468, 0.512, 0.393), "counterfactual": (0.107, 0.317, 0.304, 0.341, 0.338)},
    "solar": {"cloze": (0.503, 0.625, 0.608, 0.594, 0.564), "counterfactual": (0.113, 0.340, 0.321, 0.364, 0.366)},
}
"""Model -> elicitation -> accuracy on each of ``PRESENTATIONS``: mean over 57 subjects, ties to the first label."""


@dataclass(frozen=True)
class PublishedCell:
    """A published accuracy and ours (unweighted mean over subjects, ties to the first label)."""

    presentation: str
    elicitation: str
    published: float
    ours: Estimate

    @property
    def difference(self) -> float:
        return self.ours.value - self.published

    def to_dict(self) -> dict[str, object]:
        return json_fields(self, also=("difference",))


@metric("published", "paper", "as published", unit="share", source="P5 table 3")
@metric("published.ours", "here", "from the scores at hand", unit="share")
@metric("published.difference", "difference", "here minus the paper", digits=4, unit="difference")
def published(model: str, source: str, by_elicitation: Mapping[str, Findings]) -> tuple[PublishedCell, ...]:
    """Published accuracies of ``model`` and ours; empty for other models or question sets."""
    plain = model.lower().replace("-", "").replace("_", "").replace(" ", "")
    table = next((table for name, table in TABLE_3.items() if plain.startswith(name)), None)
    if table is None or source != SOURCE:
        return ()
    cells = []
    for elicitation, values in table.items():
        for presentation, value in zip(PRESENTATIONS, values, strict=True):
            ours = by_elicitation[elicitation].cell(presentation) if elicitation in by_elicitation else None
            if ours is not None:
                cells.append(PublishedCell(presentation, elicitation, value, ours.by_subject["first"]))
    return tuple(cells)


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
    def of(
        cls, responses: Responses, questions: Sequence[Question] | None = None, seed: int | None = None
    ) -> BaseRateResult:
        """The result, from responses alone.

        Args:
            questions: the texts for the shortcut controls, by default those in the table. Recorded ids may be the last
                parts of the questions' ids (``abstract_algebra/0`` for ``mmlu/test/abstract_algebra/0``).
            seed: by default that of the run.

        Raises:
            InputError: if there is no response of these elicitations, or the questions are not those recorded.
        """
        names = set(responses.table["elicitation"].unique().to_pylist())
        measured = [name for name in ELICITATIONS if name in names]
        if not measured:
            there = ", ".join(sorted(names)) or "none"
            raise InputError(f"no responses by {' or '.join(ELICITATIONS)}; there are {there}")
        questions, seed = questions or responses.questions, seed or responses.run.settings.get("seed", 0)
        by_elicitation: dict[str, Findings] = {}
        for name in measured:
            by_elicitation[name] = findings(responses, name, cloze=by_elicitation.get("cloze"), seed=seed)
        return cls(
            responses,
            by_elicitation,
            hypotheses(by_elicitation),
            _shortcuts(questions, by_elicitation[measured[0]], seed) if questions else (),
            published(responses.run.model, responses.run.source, by_elicitation),
        )


def _shortcuts(questions: Sequence[Question], findings: Findings, seed: int) -> tuple[Shortcut, ...]:
    scores = findings.given
    rows = {question_id: row for row, question_id in enumerate(scores.ids)}
    choices: list[int | None] = []
    for question in questions:
        parts = question.id.split("/")
        row = next((rows[end] for i in range(len(parts)) if (end := "/".join(parts[i:])) in rows), None)
        if row is not None and set(np.flatnonzero(scores.right[row])) != question.answers:
            raise InputError(
                f"question {question.id!r}: its right option is not the one recorded for {scores.ids[row]!r}; "
                "give the question file that the responses were recorded with"
            )
        choices.append(None if row is None else int(scores.chosen[row]))
    if all(choice is None for choice in choices):
        raise InputError(
            f"no question's id is among the recorded ones: questions have ids like {questions[0].id!r}, "
            f"responses like {scores.ids[0]!r}"
        )
    return shortcuts(questions, choices, seed=seed)
