"""Panels of the instruction-boundary study."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.experiment.provenance import FEW, settings_rows, worst_first
from unslant.metrics import METRICS, Estimate
from unslant.reports import Chart, Column, Page, Panel, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, number, percent, with_interval
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, setting
from unslant.studies.instruction_boundary.metrics import DENSE, BoundaryMetrics, SettingMetrics

if TYPE_CHECKING:
    from unslant.studies.instruction_boundary.result import BoundaryStudy

KINDS = {"choice": "multiple choice", "judging": "judging"}
_BRIEF = {"choice": "choice", "judging": "judging"}


def page(study: BoundaryStudy) -> Page:
    """Every setting, the distribution of answers, and replies without an answer."""
    metrics = study.metrics
    named = [row for row in metrics.settings if not setting(row.setting).disturbing]
    found = [_overview(study, named)] if named else []
    for kind in KINDS:
        rows = [row for row in named if row.kind == kind]
        if rows:
            found += [_outputs(kind, rows), _balance(kind, rows)]
    if metrics.disturbing():
        found.append(_disturbing(metrics))
    if study.by_temperature:
        found.append(_temperatures(study))
    questions = len(set(study.responses.table["question_id"].unique().to_pylist()))
    statuses = ", ".join(f"{n:,} {status}" for status, n in study.statuses.items())
    base = metrics.robustness.get(BASELINE, Estimate.undefined("vanilla was not asked"))
    changes = [change for change in metrics.changes if change.difference.defined]
    worst = min(changes, key=lambda change: change.difference.value, default=None)
    vanilla = [row for row in metrics.settings if row.setting == BASELINE]
    _, more = missing(metrics)
    return Page(
        about=f"{study.model} on {count(questions, 'question')}, {count(len(metrics.robustness), 'setting')}",
        headline=f"{study.model}: {headline(metrics)}",
        lead=more,
        tiles=Tile.row(
            ("robustness", base),
            *(("settings.accuracy", row.accuracy, f"accuracy, {KINDS[row.kind]}") for row in vanilla),
            *((("changes.difference", worst.difference, f"change under {worst.setting}"),) if worst else ()),
            *(("unreadable", row.unreadable, f"no answer, {KINDS[row.kind]}") for row in vanilla),
        ),
        panels=(*found, _statuses(study)),
        notes=(
            f"Replies: {statuses}.",
            *study.notes,
        ),
        settings=settings_rows(study.run),
        name=study.model,
    )


def headline(metrics: BoundaryMetrics) -> str:
    """The outcome in one sentence."""
    base = metrics.robustness.get(BASELINE)
    parts = []
    if base is not None and base.defined:
        parts.append(f"robustness {with_interval(base, METRICS['robustness'])} with a complete instruction")
    changes = [change for change in metrics.changes if change.difference.defined]
    if changes:
        worst = min(changes, key=lambda change: change.difference.value)
        if worst.difference.value < 0:
            lost = number(-worst.difference.value, METRICS["changes.difference"].digits)
            parts.append(f"{worst.setting} costs {lost} of {KINDS[worst.kind]} accuracy")
        else:
            parts.append("no setting lowers accuracy")
    came = any(row.errors.value < 1 for row in metrics.settings)
    told = "; ".join(parts) or ("only disturbing options were asked" if came else "no reply came")
    return told + missing(metrics)[0]


def missing(metrics: BoundaryMetrics, model: str = "") -> tuple[str, str]:
    """Words on replies that are missing or no answer, for headline and lead; empty where they are few everywhere."""
    return worst_first(most_missing(metrics, model))


def most_missing(metrics: BoundaryMetrics, model: str = "") -> list[tuple[float, str]]:
    """Largest shares of replies that are missing or no answer above :data:`FEW`, with words."""
    found = []
    for key, words in (("unreadable", "of the replies hold no answer"), ("errors", "of the requests got no reply")):
        rows = [row for row in metrics.settings if getattr(row, key).value > FEW]
        if rows:
            worst = max(rows, key=lambda row: getattr(row, key).value)
            share = getattr(worst, key).value
            told = f"{f'{model}: ' * bool(model)}{percent(share)} {words} under {worst.setting}, {KINDS[worst.kind]}"
            if key == "unreadable":
                told += f" (right among readable replies: {number(worst.readable, METRICS['readable'])})"
            found.append((share, told))
    return found


def _overview(study: BoundaryStudy, rows: list[SettingMetrics]) -> Panel:
    metrics = study.metrics
    changes = {(change.setting, change.kind): change for change in metrics.changes}
    keys = ("accuracy", "stability", "generalization", "robustness", "generalization_none", "generalization_several")
    columns = (
        Column("setting"),
        Column("kind"),
        Column.of("settings.accuracy"),
        *map(Column.of, keys[1:]),
        Column.of("unreadable"),
        *map(Column.of, ("changes.difference", "changes.p_value")),
        Column("gained", explanation="questions right only under the setting"),
        Column("lost", explanation="questions right only under vanilla"),
    )
    body: list[tuple[Cell, ...]] = []
    for row in rows:
        change = changes.get((row.setting, row.kind))
        p_value = change.p_value if change and change.p_value == change.p_value else None
        tested = (change.gained, change.lost) if p_value is not None and change else (None, None)
        values = (getattr(row, key) for key in (*keys, "unreadable"))
        body.append((row.setting, KINDS[row.kind], *values, change.difference if change else None, p_value, *tested))
    shown = [(name, value) for name, value in metrics.robustness.items() if value.defined]
    marks = [Mark(name, value, stands_out=name == BASELINE) for name, value in shown]
    by_setting = (Column("setting"), Column.of("robustness"))
    drawn = Chart(
        "boundary-robustness",
        "Robustness by setting",
        "RS averaged over kinds of question.",
        lambda style: charts.intervals(marks, style, rows="setting", axis="robustness score"),
    )
    return Panel(
        "boundary",
        "Effect of instructions on answers",
        "The same questions under complete, excessive and incomplete instructions.",
        charts=(*[drawn] * bool(shown), *_accuracies(rows)),
        tables=(
            Table("boundary-settings", "Every setting", columns, tuple(body), names=2),
            Table("boundary-robustness", "Robustness by setting", by_setting, tuple(shown)),
        ),
        short="Settings",
        first_screen=True,
    )


def _accuracies(rows: list[SettingMetrics]) -> tuple[Chart, ...]:
    marks = [
        Mark(row.setting, row.accuracy, KINDS[row.kind], stands_out=row.setting == BASELINE)
        for row in rows
        if row.accuracy.defined
    ]
    chart = Chart(
        "boundary-accuracy",
        "Accuracy by setting",
        "Share of questions answered right, with 95 % intervals (P3, figure 5).",
        lambda style: charts.intervals(marks, style, rows="setting"),
    )
    return (chart,) if marks else ()


def _outputs(kind: str, rows: list[SettingMetrics]) -> Panel:
    marks = [
        Mark(row.setting, share, form, expected=row.truth[form]) for row in rows for form, share in row.outputs.items()
    ]
    truth = ", ".join(f"{form} {percent(share)}" for form, share in rows[0].truth.items())
    columns = (Column("setting"), *(Column(form, METRICS["outputs"]) for form in rows[0].outputs))
    columns += tuple(map(Column.of, ("unreadable", "outputs_sparse")))
    columns += tuple(Column(f"{form}, of readable", METRICS["outputs_readable"]) for form in rows[0].outputs)
    truth_sparse = 1 - sum(share for form, share in rows[0].truth.items() if form in DENSE)
    body: tuple[tuple[Cell, ...], ...] = (
        ("truth", *rows[0].truth.values(), None, truth_sparse, *rows[0].truth.values()),
    )
    body += tuple(
        (row.setting, *row.outputs.values(), row.unreadable, row.outputs_sparse, *row.outputs_readable.values())
        for row in rows
    )
    table = Table(
        f"boundary-outputs-{kind}-table",
        "Share of each form among all replies that came",
        columns,
        body,
        folded=True,
    )
    return Panel(
        f"boundary-outputs-{kind}",
        f"Distribution of answers, {KINDS[kind]}",
        f"An unbiased model gives each form as often as it is right: {truth}.",
        charts=(
            Chart(
                f"boundary-outputs-{kind}",
                f"Output rate, {KINDS[kind]}",
                "Share of each form among all replies that came; ticks: of an unbiased model (P3, figure 5).",
                lambda style: charts.intervals(
                    marks, style, rows="setting", axis="share of replies", expected="share of questions it is right for"
                ),
            ),
        ),
        tables=(table,),
        short=f"Forms, {_BRIEF[kind]}",
    )


def _balance(kind: str, rows: list[SettingMetrics]) -> Panel:
    pairs = [
        Mark(row.setting, value, series)
        for row in rows
        for value, series in ((row.stability, "SR, usual form"), (row.generalization, "GR, unusual form"))
    ]
    id, both = f"boundary-balance-{kind}", "Accuracy on both halves of the questions."
    chart = Chart(id, f"SR and GR, {KINDS[kind]}", both, lambda style: charts.dumbbells(pairs, style, rows="setting"))
    explanation = "A large gap means that the score reflects a preference for one answer form, not knowledge."
    title = f"Usual and unusual answers, {KINDS[kind]}"
    return Panel(id, title, explanation, (chart,), short=f"SR and GR, {_BRIEF[kind]}")


def _disturbing(metrics: BoundaryMetrics) -> Panel:
    rows = tuple((str(k), estimate) for k, estimate in metrics.disturbing().items())
    marks = [Mark(*row) for row in rows]
    chart = Chart(
        "boundary-disturbing",
        "Accuracy by number of wrong options",
        "The same questions, with 95 % intervals (P3, figure 5).",
        lambda style: charts.columns(marks, style, rows="wrong options"),
    )
    columns = (Column("wrong options"), Column.of("settings.accuracy"))
    table = Table("boundary-disturbing-table", "Accuracy", columns, rows, folded=True)
    explanation = "The right option among a growing number of wrong ones."
    return Panel("boundary-disturbing", "Disturbing options", explanation, (chart,), (table,), short="Wrong options")


def _temperatures(study: BoundaryStudy) -> Panel:
    keys = ("settings.accuracy", "stability", "generalization", "robustness", "outputs_sparse", "unreadable")
    rows: list[tuple[Cell, ...]] = []
    marks = []
    for name, kind in ((row.setting, row.kind) for row in study.metrics.settings):
        for temperature, found in study.by_temperature.items():
            row = next((row for row in found.settings if (row.setting, row.kind) == (name, kind)), None)
            if row is None:  # asking stopped before it came to this setting
                continue
            rows.append((name, KINDS[kind], f"{temperature:g}", *(getattr(row, key.split(".")[-1]) for key in keys)))
            marks.append(Mark(f"{name}, {KINDS[kind]}", row.outputs_sparse, f"temperature {temperature:g}"))
    return Panel(
        "boundary-temperatures",
        "Sampling temperature",
        f"The same requests at each temperature; all other panels are at {next(iter(study.by_temperature)):g}.",
        charts=(
            Chart(
                "boundary-temperatures",
                "Output rate of unusual forms, by temperature",
                "Share of none, several and Unknown among all replies that came.",
                lambda style: charts.intervals(marks, style, rows="setting", axis="share of replies"),
            ),
        ),
        tables=(
            Table(
                "boundary-temperatures-table",
                "Every setting at each temperature",
                (Column("setting"), Column("kind"), Column("temperature"), *map(Column.of, keys)),
                tuple(rows),
                names=3,
            ),
        ),
        short="Temperature",
    )


def _statuses(study: BoundaryStudy) -> Panel:
    keys = ("unreadable", "unparsed", "refused", "readable", "judged", "errors")
    columns = (Column("setting"), Column("kind"), *map(Column.of, keys))
    found = study.metrics.settings
    rows = tuple((row.setting, KINDS[row.kind], *(getattr(row, key) for key in keys)) for row in found)
    table = Table("boundary-statuses-table", "Share of replies", columns, rows, names=2)
    explanation = "Unparsed and refused replies count as wrong; questions without a reply are excluded."
    return Panel("boundary-statuses", "Replies without an answer", explanation, tables=(table,), short="No answer")
