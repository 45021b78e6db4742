"""How the instruction-boundary study asks."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from cyclopts import Parameter

from unslant.studies.instruction_boundary.instruction_settings import SEED
from unslant.studies.options import Names, Options

TEMPERATURE = 0.5
"""Sampling temperature of P3."""
MAX_TOKENS = 2048


@dataclass(frozen=True, kw_only=True)
class BoundarySettings(Options):
    """Settings of :func:`unslant.studies.instruction_boundary.study.instruction_boundary`."""

    LEAST: ClassVar = {"limit": 4, "repeats": 1}

    names: Annotated[Names, Parameter(name="--settings")] = ("all",)
    """Settings, separated by commas; all: all but the disturbing options; disturbing: 1 to 9 of them."""
    limit: int | None = None
    """Sample at most N questions of each kind, half with a usual answer."""
    seed: int = SEED
    """Random seed (default: P3's)."""
    log_dir: Path = Path("logs")
    """Folder of inspect logs; requests with a reply there are not repeated."""
    repeats: int = 1
    """Replies per question and setting."""
    judge: str | None = None
    """Model that reads replies without a recognized answer, such as inspect:PROVIDER/NAME."""
    polisher: str | None = None
    """Model that rewrites instructions, such as inspect:PROVIDER/NAME; by default the model itself."""
    left_out: str = ""
    """Answer form that missing-choices omits: single, several, none, True, False or Unknown."""
