"""The panels of one audit that are about labels: what is preferred, what it costs, and what labels are worth alone."""

from __future__ import annotations

from unslant.reports import charts
from unslant.reports.charts import Mark
from unslant.reports.panels import Cell, Chart, Column, Panel, Style, Table
from unslant.studies.audit.runs import Run


def labels_panel(run: Run) -> Panel:
    """What is chosen when unsure, and accuracy by where the right option stands."""
    metrics = run.metrics
    preference = metrics.preference
    slots = [slot for slot in preference.slots if slot.chosen.defined]
    found: list[Chart] = []
    if slots:
        chosen = [
            Mark(s.label, s.chosen, expected=_finite(s.expected), stands_out=s.label == preference.named) for s in slots
        ]

        def draw_chosen(style: Style) -> object:
            return charts.columns(chosen, style, title="share chosen", under="label", expected="by content alone")

        found.append(
            Chart(
                "preference",
                preference.phrase[:1].upper() + preference.phrase[1:],
                f"Share of orders in which each label is chosen, on the {slots[0].chosen.n:,} questions whose answer "
                "changes with the order. Dashes: what a model going by content alone would choose there. "
                "last: the last position.",
                draw_chosen,
            )
        )
    recall = [Mark(row.label, row.recall) for row in metrics.order_labels if row.recall.defined]
    if recall:
        mean = metrics.means.expected_accuracy

        def draw_recall(style: Style) -> object:
            return charts.intervals(recall, style, axis="accuracy", step=26, line=mean.value if mean.defined else None)

        found.append(
            Chart(
                "gold-position",
                "Accuracy by where the right option stands",
                "The same questions with the right option moved to each place in turn, over all orders. Level points "
                "mean that the place does not matter. Dashed: the mean over orders.",
                draw_recall,
            )
        )
    return Panel(
        "labels",
        "Labels and positions",
        "What the model falls back on when it does not know, and what that does to questions whose right option stands "
        "there.",
        tuple(found),
        (labels_table(run),) if slots or recall else (),
        (preference.note,) if preference.note else (),
        short="Labels",
    )


def _finite(value: float) -> float | None:
    return value if value == value else None


def labels_table(run: Run) -> Table:
    """One row per label, and one for the last position."""
    metrics = run.metrics
    given = {row.label: row for row in metrics.given_labels}
    moved = {row.label: row for row in metrics.order_labels}
    never = dict(zip(run.result.nvr.labels, run.result.nvr.accuracy, strict=True))
    rows: list[tuple[Cell, ...]] = []
    for slot in metrics.preference.slots:
        own, other = given.get(slot.label), moved.get(slot.label)
        rows.append(
            (
                slot.label,
                slot.chosen,
                _finite(slot.expected),
                own.predicted if own else None,
                own.gold if own else None,
                own.recall if own else None,
                other.recall if other else None,
                never.get(slot.label),
            )
        )
    columns = (
        Column("label"),
        Column("chosen when unsure", explanation="share of orders, where the answer changes with the order"),
        Column("expected", explanation="the same for a model going by content alone"),
        Column("predicted", explanation="share of answers, given order"),
        Column("gold", explanation="share of right options, given order"),
        Column("recall", explanation="accuracy when the right option stands there, given order"),
        Column("recall, all orders", explanation="the same over all orders"),
        Column("Nvr-X", explanation="accuracy when the right option never stands there"),
    )
    return Table("labels", "Labels", columns, tuple(rows), folded=True)


def priors_panel(run: Run) -> Panel:
    """What labels are worth without a question (base rates), and the score when one label is never right (Nvr-X)."""
    panel = Panel(
        "priors",
        "Base rates and Nvr-X",
        "A label can be likely before anything is read, and a model that leans to it is right wherever the right "
        "option happens to stand there.",
        (*_base_rates(run), *_nvr(run)),
        short="Base rates",
    )
    return panel if panel.charts else Panel("priors", "", "")


def _base_rates(run: Run) -> tuple[Chart, ...]:
    counts = run.metrics.counts.by_options
    rates = run.result.base_rates.get(max(counts, key=lambda n: counts[n]))
    if rates is None:
        return ()
    marks = [
        Mark(label, value, stands_out=rates.uneven and label == rates.top)
        for label, value in zip(rates.labels, rates.by_label, strict=True)
    ]

    def draw(style: Style) -> object:
        return charts.intervals(
            marks, style, axis="probability", domain=None, step=26, line=float(rates.values.mean()), digits=4
        )

    title = f"Without a question, {rates.top} is likeliest" if rates.uneven else "Without a question, labels are even"
    return (
        Chart(
            "base-rates",
            title,
            f"Probability of each of {rates.n_options} labels after a question without content, mean over "
            f"{rates.n_orders} orders of the labels (N counts orders). Dashed: their mean. Distance from even: "
            f"{rates.distance.value:.3f}.",
            draw,
        ),
    )


def _nvr(run: Run) -> tuple[Chart, ...]:
    nvr = run.result.nvr
    if not nvr.score.defined:
        return ()
    standing = {reading.label for reading in nvr.readings}
    marks = [
        Mark(f"never {label}", value, stands_out=label in standing)
        for label, value in zip(nvr.labels, nvr.accuracy, strict=True)
    ]

    def draw(style: Style) -> object:
        return charts.intervals(marks, style, step=26, line=nvr.plain.value if nvr.plain.defined else None)

    readings = "; ".join(reading.phrase for reading in nvr.readings)
    return (
        Chart(
            "nvr",
            f"Nvr-X: {nvr.score.value:.3f} when the best label is taken away",
            "Accuracy on the same questions when the right option never stands under a label; the least is the score. "
            f"Dashed: as given. Guessing scores {nvr.guess:.3f}." + (f" Standing out: {readings}." if readings else ""),
            draw,
        ),
    )
