"""The page of the unbiased evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from unslant.experiment.provenance import FEW, asked_about, cost_lines, settings_rows, worst_first
from unslant.metrics import METRICS
from unslant.presentations.interventions import NAMES
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.charts import MOST_ROWS
from unslant.reports.numbers import count, number, percent

if TYPE_CHECKING:
    from unslant.studies.unbiased.result import UnbiasedResult

PARTS = {"both": "right in both", "lost": "lost", "gained": "gained", "neither": "right in neither"}
"""Fields of :class:`~unslant.studies.unbiased.metrics.Confusion`, and what they are called in charts."""


def page(result: UnbiasedResult) -> Page:
    """Score, single interventions, who loses what, subjects, and what was composed."""
    metrics = result.metrics
    words, more = unread(result)
    return Page(
        about=asked_about(result.run, count(len(result.outcomes.ids), "question")),
        headline=_drop(result) + words,
        lines=(more,),
        tiles=Tile.row(*((key, getattr(metrics, key)) for key in ("vanilla", "ours", "drop", "ours_chance"))),
        panels=(_score(result), _alone(result), _confusion(result), _subjects(result), _composed(result)),
        notes=tuple(notes(result)),
        settings=settings_rows(result.run),
        name=result.model,
    )


def notes(result: UnbiasedResult) -> list[str]:
    """What failed or was left out, and what it cost."""
    failed, no_answer = result.metrics.failed, result.metrics.no_answer
    got = "reply" if result.outcomes.replied else "usable score"
    unread = count(no_answer, "reply holds no answer and counts", "replies hold no answer and count")
    missing = count(failed, f"presentation got no {got} and is", f"presentations got no {got} and are")
    return [
        *([f"{unread} as not right."] if no_answer else []),
        *([f"{missing} left out."] if failed else []),
        *cost_lines(result.cost),
    ]


def unread(*results: UnbiasedResult) -> tuple[str, str]:
    """Words on replies that are missing or are no answer, for headline and lead; empty where they are :data:`FEW`."""
    shares = []
    for result in results:
        who = f"{result.model}: " * (len(results) > 1)
        for key, words in (("vanilla", "as published"), ("ours", "under interventions")):
            replies = result.metrics.replies[key]
            if (share := replies.unreadable.value) > FEW:
                right = f"(right among readable replies: {number(replies.readable, METRICS['readable'])})"
                shares.append((share, f"{who}{percent(share)} of the replies {words} hold no answer {right}"))
            if result.outcomes.replied and (share := replies.errors.value) > FEW:
                shares.append((share, f"{who}{percent(share)} of the requests {words} got no reply"))
    return worst_first(shares)


def replies_of(results: Sequence[UnbiasedResult]) -> list[str]:
    """The column of replies that are no answer, in tables of models that replied."""
    return ["unreadable"] * any(result.outcomes.replied for result in results)


def names_of(codes: str) -> str:
    """Names of interventions: ``DH+AR`` -> ``distractor hint + answer removal``."""
    return " + ".join(NAMES[code] for code in codes.split("+"))


def _drop(result: UnbiasedResult) -> str:
    drop, how = result.metrics.drop, METRICS["vanilla"]
    vanilla, ours = (number(getattr(result.metrics, key), how) for key in ("vanilla", "ours"))
    chance = f" (chance {number(result.metrics.ours_chance)})" * result.metrics.ours_chance.defined
    said = f"{result.model}: {vanilla} as published, {ours} under interventions{chance}"
    if not drop.defined:
        return said
    if not drop.excludes(0.0):
        return f"{said}: no clear drop"
    word = "drop" if drop.value > 0 else "gain"
    least, most = sorted((abs(drop.low), abs(drop.high)))
    return f"{said}: a {word} of {number(abs(drop.value))} ({number(least)} to {number(most)})"


def _score(result: UnbiasedResult) -> Panel:
    metrics = result.metrics
    runs = ", ".join(number(value, METRICS["runs"]) for value in metrics.runs)
    spread = f"mean {number(metrics.run_mean)}, standard deviation {number(metrics.run_std)}"
    values = vars(metrics)
    chances = ("vanilla_chance", "ours_chance")
    keys = ("vanilla", "ours", "drop", *chances, "none_found", "none_invented", "items", "run_mean", "run_std")
    plot = Plot(
        partial(charts.intervals, step=40, expected="chance"),
        "Points with 95 % intervals; ticks: chance.",
        ["value"],
        title="As published and under interventions",
        expected=lambda row, _: values[f"{row['metric.key']}_chance"],
        where=lambda row: row["metric.key"] in ("vanilla", "ours"),
        rows="presentation",
    )
    figures = [Figure.of_metrics("unbiased-score", "Score", {"value": {key: values[key] for key in keys}}, [plot])]
    if result.outcomes.replied:
        names = {"vanilla": "as published", "ours": "under interventions"}
        came = {names[key]: vars(replies) for key, replies in metrics.replies.items()}
        figures.append(Figure.of_metrics("unbiased-replies", "Replies", came))
    return Panel(
        "unbiased-score",
        "Does the score survive a change of presentation?",
        "Every question as published, and under randomly composed changes that do not change what is asked.",
        figures=figures,
        notes=(f"Runs: {runs}; {spread}.",) if runs else (),
        short="Score",
    )


def _alone(result: UnbiasedResult) -> Panel:
    plot = Plot(
        charts.intervals,
        "The same questions as published and under that intervention (P4, figure 6).",
        {"alone.vanilla": "as published", "alone.accuracy": "under interventions"},
        title="Accuracy under one intervention alone",
    )
    columns = ["alone.accuracy", "alone.vanilla", "alone.change", *replies_of([result])]
    rows = [{"intervention": names_of(codes), **vars(alone)} for codes, alone in result.metrics.alone.items()]
    return Panel(
        "unbiased-alone",
        "Which change costs most?",
        "Each intervention alone, on the questions that can take it, and the same questions as published.",
        figures=(Figure("unbiased-alone", "One intervention alone", ["intervention"], columns, rows, [plot]),),
        short="One change",
    )


def _confusion(result: UnbiasedResult) -> Panel:
    return Panel(
        "unbiased-confusion",
        "Which answers do not survive?",
        "Shares of all pairs of question and run: lost is right as published only, gained right under interventions "
        "only.",
        figures=confusion({result.model: result}),
        short="Answers",
    )


def confusion(results: Mapping[str, UnbiasedResult]) -> tuple[Figure, ...]:
    """Right or wrong as published against under interventions, one bar a model (P4, figure 4); none if undefined."""
    rows = [
        {"model": name, **vars(result.metrics.confusion)}
        for name, result in results.items()
        if result.metrics.confusion.both.defined
    ]
    plot = Plot(
        partial(charts.stacked, axis="share of pairs"),
        "Shares of pairs of question and run; lost: right as published only; gained: right under interventions only "
        "(P4, figure 4).",
        {f"confusion.{part}": name for part, name in PARTS.items()},
    )
    columns = [Column.of(f"confusion.{part}", name) for part, name in PARTS.items()]
    return (Figure("unbiased-confusion", "Question by question", ["model"], columns, rows, [plot]),)


def _subjects(result: UnbiasedResult) -> Panel:
    rows: list[dict[str, Any]] = [
        {"subject": subject, **scores, "drop": scores["vanilla"].value - scores["ours"].value}
        for subject, scores in result.metrics.by_subject.items()
    ]
    rows.sort(key=lambda row: math.inf if math.isnan(row["drop"]) else -row["drop"])
    plot = Plot(
        charts.dumbbells,
        "As published and under interventions, the largest drop first.",
        ["vanilla", "ours"],
        title="Accuracy by subject",
        most=MOST_ROWS,
        of="questions a subject",
    )
    columns = ["vanilla", "ours", "drop"]
    return Panel(
        "unbiased-subjects",
        "Where is the drop?",
        "Accuracy by subject, the largest drop first.",
        figures=(Figure("unbiased-subjects", "Subjects", ["subject"], columns, rows, [plot], folded=True),),
        short="Subjects",
    )


def _composed(result: UnbiasedResult) -> Panel:
    counts = result.run.counts
    total = sum(counts.drawn.values())
    rows = []
    for code, name in NAMES.items():
        times = sum(n for combination, n in counts.drawn.items() if code in combination.split("+"))
        reasons = counts.left_out.get(code, {})
        if times or reasons:
            share = times / total if total else None
            most = max(reasons, key=lambda reason: reasons[reason], default="")
            left_out = {"not possible": sum(reasons.values()), "most often because": most}
            rows.append({"intervention": f"{code} {name}", "applied": times, "share": share, **left_out})
    columns = [*map(Column, ("applied", "share", "not possible", "most often because"))]
    cannot = counts.not_applicable.items()
    return Panel(
        "unbiased-composed",
        "What was composed?",
        "How often each intervention was applied, and how often a question could not take it.",
        figures=(Figure("unbiased-composed", "Interventions", ["intervention"], columns, rows),),
        notes=tuple(f"{count(n, 'question')} could not be asked at all: {why}." for why, n in cannot),
        short="Composed",
    )
