"""The result of the contamination study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unslant.metrics import Estimate
from unslant.studies.contamination.finetuning import FineTuned
from unslant.studies.contamination.settings import Training
from unslant.studies.result import StudyResult
from unslant.studies.unbiased.result import UnbiasedResult


@dataclass(frozen=True)
class ContaminationResult(StudyResult):
    """The clean model (``before``) and the suspected one (``after``) on the same questions.

    Gains are after minus before, paired by question; ``excess`` is what the published form gained beyond what survives.
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
        for name, result in (("before", self.before), ("after", self.after)):
            result.to_parquet(Path(path).with_stem(f"{Path(path).stem}-{name}"))
