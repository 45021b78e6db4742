"""The page of the contamination study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from unslant.metrics import METRICS
from unslant.reports import Column, Page, Panel, Table, Tile
from unslant.reports.numbers import count, number, percent
from unslant.studies.provenance import settings_rows
from unslant.studies.unbiased.panels import notes, unread, unreadable

if TYPE_CHECKING:
    from unslant.studies.contamination.result import ContaminationResult


def page(result: ContaminationResult) -> Page:
    """Before and after, as published and under interventions."""
    before, after, done = result.before, result.after, result.trained
    gains: dict[str, Any] = {key: getattr(result, key) for key in ("vanilla_gain", "ours_gain", "excess")}
    keys = ("vanilla", "ours", "drop")
    more, cells = unreadable((before, after))
    rows = tuple(
        (run.model, *(getattr(run.metrics, key) for key in keys), *cell)
        for run, cell in zip((before, after), cells, strict=True)
    )
    trained = done and (
        f"Fine-tuned on {count(done.questions, 'question')} as published for {count(done.epochs, 'epoch')}; "
        f"{percent(done.share_right, 1)} of them were answered right in the last one."
    )
    return Page(
        about=f"{before.model} and {after.model} on {before.meta.get('questions', 'questions')}",
        headline=_headline(result) + unread(before, after),
        tiles=Tile.row(*gains.items()),
        panels=(
            Panel(
                "contamination",
                "Did the score rise because the file was seen?",
                "Ability shows under any presentation; a file that was learned shows in its published form alone.",
                tables=(
                    Table("contamination-scores", "Accuracy", (Column("model"), *map(Column.of, keys), *more), rows),
                    Table.of_metrics("contamination-gains", "Gain", {"gain": gains}),
                ),
                notes=(trained,) if trained else (),
                first_screen=True,
            ),
        ),
        notes=tuple(f"{run.model}: {note}" for run in (before, after) for note in notes(run)),
        settings=settings_rows(before.meta),
        name=f"{before.model}, {after.model}",
    )


def _headline(result: ContaminationResult) -> str:
    vanilla, ours = result.vanilla_gain, result.ours_gain
    if not vanilla.defined or not ours.defined:
        return "Nothing could be measured"
    how = METRICS["vanilla_gain"]
    gains = f"{number(vanilla, how)} as published, {number(ours, how)} under interventions"
    who = f"{result.before.model} to {result.after.model}"
    if result.excess.low > 0:
        return f"{who}: {gains}; the published form gains more than what survives, as after contamination"
    return f"{who}: {gains}; no sign of contamination"
