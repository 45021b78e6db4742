"""Settings of the evaluator probe."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from unslant.experiment.options import PromptOptions


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(PromptOptions):
    """How the questions are rephrased and judged."""

    strengths: Annotated[tuple[float, ...], Parameter(name="--strength")] = (0.0, 0.25, 0.5, 0.75, 1.0)
    """Share of questions rephrased, 0 (the published benchmark) to 1; may be given several times."""
