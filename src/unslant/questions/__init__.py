"""What is asked: types of questions, and reading them. The names are listed in ``__init__.pyi``."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
