"""``unslant report``: an HTML report, figures and tables from recorded responses."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from unslant.studies import options as o

if TYPE_CHECKING:
    from unslant.reports import Describes


def report(
    *runs: Annotated[
        str,
        Parameter(
            help="Parquet files of responses, ids of recorded runs (several are compared), or folders of adapters."
        ),
    ],
    out: Annotated[Path, Parameter(help="Write the report to this file.")] = Path("report.html"),
    figures: Annotated[Path | None, Parameter(help="Also write every chart, as SVG and PNG, to this folder.")] = None,
    tables: Annotated[Path | None, Parameter(help="Also write every table, as CSV and LaTeX, to this folder.")] = None,
    store: o.Store = None,
    quiet: o.Quiet = False,
) -> None:
    """Make a report that can be looked at, sent and kept: one HTML file that works offline.

    Several runs are put side by side, each compared with the first question by question.

    Examples:
      unslant report run.parquet
      unslant report one.parquet two.parquet --out compare.html --figures figures/
    """
    from unslant.errors import InputError
    from unslant.reports import Report
    from unslant.studies.audit.comparison import side_by_side
    from unslant.studies.outputs import check_file, check_folder

    if not runs:
        raise InputError("nothing to report: give files of responses, ids of runs, or folders of adapters")
    check_file(out)
    check_folder(figures, tables)
    made = Report.of(side_by_side([_read(run, store) for run in runs], [Path(run).stem for run in runs]))
    made.to_html(out)
    written = [str(out)]
    if figures:
        written.append(f"{len(made.save_figures(figures))} figures in {figures}")
    if tables:
        written.append(f"{len(made.save_tables(tables))} tables in {tables}")
    if not quiet:
        print(*written, sep="\n")


def _read(run: str, store: Path | None) -> Describes:
    """The result in a file, the training in a folder, or, where there is neither, a recorded run."""
    from unslant.errors import InputError, UnslantError
    from unslant.studies.readers import read_result

    if Path(run).exists() or Path(run).suffix:
        return read_result(run)
    from unslant.store import Store

    try:
        with Store(store, read_only=True) as opened:
            found = opened.runs.responses(opened.runs.get(run))
    except UnslantError as error:
        raise InputError(f"{run}: no such file, and {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "responses.parquet"
        path.write_bytes(found)
        return read_result(path)
