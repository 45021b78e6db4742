"""How the evaluator probe asks."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from unslant.studies.options import PromptOptions

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, kw_only=True)
class ProbeSettings(PromptOptions):
    """How the questions are rephrased and judged; see :func:`unslant.studies.probe.study.probe`."""

    strengths: Annotated[tuple[float, ...], Parameter(name="--strength")] = STRENGTHS
    """Share of questions rephrased, 0 (the published benchmark) to 1; may be given several times."""
