"""Panels, charts, the number format, and their renderers, independent of any study.

A result describes itself as a :class:`Page`; :func:`text` renders it for the terminal, :class:`Report` as HTML, figures
and tables.
"""

from unslant.reports.browser import Filter, QuestionBrowser, Sort
from unslant.reports.notebook import fragment, outline
from unslant.reports.numbers import Cell, interval, number
from unslant.reports.panels import Chart, Column, Describes, Page, Panel, Style, Table, Tile
from unslant.reports.report import Report
from unslant.reports.text import text

__all__ = [
    "Cell",
    "Chart",
    "Column",
    "Describes",
    "Filter",
    "Page",
    "Panel",
    "QuestionBrowser",
    "Report",
    "Sort",
    "Style",
    "Table",
    "Tile",
    "fragment",
    "interval",
    "number",
    "outline",
    "text",
]
