"""The page of the contamination study."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unslant.experiment.provenance import settings_rows
from unslant.metrics import METRICS
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import count, number, percent, with_interval
from unslant.studies.unbiased.panels import confusion_charts, notes, unread, unreadable

if TYPE_CHECKING:
    from unslant.studies.unbiased.contamination.result import ContaminationResult


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
    runs, named = (before.model, after.model), (("before", before), ("after", after))
    scores = [
        Mark(
            METRICS[key].label,
            getattr(run.metrics, key),
            f"{when}: {run.model}",
            getattr(run.metrics, f"{key}_chance").value,
        )
        for key in ("vanilla", "ours")
        for when, run in named
    ]
    gained = [
        Mark(METRICS[key].label, value, stands_out=key == "excess") for key, value in gains.items() if value.defined
    ]
    words, left = unread(before, after)
    return Page(
        about=f"{before.model} and {after.model} on {before.run.question_set}: "
        f"{count(len(before.outcomes.ids), 'question')}",
        headline=_headline(result) + words,
        lead=left,
        tiles=Tile.row(*gains.items(), ("ours_chance", after.metrics.ours_chance)),
        panels=(
            Panel(
                "contamination",
                "Did the score rise because the file was seen?",
                "Ability shows under any presentation; a file that was learned shows in its published form alone.",
                charts=(
                    Chart(
                        "contamination-scores", "Accuracy before and after", "With 95 % intervals; ticks: chance.",
                        lambda style: charts.intervals(
                            scores, style, rows="presentation", step=44, expected="chance"
                        ),
                    ),
                    Chart(
                        "contamination-gains", "Gain", "After less before, paired by question, with 95 % intervals. "
                        "Excess: what the published form gained beyond what survives.",
                        lambda style: charts.intervals(
                            gained, style, rows="gain", axis="difference in accuracy", how=METRICS["excess"]
                        ),
                    ),
                ),
                tables=(
                    Table("contamination-scores", "Accuracy", (Column("model"), *map(Column.of, keys), *more), rows),
                    Table.of_metrics("contamination-gains", "Gain", {"gain": gains}),
                ),
                notes=(trained,) if trained else (),
                short="Gain",
                first_screen=True,
            ),
            Panel(
                "contamination-answers",
                "Which answers survive?",
                "Question by question, before and after.",
                charts=confusion_charts([run.renamed(f"{when}: {run.model}") for when, run in named]),
                short="Answers",
            ),
        ),
        notes=tuple(f"{run.model}: {note}" for run in (before, after) for note in notes(run)),
        settings=settings_rows(replace(before.run, model="", models=runs)),
        name=f"{before.model}, {after.model}",
        compared=tuple(f"{when}: {name}" for when, name in zip(("before", "after"), runs, strict=True)),
    )  # fmt: skip


def _headline(result: ContaminationResult) -> str:
    vanilla, ours = result.vanilla_gain, result.ours_gain
    if not vanilla.defined or not ours.defined:
        return "Nothing could be measured"
    how = METRICS["vanilla_gain"]
    gains = f"gain {number(vanilla, how)} as published, {number(ours, how)} under interventions"
    who = f"{result.before.model} to {result.after.model}"
    excess = with_interval(result.excess, METRICS["excess"])
    if result.excess.low > 0:
        return f"{who}: {gains}; excess {excess}: the published form gains more than survives, as after contamination"
    return f"{who}: {gains}; excess {excess}: no sign of contamination"
