"""Panel of an audit made inside another harness: the published order as that harness reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.metrics import Estimate
from unslant.reports import Column, Panel, Table
from unslant.reports.numbers import Cell
from unslant.responses.run import Harness

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult


def harness_panel(result: AuditResult) -> Panel:
    """lm-eval's own metrics of each task."""
    harness = result.run.lm_eval or Harness(version="", orders=0)
    names = list(dict.fromkeys(name for task in harness.tasks.values() for name in task.metrics))
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            str(task.num_fewshot),
            task.scored,
            *(Estimate.from_dict(task.metrics[key]) if key in task.metrics else None for key in names),
        )
        for name, task in harness.tasks.items()
    ]
    columns = (Column("task"), Column("examples"), Column("scored"), *map(Column, names))
    title = f"Published order, as lm-eval {harness.version} reports it"
    left_out = sum(task.missing for task in harness.tasks.values())
    notes = [
        *([f"Documents without scores, left out of lm-eval's metrics: {left_out:,}."] if left_out else []),
        *harness.notes,
    ]
    return Panel(
        "lm-eval",
        "In lm-eval",
        "The same requests and metrics as lm-eval's, of the order that the task publishes.",
        tables=(Table("lm-eval", title, columns, tuple(rows)),) if rows else (),
        notes=tuple(notes),
        first_screen=True,
    )
