"""Panels, charts, the number format, and their renderers, independent of any study.

A result describes itself as a :class:`Page`; :func:`text` renders it for the terminal, :class:`Report` as HTML, figures
and tables. The names are listed in ``__init__.pyi``; each is imported when first used, as text needs no charts.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
