"""Panels of a leaderboard: ranks, neighbours, sets, PBM against accuracy, and what each way of computing it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from unslant.auditing.browser import browser
from unslant.experiment.comparison import slope_chart
from unslant.experiment.provenance import settings_rows, with_caveats
from unslant.metrics import METRICS
from unslant.reports import Chart, Column, Figure, Page, Panel, Plot, Tile, charts, model_charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import count, listed, number, with_interval
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
        lines=(_lead(result.models),),
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
    said += f"options: {with_interval(best[0]['expected_accuracy'], METRICS['expected_accuracy'])}, "
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
    scores = [
        ("expected_accuracy", one["expected_accuracy"], f"mean over orders, {name}") for name, one in ends.items()
    ]
    return Tile.row(*scores, *nearest, ("chance", result.chance, "chance"))


def _lead(models: Sequence[Standing]) -> str:
    moved = [one for one in models if one.change]
    told = [f"{one.model}: published rank {one.published_rank}, whatever the order {one.rank}" for one in moved]
    more = [f"{count(len(told) - MOST_TOLD, 'more model')} moved"] * (len(told) > MOST_TOLD)
    return "; ".join([*told[:MOST_TOLD], *more]) + "." if told else ""


def _moved(change: int | None) -> str | None:
    return None if change is None else f"{change:+d}".replace("-", "−") if change else "0"


def _ranking(models: Sequence[Standing]) -> Panel:
    scores = [one[key] for one in models for key in ("expected_accuracy", "accuracy")]
    moves = [(one.model, one.published_rank, one.rank) for one in models]
    rows: list[dict[str, Any]] = [
        {
            "model": one.model,
            "rank": one.rank,
            "ranks": f"{one.ranks[0]} to {one.ranks[1]}" if one.ranks else None,
            "published rank": one.published_rank,
            "places gained": _moved(one.change),
            **one.numbers.cells(),
        }
        for one in models
    ]
    columns: list[str | Column] = [
        Column("rank", explanation="by the mean over orders"),
        Column("rank, 95 %", explanation="over bootstrap resamples of the questions", key="ranks"),
        "expected_accuracy",
        Column("published rank", explanation="by the score in the order of the file"),
        Column.of("accuracy", "as published"),
        Column("places gained", explanation="from the published rank"),
        "vote_accuracy",
        "pbm",
    ]
    plot = Plot(
        charts.intervals,
        "Points with 95 % intervals, means over the sets.",
        ["expected_accuracy", "accuracy"],
        "Scores as published and whatever the order",
        "leaderboard-scores",
    )
    n = min((score.n for score in scores if score.defined), default=0)
    plots: list[Plot | Chart] = [plot, *slope_chart("leaderboard-ranks", moves, n)]
    return Panel(
        "leaderboard",
        "Ranking",
        "Models by the mean over orders, each set counting the same, beside the rank by the score in the file's order.",
        figures=[Figure("leaderboard", "Models, best first", ["model"], columns, rows, plots)],
    )


def _neighbours(result: Leaderboard) -> Panel:
    rows = [
        {**vars(pair), "neighbours.p": pair.p, "told apart": "yes" if pair.told_apart else "no"}
        | {"pair": f"{pair.higher} − {pair.lower}"}
        for pair in result.neighbours
    ]
    plot = Plot(
        partial(charts.intervals, axis="difference", step=38),
        "Mean over orders, paired by question, with 95 % intervals. Pairs that can be told apart are highlighted.",
        ["difference"],
        "Each model less the next in rank",
        name=["pair"],
        out=lambda row: bool(row["told_apart"]),
        rows="pair",
    )
    columns: list[str | Column] = ["difference", Column.of("neighbours.p", "p, corrected"), Column("told apart")]
    return Panel(
        "leaderboard-neighbours",
        "Which ranks can be told apart?",
        "Differences between each model and the next, question by question; p is corrected for the number of pairs.",
        short="Neighbours",
        figures=[
            Figure("leaderboard-neighbours", "Neighbouring ranks", ["higher", "lower"], columns, rows, [plot]),
        ],
    )


def _sets(result: Leaderboard) -> Panel:
    rank = {one.model: i for i, one in enumerate(result.models)}
    entries = sorted(result.entries, key=lambda entry: rank[entry.model])
    rows = [{"model": entry.model, "questions": entry.questions, **entry.numbers.cells()} for entry in entries]
    plot = Plot(
        partial(model_charts.matrix, columns="question set"),
        "Models from the best to the last; the darker, the higher. Intervals are in the table.",
        ["expected_accuracy"],
        "Mean over orders of each model on each set",
        name=["model"],
        series="questions",
        rows="model",
        of="questions a set",
    )
    columns: list[str | Column] = ["expected_accuracy", Column.of("accuracy", "as published"), "vote_accuracy", "pbm"]
    title, names, folded = "Each model on each set", ["model", "questions"], len(rows) > LONG
    return Panel(
        "leaderboard-sets",
        "Sets",
        "Each audit by itself, on all of its own questions.",
        figures=[Figure("leaderboard-sets", title, names, columns, rows, [plot], folded=folded)],
    )


def _pbm_accuracy(result: Leaderboard) -> Panel:
    r, drawn = METRICS["pbm_accuracy.pearson"], []
    for one in (one for one in result.pbm_accuracy if one.over == "sets and models"):
        own = [entry for entry in result.entries if entry.elicitation == one.elicitation]
        several = len({entry.questions for entry in own}) > 1
        points = [Mark(e.model, e["expected_accuracy"], e.questions * several, at=e["pbm"]) for e in own]
        pearson, way = one.pbm_accuracy["pearson"], _WAYS[one.elicitation]
        axis = "accuracy, mean over orders"
        draw = partial(charts.scatter, points, across="PBM", axis=axis, how_across=METRICS["pbm"])
        title = f"PBM against accuracy, {way}" + (f": r = {number(pearson, r)}" if pearson.defined else "")
        explanation = "Each point is a model on a set. PBM needs no right answers."
        drawn.append(Chart(f"leaderboard-pbm-{one.elicitation}", title, explanation, draw, "questions a set"))
    rows: list[dict[str, Any]] = [
        {"over": one.over, "asked": _WAYS[one.elicitation], "points": one.pbm_accuracy["pearson"].n}
        | one.pbm_accuracy.cells()
        for one in result.pbm_accuracy
    ]
    undefined = dict.fromkeys(
        f"A dash stands for no correlation: {one.pbm_accuracy['pearson'].note}."
        for one in result.pbm_accuracy
        if not one.pbm_accuracy["pearson"].defined
    )
    keys = ("pearson", "pearson_p", "spearman", "spearman_p")
    columns: list[str | Column] = [Column("points", 0), *(f"pbm_accuracy.{key}" for key in keys)]
    title, names, folded = "PBM against accuracy", ["over", "asked"], len(rows) > LONG
    return Panel(
        "leaderboard-pbm",
        "Does PBM go with accuracy?",
        "PBM as a sign of difficulty that needs no right answers (P1). Points of one model or one set are related: "
        "p takes them as independent. PBM of replies is on another scale than that of probabilities.",
        notes=tuple(undefined),
        short="PBM",
        figures=[Figure("leaderboard-pbm", title, names, columns, rows, drawn, folded=folded)],
    )


def _ways(result: Leaderboard) -> Panel:
    rows = [
        {**vars(way), "seconds are": None if way.seconds is None else "measured" if way.measured else "computed"}
        for way in result.ways
    ]
    columns: list[str | Column] = [
        Column("accuracy", METRICS["accuracy"]),
        "pbm",
        *("ways.tokens", "ways.saved", "ways.seconds"),
        Column("seconds are"),
    ]
    title, names, folded = "Accuracy, PBM, tokens and time", ["model", "way"], len(rows) > LONG
    return Panel(
        "leaderboard-ways",
        "What each way of computing it costs",
        "One order gives the published score; the others vote over all orders, and a vote has no PBM. Measured is what "
        "ran, on all presentations of the audit; other seconds are computed from the tokens at the measured rate, and "
        "the tokens of one order from the mean length of a prompt (P1, table 2).",
        short="Cost",
        figures=[Figure("leaderboard-ways", title, names, columns, rows, folded=folded)],
    )


def _notes(result: Leaderboard) -> list[str]:
    shared = sum(result.sets.values())
    lines = [
        f"{model} has no score over orders for {n:,} of {count(shared, 'question')}; "
        "where any ranked model has none, the question counts for nobody."
        for model, n in result.unpaired.items()
    ]
    lines += [f"{one.model} has no rank: {one['expected_accuracy'].note}." for one in result.models if one.rank is None]
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
