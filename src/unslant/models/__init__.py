"""Who is asked."""

from unslant.models.base import Cost, Scored, ScoringModel

__all__ = ["Cost", "Scored", "ScoringModel"]
