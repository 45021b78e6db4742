"""``unslant report``, ``merge`` and ``rerun``: commands that start from files of results."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

import unslant.experiment as o
from unslant.errors import InputError, OutputError, UnslantError, needed
from unslant.reach import Reach
from unslant.writing import write_all, write_atomically

if TYPE_CHECKING:
    from unslant.reports import Describes


def report(
    *runs: Annotated[
        str,
        Parameter(
            help="Parquet files of responses or folders of --out, logs of other harnesses, ids of recorded runs, or "
            "adapter folders."
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
    from unslant.experiment.outputs import check_file, check_folder, check_owner
    from unslant.experiment.running import reading_logs
    from unslant.reports import Report
    from unslant.responses.provenance import Provenance

    if not runs:
        raise InputError("nothing to report: give files of responses, run ids, or adapter folders")
    if figures:
        needed("vl_convert", "drawing figures")
    if store is not None and all(map(_is_file, runs)):
        raise InputError("--store applies only to ids of runs; leave it out")
    check_file(out)
    check_folder(figures, tables)
    with reading_logs(runs, quiet):
        page = Report.of(side_by_side([read_run(run, store) for run in runs], [Path(run).stem for run in runs]))
    folders = o.ReportOptions(figures=figures, tables=tables)
    check_owner(folders, *(Provenance.model_validate(block) for block in page.provenance))
    written: list[str] = []

    def write(save: Callable[[Path], Any], path: Path, what: str = "") -> None:
        files = save(path)
        written.append(f"{len(files)} {what} in {path}" if what else str(path))

    writes = [partial(write, page.to_html, out)]
    writes += [partial(write, page.save_figures, figures, "figures")] if figures else []
    writes += [partial(write, page.save_tables, tables, "tables")] if tables else []
    write_all(*writes)
    if not quiet:
        print(*written, sep="\n")


def _is_file(run: str) -> bool:
    return bool(os.path.exists(run) or Path(run).suffix)


def read_run(run: str, store: Path | None) -> Describes:
    """The result in a file, the training log in a folder, or the result of a recorded run."""
    from unslant.studies import read_result

    if _is_file(run):
        return read_result(run)
    from unslant.store import Store

    try:
        with Store(store, read_only=True) as opened:
            parquet = opened.runs.responses(opened.runs.get(run))
    except UnslantError as error:
        raise InputError(f"{run}: no such file, and {error}") from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "responses.parquet"
        write_atomically(path, parquet)
        return read_result(path)


def merge(
    merged: Annotated[Path, Parameter(name="MERGED", help="Parquet file to write: the responses of the whole run.")],
    /,
    *shards: Annotated[Path, Parameter(help="Tables of all shards of one run, in any order.")],
    outputs: o.Reports = o.ReportOptions(),
) -> None:
    """Merge the tables of all shards into one.

    The result equals that of one machine; costs are summed. Shards of different questions, settings or models are
    refused; missing shards are named, with the command that scores them.

    Examples:
      unslant merge run.parquet s*.parquet --html report.html
    """
    from unslant.experiment.outputs import check_file, check_outputs, check_owner, write_outputs
    from unslant.responses.checks import TableFile
    from unslant.responses.provenance import Provenance
    from unslant.scale.merge import merge as run
    from unslant.studies import read_result

    check_file(merged)
    check_outputs(outputs)
    for shard in shards[:1]:
        check_owner(outputs, Provenance.merge([TableFile(shard).run.provenance]))
    with tempfile.TemporaryDirectory() as elsewhere:
        table, failure = merged, None
        try:
            run(merged, shards)
        except OutputError as error:  # a table elsewhere can still give the numbers and the report
            table, failure = Path(elsewhere, "merged.parquet"), error
            try:
                run(table, shards)
            except OutputError:
                raise failure from None

        def fail() -> None:
            if failure:
                raise failure

        write_outputs(read_result(table), outputs, fail)


AGAIN = ("audit", "leaderboard", "debias", "study", "train")
"""Commands that ``rerun`` repeats."""


def rerun(
    file: Annotated[
        Path, Parameter(help="JSON, Parquet or HTML file of a result, or the folder of --out or of an adapter.")
    ],
    /,
    *again: Annotated[
        str,
        Parameter(name="OPTIONS", allow_leading_hyphen=True, help="Options of the command that you type again."),
        Reach.SECRET,
    ],
    trust: o.Trust = False,
    anyway: Annotated[bool, Parameter(help="Run even if the questions or the model have changed.")] = False,
    outputs: o.Outputs = o.OutputOptions(),
) -> None:
    """Repeat the command that made a result.

    Repeats every option except where to write. Stops if the questions or the model differ from those in the file. Run
    it in the folder of the original command.

    If the command runs third-party code, names an address, reads your environment or leaves this folder, it is shown
    and not run, unless you type those options again or give --trust. Keys go only to addresses that you type.

    Examples:
      unslant rerun report.html --json again.json
      unslant rerun served.json --base-url http://127.0.0.1:8080/v1
    """
    from unslant.cli.sources import repeat
    from unslant.experiment.outputs import read_provenance
    from unslant.experiment.running import EXPECTED

    block = read_provenance(file)
    if not block.command or block.command[0] not in AGAIN:
        origin = f"by 'unslant {block.command[0]}'" if block.command else "from Python"
        raise InputError.at(file, f"was made {origin}; only results of {', '.join(AGAIN)} can be repeated")
    words = list(again)
    for name in ("json", "html", "responses", "out", "figures", "tables", "baseline"):
        value = getattr(outputs, name)
        words += [f"--{name}", str(value)] if value is not None else []
    words += [f"--fail-if={condition}" for condition in outputs.fail_if]
    words += [f"--{name}" for name in ("details", "quiet") if getattr(outputs, name)]
    EXPECTED.set(None if anyway else block)
    repeat(block.command, file, f"unslant rerun {shlex.quote(str(file))}", trust, words)
