"""How debiasing methods are compared."""

from dataclasses import dataclass
from typing import Annotated

from unslant.studies.options import LabelOptions, Names, Pools, PromptOptions, switch_off

DEFAULT_METHODS = (
    "vote", "adaptive-fast", "pride", "gray-box", "gray-box-calibrated", "bnp", "aoi", "set-based", "lora-1",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DebiasSettings(LabelOptions, PromptOptions):
    """What is compared; see :func:`unslant.studies.debias.study.debias_study`."""

    methods: Names = DEFAULT_METHODS
    """Methods separated by commas, with settings after colons; see unslant debias."""
    train: Pools = ()
    """Questions to train on, one file for each of QUESTIONS, separated by commas; by default half of each."""
    transfer: Annotated[
        bool, switch_off("--no-transfer", "Do not measure methods on sets they were not fitted on.")
    ] = True
    """Measure methods with a fit also on the sets they were not fitted on."""
    orders: str = "auto"
    """Orders in which the questions are listed to see what bias is left; see unslant audit."""
