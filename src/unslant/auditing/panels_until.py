"""How far an audit with ``--until`` went, and why it stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.metrics import METRICS, Estimate
from unslant.reports import Chart, Column, Panel, Table, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number, percent
from unslant.responses.run import Step, UntilRun

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult


def until_headline(result: AuditResult) -> str:
    """Where the search ended; empty for an audit of everything from the start."""
    until = result.run.until
    if not until:
        return ""
    width = f"±{until.half_width:g}"
    if until.reached:
        return f"known to {width} after {_asked(until)}"
    left = until.path[-1].half_width
    return f"not known to {width}, but to ±{number(left)}, after {_asked(until)}" if left else f"asked {_asked(until)}"


def partial(result: AuditResult) -> bool:
    """Whether the search asked some of the orders only."""
    until = result.run.until
    return until is not None and until.ended != "all" and until.orders < until.of_orders


def until_panel(result: AuditResult) -> Panel:
    """The intervals after each step."""
    until = result.run.until
    if not until:
        return Panel("until", "", "")
    steps = [(step, {name: Estimate.from_dict(one) for name, one in step.numbers.items()}) for step in until.path]
    shown = list(steps[-1][1])
    marks = [
        Mark(_step(step), numbers[name], METRICS[name].label)
        for step, numbers in steps
        for name in ("accuracy", "expected_accuracy")
        if name in numbers
    ]
    chart = Chart(
        "until",
        "The score, the more is asked",
        "Each row is a step: more questions, or more orders of each. Bars are 95 % intervals that hold at all steps at "
        "once; where all questions are asked, the usual ones.",
        lambda style: charts.intervals(marks, style, rows="asked", fit=True),
    )
    columns = (Column("asked"), Column("half-width", 4), *map(Column.of, shown))
    rows: list[tuple[Cell, ...]] = [
        (_step(step), step.half_width, *(numbers.get(name) for name in shown)) for step, numbers in steps
    ]
    return Panel(
        "until",
        "How much had to be asked",
        f"Questions came in random order, each in random rounds of its orders, until every interval below was ±"
        f"{until.half_width:g} or narrower.",
        (chart,) if marks else (),
        (Table("until", "Intervals, step by step", columns, tuple(rows), folded=True),),
        short="Until",
    )


def until_lines(result: AuditResult) -> list[str]:
    """What was asked, what that saved, what is left open, and what the intervals mean."""
    until = result.run.until
    if not until:
        return []
    everything = until.ended == "all"
    line = f"Asked {_asked(until)}: {until.prompts:,} of {until.of_prompts:,} prompts"
    if until.tokens and not everything:
        line += f", {until.tokens:,} of about {until.of_tokens:,} tokens of the whole audit"
    saved = "" if everything else f" ({percent(1 - until.share)} saved)"
    lines = [f"{line}{saved}."]
    step = until.path[-1]
    if not until.reached and step.half_width:
        needed = until.questions * (step.half_width / until.half_width) ** 2
        why = "everything was asked" if everything else "more orders of these questions would not narrow it by much"
        lines.append(
            f"Left open is ±{number(step.half_width, 4)}, where ±{until.half_width:g} was asked for: {why}. About "
            f"{needed:,.0f} such questions would be needed."
        )
    if until.questions < until.of_questions:
        names = ", ".join(METRICS[name].name for name in step.numbers)
        lines.append(
            f"Intervals of {names} are anytime-valid: stopping when they are narrow does not spoil them. All other "
            "intervals are those of so many questions fixed beforehand."
        )
    if partial(result):
        lines.append(
            "PBM is estimated for all orders; robust accuracy, consistency and votes are over the orders asked. What "
            "rearranged labels show (FR of labels, label or position) was not asked."
        )
    return lines


def _asked(until: UntilRun) -> str:
    if until.ended == "all":
        return f"all {count(until.questions, 'question')} in all orders"
    every = until.questions == until.of_questions
    questions = f"all {until.questions:,}" if every else f"{until.questions:,} of {until.of_questions:,}"
    most = "up to " if len(until.whole) > 1 else ""
    return f"{questions} questions in {most}{until.orders:,} of {until.of_orders:,} orders"


def _step(step: Step) -> str:
    return f"{count(step.questions, 'question')}, {count(step.orders, 'order')}"
