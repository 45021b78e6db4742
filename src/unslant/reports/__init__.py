"""Panels, charts, the number format, and their renderers, independent of any study.

A result describes itself as a :class:`Page`; :func:`text` renders it for the terminal, :class:`Report` as HTML, figures
and tables.
"""

from unslant.reports.browser import Filter, QuestionBrowser, Sort
from unslant.reports.figure import Chart, Column, Figure, Plot, Table
from unslant.reports.numbers import Cell, interval, number
from unslant.reports.panels import Describes, Page, Panel, Tile
from unslant.reports.report import Report
from unslant.reports.style import Style
from unslant.reports.text import outline, text

__all__ = [
    "Cell",
    "Chart",
    "Column",
    "Describes",
    "Figure",
    "Filter",
    "Page",
    "Panel",
    "Plot",
    "QuestionBrowser",
    "Report",
    "Sort",
    "Style",
    "Table",
    "Tile",
    "interval",
    "number",
    "outline",
    "text",
]
