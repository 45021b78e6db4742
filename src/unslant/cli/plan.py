"""``unslant plan``: how much to ask, before a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from unslant.experiment import options as o
from unslant.flags import Without
from unslant.studies.plan.settings import PlanSettings


def plan(
    pilot: Annotated[
        Path | None, Parameter(help="Earlier audit, which may be small: its JSON or Parquet file.")
    ] = None,
    /,
    *,
    log: o.Logs = (),
    settings: PlanSettings = PlanSettings(),
    outputs: Annotated[o.Reports, Without("baseline")] = o.ReportOptions(),
) -> None:
    """Plan how many questions and tokens a run needs.

    Give --half-width, --difference or --available; of several, the most demanding decides. Without a pilot or --log,
    the most demanding case is assumed: a score of 0.5, and orders that never change an answer.

    Examples:
      unslant plan --half-width 0.03
      unslant plan pilot.json --difference 0.02 --price 0.15
    """
    from unslant.experiment.outputs import check_outputs, write_outputs
    from unslant.studies.plan.planning import plan as run

    check_outputs(outputs)
    write_outputs(run(pilot, log=log, settings=settings), outputs)
