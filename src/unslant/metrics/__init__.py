"""What the responses mean: pure functions from scores to named numbers, each with its interval and its N.

The names are listed in ``__init__.pyi``; each is imported when first used, as most results need a part of the room.
"""

from lazy_loader import attach_stub

# Tables and JSON list the metrics of single questions in the order of these imports.
from unslant.metrics import two_phase as two_phase

# isort: split
from unslant.metrics import measures as measures
from unslant.metrics.preference import preference as preference  # the function, not the folder of this name

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
"""The names of the room, each with the module that it is imported from when it is first used."""
