"""Panels of the base-rate study: the hypotheses, then the tables behind them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from unslant.experiment.provenance import asked_about, cost_lines, settings_rows
from unslant.experiment.shortcut_panel import shortcut_panel
from unslant.metrics import METRICS, Estimate
from unslant.metrics.label_scores import TIE_RULES
from unslant.reports import Column, Page, Panel, Table, Tile
from unslant.reports.charts import MOST_ROWS
from unslant.reports.numbers import Cell, count, listed, number, with_interval
from unslant.studies.base_rate.charts import elicitation_charts
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
        lead=result.hypotheses[0].words,
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
    columns = (Column("hypothesis"), Column("claim"), Column("verdict"))
    verdicts = tuple((h.name, h.claim, h.verdict) for h in hypotheses)
    words = tuple((h.name, h.words) for h in hypotheses)
    return Panel(
        "base-rate-hypotheses",
        "Labels the model prefers before reading anything",
        "The base rate of a label is its probability after a question without content.",
        tables=(
            Table("base-rate-hypotheses-table", "Hypotheses", columns, verdicts),
            Table("base-rate-words", "In words", (Column("hypothesis"), Column("outcome")), words),
        ),
        short="Hypotheses",
        first_screen=True,
    )


def _elicitation_panel(found: Findings) -> Panel:
    doubted = [cell for cell in found.cells if cell.doubt]
    tables = (_accuracy_table(found), _correlation_table(found), *_rate_tables(found), _gold_table(found))
    return Panel(
        f"base-rate-{found.elicitation}",
        f"Base rates and accuracy by gold label, {found.elicitation}",
        "In Nvr-X the right option is never under label X; lower accuracy there means that X is chosen when unsure.",
        charts=tuple(elicitation_charts(found)),
        tables=tuple(table for table in tables if table.rows),
        notes=tuple(f"Unreliable: {found.elicitation}, {name(c.presentation)} ({c.doubt})." for c in doubted),
        short=found.elicitation.capitalize(),
        first_screen=True,
    )


def _accuracy_table(found: Findings) -> Table:
    accuracies = ("accuracy.first", "accuracy.split", "accuracy.last", "by_subject.first")
    keys = (*accuracies, "tie_rate", "all_tied")
    columns = (Column("questions"), *map(Column.of, keys), Column("trusted"), Column("failed"))
    rows: list[tuple[Cell, ...]] = [
        (name(cell.presentation), *(cell.accuracy[rule] for rule in TIE_RULES), cell.by_subject["first"],
         cell.tie_rate, cell.all_tied, "no" if cell.doubt else "yes", cell.n_failed)
        for cell in found.cells
    ]  # fmt: skip
    if found.nvr is not None:
        trusted = "no" if any(cell.doubt for cell in found.cells[1:]) else "yes"
        empty = (None, None)
        rows.append(
            ("Nvr-X score", found.nvr["score"], *empty, found.nvr_by_subject, *empty, trusted, found.nvr.left_out)
        )
    title = f"Accuracy, {found.elicitation}"
    explanation = "By tie-breaking rule; the Nvr-X score is the lowest of the variants."
    return Table(f"base-rate-accuracy-{found.elicitation}", title, columns, tuple(rows), explanation)


def _correlation_table(found: Findings) -> Table:
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
    return Table.of_metrics(f"base-rate-effect-{found.elicitation}", title, {"value": values})


def _rate_tables(found: Findings) -> tuple[Table, Table]:
    rates, variance = [], []
    for n, own in found.base_rates.items():
        pairs = zip(own.labels, own.by_label, own.shares.tolist(), own.by_position, strict=True)
        rates += [
            (f"{n} options, {label}", rate, share, str(i), at) for i, (label, rate, share, at) in enumerate(pairs, 1)
        ]
        parts = own.numbers.cells(
            "label_part", "position_part", "distance", "position_distance", "label_p", "position_p"
        )
        variance.append((f"{n} options", *parts.values(), own.n_orders))
    first = ("base_rates.by_label", "base_rates.shares")
    keys = ("label_part", "position_part", "distance", "position_distance")
    p_values = (Column.of("base_rates.label_p", "p (label)"), Column.of("base_rates.position_p", "p (position)"))
    columns = (Column("options"), *(Column.of(f"base_rates.{key}") for key in keys), *p_values, Column("label orders"))
    return (
        Table(
            f"base-rate-rates-{found.elicitation}",
            f"Base rates, {found.elicitation}",
            (Column("label"), *map(Column.of, first), Column("place"), Column.of("base_rates.by_position")),
            tuple(rates),
            "Mean probability of each label and of each position over all label orders.",
        ),
        Table(
            f"base-rate-variance-{found.elicitation}",
            f"Label and position effects, {found.elicitation}",
            columns,
            tuple(variance),
            "Share of the variance that each explains, and share of guesses that each puts out of balance.",
        ),
    )


def _gold_table(found: Findings) -> Table:
    gold = found.gold
    how = METRICS["accuracy_by_gold_label.by_label"]
    columns = (Column("subject"), *(Column(label, how) for label in gold.labels), Column("questions"))
    rows: list[tuple[Cell, ...]] = [("all", *gold.by_label, sum(estimate.n for estimate in gold.by_label))]
    if len(gold.subjects) > 1:
        rows += [
            (subject or "(none)", *accuracy.tolist(), int(counts.sum()))
            for subject, accuracy, counts in zip(gold.subjects, gold.accuracy, gold.counts, strict=True)
        ]
    title = f"Accuracy by the right option's label, {found.elicitation}, questions of {found.n_options} options"
    return Table(f"base-rate-gold-{found.elicitation}", title, columns, tuple(rows), folded=len(rows) > MOST_ROWS)


def _published_panel(result: BaseRateResult) -> Panel:
    keys = ("published", "published.ours", "published.difference")
    columns = (Column("elicitation"), Column("questions"), *map(Column.of, keys), Column(f"within {TOLERANCE}"))
    rows = tuple(
        (c.elicitation, name(c.presentation), c.published, c.ours, c.difference,
         "yes" if abs(c.difference) <= TOLERANCE else "differs")
        for c in result.published
    )  # fmt: skip
    table = Table("base-rate-published-table", "Comparison with the paper's table 3", columns, rows)
    explanation = "Unweighted mean over subjects; ties go to the first label."
    return Panel("base-rate-published", table.title, explanation, tables=(table,) if rows else (), short="Table 3")
