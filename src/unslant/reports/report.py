"""A report of one or more results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from unslant.reports.figure import Chart, Table
from unslant.reports.panels import Describes, Page, Panel
from unslant.writing import write_all, write_atomically

Item = TypeVar("Item", Panel, Chart, Table)


@dataclass(frozen=True)
class Report:
    """One page per result, without empty panels; ids of panels, charts and tables are unique."""

    pages: tuple[Page, ...]

    @classmethod
    def of(cls, results: Sequence[Describes]) -> Report:
        """A report of ``results`` under the first headline."""
        seen: Counter[tuple[type, str]] = Counter()
        pages = [result.page() for result in results]
        return cls(tuple(replace(p, panels=tuple(_unique(panel, seen) for panel in p.sections)) for p in pages))

    @property
    def panels(self) -> tuple[Panel, ...]:
        return tuple(panel for page in self.pages for panel in page.panels)

    @property
    def provenance(self) -> list[Mapping[str, Any]]:
        """How each result was made."""
        return [page.provenance for page in self.pages if page.provenance]

    def to_html(self, path: str | Path) -> None:
        """Write one HTML file that works offline."""
        from unslant.reports.html import render

        write_atomically(path, render(self.pages))

    def save_figures(self, folder: str | Path) -> list[Path]:
        """See :func:`unslant.reports.export.save_figures`."""
        from unslant.reports.export import save_figures
        from unslant.reports.style import PAPER

        written: list[Path] = []

        def save(page: Page) -> None:
            drawn = [chart for panel in page.panels for chart in panel.charts]
            written.extend(save_figures(drawn, Path(folder), self.provenance, replace(PAPER, compared=page.compared)))

        write_all(*(partial(save, page) for page in self.pages))
        return written

    def save_tables(self, folder: str | Path) -> list[Path]:
        """See :func:`unslant.reports.export.save_tables`."""
        from unslant.reports.export import save_tables

        return save_tables([table for panel in self.panels for table in panel.tables], Path(folder), self.provenance)


def _unique(panel: Panel, seen: Counter[tuple[type, str]]) -> Panel:
    """The panel with numbers appended to repeated ids, for distinct anchors and files."""

    def own(item: Item) -> Item:
        seen[type(item), item.id] += 1
        times = seen[type(item), item.id]
        return item if times == 1 else replace(item, id=f"{item.id}-{times}")

    charts, tables = tuple(map(own, panel.charts)), tuple(map(own, panel.tables))
    return replace(own(panel), charts=charts, tables=tables)
