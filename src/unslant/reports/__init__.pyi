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
from .page import Describes as Describes
from .page import Later as Later
from .page import Page as Page
from .page import QuestionBrowser as QuestionBrowser
from .page import Tile as Tile
from .page import outline as outline
from .page import text as text
from .report import Report as Report
from .style import Style as Style
