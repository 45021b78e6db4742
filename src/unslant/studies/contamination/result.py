"""What the contamination study found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unslant.metrics import Estimate
from unslant.studies.contamination.finetuning import FineTuned
from unslant.studies.contamination.settings import Training
from unslant.studies.result import StudyResult
from unslant.studies.unbiased.result import UnbiasedResult


@dataclass(frozen=True)
class ContaminationResult(StudyResult):
    """Two models on the same questions, as published and under interventions.

    Attributes:
        before, after: the clean and the suspected model.
        vanilla_gain: after minus before as published, paired by question.
        ours_gain: the same under interventions.
        excess: vanilla_gain minus ours_gain: what the published form gained beyond what survives.
        trained: what fine-tuning did, where it was done here.
        training: its settings.
    """

    study = "contamination"

    before: UnbiasedResult
    after: UnbiasedResult
    vanilla_gain: Estimate
    ours_gain: Estimate
    excess: Estimate
    trained: FineTuned | None = None
    training: Training | None = None

    def to_parquet(self, path: str | Path) -> None:
        """Write the two tables of responses, as ``NAME-before`` and ``NAME-after``."""
        for name, result in (("before", self.before), ("after", self.after)):
            result.to_parquet(Path(path).with_stem(f"{Path(path).stem}-{name}"))
