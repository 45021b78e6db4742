"""What the results of all studies have in common."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unslant.reports.panels import Panel


class StudyResult(ABC):
    """What a study found: a sentence, sections of a report, and every number.

    Subclasses say what these are; writing them is the same for all.
    """

    @property
    @abstractmethod
    def headline(self) -> str:
        """The outcome in one sentence."""

    @abstractmethod
    def panels(self) -> Sequence[Panel]:
        """What a report shows."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything but the single responses, JSON-able."""

    def summary(self, width: int = 100, color: bool = False, details: bool = False) -> str:
        """The outcome as text for a terminal, led by the headline."""
        from unslant.reports.panel_text import text

        return text(self.headline, self.panels(), width=width, color=color)

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_dict`."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n", "utf-8")

    def to_html(self, path: str | Path) -> None:
        """Write the report: one HTML file that works offline."""
        from unslant.reports.report import Report

        Report.of([self]).to_html(path)
