"""Shared by the results of all studies."""

from __future__ import annotations

from collections.abc import Sequence
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
    """A study's result: a page that describes it, and every number.

    Subclasses are frozen dataclasses, shown by the function ``page`` of the module ``panels`` beside them.

    Attributes:
        study: name, as in ``unslant study NAME``.
        unwritten: fields omitted from JSON.
    """

    study: ClassVar[str]
    unwritten: ClassVar[tuple[str, ...]] = ("responses", "meta")

    def page(self) -> Page:
        """Headline, tiles and panels, for the terminal and for reports."""
        from unslant.studies.provenance import with_admissions

        panels = import_module(".panels", type(self).__module__.rpartition(".")[0])
        return with_admissions(cast("Page", panels.page(self)), getattr(self, "meta", {}))

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        return self.page().headline

    def summary(self, width: int = 100, color: bool = False, details: bool = False) -> str:
        """Text for a terminal: one screen, or every panel in full with ``details``."""
        from unslant.reports import text

        return text(self.page(), width, color, details)

    def to_dict(self) -> dict[str, Any]:
        """Provenance and every number as plain values for JSON, without single responses."""
        about = {"unslant": __version__, "study": self.study, "headline": self.headline}
        return {**about, **getattr(self, "meta", {}), **json_fields(self, omit=self.unwritten)}

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_dict`.

        Raises:
            OutputError: if the file cannot be written.
        """
        write_atomically(path, dump_json(self.to_dict()))

    def to_html(self, path: str | Path) -> None:
        """Write a report as one HTML file that works offline."""
        from unslant.reports import Report

        Report.of([self]).to_html(path)


class RecordedResult(StudyResult):
    """A result that can be recomputed from its responses."""

    responses: Responses

    def to_parquet(self, path: str | Path) -> None:
        """Write the responses, for ``unslant report`` and ``--log``."""
        self.responses.to_parquet(path)


def requests_of_all(results: Sequence[Any]) -> dict[str, Any]:
    """What the replies of several results have cost, as metadata of their comparison."""
    found = {name: cost for result in results for name, cost in result.meta.get("requests", {}).items()}
    return {"requests": found} if found else {}


def write_each(results: Sequence[Any], path: str | Path) -> None:
    """Write the responses of each model to a file of its own, ``NAME-MODEL``."""
    from unslant.reports.escape import file_name

    for result in results:
        result.to_parquet(Path(path).with_stem(f"{Path(path).stem}-{file_name(result.model)}"))
