"""Where the variance of an audit comes from, and what follows for the next run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from unslant.metrics.decision_study import QUESTION
from unslant.metrics.order_curve import SAME, OrderCurve
from unslant.metrics.variance_components import NAMES, VarianceComponents
from unslant.reports import Column, Figure, Panel, Plot, charts
from unslant.reports.numbers import count, listed, number, percent, significant

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult


def variance_panel(found: VarianceComponents | None) -> Panel:
    """The variance components of an audit in several orders."""
    if found is None or not found.components:
        return Panel("variance", "", "")
    rows = [
        {"component": NAMES.get(name, name.replace("question_", "question × ")), **one.cells()}
        for name, one in found.components.items()
    ]
    columns = [Column.of(key) for key in ("components.variance", "components.of_answer", "components.of_score")]
    plot = Plot(
        partial(charts.intervals, fit=True),
        "Variance of an answer, right (1) or wrong (0), with 95 % intervals over questions. Position and label are "
        "those of the right option.",
        ["components.variance"],
        "What the variance of an answer consists of",
    )
    lost = f"No page separates {listed([NAMES.get(one, one) for one in found.inseparable])} from the others."
    return Panel(
        "variance",
        "Where the variance comes from",
        "Each answer differs by question, by where the right option is and what its label is, by order, and by repeat. "
        "The mean over orders averages all but the questions; more questions reduce what is left.",
        notes=(lost,) if found.inseparable else (),
        short="Variance",
        figures=[Figure("variance", "Variance components", ["component"], columns, rows, [plot], folded=True)],
    )


def advice(result: AuditResult) -> list[str]:
    """What the run cannot detect, what limits it, and the orders that would have been enough, a sentence each."""
    least, unpaired = result.metrics.minimum_difference, result.metrics.minimum_difference_unpaired
    lines = []
    if least == least:
        lines.append(
            f"Differences in accuracy under {number(least, 2)} (to a model on the same questions) or "
            f"{number(unpaired, 2)} (on other questions) cannot be detected (power 80 %)."
        )
    if result.variance_components:
        lines += limits(result.variance_components)
    return lines + enough(result.order_curve)


def limits(found: VarianceComponents) -> list[str]:
    """Which share of the score's uncertainty only more questions reduce."""
    own = found.components.get(QUESTION)
    share = own["of_score"].value if own else float("nan")
    if share != share:
        return []
    return [
        f"{percent(share)} of the score's uncertainty is the choice of questions, the rest that of orders; `unslant "
        "plan` says what more of either would give."
    ]


def enough(curve: OrderCurve | None) -> list[str]:
    """The fewest orders that give the same result."""
    if curve is None:
        return []
    every, found = curve.points[-1], curve.enough
    group = f"{count(curve.n_questions, 'question')} with {curve.n_options} options"
    if found is None:
        return [f"No cheaper set of orders matches all {every.k} to within {SAME} ({group})."]
    few, all_orders = significant(found.ordinary_runs), significant(curve.ordinary_runs)
    cost = f", at {few} instead of {all_orders} times the cost of an ordinary run"
    return [
        f"{count(found.k, 'order')} instead of {every.k} would have given the same to within "
        f"{max(found.apart, 0.0005):.3f}{cost if found.ordinary_runs >= 0 else ''}: --orders {found.orders} ({group})."
    ]
