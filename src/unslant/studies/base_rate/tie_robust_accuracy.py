"""Accuracy of one presentation under one elicitation, and the effect of ties."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unslant.arrays import Floats, json_fields
from unslant.metrics import Bootstrap, Estimate
from unslant.metrics.label_scores import TIE_RULES, LabelScores
from unslant.metrics.registry import metric
from unslant.metrics.ties import tied as tied_labels
from unslant.reports.numbers import number, percent

TIE_LIMIT = 0.10
"""An accuracy is unreliable with ties in more than this share of the questions ..."""
RULE_LIMIT = 0.02
"""... or if the tie-breaking rule changes it by more than this."""


@dataclass(frozen=True)
class Cell:
    """Accuracy of one presentation under one elicitation.

    Attributes:
        accuracy: by tie rule (``first``, ``split``, ``last``), over all questions.
        by_subject: the same as an unweighted mean over subjects, as in P5; N counts subjects.
        tie_rate: share of questions with several most probable labels.
        all_tied: share of questions with all labels equally probable.
        n_failed: excluded rows without an answer.
    """

    presentation: str
    elicitation: str
    accuracy: dict[str, Estimate]
    by_subject: dict[str, Estimate]
    tie_rate: Estimate
    all_tied: Estimate
    n_failed: int

    @property
    def doubt(self) -> str:
        """Why the accuracy is unreliable; empty if it is reliable."""
        reasons = []
        if self.tie_rate.value > TIE_LIMIT:
            reasons.append(f"ties in {percent(self.tie_rate.value)} of the questions")
        moved = max(abs(table["first"].value - table["last"].value) for table in (self.accuracy, self.by_subject))
        if moved > RULE_LIMIT:
            first, split, last = (self.by_subject[rule].value for rule in TIE_RULES)
            shared = f"{number(first)} if the first tied label wins, {number(split)} if they share"
            reasons.append(f"{shared}, {number(last)} if the last")
        return "; ".join(reasons)

    def to_dict(self) -> dict[str, object]:
        return json_fields(self, also=("doubt",)) | {"trusted": not self.doubt}


@metric("accuracy.first", "ties to the first", "accuracy, the first tied label wins", unit="share", source="P5 table 3")
@metric("accuracy.split", "ties shared", "accuracy, tied labels share the credit", unit="share")
@metric("accuracy.last", "ties to the last", "accuracy, the last tied label wins", unit="share")
@metric(
    "by_subject.first",
    "mean of subjects",
    "unweighted mean over subjects, ties to the first",
    unit="share",
    source="P5 table 3",
)
@metric("by_subject.split", "mean of subjects, ties shared", "unweighted mean over subjects, ties shared", unit="share")
@metric(
    "by_subject.last", "mean of subjects, ties to the last", "unweighted mean over subjects, ties to last", unit="share"
)
@metric("all_tied", "all tied", "questions where all labels are equally probable", unit="share")
def cell(scores: LabelScores, presentation: str, elicitation: str, *, seed: int = 0) -> Cell:
    """Accuracy and ties of one presentation and elicitation, over questions with a right option."""
    asked = scores.take(np.flatnonzero(scores.right.any(axis=1)))
    bootstrap = Bootstrap(len(asked), asked.subjects, seed=seed)
    level = tied_labels(asked.relative).sum(axis=1) if len(asked) else np.zeros(0)
    correct = {rule: asked.correct(rule) for rule in TIE_RULES}
    return Cell(
        presentation,
        elicitation,
        {rule: bootstrap.mean(right) for rule, right in correct.items()},
        {rule: subject_mean(right, asked.subjects, seed=seed) for rule, right in correct.items()},
        bootstrap.mean(asked.tied.astype(np.float64)),
        bootstrap.mean((level == asked.n_options).astype(np.float64)),
        scores.n_failed,
    )


def subject_mean(values: Floats, subjects: tuple[str, ...], *, seed: int = 0) -> Estimate:
    """Unweighted mean of subject means, with a bootstrap interval over subjects; no ``nan`` in the (Q,) values."""
    if not len(values):
        return Estimate.undefined("no question has a value")
    _, codes = np.unique(np.asarray(subjects, dtype=str), return_inverse=True)
    means = np.bincount(codes, values) / np.bincount(codes)
    return Bootstrap(len(means), seed=seed).mean(means)
