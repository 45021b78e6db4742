"""The contamination check as it is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.metrics import METRICS
from unslant.reports import Column, Page, Panel, Table, Tile
from unslant.reports.numbers import Cell, count, number, percent
from unslant.studies.provenance import settings_rows
from unslant.studies.unbiased.panels import notes

if TYPE_CHECKING:
    from unslant.studies.contamination.result import ContaminationResult


def page(result: ContaminationResult) -> Page:
    """Before and after, as published and under interventions."""
    before, after, done = result.before, result.after, result.trained
    gains: dict[str, Cell] = {"vanilla_gain": result.vanilla_gain, "ours_gain": result.ours_gain}
    keys = ("vanilla", "ours", "drop")
    rows = tuple((run.model, *(getattr(run.metrics, key) for key in keys)) for run in (before, after))
    trained = []
    if done:
        trained.append(
            f"Fine-tuned on {count(done.questions, 'question')} as published for {count(done.epochs, 'epoch')}; "
            f"{percent(done.share_right, 1)} of them were answered right in the last one."
        )
    return Page(
        about=f"{before.model} and {after.model} on {before.meta.get('questions', 'questions')}",
        headline=headline(result),
        tiles=Tile.row(
            ("vanilla_gain", result.vanilla_gain), ("ours_gain", result.ours_gain), ("excess", result.excess)
        ),
        panels=(
            Panel(
                "contamination",
                "Did the score rise because the file was seen?",
                "Ability shows under any presentation; a file that was learned shows in its published form alone.",
                tables=(
                    Table("contamination-scores", "Accuracy", (Column("model"), *map(Column.of, keys)), rows),
                    Table.of_metrics("contamination-gains", "Gain", {"gain": gains | {"excess": result.excess}}),
                ),
                notes=tuple(trained),
                first_screen=True,
            ),
        ),
        notes=tuple(f"{run.model}: {note}" for run in (before, after) for note in notes(run)),
        settings=settings_rows(before.meta),
        name=f"{before.model}, {after.model}",
    )


def headline(result: ContaminationResult) -> str:
    """The outcome in one sentence."""
    vanilla, ours = result.vanilla_gain, result.ours_gain
    if not vanilla.defined or not ours.defined:
        return "Nothing could be measured"
    how = METRICS["vanilla_gain"]
    gains = f"{number(vanilla, how)} as published, {number(ours, how)} under interventions"
    who = f"{result.before.model} to {result.after.model}"
    if result.excess.low > 0:
        return f"{who}: {gains}; the published form gains more than what survives, as after contamination"
    return f"{who}: {gains}; no sign of contamination"
