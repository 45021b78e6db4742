"""Panel of an audit made inside another harness: the published order as that harness reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.metrics import Estimate
from unslant.reports import Column, Panel, Table
from unslant.reports.numbers import Cell

if TYPE_CHECKING:
    from unslant.studies.audit.result import AuditResult


def harness_panel(result: AuditResult) -> Panel:
    """lm-eval's own metrics of each task."""
    about = result.meta.get("lm_eval") or {}
    tasks = about.get("tasks", {})
    names = list(dict.fromkeys(name for task in tasks.values() for name in task["metrics"]))
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            str(task["num_fewshot"]),
            task["scored"],
            *(Estimate.from_dict(task["metrics"][key]) if key in task["metrics"] else None for key in names),
        )
        for name, task in tasks.items()
    ]
    columns = (Column("task"), Column("examples"), Column("scored"), *map(Column, names))
    title = f"Published order, as lm-eval {about.get('version', '')} reports it"
    left_out = sum(task["missing"] for task in tasks.values())
    notes = [
        *([f"Documents without scores, left out of lm-eval's metrics: {left_out:,}."] if left_out else []),
        *about.get("notes", ()),
    ]
    return Panel(
        "lm-eval",
        "In lm-eval",
        "The same requests and metrics as lm-eval's, of the order that the task publishes.",
        tables=(Table("lm-eval", title, columns, tuple(rows)),) if rows else (),
        notes=tuple(notes),
        first_screen=True,
    )
