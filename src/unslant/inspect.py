"""unslant inside inspect: ``unslant.inspect.in_orders(dataset)``. Needs ``pip install 'unslant[inspect]'``."""

from unslant.plugins.inspect_ai import *  # noqa: F403
from unslant.plugins.inspect_ai import __all__ as __all__
