"""What the contamination study found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import unslant
from unslant.metrics.estimate import Estimate
from unslant.studies.contamination.finetuning import Trained, Training
from unslant.studies.result import StudyResult
from unslant.studies.unbiased.result import UnbiasedResult

if TYPE_CHECKING:
    from unslant.reports.panels import Panel


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

    before: UnbiasedResult
    after: UnbiasedResult
    vanilla_gain: Estimate
    ours_gain: Estimate
    excess: Estimate
    trained: Trained | None = None
    training: Training | None = None

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        from unslant.studies.contamination.panels import headline

        return headline(self)

    def panels(self) -> Sequence[Panel]:
        """What a report shows."""
        from unslant.studies.contamination.panels import panels

        return panels(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single responses, JSON-able."""
        return {
            "unslant": unslant.__version__,
            "study": "contamination",
            "headline": self.headline,
            "vanilla_gain": self.vanilla_gain.to_dict(),
            "ours_gain": self.ours_gain.to_dict(),
            "excess": self.excess.to_dict(),
            "training": None if self.training is None else asdict(self.training),
            "trained": None if self.trained is None else asdict(self.trained),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
        }
