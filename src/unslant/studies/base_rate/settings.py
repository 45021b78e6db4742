"""How the base-rate study asks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from unslant.experiment.options import ChooseShotsOptions, OutputOptions, PromptOptions, ScoredLabelOptions
from unslant.reach import Reach


@dataclass(frozen=True, kw_only=True)
class BaseRateSettings(ChooseShotsOptions, ScoredLabelOptions, PromptOptions):
    """How the questions are asked; see :func:`unslant.studies.base_rate.study.base_rate`."""

    template: Annotated[str, Reach.PLACE] = "base-rate"
    """Prompt template: a name, or the path of a .toml file; base-rate is the paper's layout."""
    canary: str = "best"
    """Word scored after each label (counterfactual)."""
    no_nvr: bool = False
    """Skip the Nvr-X variants (and what base rates cost): ask the given order only."""


@dataclass(frozen=True, kw_only=True)
class BaseRateOutputs(OutputOptions):
    """What is written."""

    charts: Path | None = None
    """Draw base rates against gold labels to a .pdf, .svg or .png file."""
