"""The result of the contamination study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unslant.experiment.result import StudyResult, write_tables
from unslant.metrics import Estimate
from unslant.studies.unbiased.contamination.finetuning import FineTuned
from unslant.studies.unbiased.contamination.settings import Training
from unslant.studies.unbiased.result import UnbiasedResult


@dataclass(frozen=True)
class ContaminationResult(StudyResult):
    """The clean model and the suspected one on the same questions.

    Attributes:
        before, after: the clean and the suspected model.
        vanilla_gain, ours_gain: as published and under interventions, after minus before, paired by question.
        excess: what the published form gained beyond what survives interventions.
        trained: what fine-tuning did: epochs run, share answered right during the last, questions; None without any.
        training: its settings; None without any.
    """

    study = "contamination"

    before: UnbiasedResult
    after: UnbiasedResult
    vanilla_gain: Estimate
    ours_gain: Estimate
    excess: Estimate
    trained: FineTuned | None = None
    training: Training | None = None

    @property
    def parts(self) -> Sequence[UnbiasedResult]:
        return self.before, self.after

    def to_parquet(self, path: str | Path) -> None:
        """Write the two tables of responses, as ``NAME-before`` and ``NAME-after``."""
        write_tables({"before": self.before, "after": self.after}, path)
