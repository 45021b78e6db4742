"""Panels of the instruction-boundary study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.metrics import METRICS, Estimate
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number, percent
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, SETTINGS
from unslant.studies.instruction_boundary.metrics import BoundaryMetrics, SettingMetrics
from unslant.studies.provenance import settings_rows

if TYPE_CHECKING:
    from unslant.studies.instruction_boundary.result import BoundaryStudy

_KINDS = {"choice": "multiple choice", "judging": "judging"}


def page(study: BoundaryStudy) -> Page:
    """Every setting, the distribution of answers, and replies without an answer."""
    metrics = study.metrics
    named = [row for row in metrics.settings if not SETTINGS[row.setting].disturbing]
    found = [_overview(study, named)] if named else []
    for kind in _KINDS:
        rows = [row for row in named if row.kind == kind]
        if rows:
            found += [_outputs(kind, rows), _balance(kind, rows)]
    if metrics.disturbing():
        found.append(_disturbing(metrics))
    questions = len(set(study.responses.table["question_id"].unique().to_pylist()))
    statuses = ", ".join(f"{n:,} {status}" for status, n in study.statuses.items())
    base = metrics.robustness.get(BASELINE, Estimate.undefined("vanilla was not asked"))
    return Page(
        about=f"{study.model} on {count(questions, 'question')}, {count(len(metrics.robustness), 'setting')}",
        headline=headline(metrics),
        tiles=Tile.row(("robustness", base)),
        panels=(*found, _statuses(study)),
        notes=(
            f"Replies: {statuses}; {study.asked_now:,} are new, the others come from {study.log_dir or 'the table'}.",
            *study.notes,
        ),
        settings=settings_rows({"model": study.model, **study.responses.meta}),
        name=study.model,
    )


def headline(metrics: BoundaryMetrics) -> str:
    """The outcome in one sentence."""
    base = metrics.robustness.get(BASELINE)
    parts = []
    if base is not None and base.defined:
        parts.append(f"Robustness {number(base, METRICS['robustness'])} with a complete instruction")
    changes = [change for change in metrics.changes if change.difference.defined]
    if changes:
        worst = min(changes, key=lambda change: change.difference.value)
        if worst.difference.value < 0:
            lost = number(-worst.difference.value, METRICS["changes.difference"].digits)
            parts.append(f"{worst.setting} costs {lost} of {_KINDS[worst.kind]} accuracy")
        else:
            parts.append("no setting lowers accuracy")
    return "; ".join(parts) or "Only disturbing options were asked"


def _overview(study: BoundaryStudy, rows: list[SettingMetrics]) -> Panel:
    metrics = study.metrics
    changes = {(change.setting, change.kind): change for change in metrics.changes}
    keys = ("accuracy", "stability", "generalization", "robustness", "generalization_none", "generalization_several")
    columns = (
        Column("setting"),
        Column("kind"),
        Column.of("settings.accuracy"),
        *map(Column.of, keys[1:]),
        *map(Column.of, ("changes.difference", "changes.p_value")),
        Column("gained", explanation="questions right only under the setting"),
        Column("lost", explanation="questions right only under vanilla"),
    )
    body: list[tuple[Cell, ...]] = []
    for row in rows:
        change = changes.get((row.setting, row.kind))
        p_value = change.p_value if change and change.p_value == change.p_value else None
        tested = (change.gained, change.lost) if p_value is not None and change else (None, None)
        values = (getattr(row, key) for key in keys)
        body.append((row.setting, _KINDS[row.kind], *values, change.difference if change else None, p_value, *tested))
    shown = [(name, value) for name, value in metrics.robustness.items() if value.defined]
    marks = [Mark(name, value, stands_out=name == BASELINE) for name, value in shown]
    by_setting = (Column("setting"), Column.of("robustness"))
    drawn = Chart(
        "boundary-robustness",
        "Robustness by setting",
        "RS averaged over kinds of question.",
        lambda style: charts.intervals(marks, style, axis="robustness score"),
    )
    return Panel(
        "boundary",
        "Effect of instructions on answers",
        "The same questions under complete, excessive and incomplete instructions.",
        charts=(drawn,) if shown else (),
        tables=(
            Table("boundary-settings", "Every setting", columns, tuple(body)),
            Table("boundary-robustness", "Robustness by setting", by_setting, tuple(shown)),
        ),
        first_screen=True,
    )


def _outputs(kind: str, rows: list[SettingMetrics]) -> Panel:
    marks = [
        Mark(row.setting, share, form, expected=row.truth[form]) for row in rows for form, share in row.outputs.items()
    ]
    truth = ", ".join(f"{form} {percent(share)}" for form, share in rows[0].truth.items())
    columns = (Column("setting"), *(Column(form, METRICS["outputs"]) for form in rows[0].outputs))
    body: tuple[tuple[Cell, ...], ...] = (("truth", *rows[0].truth.values()),)
    body += tuple((row.setting, *row.outputs.values()) for row in rows)
    id, shares = f"boundary-outputs-{kind}", "Share of each form among the answers"
    chart = Chart(id, "Output rate", f"{shares}.", lambda s: charts.intervals(marks, s, axis="share of answers"))
    table = Table(f"{id}-table", shares, columns, body, folded=True)
    explanation = f"An unbiased model gives each form as often as it is right: {truth}."
    return Panel(id, f"Distribution of answers, {_KINDS[kind]}", explanation, (chart,), (table,))


def _balance(kind: str, rows: list[SettingMetrics]) -> Panel:
    pairs = [
        (row.setting, [Mark("", row.stability, "SR, usual form"), Mark("", row.generalization, "GR, unusual form")])
        for row in rows
    ]
    id, both = f"boundary-balance-{kind}", "Accuracy on both halves of the questions."
    chart = Chart(id, "SR and GR", both, lambda style: charts.dumbbells(pairs, style))
    explanation = "A large gap means that the score reflects a preference for one answer form, not knowledge."
    return Panel(id, f"Usual and unusual answers, {_KINDS[kind]}", explanation, (chart,))


def _disturbing(metrics: BoundaryMetrics) -> Panel:
    rows = tuple((str(k), estimate) for k, estimate in metrics.disturbing().items())
    marks = [Mark(*row) for row in rows]
    chart = Chart(
        "boundary-disturbing",
        "Accuracy by number of wrong options",
        "Same questions.",
        lambda style: charts.columns(marks, style, title="accuracy", under="wrong options"),
    )
    columns = (Column("wrong options"), Column.of("settings.accuracy"))
    table = Table("boundary-disturbing-table", "Accuracy", columns, rows, folded=True)
    explanation = "The right option among a growing number of wrong ones."
    return Panel("boundary-disturbing", "Disturbing options", explanation, (chart,), (table,))


def _statuses(study: BoundaryStudy) -> Panel:
    keys = ("unparsed", "refused", "judged", "errors")
    columns = (Column("setting"), Column("kind"), *map(Column.of, keys))
    found = study.metrics.settings
    rows = tuple((row.setting, _KINDS[row.kind], *(getattr(row, key) for key in keys)) for row in found)
    table = Table("boundary-statuses-table", "Share of replies", columns, rows)
    explanation = "Unparsed and refused replies count as wrong; questions without a reply are excluded."
    return Panel("boundary-statuses", "Replies without an answer", explanation, tables=(table,))
