"""The instruction-boundary study in the terminal and in a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from unslant.metrics.estimate import Estimate
from unslant.reports import charts
from unslant.reports.charts import Mark
from unslant.reports.panels import Cell, Chart, Column, Panel, Style, Table
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, SETTINGS
from unslant.studies.instruction_boundary.metrics import BoundaryMetrics, SettingMetrics

if TYPE_CHECKING:
    from unslant.studies.instruction_boundary.result import BoundaryStudy

_KINDS = {"choice": "multiple choice", "judging": "judging"}


def headline(metrics: BoundaryMetrics) -> str:
    """The outcome in one sentence."""
    base = metrics.robustness.get(BASELINE)
    parts = [f"robustness {base.value:.2f} with a complete instruction"] if base is not None and base.defined else []
    changes = [change for change in metrics.changes if change.difference.defined]
    if changes:
        worst = min(changes, key=lambda change: change.difference.value)
        if worst.difference.value < 0:
            parts.append(f"{worst.setting} costs {-worst.difference.value:.2f} of {_KINDS[worst.kind]} accuracy")
        else:
            parts.append("no setting lowers accuracy")
    return "; ".join(parts) or "only disturbing options were asked"


def summary(study: BoundaryStudy, width: int = 110, color: bool = False) -> str:
    """The whole study as text."""
    from rich.markup import escape
    from rich.table import Table as Grid

    from unslant.reports.terminal import render

    grid = Grid(box=None, pad_edge=False)
    names = ("setting", "kind", "N", "accuracy", "SR", "GR", "RS", "against vanilla", "unread")
    for name in names:
        grid.add_column(name, justify="left" if name in names[:2] else "right")
    changes = {(change.setting, change.kind): change for change in study.metrics.changes}
    for row in study.metrics.settings:
        change = changes.get((row.setting, row.kind))
        grid.add_row(
            row.setting,
            row.kind,
            str(row.accuracy.n),
            *(_cell(estimate) for estimate in (row.accuracy, row.stability, row.generalization, row.robustness)),
            _cell(change.difference, "+") if change else "",
            _cell(row.unparsed, spread=False),
        )
    told = ", ".join(f"{count:,} {status}" for status, count in study.statuses.items())
    notes = [
        f"Replies: {told}; {study.asked_now:,} asked for now, the others were in {study.log_dir}.",
        "SR: accuracy where one option is right, or True or False; GR: where none or several are, or Unknown; "
        "RS: their harmonic mean. Intervals are 95 %.",
        *study.notes,
    ]
    about = f"{escape(study.model)} on {len({row.question_id for row in study.responses.rows()}):,} questions\n"
    return render(
        about, f"[bold]{headline(study.metrics)}[/bold]\n", grid, "", *map(escape, notes), width=width, color=color
    )


def _cell(estimate: Estimate, sign: str = "", spread: bool = True) -> str:
    if not estimate.defined:
        return "–"
    value = f"{estimate.value:{sign}.2f}"
    if not spread or estimate.low != estimate.low:
        return value
    return f"{value} ({estimate.low:{sign}.2f} – {estimate.high:{sign}.2f})"


def panels(study: BoundaryStudy) -> list[Panel]:
    """The study as sections of a report."""
    metrics = study.metrics
    named = [row for row in metrics.settings if not SETTINGS[row.setting].disturbing]
    found = [_overview(study, named)] if named else []
    for kind in _KINDS:
        rows = [row for row in named if row.kind == kind]
        if rows:
            found += [_outputs(kind, rows), _balance(kind, rows)]
    if metrics.disturbing():
        found.append(_disturbing(metrics))
    found.append(_statuses(study))
    return found


def _overview(study: BoundaryStudy, rows: list[SettingMetrics]) -> Panel:
    metrics = study.metrics
    changes = {(change.setting, change.kind): change for change in metrics.changes}
    columns = (
        Column("setting"),
        Column("kind"),
        Column("accuracy"),
        Column("SR", explanation="accuracy where one option is right, or True or False"),
        Column("GR", explanation="accuracy where none or several are right, or Unknown"),
        Column("GR none"),
        Column("GR several"),
        Column("RS", explanation="harmonic mean of SR and GR"),
        Column("against vanilla", explanation="accuracy less that under vanilla, same questions"),
        Column("p", explanation="McNemar, exact"),
    )
    body = []
    for row in rows:
        change = changes.get((row.setting, row.kind))
        p_value = change.p_value if change and change.p_value == change.p_value else None
        body.append(
            (
                row.setting,
                _KINDS[row.kind],
                row.accuracy,
                row.stability,
                row.generalization,
                row.generalization_none,
                row.generalization_several,
                row.robustness,
                change.difference if change else None,
                p_value,
            )
        )
    shown = [(name, value) for name, value in metrics.robustness.items() if value.defined]

    def draw(style: Style) -> object:
        marks = [Mark(name, value, stands_out=name == BASELINE) for name, value in shown]
        return charts.intervals(marks, style, axis="robustness score")

    drawn = Chart("boundary-robustness", "Robustness by setting", "RS averaged over kinds of question.", draw)
    return Panel(
        "boundary",
        "How much of an answer is the instruction",
        "The same questions under instructions that say everything, too much, or too little.",
        charts=(drawn,) if shown else (),
        tables=(Table("boundary-settings", "Every setting", columns, tuple(body)),),
        notes=study.notes,
    )


def _outputs(kind: str, rows: list[SettingMetrics]) -> Panel:
    def draw(style: Style) -> object:
        marks = [
            Mark(row.setting, share, form, expected=row.truth[form])
            for row in rows
            for form, share in row.outputs.items()
        ]
        return charts.intervals(marks, style, axis="share of answers")

    truth = ", ".join(f"{form} {share:.0%}" for form, share in rows[0].truth.items())
    columns = (Column("setting"), *(Column(form) for form in rows[0].outputs))
    body: tuple[tuple[Cell, ...], ...] = (("truth", *rows[0].truth.values()),)
    body += tuple((row.setting, *row.outputs.values()) for row in rows)
    table = Table(
        f"boundary-outputs-{kind}-table",
        "Share of each form among the answers",
        columns,
        body,
        folded=True,
    )
    return Panel(
        f"boundary-outputs-{kind}",
        f"What is answered, {_KINDS[kind]}",
        f"A model that is not bent answers each form as often as it is right: {truth}.",
        charts=(Chart(f"boundary-outputs-{kind}", "Output rate", "Share of each form among the answers.", draw),),
        tables=(table,),
    )


def _balance(kind: str, rows: list[SettingMetrics]) -> Panel:
    def draw(style: Style) -> object:
        pairs = [
            (row.setting, [Mark("", row.stability, "SR, usual form"), Mark("", row.generalization, "GR, unusual form")])
            for row in rows
        ]
        return charts.dumbbells(pairs, style)

    return Panel(
        f"boundary-balance-{kind}",
        f"Usual against unusual answers, {_KINDS[kind]}",
        "Far apart: the score is a preference for one form of answer, not knowledge.",
        charts=(Chart(f"boundary-balance-{kind}", "SR and GR", "Accuracy on both halves of the questions.", draw),),
    )


def _disturbing(metrics: BoundaryMetrics) -> Panel:
    by_number = metrics.disturbing()

    def draw(style: Style) -> object:
        marks = [Mark(str(k), estimate) for k, estimate in by_number.items()]
        return charts.columns(marks, style, title="accuracy", under="wrong options")

    rows = tuple((str(k), estimate) for k, estimate in by_number.items())
    return Panel(
        "boundary-disturbing",
        "Disturbing options",
        "The right option among ever more wrong ones.",
        charts=(Chart("boundary-disturbing", "Accuracy by number of wrong options", "Same questions.", draw),),
        tables=(
            Table(
                "boundary-disturbing-table",
                "Accuracy",
                (Column("wrong options"), Column("accuracy")),
                rows,
                folded=True,
            ),
        ),
    )


def _statuses(study: BoundaryStudy) -> Panel:
    columns = (
        Column("setting"),
        Column("kind"),
        Column("unparsed"),
        Column("refused"),
        Column("judge"),
        Column("no reply"),
    )
    rows = tuple(
        (row.setting, _KINDS[row.kind], row.unparsed, row.refused, row.judged, row.errors)
        for row in study.metrics.settings
    )
    return Panel(
        "boundary-statuses",
        "Replies without an answer",
        "Unparsed and refused replies count as wrong; where no reply came, the question is left out.",
        tables=(Table("boundary-statuses-table", "Share of replies", columns, rows),),
    )
