"""Settings of the evaluator probe."""

from dataclasses import dataclass
from pathlib import Path

from unslant.experiment.options import PromptOptions, Temperatures


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(PromptOptions):
    """How the questions are rephrased and judged."""

    strengths: Temperatures = (0.0, 0.25, 0.5, 0.75, 1.0)
    """Share of questions rephrased, 0 (the published benchmark) to 1; several separated by commas."""


@dataclass(frozen=True, kw_only=True)
class AccuracyOptions:
    """What recorded confidences are compared with."""

    accuracy: Path | None = None
    """With --log: a file of accuracy by model and subject."""
