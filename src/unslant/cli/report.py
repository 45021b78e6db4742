"""``unslant report``, HTML report, figures and tables from recorded responses, and ``unslant merge``, of shards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from unslant.errors import InputError, OutputError, UnslantError
from unslant.experiment import options as o
from unslant.extras import needed
from unslant.writing import write_atomically

if TYPE_CHECKING:
    from unslant.reports import Describes


def report(
    *runs: Annotated[
        str,
        Parameter(
            help="Parquet files of responses, logs of other harnesses, ids of recorded runs, or adapter folders."
        ),
    ],
    out: Annotated[Path, Parameter(help="Write the report to this file.")] = Path("report.html"),
    figures: Annotated[Path | None, Parameter(help="Also write every chart to a folder, as PDF, SVG and PNG.")] = None,
    tables: Annotated[Path | None, Parameter(help="Also write every table to a folder, as CSV and LaTeX.")] = None,
    store: o.Store = None,
    quiet: o.Quiet = False,
) -> None:
    """Write an HTML report, a single file that works offline.

    With several audits, each is compared with the first, question by question.

    Examples:
      unslant report run.parquet
      unslant report one.parquet two.parquet --out compare.html --figures figures/
    """
    from unslant.auditing.comparison import side_by_side
    from unslant.experiment.outputs import check_file, check_folder
    from unslant.reports import Report
    from unslant.writing import write_all

    if not runs:
        raise InputError("nothing to report: give files of responses, run ids, or adapter folders")
    if figures:
        needed("vl_convert", "drawing figures")
    if store is not None and all(map(_is_file, runs)):
        raise InputError("--store applies only to ids of runs; leave it out")
    check_file(out)
    check_folder(figures, tables)
    made = Report.of(side_by_side([read_run(run, store) for run in runs], [Path(run).stem for run in runs]))
    written: list[str] = []

    def write_report() -> None:
        made.to_html(out)
        written.append(str(out))

    def write_files(save: Callable[[Path], list[Path]], folder: Path, what: str) -> None:
        written.append(f"{len(save(folder))} {what} in {folder}")

    write_all(
        write_report,
        *([partial(write_files, made.save_figures, figures, "figures")] if figures else ()),
        *([partial(write_files, made.save_tables, tables, "tables")] if tables else ()),
    )
    if not quiet:
        print(*written, sep="\n")


def _is_file(run: str) -> bool:
    return bool(Path(run).exists() or Path(run).suffix)


def read_run(run: str, store: Path | None) -> Describes:
    """The result in a file, the training log in a folder, or else a recorded run."""
    from unslant.studies.readers import read_result

    if _is_file(run):
        return read_result(run)
    from unslant.store import Store

    try:
        with Store(store, read_only=True) as opened:
            found = opened.runs.responses(opened.runs.get(run))
    except UnslantError as error:
        raise InputError(f"{run}: no such file, and {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "responses.parquet"
        write_atomically(path, found)
        return read_result(path)


def merge(
    merged: Annotated[Path, Parameter(name="OUT", help="Write the table of the whole run to this Parquet file.")],
    /,
    *shards: Annotated[Path, Parameter(help="Tables that --shard wrote, of all shards of one run, in any order.")],
    outputs: o.Reports = o.ReportOptions(),
) -> None:
    """Merge the tables of all shards into one.

    The result is that of one machine that asked everything; costs are summed. Shards of different questions, settings
    or models are refused, and missing ones named with the command that scores them.

    Examples:
      unslant merge run.parquet s*.parquet --html report.html
    """
    from unslant.experiment.outputs import check_file, check_outputs, write_outputs
    from unslant.scale.merge import merge as run
    from unslant.studies.readers import read_result

    check_file(merged)
    check_outputs(outputs)
    with tempfile.TemporaryDirectory() as elsewhere:
        table, failure = merged, None
        try:
            run(merged, shards)
        except OutputError as error:  # the numbers and the report can still be made, from a table elsewhere
            table, failure = Path(elsewhere, "merged.parquet"), error
            try:
                run(table, shards)
            except OutputError:
                raise failure from None

        def fail() -> None:
            if failure:
                raise failure

        write_outputs(read_result(table), outputs, fail)  # type: ignore[arg-type]
