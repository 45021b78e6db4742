"""Options of the leaderboard."""

from dataclasses import dataclass
from typing import Annotated

from unslant.reach import Reach


@dataclass(frozen=True, kw_only=True)
class SetOptions:
    """Question sets."""

    sets: Annotated[tuple[str, ...], Reach.PLACE] = ()
    """Question set (file, recipe or 'embedded'); give it once for each."""
