"""What an audit in two phases asked of what, and what a Latin square does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.metrics import Estimate
from unslant.reports import Figure, Panel
from unslant.reports.numbers import Cell, count, interval, percent

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult

BEYOND = 0.1
"""Share of PBM beyond places above which orders are said to matter beyond places."""
_KEYS = (
    *("expected_accuracy", "square_vote_accuracy", "vote_accuracy", "place_accuracy", "robust_accuracy"),
    *("consistency", "square_pbm", "pbm"),
)


def phases_panel(result: AuditResult) -> Panel:
    """The numbers over one square next to those over all orders."""
    if result.run.two_phase is None:
        return Panel("phases", "", "")
    beyond = result.beyond_places.cells() if result.beyond_places else {}
    values: dict[str, Cell] = {**result.metrics.means.cells(*_KEYS), **beyond}
    return Panel(
        "phases",
        "What was asked of what",
        " ".join(phase_lines(result)),
        short="Phases",
        figures=[Figure.of_metrics("phases", "Over a square and over all orders", {"value": values})],
    )


def phase_lines(result: AuditResult) -> list[str]:
    """Which questions were shown in which orders, what each number rests on, and whether a square is enough."""
    phases = result.run.two_phase
    if phases is None:
        return []
    asked, until = count(result.metrics.counts.rows, "prompt"), result.run.until
    square = "a random Latin square of its orders (every option in every place once)"
    shown, drawn = f"{square} and in the published order", "drawn at random by subject"
    means = "The mean over orders and shares of labels are over the squares of all questions."
    if until:
        shown, drawn = f"the published order, {until.squares:,} of them also in {square}", "drawn at random"
        means = "The mean over orders is of all questions, shares of labels are over the squares."
    lines = [
        f"Every question was shown in {shown}; {len(phases.full):,} of {count(len(result.scores), 'question')}, "
        f"{drawn}, in all orders, reversed, and with rearranged labels: {asked} instead of {phases.of_prompts:,} "
        "(--orders cyclic:24).",
        f"{means} PBM, consistency, the vote "
        "and right in every order are predicted from the squares and corrected by the questions shown in all orders. "
        f"Flips, label or position, corrections, AccStd and variance components are of these {len(phases.full):,} "
        "alone.",
    ]
    if result.beyond_places is not None:
        lines += beyond_line(result.beyond_places["beyond_places"])
    return lines


def beyond_line(share: Estimate) -> list[str]:
    """That orders matter beyond places, where that is certain."""
    if not share.low > BEYOND:
        return []
    return [
        f"Orders matter beyond places: {percent(share.value)} ({interval(share)}) of PBM comes from which options are "
        "next to each other or from the order as a whole. A square alone would miss it."
    ]
