"""The page of the unbiased evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from unslant.experiment.provenance import FEW, asked_about, cost_lines, settings_rows, worst_first
from unslant.metrics import METRICS, Numbers
from unslant.presentations.interventions import NAMES
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import MOST_ROWS, Mark, first_rows
from unslant.reports.numbers import Cell, count, number, percent

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
        lead=more,
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
    told = []
    for result in results:
        who = f"{result.model}: " * (len(results) > 1)
        for key, words in (("vanilla", "as published"), ("ours", "under interventions")):
            replies = result.metrics.replies[key]
            if (share := replies.unreadable.value) > FEW:
                right = f"(right among readable replies: {number(replies.readable, METRICS['readable'])})"
                told.append((share, f"{who}{percent(share)} of the replies {words} hold no answer {right}"))
            if result.outcomes.replied and (share := replies.errors.value) > FEW:
                told.append((share, f"{who}{percent(share)} of the requests {words} got no reply"))
    return worst_first(told)


def unreadable(results: Sequence[UnbiasedResult]) -> tuple[tuple[Column, ...], list[tuple[Cell, ...]]]:
    """A column for tables of models, with its cells: the share of replies under interventions that are no answer."""
    if not any(result.outcomes.replied for result in results):
        return (), [()] * len(results)
    return (Column.of("unreadable"),), [(result.metrics.replies["ours"].unreadable,) for result in results]


def associations(id: str, title: str, found: Mapping[tuple[str, ...], Numbers | None], *heads: str) -> Table:
    """A table of correlations: the cells under ``heads`` -> correlation; those that are None are left out."""
    keys = ("kendall", "kendall_p", "pearson", "pearson_p")
    rows = tuple((*names, *one.cells(*keys).values()) for names, one in found.items() if one is not None)
    return Table(id, title, (*map(Column, heads), *map(Column.of, keys)), rows, names=len(heads))


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
    keys = ("vanilla", "ours", "drop", "vanilla_chance", "ours_chance", "none_found", "none_invented", "items")
    values: dict[str, Cell] = {key: getattr(metrics, key) for key in (*keys, "run_mean", "run_std")}
    runs = ", ".join(number(value, METRICS["runs"]) for value in metrics.runs)
    marks = [
        Mark(METRICS[key].label, getattr(metrics, key), expected=getattr(metrics, f"{key}_chance").value)
        for key in ("vanilla", "ours")
    ]
    told = f"mean {number(metrics.run_mean)}, standard deviation {number(metrics.run_std)}"
    tables = [Table.of_metrics("unbiased-score", "Score", {"value": values})]
    if result.outcomes.replied:
        names = {"vanilla": "as published", "ours": "under interventions"}
        came: dict[str, dict[str, Cell]] = {names[key]: {**vars(replies)} for key, replies in metrics.replies.items()}
        tables.append(Table.of_metrics("unbiased-replies", "Replies", came))
    return Panel(
        "unbiased-score",
        "Does the score survive a change of presentation?",
        "Every question as published, and under randomly composed changes that do not change what is asked.",
        charts=(
            Chart(
                "unbiased-score",
                "As published and under interventions",
                "Points with 95 % intervals; ticks: chance.",
                lambda style: charts.intervals(marks, style, rows="presentation", step=40, expected="chance"),
            ),
        ),
        tables=tuple(tables),
        notes=(f"Runs: {runs}; {told}.",) if runs else (),
        short="Score",
    )


def _alone(result: UnbiasedResult) -> Panel:
    keys = ["accuracy", "vanilla", "change"]
    columns = [Column("intervention"), *(Column.of(f"alone.{key}") for key in keys)]
    if result.outcomes.replied:
        keys.append("unreadable")
        columns.append(Column.of("unreadable"))
    rows = tuple(
        (" + ".join(NAMES[code] for code in codes.split("+")), *(getattr(alone, key) for key in keys))
        for codes, alone in result.metrics.alone.items()
    )
    marks = [
        Mark(str(row[0]), found, name)
        for row, alone in zip(rows, result.metrics.alone.values(), strict=True)
        for found, name in ((alone.vanilla, "as published"), (alone.accuracy, "under interventions"))
    ]
    chart = Chart(
        "unbiased-alone",
        "Accuracy under one intervention alone",
        "The same questions as published and under that intervention (P4, figure 6).",
        lambda style: charts.intervals(marks, style, rows="intervention"),
    )
    return Panel(
        "unbiased-alone",
        "Which change costs most?",
        "Each intervention alone, on the questions that can take it, beside the same questions as published.",
        charts=(chart,) if rows else (),
        tables=(Table("unbiased-alone", "One intervention alone", tuple(columns), rows),) if rows else (),
        short="One change",
        first_screen=True,
    )


def _confusion(result: UnbiasedResult) -> Panel:
    shares = {f"confusion.{key}": share for key, share in vars(result.metrics.confusion).items()}
    table = Table.of_metrics("unbiased-confusion", "Question by question", {"share": shares})
    return Panel(
        "unbiased-confusion",
        "Which answers do not survive?",
        "Shares of all pairs of question and run.",
        charts=confusion_charts([result]) if table.rows else (),
        tables=(table,) if table.rows else (),
        short="Answers",
        first_screen=True,
    )


def confusion_charts(results: Sequence[UnbiasedResult]) -> tuple[Chart, ...]:
    """Right or wrong as published against under interventions, one bar a model (P4, figure 4); none if undefined."""
    marks = [
        Mark(result.model, share, series=name)
        for result in results
        for key, name in PARTS.items()
        if (share := getattr(result.metrics.confusion, key)).defined
    ]
    chart = Chart(
        "unbiased-confusion",
        "Question by question",
        "Shares of pairs of question and run; lost: right as published only; gained: right under interventions only "
        "(P4, figure 4).",
        lambda style: charts.stacked(marks, style, rows="model", axis="share of pairs"),
    )
    return (chart,) if marks else ()


def _subjects(result: UnbiasedResult) -> Panel:
    rows: list[tuple[str, Cell, Cell, float]] = [
        (subject, found["vanilla"], found["ours"], found["vanilla"].value - found["ours"].value)
        for subject, found in result.metrics.by_subject.items()
    ]
    rows.sort(key=lambda row: math.inf if math.isnan(row[3]) else -row[3])
    columns = (Column("subject"), *map(Column.of, ("vanilla", "ours", "drop")))
    drawn = [
        (name, [Mark("", found[key], METRICS[key].label) for key in ("vanilla", "ours")])
        for name, found in ((row[0], result.metrics.by_subject[row[0]]) for row in rows[:MOST_ROWS])
    ]
    chart = Chart(
        "unbiased-subjects",
        f"Accuracy by subject{first_rows(len(rows))}",
        "As published and under interventions, the largest drop first.",
        lambda style: charts.dumbbells(drawn, style, rows="subject"),
        of="questions a subject",
    )
    return Panel(
        "unbiased-subjects",
        "Where is the drop?",
        "Accuracy by subject, the largest drop first.",
        charts=(chart,) if rows else (),
        tables=(Table("unbiased-subjects", "Subjects", columns, tuple(rows), folded=True),) if rows else (),
        short="Subjects",
    )


def _composed(result: UnbiasedResult) -> Panel:
    counts = result.run.counts
    drawn, left_out, impossible = counts.drawn, counts.left_out, counts.not_applicable
    total = sum(drawn.values())
    rows = []
    for code, name in NAMES.items():
        times = sum(n for combination, n in drawn.items() if code in combination.split("+"))
        reasons = left_out.get(code, {})
        if times or reasons:
            most = max(reasons, key=lambda reason: reasons[reason], default="")
            rows.append((f"{code} {name}", times, times / total if total else None, sum(reasons.values()), most))
    columns = tuple(map(Column, ("intervention", "applied", "share", "not possible", "most often because")))
    return Panel(
        "unbiased-composed",
        "What was composed?",
        "How often each intervention was applied, and how often a question could not take it.",
        tables=(Table("unbiased-composed", "Interventions", columns, tuple(rows)),) if rows else (),
        notes=tuple(f"{count(n, 'question')} could not be asked at all: {why}." for why, n in impossible.items()),
        short="Composed",
    )
