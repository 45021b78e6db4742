"""What a model falls back on when unsure: the effect of each label and position, and the few that explain them."""

from unslant.metrics.preference.sentence import Preference, preference
from unslant.metrics.preference.slots import SlotEffect

__all__ = ["Preference", "SlotEffect", "preference"]
