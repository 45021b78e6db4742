"""One report of any number of results: an audit, several audits side by side, and whatever other studies show."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError
from unslant.reports.panels import Chart, HasPanels, Panel, Table
from unslant.studies.audit.runs import Run, named

if TYPE_CHECKING:
    from unslant.responses.table import Responses

READERS = {
    "audit": "unslant.studies.audit.result:AuditResult.from_responses",
    "base-rate": "unslant.studies.base_rate.study:base_rate_recorded",
    "unbiased": "unslant.studies.unbiased.result:result_of",
    "instruction-boundary": "unslant.studies.instruction_boundary.result:result_of",
}
"""Studies whose result can be had from its table of responses alone."""


def read_result(path: str | Path) -> HasPanels:
    """The result whose responses were written to ``path`` (``--responses``, ``to_parquet``).

    Raises:
        InputError: if the file is no table of responses, or of a study that needs more than its responses.
    """
    from unslant.responses.table import Responses

    responses = Responses.from_parquet(path)
    study = str(responses.meta.get("study", "audit"))
    if study not in READERS:
        raise InputError.at(
            path, f"holds responses of the study {study!r}; a report can be made from those of {', '.join(READERS)}"
        )
    return _result_of(study, responses)


def _result_of(study: str, responses: Responses) -> HasPanels:
    module, _, name = READERS[study].partition(":")
    reader: Any = importlib.import_module(module)
    for part in name.split("."):
        reader = getattr(reader, part)
    found: HasPanels = reader(responses)
    return found


@dataclass(frozen=True)
class Report:
    """What is shown.

    Attributes:
        runs: the audits, whose questions can be looked at one by one.
        panels: every section, in order; ids of panels, charts and tables are unique.
        headline: of the studies beside the audits; used where there is no audit.
    """

    runs: tuple[Run, ...]
    panels: tuple[Panel, ...]
    headline: str = ""

    @classmethod
    def of(cls, results: Sequence[HasPanels], names: Sequence[str] = ()) -> Report:
        """A report of ``results``; audits come first, and are compared where there are several.

        Args:
            names: one for each result, such as the names of their files; used where models have the same name.
        """
        from unslant.reports.html import panels_of
        from unslant.studies.audit.result import AuditResult

        names = names or [""] * len(results)
        audits = [(r, name) for r, name in zip(results, names, strict=True) if isinstance(r, AuditResult)]
        others = [result for result in results if not isinstance(result, AuditResult)]
        runs = named([result for result, _ in audits], [name for _, name in audits])
        panels = panels_of(runs) + [panel for result in others for panel in result.panels()]
        headline = next((str(result.headline) for result in others if hasattr(result, "headline")), "")
        return cls(tuple(runs), tuple(_unique([panel for panel in panels if not panel.empty])), headline)

    def to_html(self, path: str | Path) -> None:
        """Write the page: one file that needs no other, and no network."""
        from unslant.reports.html import render

        Path(path).write_text(render(self.runs, self.panels, self.headline), "utf-8")

    def save_figures(self, folder: str | Path) -> list[Path]:
        """Write every chart as SVG and PNG; see :func:`unslant.reports.figures.save_figures`."""
        from unslant.reports.figures import save_figures

        return save_figures([chart for panel in self.panels for chart in panel.charts], Path(folder))

    def save_tables(self, folder: str | Path) -> list[Path]:
        """Write every table as CSV and LaTeX; see :func:`unslant.reports.tables.save_tables`."""
        from unslant.reports.tables import save_tables

        return save_tables([table for panel in self.panels for table in panel.tables], Path(folder))


def _unique(panels: Sequence[Panel]) -> list[Panel]:
    """The same panels with numbers behind ids that occur again, so that anchors and files are told apart."""
    seen: Counter[tuple[type, str]] = Counter()

    def own(item: Any) -> Any:
        seen[type(item), item.id] += 1
        count = seen[type(item), item.id]
        return item if count == 1 else replace(item, id=f"{item.id}-{count}")

    unique = []
    for panel in panels:
        charts: tuple[Chart, ...] = tuple(own(chart) for chart in panel.charts)
        tables: tuple[Table, ...] = tuple(own(table) for table in panel.tables)
        unique.append(replace(own(panel), charts=charts, tables=tables))
    return unique
