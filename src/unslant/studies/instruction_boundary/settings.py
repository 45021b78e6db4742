"""How the instruction-boundary study asks."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from unslant.errors import InputError, one_of
from unslant.experiment.options import FieldOptions, LabelOptions, Names, Temperatures, check_unused
from unslant.models import GenerateOptions
from unslant.reach import Reach
from unslant.studies.instruction_boundary.instruction_settings import FORMS, SEED, setting
from unslant.studies.instruction_boundary.plan import setting_names

TEMPERATURE = 0.5
"""Sampling temperature of P3."""
MAX_TOKENS = 2048


@dataclass(frozen=True, kw_only=True)
class BoundarySettings(FieldOptions, LabelOptions):
    """What is asked; see :func:`unslant.studies.instruction_boundary.study.instruction_boundary`."""

    LEAST: ClassVar = {"limit": 4, "repeats": 1}

    settings: Names = ("all",)
    """Settings, separated by commas; all; disturbing: 1 to 9 wrong options; few-shot:FORM=N+FORM=N: worked examples."""
    limit: int | None = None
    """Sample at most N questions of each kind, half with a usual answer."""
    seed: int = SEED
    """Random seed; 42 as in the paper."""
    repeats: int = 1
    """Replies for each question and setting."""
    temperature: Temperatures = ()
    """Sampling temperature, 0 to 2, or several separated by commas, each in its own run; 0.5 by default."""
    judge: Annotated[str | None, Reach.MODEL] = None
    """Model that reads replies in which no answer was found."""
    polisher: Annotated[str | None, Reach.MODEL] = None
    """Model that rewrites instructions, such as inspect:PROVIDER/NAME; by default the model itself."""
    left_out: Literal["", "single", "several", "none", "True", "False", "Unknown"] = ""
    """Form that missing-choices leaves out; by default none and Unknown."""

    @property
    def in_words(self) -> bool:
        """Replies are read."""
        return True

    def __post_init__(self) -> None:
        super().__post_init__()
        for temperature in self.temperature:
            GenerateOptions(temperature=temperature)
        if len(set(self.temperature)) < len(self.temperature):
            raise InputError(f"temperature {', '.join(f'{t:g}' for t in self.temperature)}: give each once")
        names = setting_names(self.settings)
        if self.left_out and self.left_out not in FORMS:
            raise InputError(f"left_out {self.left_out!r}: {one_of(self.left_out, FORMS)}")
        if "missing-choices" not in names:
            check_unused("missing-choices is not asked (--settings=missing-choices)", self, only=("left_out",))
        if not any(setting(name).polish for name in names):
            check_unused("prompt-polishing is not asked (--settings=prompt-polishing)", self, only=("polisher",))
