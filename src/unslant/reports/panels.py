"""The parts of a report.

A study describes itself once, as a :class:`Page`, from which terminal text and HTML are rendered. Texts are plain; the
renderers escape them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, Protocol

from unslant.metrics import METRICS, Estimate, Metric
from unslant.reports.browser import QuestionBrowser
from unslant.reports.figure import Chart, Figure, Table


@dataclass(frozen=True)
class Panel:
    """One section of the report: charts and tables that answer one question.

    Attributes:
        id: unique in the report.
        explanation: one or two lines for readers new to the metric.
        short: title in the page navigation, if ``title`` is longer than a word or two.
        reference: placed after the questions in HTML.
        figures: their charts and tables follow those given.
    """

    id: str
    title: str
    explanation: str
    charts: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    short: str = ""
    reference: bool = False
    figures: InitVar[Sequence[Figure]] = ()

    def __post_init__(self, figures: Sequence[Figure]) -> None:
        for name in ("charts", "tables"):
            drawn = tuple(item for figure in figures for item in getattr(figure, name))
            object.__setattr__(self, name, (*getattr(self, name), *drawn))

    @property
    def empty(self) -> bool:
        return not (self.charts or self.tables or self.notes)


@dataclass(frozen=True)
class Tile:
    """One of the key numbers at the top, under its own name or that of the metric."""

    metric: Metric
    estimate: Estimate
    own: str = ""

    @property
    def name(self) -> str:
        return self.own or self.metric.name

    @classmethod
    def row(cls, *found: tuple[str, Estimate] | tuple[str, Estimate, str]) -> tuple[Tile, ...]:
        """Tiles of the defined metrics: key, estimate and, if not that of the metric, name."""
        return tuple(cls(METRICS[tile[0]], *tile[1:]) for tile in found if tile[1].defined)


@dataclass(frozen=True)
class Page:
    """A study's result as shown to a reader.

    Attributes:
        about: model and questions: ``prefers-a on embedded: 400 questions, each in 2 to 24 orders``.
        headline: the outcome in one sentence of at most 30 words that a stranger understands.
        lines: at most three more sentences or so, the last of them the cost. Headline and lines are the first screen in
            the terminal, in HTML and in notebooks, and are in JSON; empty ones are left out.
        caveats: what must be known before the first number, in sentences, which nothing shortens: records left out.
        notes: omissions, failures and cost.
        settings: names and values.
        example: a prompt as sent to the model.
        name: title of the browser tab, usually the model.
        compared: names of the runs shown side by side.
        provenance: how the result was made, see :class:`unslant.responses.provenance.Provenance`.
    """

    about: str
    headline: str
    lines: tuple[str, ...] = ()
    tiles: tuple[Tile, ...] = ()
    panels: tuple[Panel, ...] = ()
    notes: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    example: str = ""
    questions: QuestionBrowser | None = None
    name: str = ""
    compared: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "lines", tuple(filter(None, self.lines)))

    @property
    def sections(self) -> tuple[Panel, ...]:
        """The panels that are not empty."""
        return tuple(panel for panel in self.panels if not panel.empty)


class Describes(Protocol):
    """A result that can be shown."""

    def page(self) -> Page: ...
