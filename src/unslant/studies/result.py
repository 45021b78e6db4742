"""What the results of all studies have in common."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, cast

from unslant.arrays import json_fields
from unslant.files import dump_json, write_atomically
from unslant.version import __version__

if TYPE_CHECKING:
    from unslant.reports import Page
    from unslant.responses import Responses


class StudyResult:
    """What a study found: a page that describes it, and every number.

    A subclass is a frozen dataclass. How it is shown is said once, by the function ``page`` of the module ``panels``
    beside it, which is imported only when it is needed.

    Attributes:
        study: its name, as in ``unslant study NAME``.
        unwritten: fields that JSON does not have: what the numbers were computed from.
    """

    study: ClassVar[str]
    unwritten: ClassVar[tuple[str, ...]] = ("responses", "meta")

    def page(self) -> Page:
        """The outcome as it is shown: headline, tiles and panels, for the terminal and for reports."""
        from unslant.studies.provenance import with_admissions

        panels = import_module(".panels", type(self).__module__.rpartition(".")[0])
        return with_admissions(cast("Page", panels.page(self)), getattr(self, "meta", {}))

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        return self.page().headline

    def summary(self, width: int = 100, color: bool = False, details: bool = False) -> str:
        """The outcome as text for a terminal: one screen of it, or with ``details`` every panel in full."""
        from unslant.reports import text

        return text(self.page(), width, color, details)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single responses, JSON-able: how it came about, then every number."""
        about = {"unslant": __version__, "study": self.study, "headline": self.headline}
        return {**about, **getattr(self, "meta", {}), **json_fields(self, omit=self.unwritten)}

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_dict`.

        Raises:
            OutputError: if the file cannot be written.
        """
        write_atomically(path, dump_json(self.to_dict()))

    def to_html(self, path: str | Path) -> None:
        """Write the report: one HTML file that works offline."""
        from unslant.reports import Report

        Report.of([self]).to_html(path)


class RecordedResult(StudyResult):
    """A result of responses, from which it can be computed anew without the model."""

    responses: Responses

    def to_parquet(self, path: str | Path) -> None:
        """Write the table of responses; ``unslant report`` reads it back."""
        self.responses.to_parquet(path)
