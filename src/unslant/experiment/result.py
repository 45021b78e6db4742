"""The results of all studies, and the recorded responses that they are read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, cast

from unslant import __version__
from unslant.arrays import json_fields
from unslant.errors import InputError, needed, one_of, shown
from unslant.files import dump_json
from unslant.flags import path_in
from unslant.presentations import CONTROL
from unslant.responses import Responses, Run
from unslant.responses.provenance import ChatCost, Cost, Provenance
from unslant.writing import write_all, write_atomically

if TYPE_CHECKING:
    from pandas import DataFrame

    from unslant.metrics import PairedDifference
    from unslant.reports import Page, Report


class Paired(NamedTuple):
    """Differences from an earlier result on the questions of both, and caveats for reading them."""

    differences: Sequence[PairedDifference]
    remarks: Sequence[str]


class StudyResult:
    """A study's result: a page that describes it, and every number.

    Subclasses are frozen dataclasses, drawn by ``page`` of the module ``panels`` next to them or by ``described``.
    A result equals only itself, and has a hash: its tables and arrays are not compared.

    Attributes:
        study: name, as in ``unslant study NAME``.
        unwritten: fields omitted from JSON.
        compared_numbers: paths of the numbers that ``--baseline`` compares; if empty, those of the page's tiles.
    """

    study: ClassVar[str]
    unwritten: ClassVar[tuple[str, ...]] = ("responses", "run")
    compared_numbers: ClassVar[tuple[tuple[str, ...], ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in ("__repr__", "__eq__", "__hash__"):  # dataclass() would list, compare and hash tables and arrays
            setattr(cls, name, getattr(StudyResult, name))

    def __repr__(self) -> str:
        """Model, questions and headline, in a few lines."""
        from unslant.reports import outline

        return outline(type(self).__name__, self.page())

    def _repr_html_(self) -> str:
        """Headline, key numbers and the first table, for notebooks."""
        from unslant.reports.report import fragment

        return fragment(self.page())

    def page(self) -> Page:
        """Headline, tiles and panels, for the terminal and for reports."""
        from unslant.experiment.page_parts import caveats_of, settings_rows, with_caveats, with_settings

        rest = self.answered if self.failure else None
        page = with_caveats((rest or self).described(), self.run)
        page = replace(page, settings=page.settings or settings_rows(self.run), name=page.name or self.run.model)
        if self.failure and not rest:
            page = replace(page, headline=f"{self.failure}; too few answers are left for a verdict", lines=())
        left_out, block = [f"Left out: {self.failure}."] if rest else [], self.provenance
        caveats = (*left_out, *page.caveats, *caveats_of([part.run for part in self.parts or [self]]))
        page = replace(page, caveats=caveats, provenance=block.model_dump())
        return with_settings(page, block) if self.is_documented else page

    def described(self) -> Page:
        """The page without what :meth:`page` adds: caveats on how the model was asked, provenance, and, where this page
        leaves them empty, name and settings."""
        panels = import_module(".panels", type(self).__module__.rpartition(".")[0])
        return cast("Page", panels.page(self))

    @property
    def headline(self) -> str:
        """The outcome in one sentence."""
        return self.page().headline

    def key_number(self) -> str:
        """The first key number, or the headline, for ``unslant runs list``."""
        from unslant.reports.numbers import number

        page = self.page()
        tile = page.tiles[0] if page.tiles and not self.failure else None
        return f"{number(tile.estimate, tile.metric)} {tile.metric.name}" if tile else page.headline

    def summary(self, width: int = 100, color: bool = False, details: bool = False) -> str:
        """Text for a terminal: one screen, or every panel in full with ``details``."""
        from unslant.reports import text

        return text(self.page(), width, color, details)

    @property
    def failure(self) -> str:
        """Why there is no verdict: the models most of whose requests failed, and the reason; empty if there is one."""
        from unslant.experiment.page_parts import mostly_failed, unanswered

        if self.run.failed_models or self.parts:
            lost = (f"{name}: {reason}" for name, reason in self.run.failed_models.items())
            return "; ".join(dict.fromkeys(filter(None, (*lost, *(part.failure for part in self.parts)))))
        responses = getattr(self, "responses", None)
        return mostly_failed(self.run.requests) or (unanswered(responses) if responses is not None else "")

    @property
    def answered(self) -> StudyResult | None:
        """What a comparison says without the parts that failed; None if it needs them, or all failed."""
        return None

    def numbers_compared_with(self, earlier: Mapping[tuple[str, ...], Any]) -> Sequence[tuple[str, ...]]:
        """Those of :attr:`compared_numbers` that are on one scale with an earlier result's numbers, by path in JSON."""
        return self.compared_numbers

    def paired_with(self, earlier: StudyResult) -> Paired | None:
        """Differences from an earlier result of the study, by question; None where only intervals are compared."""
        return None

    @property
    def parts(self) -> Sequence[StudyResult]:
        """The results that this one compares."""
        return ()

    @cached_property  # not a property: a subclass may have a field of this name
    def run(self) -> Run:
        """How its responses came to be; of a comparison, the cost of its parts and their caveats."""
        runs = [part.run for part in self.parts]
        names = dict.fromkeys(name for run in runs for name in run.requests)
        return Run(
            study=self.study,
            requests={name: sum((run.requests.get(name, ChatCost()) for run in runs), ChatCost()) for name in names},
            offline=any(run.offline for run in runs),
            incomplete="; ".join(dict.fromkeys(f"{run.name}: {run.incomplete}" for run in runs if run.incomplete)),
        )

    @property
    def is_documented(self) -> bool:
        """Whether the origin of the result is known; if not, its provenance would name this very machine."""
        return True

    @property
    def provenance(self) -> Provenance:
        """How the result was made."""
        from unslant.experiment.job import combined, provenance
        from unslant.responses.provenance import model_block

        if self.parts:
            return combined([part.provenance for part in self.parts])
        run = self.run
        if run.provenance != Provenance():
            return run.provenance
        models = run.models or (run.model,)
        return provenance([model_block(name) for name in models if name], (), run.settings)

    def to_dict(self) -> dict[str, Any]:
        """Provenance and every number as plain values for JSON, without single responses."""
        page = self.page()
        about = {
            "unslant": __version__,
            "study": self.study,
            "headline": page.headline,
            "lines": list(page.lines),
            "caveats": list(page.caveats),
        }
        run = self.run.to_dict("study", "provenance", "cost")
        return {**about, "provenance": page.provenance, **run, **json_fields(self, omit=self.unwritten)}

    def to_pandas(self, what: str = "") -> DataFrame:
        """A table of the result as a pandas DataFrame, by default one row a question.

        Args:
            what: ``questions``, one row each, the default where there are responses; ``metrics``, every number with its
                key in JSON, interval and N, the default of comparisons; ``responses``, one row each; or the id of a
                table of the report, such as ``labels`` and ``subjects`` of an audit.

        Raises:
            InputError: if there is no such table (the message lists them), or pandas is not installed.
        """
        from unslant.reports.export import columns_of, metrics_frame

        responses, pandas = getattr(self, "responses", None), needed("pandas", "to_pandas", InputError)
        what = what or ("metrics" if responses is None else "questions")
        if what == "metrics":
            return metrics_frame(self.to_dict())
        if what in ("questions", "responses") and responses is not None:
            return pandas.DataFrame(self.of_questions()) if what == "questions" else responses.table.to_pandas()
        tables = {table.id: table for panel in self.page().sections for table in panel.tables}
        if what not in tables:
            names = ("metrics", *["questions", "responses"] * (responses is not None), *tables)
            raise InputError(f"{self.study}: no table {what!r}: {one_of(what, names)}")
        heads, rows = columns_of(tables[what])
        return pandas.DataFrame(rows, columns=heads)

    def of_questions(self) -> Mapping[str, Sequence[Any]]:
        """Columns with one value per question: id, subject, and how often it was asked, answered and right."""
        counts: dict[str, dict[str, Any]] = {}
        rows = (row for row in self.responses.each_row() if row.kind != CONTROL)  # type: ignore[attr-defined]
        for row in rows:
            tally = counts.setdefault(row.question_id, {"subject": row.subject, "asked": 0, "answered": 0, "right": 0})
            tally["asked"] += 1
            tally["answered"] += row.status == "ok"
            tally["right"] += row.is_right
        columns = ("subject", "asked", "answered", "right")
        return {"question": list(counts)} | {name: [tally[name] for tally in counts.values()] for name in columns}

    def plot(self, name: str = "") -> Any:
        """A chart of the report as an altair chart, by default the first.

        Raises:
            InputError: if there is no such chart; the message lists them.
        """
        from unslant.reports.export import altair_chart

        charts = {chart.id: chart for panel in self.page().sections for chart in panel.charts}
        name = name or next(iter(charts), "")
        if name not in charts:
            why = f"no chart {name!r}: {one_of(name, charts)}" if charts else "no charts, tables only"
            raise InputError(f"{self.study}: {why}")
        return altair_chart(charts[name])

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`to_dict`.

        Raises:
            OutputError: if the file cannot be written.
        """
        write_atomically(path, dump_json(self.to_dict()))

    def to_html(self, path: str | Path) -> None:
        """Write a report as one HTML file that works offline."""
        self._report.to_html(path)

    def save_figures(self, folder: str | Path) -> list[Path]:
        """Write every chart as :func:`unslant.reports.export.save_figures` does."""
        return self._report.save_figures(folder)

    def save_tables(self, folder: str | Path) -> list[Path]:
        """Write every table as :func:`unslant.reports.export.save_tables` does."""
        return self._report.save_tables(folder)

    @property
    def _report(self) -> Report:
        from unslant.reports import Report

        return Report.of([self])


class RecordedResult(StudyResult):
    """A result that can be recomputed from its responses."""

    responses: Responses

    @cached_property
    def run(self) -> Run:
        return self.responses.run

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.run.model or "model"

    def renamed(self, model: str) -> Self:
        """The same result under another name of the model."""
        run: Any = replace(self.run, model=model)
        return replace(self, responses=replace(self.responses, run=run))  # type: ignore[type-var]

    @property
    def cost(self) -> Cost:
        """The cost of its scores."""
        return self.run.cost

    @property
    def is_documented(self) -> bool:
        return self.run.logged is not None or bool(self.run.provenance.versions)

    def to_dict(self) -> dict[str, Any]:
        """Provenance, cost and every number as plain values for JSON, without single responses."""
        return super().to_dict() | {"cost": self.cost.to_dict()}

    @classmethod
    def of(cls, responses: Responses) -> Self:
        """The result, computed from the responses of a run alone.

        Raises:
            InputError: if the study needs more than these.
        """
        raise NotImplementedError

    @classmethod
    def from_parquet(cls, path: str | Path) -> Self:
        """The result, computed again from the table that :meth:`to_parquet` wrote (an audit also from a log).

        Raises:
            InputError: naming a file that cannot be read or belongs to another study.
        """
        from unslant.responses.importers.logged import placed

        responses = responses_in(path, cls.study)
        with placed(path):
            return cls.of(responses)

    def to_parquet(self, path: str | Path) -> None:
        """Write the responses, for ``unslant report`` and ``--log``."""
        run = replace(self.run, provenance=self.provenance)
        replace(self.responses, run=run).to_parquet(path_in("path", path))


def write_tables(results: Iterable[tuple[str, Any]], path: str | Path) -> None:
    """Write responses to files ``NAME-KEY``, numbered if two keys (``a:b``, ``A-b``) give one; all that can be."""
    from unslant.reports.numbers import file_name

    path, files = path_in("path", path), dict[str, Callable[[], object]]()
    for key, one in results:
        stems = (f"{path.stem}-{file_name(key)}" + f"-{number}" * (number > 1) for number in count(1))
        stem = next(stem for stem in stems if stem.casefold() not in files)  # some file systems ignore case
        files[stem.casefold()] = partial(one.to_parquet, path.with_stem(stem))
    write_all(*files.values())


class Logs(tuple[Any, ...]):
    """The logs in an argument: files, tables in memory, or responses; see :func:`logs_in`."""


def logs_in(log: Any) -> Logs:
    """The logs in an argument, one or several; empty if it was left out.

    Raises:
        InputError: if it holds no log, or something else.
    """
    if log is None or isinstance(log, Logs):  # a tuple of one mapping alone would not tell a table from its only row
        return log or Logs()
    single = isinstance(log, str | Path | Mapping | Responses) or _is_table(log) or not isinstance(log, Iterable)
    logs = (log,) if single else tuple(log)
    if logs and not single and all(isinstance(row, Mapping) for row in logs):
        return Logs([[*logs]])
    if not logs and not isinstance(log, tuple):
        raise InputError("log: holds no log; give at least one")
    for one in logs:
        if not isinstance(one, str | Path | Mapping | list | Responses) and not _is_table(one):
            give = "a list of dicts, a pandas or polars DataFrame, a pyarrow Table, a Dataset, or Responses"
            raise InputError(f"log of type {type(one).__name__}: give files, {give}")
    return Logs(logs)


def _is_table(log: Any) -> bool:
    """Whether it is a data frame, an Arrow table or a data set of the library ``datasets``."""
    return hasattr(log, "__arrow_c_stream__") or hasattr(log, "cast_column")


def tables_of(
    study: str, logs: Any, fields: Mapping[str, str] | None = None, skip_bad: bool = False
) -> list[Responses]:
    """The recorded responses of each model.

    Args:
        study: that of the responses, or empty for any; logs of other harnesses are of ``audit`` or ``judge``.
        logs: see :func:`logs_in`; files of any format of :mod:`unslant.responses.importers`. A model's are joined.
        fields, skip_bad: see :func:`unslant.responses.importers.load_logs`.

    Raises:
        InputError: naming a file that cannot be read or belongs to another study.
    """
    from unslant.responses.importers import load_logs

    tables = load_logs(logs_in(logs), fields, skip_bad)
    if study and (other := next((table.run.study for table in tables if table.run.study != study), "")):
        raise InputError(f"{listed_files(logs)}: contains responses of the study {other}; those of {study} are needed")
    return tables


def responses_in(path: str | Path, study: str = "") -> Responses:
    """The responses in one file, of ours or of another harness, which must be of one model, and of ``study`` if named.

    Raises:
        InputError: naming a file that cannot be read, belongs to another study, or holds answers of several models.
    """
    responses, *others = tables_of(study, path)
    if others:
        raise InputError.at(path, f"holds answers of {1 + len(others)} models; give a file of one")
    return responses


def listed_files(logs: Any) -> str:
    """The logs as an error names them."""
    return ", ".join(shown(one) if isinstance(one, str | Path) else type(one).__name__ for one in logs_in(logs))
