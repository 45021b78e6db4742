"""Panels of the base-rate study: the hypotheses, then the tables behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unslant.experiment.provenance import asked_about, cost_lines, settings_rows
from unslant.experiment.shortcut_panel import shortcut_panel
from unslant.metrics import METRICS, Estimate
from unslant.metrics.label_scores import TIE_RULES
from unslant.reports import Column, Figure, Page, Panel, Tile
from unslant.reports.numbers import Cell, count, listed, number, with_interval
from unslant.studies.base_rate.charts import figure_1
from unslant.studies.base_rate.findings import Findings, Hypothesis, name

if TYPE_CHECKING:
    from unslant.studies.base_rate.result import BaseRateResult

TOLERANCE = 0.005
"""Allows for rounding to three digits and a question or two of difference."""


def page(result: BaseRateResult) -> Page:
    """The hypotheses, then each elicitation, then the shortcuts."""
    first = next(iter(result.found.values()))
    within = first.by_subject.median if first.by_subject else Estimate.undefined("no control responses")
    nothing = Estimate.undefined("not asked")
    return Page(
        about=asked_about(result.run, count(len(first.given), "question")),
        headline=f"{result.run.model or 'model'}: {_scores(first)}; {headline(result.hypotheses)}",
        lines=(result.hypotheses[0].words,),
        tiles=Tile.row(
            ("accuracy", first.cells[0].accuracy["first"]),
            ("nvr.score", first.nvr["score"] if first.nvr else nothing),
            ("base_rates.distance", first.rates["distance"] if first.rates else nothing),
            ("accuracy_by_gold_label.gap", first.gold.gap),
            ("median", within),
        ),
        panels=(
            _hypotheses_panel(result.hypotheses),
            *(_elicitation_panel(found) for found in result.found.values()),
            _published_panel(result),
            shortcut_panel(result.shortcuts, "base-rate-shortcuts"),
        ),
        notes=tuple(cost_lines(result.cost)),
        settings=settings_rows(result.run),
        name=result.run.model,
    )


def headline(hypotheses: Sequence[Hypothesis]) -> str:
    """Which of the paper's hypotheses hold."""
    verdicts: dict[str, list[str]] = {}
    for hypothesis in hypotheses:
        verdicts.setdefault(hypothesis.verdict, []).append(hypothesis.name.replace(", own", " by own"))
    words = {"holds": ("holds", "hold"), "partly": ("partly holds", "partly hold")}
    words["does not hold"] = ("does not hold", "do not hold")
    parts = [
        f"{listed(names)} {words.get(verdict, (verdict, verdict))[len(names) > 1]}"
        for verdict, names in verdicts.items()
    ]
    return "; ".join(parts)


def _scores(first: Findings) -> str:
    given = first.given
    guess = METRICS["nvr.guess"]
    chance = number(float((given.right.sum(axis=1) / given.n_options).mean()), guess)
    score = f"accuracy {with_interval(first.cells[0].accuracy['first'])}"
    never = (
        f", {number(first.nvr['score'])} where its best label is never right"
        if first.nvr and first.nvr["score"].defined
        else ""
    )
    return f"{score}{never} (chance {chance})"


def _hypotheses_panel(hypotheses: Sequence[Hypothesis]) -> Panel:
    rows = [{"hypothesis": one.name, "claim": one.claim, "verdict": one.verdict, "outcome": one.words}
            for one in hypotheses]  # fmt: skip
    verdicts = [Column("claim"), Column("verdict")]
    return Panel(
        "base-rate-hypotheses",
        "Labels the model prefers before reading anything",
        "The base rate of a label is its probability after a question without content.",
        figures=(
            Figure("base-rate-hypotheses-table", "Hypotheses", ["hypothesis"], verdicts, rows),
            Figure("base-rate-words", "In words", ["hypothesis"], [Column("outcome")], rows),
        ),
        short="Hypotheses",
    )


