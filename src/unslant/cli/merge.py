"""``unslant merge``: one result from the tables of all shards."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unslant.errors import OutputError
from unslant.experiment import options as o


def merge(
    merged: Annotated[Path, Parameter(name="OUT", help="Write the table of the whole run to this Parquet file.")],
    /,
    *shards: Annotated[Path, Parameter(help="Tables that --shard wrote, of all shards of one run, in any order.")],
    outputs: o.Reports = o.ReportOptions(),
) -> None:
    """Make one table, and one result, of the tables of all shards.

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
        table, failed = merged, None
        try:
            run(merged, shards)
        except OutputError as error:  # numbers and report are made of the table all the same
            table, failed = Path(elsewhere, "merged.parquet"), error
            try:
                run(table, shards)
            except OutputError:
                raise failed from None

        def say() -> None:
            if failed:
                raise failed

        write_outputs(read_result(table), outputs, say)  # type: ignore[arg-type]
