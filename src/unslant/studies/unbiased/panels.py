"""The unbiased evaluator in words and panels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from unslant.metrics.estimate import Estimate
from unslant.presentations.interventions import NAMES
from unslant.reports.panels import Cell, Column, Panel, Table
from unslant.reports.terminal import number

if TYPE_CHECKING:
    from unslant.studies.unbiased.comparison import UnbiasedComparison
    from unslant.studies.unbiased.result import UnbiasedResult


def headline(result: UnbiasedResult) -> str:
    """The outcome in one sentence."""
    metrics = result.metrics
    drop = metrics.drop
    said = f"{result.model}: {number(metrics.vanilla, 2)} as published, {number(metrics.ours, 2)} under interventions"
    if not drop.defined:
        return said
    if math.isnan(drop.low) or not drop.excludes(0.0):
        return f"{said}: no clear drop"
    word = "drop" if drop.value > 0 else "gain"
    return f"{said}: a {word} of {abs(drop.value):.2f} ({abs(drop.low):.2f} to {abs(drop.high):.2f})"


def panels(result: UnbiasedResult) -> list[Panel]:
    """Score, single interventions, who loses what, subjects, and what was composed."""
    shown = [_score(result), _alone(result), _confusion(result), _composed(result)]
    if result.metrics.by_subject:
        shown.insert(3, _subjects(result))
    return [panel for panel in shown if not panel.empty]


def names(codes: str) -> str:
    """``DH+AR`` in words."""
    return " + ".join(NAMES.get(code, code) for code in codes.split("+"))


def _score(result: UnbiasedResult) -> Panel:
    metrics, spread = result.metrics, result.metrics.spread
    rows: list[tuple[Cell, ...]] = [
        ("as published (vanilla)", metrics.vanilla, "accuracy"),
        ("under interventions (ours)", metrics.ours, "mean over runs of each question"),
        ("drop", metrics.drop, "vanilla minus ours, question by question"),
        ("chance, as published", metrics.vanilla_chance, "answering at random"),
        ("chance, under interventions", metrics.ours_chance, "answering at random"),
        ("none found", metrics.none_found, "where no option is right, that is answered"),
        ("none invented", metrics.none_invented, "where an option is right, none is answered"),
        ("true/false items", metrics.items, "each item by itself"),
    ]
    kept = tuple(row for row in rows if isinstance(row[1], Estimate) and row[1].defined)
    runs = ", ".join(f"{value:.3f}" for value in spread.runs)
    notes = [f"Runs: {runs}; mean {spread.mean:.3f}, standard deviation {spread.std:.3f}."] if spread.runs else []
    if metrics.failed:
        notes.append(f"{metrics.failed:,} presentations got no usable answer; they are left out, not counted as wrong.")
    return Panel(
        "unbiased-score",
        "Does the score survive a change of presentation?",
        "Every question as published, and under randomly composed changes that do not change what is asked.",
        tables=(Table("unbiased-score", "Score", (Column(""), Column("value"), Column("meaning")), kept),),
        notes=tuple(notes),
    )


def _alone(result: UnbiasedResult) -> Panel:
    rows = tuple(
        (names(codes), alone.accuracy, alone.vanilla.value, alone.change.value, alone.change.low, alone.change.high)
        for codes, alone in result.metrics.alone.items()
    )
    columns = ("intervention", "accuracy", "as published", "change", "from", "to")
    return Panel(
        "unbiased-alone",
        "Which change costs most?",
        "Each intervention alone, on the questions that can take it, beside the same questions as published.",
        tables=(Table("unbiased-alone", "One intervention alone", tuple(map(Column, columns)), rows),) if rows else (),
    )


def _confusion(result: UnbiasedResult) -> Panel:
    confusion = result.metrics.confusion
    rows = (
        ("right as published, right under interventions", confusion.both),
        ("right as published, wrong under interventions", confusion.lost),
        ("wrong as published, right under interventions", confusion.gained),
        ("wrong as published, wrong under interventions", confusion.neither),
    )
    table = Table("unbiased-confusion", "Question by question", (Column(""), Column("share")), rows)
    return Panel(
        "unbiased-confusion",
        "Which answers do not survive?",
        "Shares of all pairs of question and run.",
        tables=(table,) if confusion.both.defined else (),
    )


def _subjects(result: UnbiasedResult) -> Panel:
    rows = [
        (subject, vanilla.n, vanilla.value, ours.value, vanilla.value - ours.value)
        for subject, (vanilla, ours) in result.metrics.by_subject.items()
    ]
    rows.sort(key=lambda row: -row[4] if row[4] == row[4] else math.inf)
    columns = tuple(map(Column, ("subject", "questions", "as published", "ours", "drop")))
    return Panel(
        "unbiased-subjects",
        "Where is the drop?",
        "Accuracy by subject, the largest drop first.",
        tables=(Table("unbiased-subjects", "Subjects", columns, tuple(rows), folded=True),),
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
    notes = [
        f"{n:,} questions could not be put at all: {reason}."
        for reason, n in result.counts.get("not_applicable", {}).items()
    ]
    return Panel(
        "unbiased-composed",
        "What was composed?",
        "How often each intervention was applied, and how often a question could not take it.",
        tables=(Table("unbiased-composed", "Interventions", columns, tuple(rows)),) if rows else (),
        notes=tuple(notes),
    )


def comparison_panels(comparison: UnbiasedComparison) -> list[Panel]:
    """Models side by side, and the agreement of both scores with another ranking."""
    rows: list[tuple[Cell, ...]] = []
    for result in comparison.results:
        metrics, size = result.metrics, result.meta.get("parameters")
        rows.append(
            (
                result.model,
                size if isinstance(size, int) else None,
                metrics.vanilla.value,
                metrics.ours,
                metrics.spread.std,
                metrics.drop.value,
            )
        )
    columns = tuple(map(Column, ("model", "weights", "as published", "ours", "std over runs", "drop")))
    shown = [
        Panel(
            "unbiased-models",
            "Which models keep their score?",
            "Accuracy as published and under interventions, the best under interventions first.",
            tables=(Table("unbiased-models", "Models", columns, tuple(rows)),),
        )
    ]
    found = {"as published": comparison.vanilla_agreement, "under interventions": comparison.ours_agreement}
    agreed = tuple(
        (name, a.pearson.value, a.kendall.value, a.kendall_p, a.kendall.n) for name, a in found.items() if a is not None
    )
    if agreed:
        names = tuple(map(Column, ("score", "Pearson", "Kendall", "p (Kendall)", "models")))
        shown.append(
            Panel(
                "unbiased-agreement",
                "Which score agrees with the other ranking?",
                "Correlation of the models' scores with an external one (P4, table 4).",
                tables=(Table("unbiased-agreement", "Agreement", names, agreed),),
            )
        )
    return shown
