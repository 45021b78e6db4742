"""Panels of a leaderboard: ranks, pairs, sets, PBM against accuracy, and what each way of computing it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from unslant.arrays import grouped
from unslant.auditing.browser import browser
from unslant.auditing.panels import caveats
from unslant.auditing.result import orders_meant
from unslant.experiment.comparison import ranks_of, slope_chart
from unslant.experiment.page_parts import settings_rows, spent, with_caveats
from unslant.metrics import METRICS, verdicts
from unslant.reports import Chart, Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import about, count, listed, number, unsettled, with_interval
from unslant.reports.style import Mark
from unslant.responses import Run
from unslant.studies.leaderboard.ranking import NONE_SHARED, Pair, Standing
from unslant.studies.leaderboard.study import Leaderboard

LONG = 24
"""Rows above which a table of models and sets is folded."""
_WAYS = {"labels": "labels scored", "generate": "replies read"}
_HOW = {"mean": "averaged over option orders", "vote": "voted over option orders"}
_RANKS = {"expected_accuracy": "mean_rank", "vote_accuracy": "vote_rank"}


def page(result: Leaderboard) -> Page:
    """Every panel of the leaderboard."""
    sets = [f"{name} ({count(n, 'question')})" for name, n in result.sets.items()]
    return Page(
        about=f"{count(len(result.models), 'model')} on {listed(sets)}",
        headline=_headline(result),
        lines=_lines(result),
        tiles=_tiles(result),
        panels=(_ranking(result), _pairs(result), _sets(result), _pbm_accuracy(result), _ways(result)),
        caveats=(
            *(f"{name}: {line}" for name, audit in result.runs.items() for line in caveats(audit)),
            *(
                f"{model} has no score over orders for {n:,} of {count(sum(result.sets.values()), 'question')}; "
                "where any ranked model has none, the question counts for nobody."
                for model, n in result.unpaired.items()
            ),
        ),
        notes=tuple(_notes(result)),
        settings=settings_rows(
            Run(
                models=tuple(one.model for one in result.models),
                questions=", ".join(result.sets),
                settings=result.audits[0].run.settings | {"rank_by": result.rank_by},
                provenance=result.provenance,
            )
        ),
        questions=partial(browser, result.runs, result.sets_of_runs),
        name="leaderboard",
        compared=tuple(one.model for one in result.models),
    )


def _ranked(result: Leaderboard) -> list[Standing]:
    return [one for one in result.models if one.rank is not None]


def _apart(result: Leaderboard) -> str:
    """That the models have no question in common, if so."""
    notes = [one[result.score].note for one in result.models]
    return next((note for note in notes if note.startswith(NONE_SHARED)), "")


def _headline(result: Leaderboard) -> str:
    ranked, how = _ranked(result), _HOW[result.rank_by]
    if not ranked:
        reason = _apart(result) or "none has a score over several orders on every set"
        return f"No model can be ranked: {reason}"
    guessing = f"guessing gives {number(result.chance, 2)}"
    best = [one for one in ranked if one.ranks and one.ranks[0] == 1]
    scores = [number(one[result.score], 2) for one in best]
    first = f"{with_interval(best[0][result.score], 2)} {how}; {guessing}"
    if len(ranked) == 1:
        return f"{best[0].model} scores {first}"
    if len(best) == 1:
        return f"{best[0].model} ranks first of {count(len(ranked), 'model')}: {first}"
    names = listed([one.model for one in best], 3)
    span = listed(scores) if len(best) == 2 else f"{scores[-1]} to {scores[0]}"
    span = f"{'both' if len(best) == 2 else 'all'} {scores[0]}" if len(set(scores)) == 1 else span
    if any(pair.differ for pair in result.pairs):
        return f"{names} may each rank first of {count(len(ranked), 'model')}: {span} {how}; {guessing}"
    asked = count(best[0][result.score].n, "question")
    return f"{names} cannot be ranked on {asked}: {span} {how}; {guessing}"


def _lines(result: Leaderboard) -> tuple[str, ...]:
    """Which models differ; what the habit costs, and what ranks moved; the cost."""
    nearest = [pair for pair in result.neighbours[:1] if not pair.differ]
    if len(result.pairs) > 1:
        differing = sum(pair.differ for pair in result.pairs)
        parts = [f"{differing:,} of {len(result.pairs):,} pairs of models differ, all tested together"]
        parts += [f"{one.higher} and {one.lower} cannot be distinguished {unsettled(one.verdict)}" for one in nearest]
    else:
        parts = [f"About {about(one.needed)} questions would settle it" for one in nearest if one.needed]
    if not _ranked(result) and not _apart(result):
        parts = ["Runs in one order only have no such score; `unslant audit` compares them as published"]
    cost = spent(*(audit.run for audit in result.audits))
    return (_sentence(parts), _sentence([*_prices(result), *_moves(result)]), cost)


def _sentence(parts: Sequence[str]) -> str:
    return "; ".join(parts) + "." if parts else ""


def _prices(result: Leaderboard) -> list[str]:
    """What the vote over orders changes, of the models where that is certain."""
    ranked, how = _ranked(result), METRICS["habit_price"]
    if not ranked:
        return []
    tests = zip(ranked, verdicts([one["habit_price"] for one in ranked]), strict=True)
    certain = [f"{one.model} by {with_interval(test.joint, how)}" for one, test in tests if test.differs]
    missing = any(audit.metrics.counts.unanswered_rows for audit in result.audits)
    start = f"A vote over orders, which cancels order habits{' and skips missing answers' * missing},"
    return [f"{start} changes {listed(certain, 3)}" if certain else f"{start} is not shown to change any score"]


def _moves(result: Leaderboard) -> list[str]:
    """Places gained and lost against the published order."""
    ranked = _ranked(result)
    certain = []
    for one in ranked:
        fewest, most = one.changes or (0, 0)
        if fewest > 0 or most < 0:
            places = count(max(fewest, -most), "place")
            certain.append(f"{one.model} {'gains' if fewest > 0 else 'loses'} at least {places}")
    if certain:
        return [f"against the published order {listed(certain, 3)}"]
    changes = [one.change for one in ranked if one.change is not None]
    moved = sum(map(bool, changes))
    if not moved:
        return []
    differ = "differs" if moved == 1 else "differ"
    return [f"{moved} of {len(changes)} ranks {differ} from the published order, none beyond chance"]


def _tiles(result: Leaderboard) -> tuple[Tile, ...]:
    key, ranked = result.score, _ranked(result)
    how = METRICS[key].label
    first = [(key, one[key], f"{how}, {one.model}") for one in ranked[:1]]
    nearest = [
        ("difference", pair.difference, f"difference, {pair.higher} to {pair.lower}") for pair in result.neighbours[:1]
    ]
    return Tile.row(*first, *nearest, ("chance", result.chance, "chance"))


def _span(ranks: tuple[int, int] | None) -> str | None:
    return f"{ranks[0]} to {ranks[1]}".replace("-", "−") if ranks else None


def _moved(change: int | None) -> str | None:
    return None if change is None else f"{change:+d}".replace("-", "−") if change else "0"


def _ranking(result: Leaderboard) -> Panel:
    models, other = result.models, next(key for key in _RANKS if key != result.score)
    scores = [one[key] for one in models for key in (*_RANKS, "accuracy")]
    both = [one for one in models if one.change is not None]
    ranks = (ranks_of([one[key] for one in both]) for key in ("accuracy", result.score))
    moves = list(zip([one.model for one in both], *ranks, strict=True))
    rows: list[dict[str, Any]] = [
        vars(one)
        | {"ranks": _span(one.ranks), "changes": _span(one.changes), "change": _moved(one.change)}
        | one.numbers.cells()
        for one in models
    ]
    columns: list[str | Column] = [
        Column("rank", explanation=_HOW[result.rank_by]),
        Column("ranks, 95 %", explanation="confidence set: the sets hold all true ranks together", key="ranks"),
        result.score,
        Column(f"rank, {METRICS[other].label}", explanation="by the other score", key=_RANKS[other]),
        other,
        "habit_price",
        Column("published rank", explanation="by the score in the order of the file", key="published_rank"),
        Column.of("accuracy", "as published"),
        Column("places gained", explanation="from the published order, among models in both", key="change"),
        Column("places, 95 %", explanation="as the confidence sets of both ranks allow", key="changes"),
        "pbm",
    ]
    plot = Plot(
        charts.intervals,
        "Points with 95 % intervals, means over the sets.",
        [*_RANKS, "accuracy"],
        "Scores as published, averaged over orders and voted",
        "leaderboard-scores",
    )
    n = min((score.n for score in scores if score.defined), default=0)
    plots: list[Plot | Chart] = [plot, *slope_chart("leaderboard-ranks", moves, n, METRICS[result.score].label)]
    return Figure("leaderboard", "Models, best first", ["model"], columns, rows, plots).panel(
        "Ranking",
        f"Models by their score {_HOW[result.rank_by]}, each set counting the same. The mean over orders is "
        "performance in a random order; the vote is knowledge with the habit taken out; the difference is the price "
        "of the habit.",
    )


def _pairs(result: Leaderboard) -> Panel:
    def row(pair: Pair) -> dict[str, Any]:
        differ = "yes" if pair.differ else "no"
        return {**vars(pair), "differ": differ, "pair": f"{pair.higher} − {pair.lower}"}

    plot = Plot(
        partial(charts.intervals, axis="difference", step=38),
        f"{METRICS[result.score].name}, paired by question, with 95 % intervals that hold for all pairs together. "
        "Pairs that differ are highlighted.",
        ["difference"],
        "Each model minus the next in rank",
        name=["pair"],
        out=lambda row: row["differ"] == "yes",
        rows="pair",
    )
    columns: list[str | Column] = ["difference", Column.of("pairs.p", "p, corrected"), Column("differ")]
    names, near = ["higher", "lower"], [row(pair) for pair in result.neighbours]
    figures = [Figure("leaderboard-neighbours", "Neighbouring ranks", names, columns, near, [plot])]
    if len(result.pairs) > len(near):
        every = [row(pair) for pair in result.pairs]
        figures.append(Figure("leaderboard-pairs", "All pairs", names, columns, every, folded=True))
    return Panel(
        "leaderboard-pairs",
        "Which models differ?",
        "Differences question by question. Intervals and p are corrected for the number of all pairs; a pair differs "
        "where p is below 0.05 and the interval excludes 0.",
        short="Pairs",
        figures=figures,
    )


def _sets(result: Leaderboard) -> Panel:
    rank = {one.model: i for i, one in enumerate(result.models)}
    entries = sorted(result.entries, key=lambda entry: rank[entry.model])
    rows = [{"model": entry.model, "questions": entry.questions, **entry.numbers.cells()} for entry in entries]
    plot = Plot(
        partial(charts.matrix, columns="question set"),
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
    return Figure("leaderboard-sets", title, names, columns, rows, [plot], folded=folded).panel(
        "Sets", "Each audit by itself, on all of its own questions."
    )


def _pbm_accuracy(result: Leaderboard) -> Panel:
    r, scatters = METRICS["pbm_accuracy.pearson"], []
    for one in (one for one in result.pbm_accuracy if one.over == "sets and models"):
        entries = [entry for entry in result.entries if entry.elicitation == one.elicitation]
        several = len({entry.questions for entry in entries}) > 1
        points = [Mark(e.model, e["expected_accuracy"], e.questions * several, at=e["pbm"]) for e in entries]
        pearson, way = one.pbm_accuracy["pearson"], _WAYS[one.elicitation]
        axis = "accuracy, mean over orders"
        draw = partial(charts.scatter, points, across="PBM", axis=axis, how_across=METRICS["pbm"])
        title = f"PBM against accuracy, {way}" + (f": r = {number(pearson, r)}" if pearson.defined else "")
        explanation = "Each point is a model on a set. PBM needs no right answers."
        scatters.append(Chart(f"leaderboard-pbm-{one.elicitation}", title, explanation, draw, "questions a set"))
    rows: list[dict[str, Any]] = [
        {"over": one.over, "asked": _WAYS[one.elicitation], "points": one.pbm_accuracy["pearson"].n}
        | one.pbm_accuracy.cells()
        for one in result.pbm_accuracy
    ]
    undefined = dict.fromkeys(
        f"A dash means no correlation: {one.pbm_accuracy['pearson'].note}."
        for one in result.pbm_accuracy
        if not one.pbm_accuracy["pearson"].defined
    )
    keys = ("pearson", "pearson_p", "spearman", "spearman_p")
    columns: list[str | Column] = [Column("points", 0), *(f"pbm_accuracy.{key}" for key in keys)]
    title, names, folded = "PBM against accuracy", ["over", "asked"], len(rows) > LONG
    return Figure("leaderboard-pbm", title, names, columns, rows, scatters, folded=folded).panel(
        "Does PBM go with accuracy?",
        "PBM as a sign of difficulty that needs no right answers (selection-bias paper). Points of one model or "
        "one set are related, but p takes them as independent. PBM of replies is on another scale than that of "
        "probabilities.",
        short="PBM",
        notes=tuple(undefined),
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
    return Figure("leaderboard-ways", title, names, columns, rows, folded=folded).panel(
        "What each way of computing it costs",
        "One order gives the published score; the others vote over all orders, and a vote has no PBM. Measured is what "
        "ran, on all presentations of the audit; other seconds are computed from the tokens at the measured rate, and "
        "the tokens of one order from the mean length of a prompt (selection-bias paper, table 2). Where more than a "
        "tenth of a model's prompts were in the store, what the others took is not the cost of all, and left out.",
        short="Cost",
    )


def _notes(result: Leaderboard) -> list[str]:
    lines = [f"{one.model} has no rank: {one[result.score].note}." for one in result.models if one.rank is None]
    lines += [
        f"{name}: these share most of their questions, and are ranked as one set."
        for name in result.sets
        if name not in {audit.run.question_set for audit in result.audits}
    ]
    if result.left_out:
        lines.append(f"Not asked of all models, and left out of the ranking: {', '.join(result.left_out)}.")
    sets = result.sets_of_runs
    orders = grouped((sets[name], (orders_meant(run.scores).max(), name)) for name, run in result.runs.items())
    for of_set in orders.values():
        several = sorted(pair for pair in of_set if pair[0] > 1)
        if several and several[0][0] < several[-1][0]:
            (few, least), (many, most) = several[0], several[-1]
            depend = "PBM and the vote depend on the number of orders, which differs"
            lines.append(f"{depend}: {few} of {least}, {many} of {most}.")
    for audit in result.audits:
        reused, asked = audit.cost.reused, audit.cost.prompts + audit.cost.reused
        if reused and not audit.replies:
            lines.append(
                f"{audit.name} on {audit.run.question_set}: {reused:,} of {count(asked, 'prompt')} were in the store, "
                "and cost nothing."
            )
        precision = replace(audit.run, requests={}, incomplete="")  # these are those of the whole
        lines += [f"{audit.name}: {note}" for note in with_caveats(Page("", ""), precision).notes]
    return list(dict.fromkeys(lines))
