"""The page of the contamination study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from unslant.experiment.provenance import settings_rows
from unslant.metrics import METRICS, Estimate
from unslant.reports import Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, number, percent, with_interval
from unslant.studies.unbiased.panels import confusion, notes, replies_of, unread
from unslant.studies.unbiased.result import UnbiasedResult

if TYPE_CHECKING:
    from unslant.studies.unbiased.contamination.result import ContaminationResult


def page(result: ContaminationResult) -> Page:
    """Before and after, as published and under interventions."""
    before, after, done = result.before, result.after, result.trained
    gains = {key: vars(result)[key] for key in ("vanilla_gain", "ours_gain", "excess")}
    named = {f"before: {before.model}": before, f"after: {after.model}": after}
    trained = done and (
        f"Fine-tuned on {count(done.questions, 'question')} as published for {count(done.epochs, 'epoch')}; "
        f"{percent(done.share_right, 1)} of them were answered right in the last one."
    )
    words, left = unread(before, after)
    return Page(
        about=f"{before.model} and {after.model} on {before.run.question_set}: "
        f"{count(len(before.outcomes.ids), 'question')}",
        headline=_headline(result) + words,
        lines=(left,),
        tiles=Tile.row(*gains.items(), ("ours_chance", after.metrics.ours_chance)),
        panels=(
            Panel(
                "contamination",
                "Did the score rise because the file was seen?",
                "Ability shows under any presentation; a file that was learned shows in its published form alone.",
                figures=(_accuracy(named), _gain(gains)),
                notes=(trained,) if trained else (),
                short="Gain",
            ),
            Panel(
                "contamination-answers",
                "Which answers survive?",
                "Question by question, before and after.",
                figures=confusion(named),
                short="Answers",
            ),
        ),
        notes=tuple(f"{run.model}: {note}" for run in (before, after) for note in notes(run)),
        settings=settings_rows(replace(before.run, model="", models=(before.model, after.model))),
        name=f"{before.model}, {after.model}",
        compared=tuple(named),
    )


def _accuracy(named: Mapping[str, UnbiasedResult]) -> Figure:
    plot = Plot(
        partial(charts.intervals, step=44, expected="chance"),
        "With 95 % intervals; ticks: chance.",
        ["vanilla", "ours"],
        title="Accuracy before and after",
        name=["run"],
        expected=lambda row, key: row[f"{key}_chance"],
        across=True,
        rows="presentation",
    )
    rows = [
        {"model": one.model, "run": run, **vars(one.metrics), "unreadable": one.metrics.replies["ours"].unreadable}
        for run, one in named.items()
    ]
    columns = ["vanilla", "ours", "drop", *replies_of([*named.values()])]
    return Figure("contamination-scores", "Accuracy", ["model"], columns, rows, [plot])


def _gain(gains: Mapping[str, Estimate]) -> Figure:
    plot = Plot(
        partial(charts.intervals, axis="difference in accuracy"),
        "After less before, paired by question, with 95 % intervals. Excess: what the published form gained beyond "
        "what survives.",
        ["gain"],
        out=lambda row: bool(row["metric.key"] == "excess"),
        rows="gain",
    )
    return Figure.of_metrics("contamination-gains", "Gain", {"gain": gains}, [plot])


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
