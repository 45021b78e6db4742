"""How the unbiased evaluator asks."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from unslant.studies.options import Numbers, PromptOptions, ShotOptions, switch_off


@dataclass(frozen=True, kw_only=True)
class ComposeSettings(ShotOptions, PromptOptions):
    """How interventions are drawn."""

    LEAST = {"runs": 1}

    runs: int = 5
    """Random draws of interventions for every question."""
    probabilities: Annotated[Numbers, Parameter(name=("--probability", "-p"))] = dataclasses.field(default_factory=dict)
    """Probability of one intervention, as OS=0.3; may be given several times (default: the paper's, 0.5 each, BT 0.1)."""
    instructions: Annotated[bool, switch_off("--no-instructions", "Do not begin with a sentence that says what to do.")] = (
        True
    )
    """Begin with a sentence that says what is asked for, which changes with the interventions. Models that were never
    taught to follow one (the reference models) are better asked without it."""


@dataclass(frozen=True, kw_only=True)
class UnbiasedSettings(ComposeSettings):
    """How the questions are asked; see :func:`unslant.studies.unbiased.study.unbiased`."""

    shots: int = 5
    """Worked examples before each question, under the same interventions (P4: 5)."""
    maths: bool = False
    """The questions are open, their answers numbers."""
    generate: bool = False
    """Read generated replies instead of label probabilities; models that can only generate need no such flag."""
    alone: Annotated[bool, switch_off("--no-alone", "Do not ask each intervention by itself too.")] = True
    """Ask every intervention by itself too."""
