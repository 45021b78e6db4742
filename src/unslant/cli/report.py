"""``unslant report``: an HTML report, figures and tables from recorded responses."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unslant.cli import options as o

if TYPE_CHECKING:
    from unslant.reports.panels import HasPanels


def register(app: typer.Typer) -> None:
    """Add the command to ``app``."""
    app.command("report")(report)


def report(
    runs: Annotated[
        list[str],
        typer.Argument(
            help="Parquet files of responses, ids of recorded runs (several are compared), or folders of adapters."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the report to this file.")] = Path("report.html"),
    figures: Annotated[
        Path | None, typer.Option(help="Also write every chart, as SVG and PNG, to this folder.")
    ] = None,
    tables: Annotated[
        Path | None, typer.Option(help="Also write every table, as CSV and LaTeX, to this folder.")
    ] = None,
    store: o.StorePath = None,
    quiet: o.Quiet = False,
) -> None:
    """Make a report that can be looked at, sent and kept: one HTML file that works offline.

    Several runs are put side by side, each compared with the first question by question.
    """
    from unslant.reports.report import Report

    o.check_writable(out)
    check_folders(figures, tables)
    made = Report.of([_read(run, store) for run in runs], [Path(run).stem for run in runs])
    made.to_html(out)
    written = [str(out)]
    if figures:
        written.append(f"{len(made.save_figures(figures))} figures in {figures}")
    if tables:
        written.append(f"{len(made.save_tables(tables))} tables in {tables}")
    if not quiet:
        typer.echo("\n".join(written))


def check_folders(*folders: Path | None) -> None:
    """Refuse a folder that cannot be made before any work is done.

    Raises:
        unslant.errors.InputError: naming the path.
    """
    from unslant.errors import InputError

    for folder in folders:
        if folder is not None and folder.exists() and not folder.is_dir():
            raise InputError.at(folder, "is a file; give the name of a folder")


def _read(run: str, store: Path | None) -> HasPanels:
    """The result in a file, the training in a folder, or, where there is neither, a recorded run."""
    from unslant.errors import InputError, UnslantError
    from unslant.reports.report import read_result

    if Path(run).is_dir():
        from unslant.debias.lora1.training_log import TrainingLog

        return TrainingLog.read(run)
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
