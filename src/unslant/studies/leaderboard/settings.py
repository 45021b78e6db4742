"""Options of the leaderboard that differ from those of other commands."""

from dataclasses import dataclass
from typing import Annotated

from unslant.experiment.options import OutputOptions
from unslant.flags import Flag
from unslant.reach import Reach


@dataclass(frozen=True, kw_only=True)
class LeaderboardOutputs(OutputOptions):
    """Where to write results and responses; ``-q`` names a question set here."""

    quiet: Annotated[bool, Flag("--quiet")] = False
    """No progress, no summary."""


Sets = Annotated[
    tuple[str, ...],
    Flag("--questions", "-q", help="Question set (file, recipe or 'embedded'); give it once for each."),
    Reach.PLACE,
]
