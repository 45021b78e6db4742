"""The unbiased evaluator as it is shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from unslant.metrics import METRICS, Estimate
from unslant.presentations.interventions import NAMES
from unslant.reports import Column, Page, Panel, Table, Tile
from unslant.reports.numbers import Cell, count, number
from unslant.studies.provenance import asked_about, cost_lines, settings_rows, skipped_lines

if TYPE_CHECKING:
    from unslant.studies.unbiased.result import UnbiasedResult


def page(result: UnbiasedResult) -> Page:
    """Score, single interventions, who loses what, subjects, and what was composed."""
    metrics = result.metrics
    return Page(
        about=asked_about(result.meta, count(len(set(result.responses.table["question_id"].to_pylist())), "question")),
        headline=headline(result),
        tiles=Tile.row(("vanilla", metrics.vanilla), ("ours", metrics.ours), ("drop", metrics.drop)),
        panels=(_score(result), _alone(result), _confusion(result), _subjects(result), _composed(result)),
        notes=tuple(notes(result)),
        settings=settings_rows(result.meta),
        name=result.model,
    )


def headline(result: UnbiasedResult) -> str:
    """The outcome in one sentence."""
    metrics = result.metrics
    drop, how = metrics.drop, METRICS["vanilla"]
    said = (
        f"{result.model}: {number(metrics.vanilla, how)} as published, {number(metrics.ours, how)} under interventions"
    )
    if not drop.defined:
        return said
    if math.isnan(drop.low) or not drop.excludes(0.0):
        return f"{said}: no clear drop"
    word = "drop" if drop.value > 0 else "gain"
    least, most = sorted((abs(drop.low), abs(drop.high)))
    return f"{said}: a {word} of {number(abs(drop.value))} ({number(least)} to {number(most)})"


def notes(result: UnbiasedResult) -> list[str]:
    """What failed or was left out, and what it cost."""
    failed = result.metrics.failed
    told = f"{count(failed, 'presentation')} got no usable answer and {'is' if failed == 1 else 'are'}"
    return [
        *([f"{told} left out, not counted as wrong."] if failed else []),
        *skipped_lines(result.meta),
        *cost_lines(result.cost),
    ]


def names(codes: str) -> str:
    """``DH+AR`` in words."""
    return " + ".join(NAMES.get(code, code) for code in codes.split("+"))


def _score(result: UnbiasedResult) -> Panel:
    metrics, spread = result.metrics, result.metrics.spread
    keys = ("vanilla", "ours", "drop", "vanilla_chance", "ours_chance", "none_found", "none_invented", "items")
    values: dict[str, Cell] = {key: getattr(metrics, key) for key in keys}
    values |= {"run_mean": spread.mean, "run_std": spread.std}
    runs = ", ".join(number(value, METRICS["runs"]) for value in spread.runs)
    told = f"mean {number(spread.mean)}, standard deviation {number(spread.std)}"
    return Panel(
        "unbiased-score",
        "Does the score survive a change of presentation?",
        "Every question as published, and under randomly composed changes that do not change what is asked.",
        tables=(Table.of_metrics("unbiased-score", "Score", {"value": values}),),
        notes=(f"Runs: {runs}; {told}.",) if spread.runs else (),
        short="Score",
    )


def _alone(result: UnbiasedResult) -> Panel:
    keys = ("accuracy", "vanilla", "change")
    rows = tuple(
        (names(codes), *(getattr(alone, key) for key in keys)) for codes, alone in result.metrics.alone.items()
    )
    columns = (Column("intervention"), *(Column.of(f"alone.{key}") for key in keys))
    return Panel(
        "unbiased-alone",
        "Which change costs most?",
        "Each intervention alone, on the questions that can take it, beside the same questions as published.",
        tables=(Table("unbiased-alone", "One intervention alone", columns, rows),) if rows else (),
        short="Alone",
        first_screen=True,
    )


def _confusion(result: UnbiasedResult) -> Panel:
    confusion = result.metrics.confusion
    shares = {f"confusion.{key}": getattr(confusion, key) for key in ("both", "lost", "gained", "neither")}
    table = Table.of_metrics("unbiased-confusion", "Question by question", {"share": shares})
    return Panel(
        "unbiased-confusion",
        "Which answers do not survive?",
        "Shares of all pairs of question and run.",
        tables=(table,) if table.rows else (),
        short="Answers",
        first_screen=True,
    )


def _subjects(result: UnbiasedResult) -> Panel:
    rows: list[tuple[str, Estimate, Estimate, float]] = [
        (subject, vanilla, ours, vanilla.value - ours.value)
        for subject, (vanilla, ours) in result.metrics.by_subject.items()
    ]
    rows.sort(key=lambda row: -row[3] if row[3] == row[3] else math.inf)
    columns = (Column("subject"), *map(Column.of, ("vanilla", "ours", "drop")))
    return Panel(
        "unbiased-subjects",
        "Where is the drop?",
        "Accuracy by subject, the largest drop first.",
        tables=(Table("unbiased-subjects", "Subjects", columns, tuple(rows), folded=True),) if rows else (),
        short="Subjects",
    )


def _composed(result: UnbiasedResult) -> Panel:
    drawn = result.counts.get("drawn", {})
    total = sum(drawn.values())
    rows = []
    for code, name in NAMES.items():
        times = sum(n for combination, n in drawn.items() if code in combination.split("+"))
        reasons = result.counts.get("left_out", {}).get(code, {})
        if times or reasons:
            most = max(reasons, key=lambda reason: reasons[reason], default="")
            rows.append((f"{code} {name}", times, times / total if total else None, sum(reasons.values()), most))
    columns = tuple(map(Column, ("intervention", "applied", "share", "not possible", "most often because")))
    left_out = [
        f"{count(n, 'question')} could not be put at all: {reason}."
        for reason, n in result.counts.get("not_applicable", {}).items()
    ]
    return Panel(
        "unbiased-composed",
        "What was composed?",
        "How often each intervention was applied, and how often a question could not take it.",
        tables=(Table("unbiased-composed", "Interventions", columns, tuple(rows)),) if rows else (),
        notes=tuple(left_out),
        short="Composed",
    )
