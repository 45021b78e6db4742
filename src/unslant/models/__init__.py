"""Models, and how to open them. The names are listed in ``__init__.pyi``; reading an option loads no library."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
"""The names of the room, each with the module that it is imported from when it is first used."""
