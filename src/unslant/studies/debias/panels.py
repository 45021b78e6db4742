"""The debiasing study in the terminal and in a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table as RichTable

from unslant.metrics import Estimate
from unslant.reports.panels import Cell, Chart, Column, Panel, Style, Table
from unslant.reports.terminal import number, render

if TYPE_CHECKING:
    from rich.console import RenderableType

    from unslant.studies.debias.result import DebiasResult, Entry

NAMES = {"pbm": "PBM", "rstd": "RStd", "ckld": "CKLD", "fr": "FR", "accuracy": "accuracy", "acc_std": "AccStd"}
_DIGITS = {"pbm": 4, "acc_std": 4}
_COSTS = ("tokens/question", "forwards/question", "s/question", "s to debias")


def _costs(entry: Entry) -> tuple[float, float, float, float]:
    spent = entry.spent
    return spent.tokens, spent.forwards, spent.seconds, spent.debiasing_seconds


def _groups(entries: Sequence[Entry]) -> dict[tuple[str, str], list[Entry]]:
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.model, entry.questions), []).append(entry)
    return groups


def _change(estimate: Estimate) -> str:
    return f"{100 * estimate.value:+.0f} %" if estimate.defined else "–"


def summary(result: DebiasResult, width: int = 100, color: bool = False) -> str:
    """The comparison as text."""
    parts: list[RenderableType] = [f"[bold]{escape(result.headline)}[/bold]", ""]
    own = [entry for entry in result.entries if not entry.transferred]
    for (model, questions), entries in _groups(own).items():
        n = entries[0].measures["pbm"].n
        parts += [f"[bold]{escape(model)} on {escape(questions)}[/bold] ({n:,} questions)", _comparison(entries), ""]
        for entry in entries:
            parts += [f"note: {escape(entry.method)}: {escape(note)}" for note in entry.notes]
            parts += [_draws(entry)] if entry.draws else []
        parts.append("")
    if len(_groups(own)) > 1:
        parts += ["[bold]Mean change against the undebiased model[/bold]", _average(result.average), ""]
    if result.transfer_average:
        parts += ["[bold]Mean change when fitted on another set[/bold]", _average(result.transfer_average), ""]
        parts += ["[bold]Transfer, each against the undebiased model[/bold]", _transfer(result), ""]
    parts.append(
        "tokens (computed through the prefix tree), forwards (presentations scored) and s (seconds) are for each "
        "question; intervals are in --json"
    )
    return render(*parts, width=width, color=color)


def _rich(*columns: str, names: int = 1) -> RichTable:
    """A table whose first columns are names, which are folded where it is narrow; numbers never are."""
    table = RichTable(box=None, pad_edge=False)
    for i, column in enumerate(columns):
        if i < names:
            table.add_column(column, overflow="fold")
        else:
            table.add_column(column, justify="right", no_wrap=True)
    return table


def _comparison(entries: Sequence[Entry]) -> RichTable:
    table = _rich(
        "method", *NAMES.values(), *(cost.replace("/question", "").replace(" to ", " to\n") for cost in _COSTS)
    )
    for entry in entries:
        values = [number(entry.measures[name], _DIGITS.get(name, 3)) for name in NAMES]
        tokens, forwards, seconds, debiasing = _costs(entry)
        table.add_row(
            escape(entry.method), *values, f"{tokens:.0f}", f"{forwards:.2f}", f"{seconds:.4f}", f"{debiasing:.1f}"
        )
        if entry.change:
            table.add_row("", *(f"[dim]{_change(entry.change[name])}[/dim]" for name in NAMES), "", "", "", "")
    return table


def _draws(entry: Entry) -> str:
    values = ", ".join(f"{NAMES[name]} {mean:.4f} ± {std:.4f}" for name, (mean, std) in entry.draws.items())
    return f"note: {escape(entry.method)}: mean and standard deviation over draws: {values}"


def _average(rows: Any) -> RichTable:
    table = _rich("method", *NAMES.values(), "models and sets")
    for method, row in rows.items():
        table.add_row(escape(method), *(_change(row[name]) for name in NAMES), str(max(e.n for e in row.values())))
    return table


def _transfer(result: DebiasResult) -> RichTable:
    table = _rich("model, method", "fitted on", "measured on", *NAMES.values(), names=3)
    for entry in result.entries:
        if entry.transferred:
            table.add_row(
                f"{escape(entry.model)}, {escape(entry.method)}",
                escape(entry.fitted_on),
                escape(entry.questions),
                *(_change(entry.change[name]) for name in NAMES),
            )
    return table


def debias_panels(result: DebiasResult) -> list[Panel]:
    """The comparison as sections of a report: one per model and set, then averages and transfer."""
    own = [entry for entry in result.entries if not entry.transferred]
    panels = []
    for k, ((model, questions), entries) in enumerate(_groups(own).items()):
        columns = (
            Column("method"),
            *(Column(name, _DIGITS.get(key, 3)) for key, name in NAMES.items()),
            *(Column(cost, 4 if cost.startswith("s/") else 1) for cost in _COSTS),
        )
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (e.method, *(e.measures[name] for name in NAMES), *_costs(e)) for e in entries
        )
        changed: tuple[tuple[Cell, ...], ...] = tuple(
            (e.method, *(e.change[name] for name in NAMES)) for e in entries if e.change
        )
        panels.append(
            Panel(
                f"debias-{k}",
                f"Debiasing {model} on {questions}",
                "Every method answers the questions listed in many orders; what still moves is the bias that is left.",
                tables=(
                    Table(f"debias-{k}-measures", "Measures and cost", columns, rows),
                    Table(
                        f"debias-{k}-change",
                        "Change against the undebiased model (1 = 100 %)",
                        (Column("method"), *(Column(name, 2) for name in NAMES.values())),
                        changed,
                    ),
                ),
                notes=tuple(f"{entry.method}: {note}" for entry in entries for note in entry.notes),
            )
        )
    scatter = Chart(
        "debias-scatter",
        "AccStd against PBM",
        "One point per method, model and set (P1 fig. 1a); consistent methods lie near the origin.",
        lambda style: _scatter(own, style),
    )
    tables = [_average_table("average", "Mean change over models and sets", result.average)] if result.average else []
    if result.transfer_average:
        tables.append(_average_table("transfer-average", "Mean change on sets not fitted on", result.transfer_average))
        tables.append(_transfer_table(result))
    explanation = "What each method changes on average, and whether it carries over to other questions."
    return [*panels, Panel("debias-all", "All methods", explanation, (scatter,), tuple(tables))]


def _average_table(name: str, title: str, rows: Any) -> Table:
    columns = (Column("method"), *(Column(title, 2) for title in NAMES.values()))
    return Table(
        f"debias-{name}", title, columns, tuple((method, *(row[m] for m in NAMES)) for method, row in rows.items())
    )


def _transfer_table(result: DebiasResult) -> Table:
    columns = tuple(Column(name) for name in ("model", "method", "fitted on", "measured on"))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (e.model, e.method, e.fitted_on, e.questions, *(e.change[name] for name in NAMES))
        for e in result.entries
        if e.transferred
    )
    return Table(
        "debias-transfer",
        "Transfer: change against the undebiased model",
        (*columns, *(Column(name, 2) for name in NAMES.values())),
        rows,
        folded=True,
    )


def _scatter(entries: Sequence[Entry], style: Style) -> Any:
    import altair as alt

    points = [
        {
            "method": entry.method,
            "where": f"{entry.model} on {entry.questions}",
            "PBM": entry.measures["pbm"].value,
            "AccStd": entry.measures["acc_std"].value,
        }
        for entry in entries
        if entry.measures["pbm"].defined and entry.measures["acc_std"].defined
    ]
    return (
        alt.Chart(alt.Data(values=points))
        .mark_point(filled=True, size=70)
        .encode(
            x="PBM:Q",
            y="AccStd:Q",
            color=alt.Color("method:N", scale=alt.Scale(range=list(style.series))),
            shape="method:N",
            tooltip=["method:N", "where:N", "PBM:Q", "AccStd:Q"],
        )
        .properties(width=style.width, height=320)
    )
