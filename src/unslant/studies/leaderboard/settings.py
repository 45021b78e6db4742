"""Options of the leaderboard."""

from dataclasses import dataclass
from typing import Annotated, Literal

from unslant.reach import Reach


@dataclass(frozen=True, kw_only=True)
class BoardOptions:
    """Question sets, and what models are ranked by."""

    sets: Annotated[tuple[str, ...], Reach.PLACE] = ()
    """Question set (file, recipe or 'embedded'); give it once for each."""
    rank_by: Literal["mean", "vote"] = "mean"
    """Rank by the mean over orders (performance in a random order) or the vote (knowledge with the habit taken out)."""
