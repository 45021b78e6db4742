"""Panels of the comparison of debiasing methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unslant.metrics import METRICS, Estimate
from unslant.reports import Chart, Column, Page, Panel, Style, Table
from unslant.reports.numbers import Cell, count, listed, number
from unslant.studies.debias.measure_debiased import MEASURES
from unslant.studies.provenance import settings_rows

if TYPE_CHECKING:
    from unslant.studies.debias.result import DebiasResult, Entry

_CHANGE = METRICS["change"]
_METHOD = Column("method")
_NAMES = {key: METRICS[key].label for key in MEASURES} | {"accuracy": "accuracy"}
_MEASURES = tuple(Column.of(key, name) for key, name in _NAMES.items())
_CHANGES = tuple(Column(name, _CHANGE) for name in _NAMES.values())


def page(result: DebiasResult) -> Page:
    """One section per model and set, then averages and transfer."""
    own = [entry for entry in result.entries if not entry.transferred]
    groups: dict[tuple[str, str], list[Entry]] = {}
    for entry in own:
        groups.setdefault((entry.model, entry.questions), []).append(entry)
    models, sets = (list(dict.fromkeys(names)) for names in zip(*groups, strict=True))
    methods = count(len({entry.method for entry in own if entry.change}), "method")
    return Page(
        about=f"{listed(models)} on {listed(sets)}: {methods} compared with the undebiased model",
        headline=headline(result),
        panels=(*(_group_panel(k, *named) for k, named in enumerate(groups.items())), _all_panel(result, own)),
        notes=("Tokens are computed with the prefix tree; forwards are presentations scored. Both are per question.",),
        settings=settings_rows({**result.meta, "models": models, "questions": result.meta.get("questions") or sets}),
        name=", ".join(models),
    )


def headline(result: DebiasResult) -> str:
    """Mean change of PBM and accuracy over models and sets, by method."""
    parts = [
        f"{method} {number(row['pbm'], _CHANGE)} ({number(row['accuracy'], _CHANGE)})"
        for method, row in result.average.items()
        if row["pbm"].defined and row["accuracy"].defined
    ]
    return "Change in PBM (and accuracy): " + (", ".join(parts) or "not defined for any method")


def _group_panel(k: int, names: tuple[str, str], entries: Sequence[Entry]) -> Panel:
    changes = tuple(_row(e.method, e.change) for e in entries if e.change)
    measures = tuple(_row(e.method, e.measures) for e in entries)
    once = ("debiasing_tokens", "debiasing_forwards", "debiasing_seconds")
    each = ("tokens", "forwards", "seconds")
    columns = (*map(Column.of, (f"spent.{key}" for key in each)), *map(Column.of, once), Column("fitted on"))
    costs: tuple[tuple[Cell, ...], ...] = tuple(
        (e.method, *(float(getattr(e.spent, key)) for key in (*each, *once)), e.fitted_on or None) for e in entries
    )
    raw = tuple((e.method, e.measures["ckld"]) for e in entries)
    unsmoothed = (_METHOD, Column.of("ckld"))
    asked = " on ".join(names)
    return Panel(
        f"debias-{k}",
        f"Debiasing {asked}",
        "Every method answers the questions listed in many orders; remaining differences are bias.",
        tables=(
            Table(f"debias-{k}-measures", f"Measures, {asked}", (_METHOD, *_MEASURES), measures),
            Table(f"debias-{k}-change", f"Change from the undebiased model, {asked}", (_METHOD, *_CHANGES), changes),
            Table(f"debias-{k}-cost", f"Cost, {asked}", (_METHOD, *columns), costs),
            Table(f"debias-{k}-ckld", f"CKLD without smoothing, {asked}", unsmoothed, raw, folded=True),
        ),
        notes=tuple(note for entry in entries for note in _notes(entry)),
        short=asked,
        first_screen=True,
    )


def _row(method: str, values: Mapping[str, Estimate]) -> tuple[Cell, ...]:
    return method, *(values[key] for key in MEASURES)


def _notes(entry: Entry) -> list[str]:
    notes = [f"{entry.method}: {note}" for note in entry.notes]
    if entry.draws:
        parts = [
            f"{_NAMES[key]} {number(mean, METRICS[key])} ± {number(std, METRICS[key])}"
            for key, (mean, std) in entry.draws.items()
        ]
        notes.append(f"{entry.method}: mean and standard deviation over draws: {', '.join(parts)}.")
    return notes


def _all_panel(result: DebiasResult, own: Sequence[Entry]) -> Panel:
    scatter = Chart(
        "debias-scatter",
        "AccStd against PBM",
        "One point per method, model and set (P1 fig. 1a); consistent methods lie near the origin.",
        lambda style: _scatter(own, style),
    )
    tables = [_average_table("average", "Mean change over models and sets", result.average)] if result.average else []
    if result.transfer_average:
        title = "Mean change when fitted on another set"
        tables += [_average_table("transfer-average", title, result.transfer_average), _transfer_table(result)]
    explanation = "Mean change by each method, and its transfer to other questions."
    return Panel("debias-all", "All methods", explanation, (scatter,), tuple(tables))


def _average_table(name: str, title: str, rows: Mapping[str, Mapping[str, Estimate]]) -> Table:
    cells = tuple(_row(method, row) for method, row in rows.items())
    explanation = "N counts models and sets; the range is from the smallest to the largest value."
    return Table(f"debias-{name}", title, (_METHOD, *_CHANGES), cells, explanation)


def _transfer_table(result: DebiasResult) -> Table:
    columns = tuple(Column(name) for name in ("model", "method", "fitted on", "measured on"))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (e.model, e.method, e.fitted_on, e.questions, *(e.change[name] for name in MEASURES))
        for e in result.entries
        if e.transferred
    )
    title = "Transfer: change from the undebiased model"
    return Table("debias-transfer", title, (*columns, *_CHANGES), rows, folded=True)


def _scatter(entries: Sequence[Entry], style: Style) -> Any:
    import altair as alt

    points = [
        {"method": entry.method, "where": f"{entry.model} on {entry.questions}", "PBM": pbm.value, "AccStd": std.value}
        for entry in entries
        if (pbm := entry.measures["pbm"]).defined and (std := entry.measures["acc_std"]).defined
    ]
    color = alt.Color("method:N", scale=alt.Scale(range=list(style.series)))
    tips = ["method:N", "where:N", "PBM:Q", "AccStd:Q"]
    marks = alt.Chart(alt.Data(values=points)).mark_point(filled=True, size=70)
    drawn = marks.encode(x="PBM:Q", y="AccStd:Q", color=color, shape="method:N", tooltip=tips)
    return drawn.properties(width=style.width, height=320)
