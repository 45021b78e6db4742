"""The contamination check in words and panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.reports.panels import Cell, Column, Panel, Table

if TYPE_CHECKING:
    from unslant.studies.contamination.result import ContaminationResult


def headline(result: ContaminationResult) -> str:
    """The outcome in one sentence."""
    vanilla, ours = result.vanilla_gain, result.ours_gain
    if not vanilla.defined or not ours.defined:
        return "nothing could be measured"
    gains = f"{100 * vanilla.value:+.1f} points as published, {100 * ours.value:+.1f} under interventions"
    who = f"{result.before.model} to {result.after.model}"
    if result.excess.low > 0:
        return f"{who}: {gains}; the published form gains more than what survives, as after contamination"
    return f"{who}: {gains}; no sign of contamination"


def panels(result: ContaminationResult) -> list[Panel]:
    """Before and after, as published and under interventions."""
    before, after = result.before, result.after
    rows: tuple[tuple[Cell, ...], ...] = (
        (before.model, before.metrics.vanilla, before.metrics.ours.value, before.metrics.drop.value),
        (after.model, after.metrics.vanilla, after.metrics.ours.value, after.metrics.drop.value),
    )
    columns = (Column("model"), Column("as published"), Column("under interventions"), Column("drop"))
    gains: tuple[tuple[Cell, ...], ...] = (
        ("as published", result.vanilla_gain, "after minus before"),
        ("under interventions", result.ours_gain, "after minus before"),
        ("excess", result.excess, "gain as published beyond the gain under interventions"),
    )
    notes = []
    if result.trained:
        done = result.trained
        notes.append(
            f"Fine-tuned on {done.questions:,} questions as published for {done.epochs} epochs; "
            f"{100 * done.share_right:.1f} % of them were answered right in the last one."
        )
    return [
        Panel(
            "contamination",
            "Did the score rise because the file was seen?",
            "Ability shows under any presentation; a file that was learned shows in its published form alone.",
            tables=(
                Table("contamination-scores", "Accuracy", columns, rows),
                Table("contamination-gains", "Gain", (Column(""), Column("gain"), Column("meaning")), gains),
            ),
            notes=tuple(notes),
        )
    ]