def _elicitation_panel(found: Findings) -> Panel:
    doubted = [cell for cell in found.cells if cell.doubt]
    *rates, gold = figure_1(found)
    return Panel(
        f"base-rate-{found.elicitation}",
        f"Base rates and accuracy by gold label, {found.elicitation}",
        "In Nvr-X the right option is never under label X; lower accuracy there means that X is chosen when unsure.",
        figures=(_accuracy(found), _effects(found), *rates, _variance(found), gold),
        notes=tuple(f"Unreliable: {found.elicitation}, {name(c.presentation)} ({c.doubt})." for c in doubted),
        short=found.elicitation.capitalize(),
    )


def _accuracy(found: Findings) -> Figure:
    rows: list[dict[str, Cell]] = [
        {
            "questions": name(cell.presentation),
            **{f"accuracy.{rule}": cell.accuracy[rule] for rule in TIE_RULES},
            "by_subject.first": cell.by_subject["first"],
            "tie_rate": cell.tie_rate,
            "all_tied": cell.all_tied,
            "trusted": "no" if cell.doubt else "yes",
            "failed": cell.n_failed,
        }
        for cell in found.cells
    ]
    if found.nvr is not None:
        trusted = "no" if any(cell.doubt for cell in found.cells[1:]) else "yes"
        scores = {"accuracy.first": found.nvr["score"], "by_subject.first": found.nvr_by_subject}
        rows.append({"questions": "Nvr-X score", **scores, "trusted": trusted, "failed": found.nvr.left_out})
    return Figure(
        f"base-rate-accuracy-{found.elicitation}",
        f"Accuracy, {found.elicitation}",
        ["questions"],
        ["accuracy.first", "accuracy.split", "accuracy.last", "by_subject.first", "tie_rate", "all_tied",
         Column("trusted"), Column("failed")],
        rows,
        explanation="By tie-breaking rule; the Nvr-X score is the lowest of the variants.",
    )  # fmt: skip


def _effects(found: Findings) -> Figure:
    pooled, own = found.correlation, "pooled_correlation_own_base_rates"
    values: dict[str, Cell] = {}
    if pooled is not None:
        values = {f"{own}.r": pooled.r, f"{own}.p": pooled.p, "assignment_p": pooled.assignment_p}
    if found.by_subject is not None:
        values["median"] = found.by_subject.median
    if found.nvr is not None:
        values |= found.nvr.numbers.cells("drop", "guess", "never")
    values["accuracy_by_gold_label.gap"] = found.gold.gap
    title = f"Effect of labels on the score, {found.elicitation}"
    return Figure.of_metrics(f"base-rate-effect-{found.elicitation}", title, {"value": values})


def _variance(found: Findings) -> Figure:
    return Figure(
        f"base-rate-variance-{found.elicitation}",
        f"Label and position effects, {found.elicitation}",
        ["options"],
        ["base_rates.label_part", "base_rates.position_part", "base_rates.distance", "base_rates.position_distance",
         Column.of("base_rates.label_p", "p (label)"), Column.of("base_rates.position_p", "p (position)"),
         Column("label orders", key="n_orders")],
        [{**rates.numbers.cells(), "n_orders": rates.n_orders, "options": f"{n} options"}
         for n, rates in found.base_rates.items()],
        explanation="Share of the variance that each explains, and share of guesses that each puts out of balance.",
    )  # fmt: skip


def _published_panel(result: BaseRateResult) -> Panel:
    rows = [
        {
            **vars(cell),
            "questions": name(cell.presentation),
            "difference": cell.difference,
            "verdict": "yes" if abs(cell.difference) <= TOLERANCE else "differs",
        }
        for cell in result.published
    ]
    within = Column(f"within {TOLERANCE}", key="verdict")
    columns = [*map(Column.of, ("published", "published.ours", "published.difference")), within]
    title = "Comparison with the paper's table 3"
    return Panel(
        "base-rate-published",
        title,
        "Unweighted mean over subjects; ties go to the first label.",
        figures=(Figure("base-rate-published-table", title, ["elicitation", "questions"], columns, rows),),
        short="Table 3",
    )
