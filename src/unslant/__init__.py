"""unslant: how much of a multiple-choice score is option order, label preference or luck.

>>> import unslant
>>> result = unslant.audit("prefers-a", "embedded", limit=20)
>>> print(result.summary())

The names are listed in ``__init__.pyi``; each is imported when first used, so that ``import unslant`` costs nothing.
"""

from lazy_loader import attach_stub

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
