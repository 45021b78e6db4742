"""Panels of a leaderboard: ranks, neighbours, sets, PBM against accuracy, and what each way of computing it costs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from unslant.metrics import METRICS
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number, with_interval
from unslant.studies.provenance import settings_rows, with_admissions

if TYPE_CHECKING:
    from unslant.studies.leaderboard.ranking import Standing
    from unslant.studies.leaderboard.result import Leaderboard

_ENDS = ("as published", "mean over orders")
_WAYS = {"labels": "labels scored", "generate": "replies read"}


def page(result: Leaderboard) -> Page:
    """Every panel of the leaderboard."""
    sets = [f"{name} ({n:,})" for name, n in result.sets.items()]
    models = ", ".join(one.model for one in result.models)
    return Page(
        about=f"{count(len(result.models), 'model')} on {', '.join(sets)}",
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
            {
                "models": models,
                "questions": ", ".join(result.sets),
                "settings": result.audits[0].meta.get("settings"),
                "provenance": result.provenance,
            }
        ),
        name="leaderboard",
        compared=tuple(one.model for one in result.models),
    )


def _headline(result: Leaderboard) -> str:
    ranked = [one for one in result.models if one.rank is not None]
    if not ranked:
        return "No model can be ranked: none has a score over several orders on every set"
    best = [one for one in ranked if one.rank == 1]
    said = f"{' and '.join(one.model for one in best)} {'leads' if len(best) == 1 else 'lead'} whatever the order of "
    said += f"options: {with_interval(best[0].expected_accuracy, METRICS['expected_accuracy'])}"
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
    first = result.audits[0]
    chance = ("chance", first.metrics.means.chance, f"chance, {first.meta.get('questions', 'questions')}")
    return Tile.row(*scores, *nearest, chance)


def _lead(models: Sequence[Standing]) -> str:
    moved = [one for one in models if one.change]
    told = [f"{one.model}: published rank {one.published_rank}, whatever the order {one.rank}" for one in moved]
    return "; ".join(told[:4]) + "." if told else ""


def _moved(change: int | None) -> str | None:
    return None if change is None else f"{change:+d}".replace("-", "−") if change else "0"


def _ranking(models: Sequence[Standing]) -> Panel:
    names = {"expected_accuracy": "mean over orders", "accuracy": "as published"}
    marks = [Mark(one.model, getattr(one, key), name) for one in models for key, name in names.items()]
    moves = [
        (one.model, one.published_rank, one.rank)
        for one in models
        if one.rank is not None and one.published_rank is not None
    ]
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
    slopes = Chart(
        "leaderboard-ranks",
        "From the published rank to the rank whatever the order",
        "One line a model, the best at the top; those that change rank are highlighted.",
        lambda style: charts.slopes(moves, style, ends=_ENDS, n=n),
    )
    return Panel(
        "leaderboard",
        "Ranking",
        "Models by the mean over orders, each set counting the same, beside the rank by the score in the file's order.",
        (scores, *[slopes] * (len(moves) > 1)),
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
    return Panel(
        "leaderboard-neighbours",
        "Which ranks can be told apart?",
        "Differences between each model and the next, question by question; p is corrected for the number of pairs.",
        tables=(Table("leaderboard-neighbours", "Neighbouring ranks", columns, tuple(rows), names=2),) if rows else (),
        short="Neighbours",
        first_screen=True,
    )


def _sets(result: Leaderboard) -> Panel:
    keys = ("expected_accuracy", "accuracy", "vote_accuracy", "pbm")
    columns = (Column("model"), Column("questions"), *map(Column.of, keys))
    rows: list[tuple[Cell, ...]] = [
        (entry.model, entry.questions, *(getattr(entry, key) for key in keys)) for entry in result.entries
    ]
    table = Table("leaderboard-sets", "Each model on each set", columns, tuple(rows), names=2)
    return Panel("leaderboard-sets", "Sets", "Each audit by itself, on all of its own questions.", tables=(table,))


def _pbm_accuracy(result: Leaderboard) -> Panel:
    r = METRICS["pbm_accuracy.pearson"]
    drawn = []
    for found in (one for one in result.pbm_accuracy if one.over == "sets and models"):
        points = [
            (f"{entry.model}, {entry.questions}", entry.pbm, entry.expected_accuracy)
            for entry in result.entries
            if entry.elicitation == found.elicitation
        ]
        pearson, way = found.pbm_accuracy.pearson, _WAYS[found.elicitation]
        said = f"r = {number(pearson, r)}" if pearson.defined else pearson.note
        draw = partial(charts.scatter, points, under="PBM", beside="accuracy, mean over orders", how=METRICS["pbm"])
        title = f"PBM against accuracy, {way}: {said}"
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
    undefined = [
        f"No correlation over {one.over}, {_WAYS[one.elicitation]}: {one.pbm_accuracy.pearson.note}."
        for one in result.pbm_accuracy
        if not one.pbm_accuracy.pearson.defined
    ]
    return Panel(
        "leaderboard-pbm",
        "Does PBM go with accuracy?",
        "PBM as a sign of difficulty that needs no right answers (P1). Points of one model or one set are related: "
        "p takes them as independent. PBM of replies is on another scale than that of probabilities.",
        tuple(drawn),
        (Table("leaderboard-pbm", "PBM against accuracy", columns, tuple(rows), names=2),),
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
        tables=(Table("leaderboard-ways", "Accuracy, PBM, tokens and time", columns, tuple(rows), names=2),),
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
                f"{audit.name} on {audit.meta.get('questions', 'questions')}: {audit.cost.prompts:,} of {presented:,} "
                "presentations were scored for this; the others repeat a prompt or were known from before."
            )
        own = {
            key: value for key, value in audit.meta.items() if key in ("half_precision", "special_tokens", "identity")
        }
        empty = with_admissions(Page("", ""), own)
        lines += [f"{audit.name}: {note}" for note in empty.notes]
    return list(dict.fromkeys(lines))
