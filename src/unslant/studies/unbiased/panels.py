"""The page of the unbiased evaluator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from unslant.experiment.page_parts import FEW, asked_about, cost_lines, spent, why_unread
from unslant.metrics import METRICS, verdict, verdicts
from unslant.presentations.interventions import NAMES
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, magnitude, number, percent, unsettled, with_interval
from unslant.reports.style import MOST_ROWS
from unslant.studies.unbiased.metrics import BoatMetrics, UnbiasedResult

SAME = 0.05
"""Scores no further apart than this are called the same."""
PARTS = {"both": "right in both", "lost": "lost", "gained": "gained", "neither": "right in neither"}
"""Parts of ``BoatMetrics.confusion``, and what they are called in charts."""


def page(result: UnbiasedResult) -> Page:
    """Score, single interventions, who loses what, subjects, and what was composed."""
    metrics = result.metrics
    return Page(
        about=asked_about(result.run, count(len(result.outcomes.ids), "question")),
        headline=_drop(result),
        lines=(_guessing(metrics), _worst(metrics), *unread(result)[:1], spent(result.run)),
        tiles=Tile.row(*((key, getattr(metrics, key)) for key in ("vanilla", "ours", "drop"))),
        panels=(
            _score(result),
            _alone(result),
            confusion_panel({result.model: result}, "Which answers do not survive?"),
            _subjects(result),
            _composed(result),
        ),
        notes=tuple(notes(result)),
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


def unread(*results: UnbiasedResult) -> list[str]:
    """Sentences on replies that are missing or are no answer, if more than :data:`FEW`; the largest share first."""
    shares = []
    for result in results:
        who = f"{result.model}: " * (len(results) > 1)
        for key, words in (("vanilla", "as published"), ("ours", "under interventions")):
            replies = result.metrics.replies[key]
            if (share := replies["unreadable"].value) > FEW:
                right = f"(right among readable replies: {number(replies['readable'], METRICS['readable'])})"
                why = why_unread(result.run, share)
                shares.append((share, f"{who}{percent(share)} of the replies {words} hold no answer {right}{why}."))
            if result.outcomes.replied and (share := replies["errors"].value) > FEW:
                shares.append((share, f"{who}{percent(share)} of the requests {words} got no reply."))
    return [words for _, words in sorted(shares, reverse=True)]


def replies_of(results: Sequence[UnbiasedResult]) -> list[str]:
    """The column of replies that are no answer, in tables of models that replied."""
    return ["unreadable"] * any(result.outcomes.replied for result in results)


def names_of(codes: str) -> str:
    """Names of interventions: ``DH+AR`` -> ``distractor hint + answer removal``."""
    return " + ".join(NAMES[code] for code in codes.split("+"))


def _drop(result: UnbiasedResult) -> str:
    """Whether the score survives other presentations."""
    metrics, name = result.metrics, result.run.name
    outcome = verdict(metrics.drop, bound=SAME)
    if not metrics.drop.defined:
        one, how = (metrics.vanilla, "as published") if metrics.vanilla.defined else (metrics.ours, "under changes")
        return f"{name} scores {with_interval(one, 2)} {how}" if one.defined else "Nothing could be measured"
    sentence = f"{name} scores {number(metrics.vanilla, 2)} as published"
    if outcome.differs:
        joined, way = ("but", "less") if outcome.kind == "above" else ("and", "more")
        return f"{sentence}, {joined} {magnitude(metrics.drop)} {way} when the questions are presented differently"
    both = f"{sentence} and {with_interval(metrics.ours, 2)} when the questions are presented differently"
    if outcome.kind == "equal":
        return f"{both}, the same to within {SAME}"
    return f"{both}; the two cannot be distinguished {unsettled(outcome)}"


def _guessing(metrics: BoatMetrics) -> str:
    """The score of guessing in both forms, and how much of a drop it explains."""
    before, after = metrics.vanilla_chance, metrics.ours_chance
    if not (before.defined and after.defined and metrics.vanilla.defined):
        return ""
    sentence = f"Guessing gives {number(before, 2)} as published and {number(after, 2)} under the changes"
    if verdict(metrics.drop).kind != "above" or not after.value < before.value <= metrics.vanilla.value < 1:
        return f"{sentence}."
    # vanilla = known + (1 - known) * before: (1 - known) is the share of questions answered by a guess.
    guessed = (1 - metrics.vanilla.value) / (1 - before.value)
    if (lost := guessed * (before.value - after.value)) >= metrics.drop.value:
        return f"{sentence}, so guessing alone could account for all of that."
    words = f"about {number(lost, 2)}".replace("about <", "less than ")
    return f"{sentence}, so guessing alone accounts for {words} of that."


def _worst(metrics: BoatMetrics) -> str:
    """The intervention that costs most by itself, of those shown to cost anything."""
    changes = [(codes, alone["change"]) for codes, alone in metrics.alone.items() if alone["change"].defined]
    outcomes = verdicts([change for _, change in changes])
    costly = [(codes, one) for (codes, _), one in zip(changes, outcomes, strict=True) if one.kind == "below"]
    if not costly:
        return ""
    codes, one = min(costly, key=lambda pair: pair[1].estimate.value)
    return f"By itself, {names_of(codes)} costs {magnitude(one.joint)}."


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
        replies = {names[key]: shares.cells() for key, shares in metrics.replies.items()}
        figures.append(Figure.of_metrics("unbiased-replies", "Replies", replies))
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
        "The same questions as published and under that intervention (unbiased-evaluator paper, figure 6).",
        {"alone.vanilla": "as published", "alone.accuracy": "under interventions"},
        title="Accuracy under one intervention alone",
    )
    columns = ["alone.accuracy", "alone.vanilla", "alone.change", *replies_of([result])]
    rows = [{"intervention": names_of(codes), **alone.cells()} for codes, alone in result.metrics.alone.items()]
    return Figure("unbiased-alone", "One intervention alone", ["intervention"], columns, rows, [plot]).panel(
        "Which change costs most?",
        "Each intervention alone, on the questions that can take it, and the same questions as published.",
        short="One change",
    )


def confusion_panel(results: Mapping[str, UnbiasedResult], title: str) -> Panel:
    """Which answers do not survive the interventions, by model (P4, figure 4)."""
    return confusion(results).panel(
        title,
        "Shares of all pairs of question and run: lost is right as published only, gained right under interventions "
        "only.",
        short="Answers",
    )


def confusion(results: Mapping[str, UnbiasedResult]) -> Figure:
    """Right or wrong as published against under interventions, one bar a model (P4, figure 4); none if undefined."""
    rows = [
        {"model": name, **result.metrics.confusion.cells()}
        for name, result in results.items()
        if result.metrics.confusion["both"].defined
    ]
    plot = Plot(
        partial(charts.stacked, axis="share of pairs"),
        "Shares of pairs of question and run; lost: right as published only; gained: right under interventions only "
        "(unbiased-evaluator paper, figure 4).",
        {f"confusion.{part}": name for part, name in PARTS.items()},
    )
    columns = [Column.of(f"confusion.{part}", name) for part, name in PARTS.items()]
    return Figure("unbiased-confusion", "Question by question", ["model"], columns, rows, [plot])


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
    return Figure("unbiased-subjects", "Subjects", ["subject"], columns, rows, [plot], folded=True).panel(
        "Where is the drop?", "Accuracy by subject, the largest drop first."
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
    return Figure("unbiased-composed", "Interventions", ["intervention"], columns, rows).panel(
        "What was composed?",
        "How often each intervention was applied, and how often a question could not take it.",
        short="Composed",
        notes=tuple(f"{count(n, 'question')} could not be asked at all: {why}." for why, n in cannot),
    )
