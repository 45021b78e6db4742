"""Who is asked."""

from unslant.models.base import Cost, Scored, ScoringModel
from unslant.models.hf.loading import load_model

__all__ = ["Cost", "Scored", "ScoringModel", "load_model"]
