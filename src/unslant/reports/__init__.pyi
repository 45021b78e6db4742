"""The names of the room, each with the module that it is imported from when it is first used."""

from .figure import Chart as Chart
from .figure import Column as Column
from .figure import Figure as Figure
from .figure import Panel as Panel
from .figure import Plot as Plot
from .figure import Table as Table
from .numbers import Cell as Cell
from .numbers import interval as interval
from .numbers import number as number
from .panels import Describes as Describes
from .panels import Filter as Filter
from .panels import Later as Later
from .panels import Page as Page
from .panels import QuestionBrowser as QuestionBrowser
from .panels import Sort as Sort
from .panels import Tile as Tile
from .report import Report as Report
from .style import Style as Style
from .terminal import outline as outline
from .terminal import text as text
