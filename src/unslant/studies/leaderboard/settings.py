"""Options of the leaderboard that differ from those of other commands."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from unslant.experiment.options import OutputOptions
from unslant.reach import Reach


@dataclass(frozen=True, kw_only=True)
class LeaderboardOutputs(OutputOptions):
    """Where to write results and responses; ``-q`` names a question set here."""

    quiet: Annotated[bool, Parameter(name="--quiet")] = False
    """No progress, no summary."""


Sets = Annotated[
    tuple[str, ...],
    Parameter(name=("--questions", "-q"), help="Question set (file, recipe or 'embedded'); give it once for each."),
    Reach.PLACE,
]
