"""Panels of a leaderboard: ranks, neighbours, sets, PBM against accuracy, and what each way of computing it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from unslant.auditing.browser import browser
from unslant.experiment.provenance import settings_rows, with_caveats
from unslant.experiment.ranking import slope_chart
from unslant.metrics import METRICS
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts, model_charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, listed, number, with_interval
from unslant.responses import Run

if TYPE_CHECKING:
    from unslant.studies.leaderboard.ranking import Standing
    from unslant.studies.leaderboard.result import Leaderboard

MOST_TOLD = 2
"""Models whose move is told in the second sentence."""
LONG = 24
"""Rows above which a table of models and sets is folded."""
_WAYS = {"labels": "labels scored", "generate": "replies read"}


def page(result: Leaderboard) -> Page:
    """Every panel of the leaderboard."""
    sets = [f"{name} ({count(n, 'question')})" for name, n in result.sets.items()]
    models = ", ".join(one.model for one in result.models)
    runs = result.runs
    return Page(
        about=f"{count(len(result.models), 'model')} on {listed(sets)}",
        headline=_headline(result),
        lead=_lead(result.models),
        tiles=_tiles(result),
        panels=(
            _ranking(result.models),
            _neighbours(result),
            _sets(result),
            _pbm_accuracy(result),
            _ways(result),
        ),
        notes=tuple(_notes(result)),
        settings=settings_rows(
            Run(
                models=tuple(models),
                questions=", ".join(result.sets),
                settings=result.audits[0].run.settings,
                provenance=result.provenance,
            )
        ),
        questions=browser(runs, result.sets_of_runs),
        name="leaderboard",
        compared=tuple(one.model for one in result.models),
    )


def _headline(result: Leaderboard) -> str:
    ranked = [one for one in result.models if one.rank is not None]
    if not ranked:
        return "No model can be ranked: none has a score over several orders on every set"
    best = [one for one in ranked if one.rank == 1]
    said = f"{listed([one.model for one in best], 3)} {'leads' if len(best) == 1 else 'lead'} whatever the order of "
    said += f"options: {with_interval(best[0].expected_accuracy, METRICS['expected_accuracy'])}, "
    said += f"chance {number(result.chance, METRICS['chance'])}"
    unlike = [pair for pair in result.neighbours if pair.told_apart]
    told = f"{len(unlike)} of {count(len(result.neighbours), 'pair')} of neighbours can be told apart"
    moved = sum(bool(one.change) for one in ranked)
    return "; ".join(
        [said, *[told] * bool(result.neighbours), f"{moved} of {count(len(ranked), 'rank')} differ from the published"]
    )


def _tiles(result: Leaderboard) -> tuple[Tile, ...]:
    ranked = [one for one in result.models if one.rank is not None]
    ends = {one.model: one for one in ranked[:1] + ranked[-1:]}
    nearest = [
        ("difference", pair.difference, f"difference, {pair.higher} to {pair.lower}") for pair in result.neighbours[:1]
    ]
    scores = [("expected_accuracy", one.expected_accuracy, f"mean over orders, {name}") for name, one in ends.items()]
    return Tile.row(*scores, *nearest, ("chance", result.chance, "chance"))


def _lead(models: Sequence[Standing]) -> str:
    moved = [one for one in models if one.change]
    told = [f"{one.model}: published rank {one.published_rank}, whatever the order {one.rank}" for one in moved]
    more = [f"{count(len(told) - MOST_TOLD, 'more model')} moved"] * (len(told) > MOST_TOLD)
    return "; ".join([*told[:MOST_TOLD], *more]) + "." if told else ""


def _moved(change: int | None) -> str | None:
    return None if change is None else f"{change:+d}".replace("-", "−") if change else "0"


def _ranking(models: Sequence[Standing]) -> Panel:
    names = {"expected_accuracy": "mean over orders", "accuracy": "as published"}
    marks = [Mark(one.model, getattr(one, key), name) for one in models for key, name in names.items()]
    moves = [(one.model, one.published_rank, one.rank) for one in models]
    n = min((mark.estimate.n for mark in marks if mark.estimate.defined), default=0)
    rows: list[tuple[Cell, ...]] = [
        (
            one.model,
            one.rank,
            f"{one.ranks[0]} to {one.ranks[1]}" if one.ranks else None,
            one.expected_accuracy,
            one.published_rank,
            one.accuracy,
            _moved(one.change),
            one.vote_accuracy,
            one.pbm,
        )
        for one in models
    ]
    columns = (
        Column("model"),
        Column("rank", explanation="by the mean over orders"),
        Column("rank, 95 %", explanation="over bootstrap resamples of the questions"),
        Column.of("expected_accuracy"),
        Column("published rank", explanation="by the score in the order of the file"),
        Column.of("accuracy", "as published"),
        Column("places gained", explanation="from the published rank"),
        Column.of("vote_accuracy"),
        Column.of("pbm"),
    )
    scores = Chart(
        "leaderboard-scores",
        "Scores as published and whatever the order",
        "Points with 95 % intervals, means over the sets.",
        lambda style: charts.intervals(marks, style, rows="model"),
    )
    return Panel(
        "leaderboard",
        "Ranking",
        "Models by the mean over orders, each set counting the same, beside the rank by the score in the file's order.",
        (scores, *slope_chart("leaderboard-ranks", moves, n)),
        (Table("leaderboard", "Models, best first", columns, tuple(rows)),),
        first_screen=True,
    )


def _neighbours(result: Leaderboard) -> Panel:
    columns = (
        Column("higher"),
        Column("lower"),
        Column.of("difference"),
        Column.of("neighbours.p", "p, corrected"),
        Column("told apart"),
    )
    rows: list[tuple[Cell, ...]] = [
        (pair.higher, pair.lower, pair.difference, pair.p, "yes" if pair.told_apart else "no")
        for pair in result.neighbours
    ]
    marks = [Mark(f"{p.higher} − {p.lower}", p.difference, stands_out=p.told_apart) for p in result.neighbours]
    chart = Chart(
        "leaderboard-neighbours",
        "Each model less the next in rank",
        "Mean over orders, paired by question, with 95 % intervals. Pairs that can be told apart are highlighted.",
        lambda style: charts.intervals(
            marks, style, rows="pair", axis="difference", domain=None, step=38, zero=True, how=METRICS["difference"]
        ),
    )
    return Panel(
        "leaderboard-neighbours",
        "Which ranks can be told apart?",
        "Differences between each model and the next, question by question; p is corrected for the number of pairs.",
        (chart,) if any(mark.estimate.defined for mark in marks) else (),
        tables=(Table("leaderboard-neighbours", "Neighbouring ranks", columns, tuple(rows), names=2),) if rows else (),
        short="Neighbours",
        first_screen=True,
    )


def _sets(result: Leaderboard) -> Panel:
    keys = ("expected_accuracy", "accuracy", "vote_accuracy", "pbm")
    words = ("", "as published", "", "")
    columns = (Column("model"), Column("questions"), *map(Column.of, keys, words))
    rank = {one.model: i for i, one in enumerate(result.models)}
    entries = sorted(result.entries, key=lambda entry: rank[entry.model])
    rows: list[tuple[Cell, ...]] = [
        (entry.model, entry.questions, *(getattr(entry, key) for key in keys)) for entry in entries
    ]
    table = Table("leaderboard-sets", "Each model on each set", columns, tuple(rows), names=2, folded=len(rows) > LONG)
    marks = [Mark(e.model, e.expected_accuracy, e.questions) for e in entries if e.expected_accuracy.defined]
    chart = Chart(
        "leaderboard-sets",
        "Mean over orders of each model on each set",
        "Models from the best to the last; the darker, the higher. Intervals are in the table.",
        lambda style: model_charts.matrix(marks, style, rows="model", columns="question set"),
        of="questions a set",
    )
    return Panel(
        "leaderboard-sets",
        "Sets",
        "Each audit by itself, on all of its own questions.",
        (chart,) if marks else (),
        (table,),
    )


def _pbm_accuracy(result: Leaderboard) -> Panel:
    r = METRICS["pbm_accuracy.pearson"]
    drawn = []
    for found in (one for one in result.pbm_accuracy if one.over == "sets and models"):
        own = [entry for entry in result.entries if entry.elicitation == found.elicitation]
        points = [(entry.model, entry.pbm, entry.expected_accuracy) for entry in own]
        sets = [entry.questions for entry in own]
        series = sets if len(set(sets)) > 1 else ()
        pearson, way = found.pbm_accuracy.pearson, _WAYS[found.elicitation]
        beside, how = "accuracy, mean over orders", METRICS["pbm"]
        draw = partial(charts.scatter, points, under="PBM", beside=beside, how=how, series=series)
        title = f"PBM against accuracy, {way}" + (f": r = {number(pearson, r)}" if pearson.defined else "")
        explanation = "Each point is a model on a set. PBM needs no right answers."
        drawn.append(Chart(f"leaderboard-pbm-{found.elicitation}", title, explanation, draw, "questions a set"))
    names = ("pearson", "pearson_p", "spearman", "spearman_p")
    columns = (
        Column("over"),
        Column("asked"),
        Column("points", 0),
        *(Column.of(f"pbm_accuracy.{name}") for name in names),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            one.over,
            _WAYS[one.elicitation],
            one.pbm_accuracy.pearson.n,
            *(getattr(one.pbm_accuracy, name) for name in names),
        )
        for one in result.pbm_accuracy
    ]
    undefined = dict.fromkeys(
        f"A dash stands for no correlation: {one.pbm_accuracy.pearson.note}."
        for one in result.pbm_accuracy
        if not one.pbm_accuracy.pearson.defined
    )
    return Panel(
        "leaderboard-pbm",
        "Does PBM go with accuracy?",
        "PBM as a sign of difficulty that needs no right answers (P1). Points of one model or one set are related: "
        "p takes them as independent. PBM of replies is on another scale than that of probabilities.",
        tuple(drawn),
        (Table("leaderboard-pbm", "PBM against accuracy", columns, tuple(rows), names=2, folded=len(rows) > LONG),),
        tuple(undefined),
        short="PBM",
    )


def _ways(result: Leaderboard) -> Panel:
    keys = ("ways.tokens", "ways.saved", "ways.seconds")
    columns = (
        Column("model"),
        Column("way"),
        Column("accuracy", METRICS["accuracy"]),
        Column.of("pbm"),
        *map(Column.of, keys),
        Column("seconds are"),
    )
    rows: list[tuple[Cell, ...]] = [
        (
            way.model, way.way, way.accuracy, way.pbm, way.tokens, way.saved, way.seconds,
            None if way.seconds is None else "measured" if way.measured else "computed",
        )
        for way in result.ways
    ]  # fmt: skip
    return Panel(
        "leaderboard-ways",
        "What each way of computing it costs",
        "One order gives the published score; the others vote over all orders, and a vote has no PBM. Measured is what "
        "ran, on all presentations of the audit; other seconds are computed from the tokens at the measured rate, and "
        "the tokens of one order from the mean length of a prompt (P1, table 2).",
        tables=(
            Table(
                "leaderboard-ways",
                "Accuracy, PBM, tokens and time",
                columns,
                tuple(rows),
                names=2,
                folded=len(rows) > LONG,
            ),
        ),
        short="Cost",
    )


def _notes(result: Leaderboard) -> list[str]:
    shared = sum(result.sets.values())
    lines = [
        f"{model} has no score over orders for {n:,} of {count(shared, 'question')}; "
        "where any ranked model has none, the question counts for nobody."
        for model, n in result.unpaired.items()
    ]
    lines += [f"{one.model} has no rank: {one.expected_accuracy.note}." for one in result.models if one.rank is None]
    if result.left_out:
        lines.append(f"Not asked of all models, and left out of the ranking: {', '.join(result.left_out)}.")
    for audit in result.audits:
        presented = len(audit.responses)
        if 0 < audit.cost.prompts < presented and not audit.replies:
            lines.append(
                f"{audit.name} on {audit.run.question_set}: {audit.cost.prompts:,} of {presented:,} "
                "presentations were scored for this; the others repeat a prompt or were known from before."
            )
        precision = replace(audit.run, requests={}, incomplete="")  # these are those of the whole
        lines += [f"{audit.name}: {note}" for note in with_caveats(Page("", ""), precision).notes]
    return list(dict.fromkeys(lines))
