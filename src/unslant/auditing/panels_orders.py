"""Panel of an audit: what fewer orders would have told, and cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from unslant.metrics import Estimate
from unslant.metrics.order_curve import SAME, OrderCurve, OrderPoint
from unslant.reports import Chart, Column, Panel, Style, Table, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import count

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult

DRAWN = "K, drawn freely"
"""Name of the sets that a bare number draws."""


def enough_line(curve: OrderCurve | None) -> list[str]:
    """The fewest orders that would have told the same, in one sentence."""
    if curve is None:
        return []
    every, found = curve.points[-1], curve.enough
    about = f"{count(curve.n_questions, 'question')} with {curve.n_options} options"
    if found is None:
        return [f"No smaller set would have told what {every.k} orders do within {SAME} ({about})."]
    costs = (point.ordinary_runs for point in (found, every))
    saved = " for {:.3g} ordinary runs instead of {:.3g}".format(*costs) if found.ordinary_runs >= 0 else ""
    within = max(found.apart, 0.0005)
    return [
        f"{count(found.k, 'order')} instead of {every.k} would have told the same within {within:.3f}{saved}: "
        f"--orders {found.orders} ({about})."
    ]


def order_curve_panel(result: AuditResult) -> Panel:
    """Distance from all orders and cost of every smaller set."""
    curve = result.order_curve
    if curve is None:
        return Panel("order-curve", "", "")
    costed = curve.points[-1].ordinary_runs >= 0
    tokens = result.cost.tokens_ordinary
    found = [
        *_chart(
            curve, "order-curve", "What fewer orders would have told",
            f"Distance from all {curve.n_orders} orders: the largest of those of the mean over orders, the vote and "
            "PBM.", "largest distance", lambda point: point.apart if point.k > 1 else float("nan"),
        )
    ]  # fmt: skip
    found += [
        *_chart(
            curve, "order-cost", "What fewer orders would have cost",
            "In ordinary runs: tokens over those of the published order alone, each prompt whole. Controls are "
            "included.", "ordinary runs", lambda point: point.ordinary_runs,
        )
    ] * costed  # fmt: skip
    columns = (
        Column("--orders"),
        Column("orders", 0),
        Column("mean", 4, "distance of the mean over orders"),
        Column("vote", 4, "distance of the voted accuracy"),
        Column("PBM", 4, "distance of PBM"),
        Column("other vote", 3, "share of questions whose voted answer differs"),
        *[Column("ordinary runs", 2), Column("tokens", 0)] * costed,
    )
    rows = tuple(
        (point.orders, point.k, point.accuracy, point.vote, point.pbm, point.votes_differ)
        + ((runs, round(runs * tokens) if runs == runs else None) if costed else ())
        for point in curve.points
        for runs in [point.ordinary_runs]
    )
    about = f"{count(curve.n_questions, 'question')} with {curve.n_options} options"
    return Panel(
        "order-curve",
        "Would fewer orders do?",
        "Smaller sets of orders against all that were asked, from the scores already there. A distance holds the "
        "difference and its standard error over questions and draws, so that luck does not count.",
        tuple(found),
        (Table("order-curve", f"Smaller sets of orders, {about}", columns, rows, folded=True),),
        tuple(enough_line(curve)),
        short="Fewer orders",
    )


def _chart(
    curve: OrderCurve, id: str, title: str, explanation: str, beside: str, value: Callable[[OrderPoint], float]
) -> list[Chart]:
    """The chart, if there is a value to draw."""
    marks = [
        Mark("", Estimate.bare(value(point), curve.n_questions, ""), series, at=point.k)
        for point in curve.points[:-1]
        for series in (_series(point.orders),)
        if value(point) == value(point)
    ]

    def draw(style: Style) -> Any:
        return charts.lines(marks, style, rows="orders", axis=beside, zero=True, whole=True)

    return [Chart(id, title, explanation, draw)] * bool(marks)


def _series(name: str) -> str:
    kind = name.partition(":")[0]
    return DRAWN if kind.isdecimal() else "given:K" if kind == "reverse" else f"{kind}:K"
