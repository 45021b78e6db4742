"""Panels of the instruction-boundary study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from unslant.experiment.provenance import FEW, settings_rows, worst_first
from unslant.metrics import METRICS, Estimate
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.figure import Row
from unslant.reports.numbers import count, number, percent, with_interval
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, setting
from unslant.studies.instruction_boundary.metrics import DENSE, FORMS, BoundaryMetrics, SettingMetrics

if TYPE_CHECKING:
    from unslant.studies.instruction_boundary.result import BoundaryStudy

KINDS = {"choice": "multiple choice", "judging": "judging"}
TRUTH = "truth"
"""The row of how often each form is right."""


def page(study: BoundaryStudy) -> Page:
    """Every setting, the distribution of answers, and replies without an answer."""
    metrics = study.metrics
    named = [row for row in metrics.settings if not setting(row.setting).disturbing]
    found = [_overview(study, named)] if named else []
    for kind in KINDS:
        rows = [row for row in named if row.kind == kind]
        if rows:
            found.append(_outputs(kind, rows))
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
        lines=(more,),
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
    outcome = "; ".join(parts) or ("only disturbing options were asked" if came else "no reply came")
    return outcome + missing(metrics)[0]


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
            said = f"{f'{model}: ' * bool(model)}{percent(share)} {words} under {worst.setting}, {KINDS[worst.kind]}"
            if key == "unreadable":
                said += f" (right among readable replies: {number(worst.readable, METRICS['readable'])})"
            found.append((share, said))
    return found


def _overview(study: BoundaryStudy, rows: Sequence[SettingMetrics]) -> Panel:
    changes = {(change.setting, change.kind): change for change in study.metrics.changes}
    columns: list[str | Column] = [
        "settings.accuracy", "stability", "generalization", "robustness", "generalization_none",
        "generalization_several", "unreadable", "changes.difference", "changes.p_value",
        Column("gained", explanation="questions right only under the setting"),
        Column("lost", explanation="questions right only under vanilla"),
    ]  # fmt: skip
    body = []
    for row in rows:
        change = changes.get((row.setting, row.kind))
        tested: dict[str, Any] = {**vars(change)} if change else {}
        if change and math.isnan(change.p_value):
            tested |= dict.fromkeys(("p_value", "gained", "lost"))
        body.append({**tested, **_row(row)})
    accuracy = Plot(
        charts.intervals,
        "Share of questions answered right, with 95 % intervals (P3, figure 5).",
        ["settings.accuracy"],
        title="Accuracy by setting",
        id="boundary-accuracy",
        name=["setting"],
        series="kind",
        out=_of_vanilla,
    )
    robustness = Plot(
        partial(charts.intervals, axis="robustness score"),
        "RS averaged over kinds of question.",
        ["robustness"],
        out=_of_vanilla,
    )
    robust = study.metrics.robustness.items()
    scores = [{"setting": name, "robustness": score} for name, score in robust if score.defined]
    title, by_setting = "Robustness by setting", Column.of("robustness")
    return Panel(
        "boundary",
        "Effect of instructions on answers",
        "The same questions under complete, excessive and incomplete instructions.",
        figures=(
            Figure("boundary-settings", "Every setting", ["setting", "kind"], columns, body, [accuracy]),
            Figure("boundary-robustness", title, ["setting"], [by_setting], scores, [robustness]),
        ),
        short="Settings",
    )


def _of_vanilla(row: Row) -> bool:
    return bool(row["setting"] == BASELINE)


def _row(row: SettingMetrics) -> dict[str, Any]:
    return {**vars(row), "kind": KINDS[row.kind]}


def form_plots(id: str, kind: str, name: str, by: str, source: str) -> tuple[Plot, Plot]:
    """How often each form is given, and SR and GR, of rows with the fields of :class:`SettingMetrics` and its outputs.

    Args:
        name, by: the column that names the rows, and what the charts are by, for their titles.
        source: where the paper shows the first.
    """
    rates = Plot(
        partial(charts.intervals, axis="share of replies", expected="share of questions it is right for"),
        f"Share of each form among all replies that came; ticks: of an unbiased model ({source}).",
        FORMS[kind],
        title=f"{f'Output rate {by}'.strip()}, {KINDS[kind]}",
        id=f"{id}-rates",
        name=[name],
        expected=lambda row, form: row["truth"][form],
        where=lambda row: row[name] != TRUTH,
    )
    halves = Plot(
        charts.dumbbells,
        "Accuracy on both halves of the questions.",
        {"stability": "SR, usual form", "generalization": "GR, unusual form"},
        title=f"{f'Usual and unusual answers {by}'.strip()}, {KINDS[kind]}",
        id=f"{id}-halves",
        name=[name],
        where=lambda row: row[name] != TRUTH,
    )
    return rates, halves


def _outputs(kind: str, rows: Sequence[SettingMetrics]) -> Panel:
    id, forms, truth = f"boundary-outputs-{kind}", FORMS[kind], rows[0].truth
    right = ", ".join(f"{form} {percent(share)}" for form, share in truth.items())
    sparse = 1 - sum(share for form, share in truth.items() if form in DENSE)
    readable = [Column(f"{form}, of readable", METRICS["outputs_readable"]) for form in forms]
    body: list[dict[str, Any]] = [
        {"setting": TRUTH, "outputs_sparse": sparse, **truth, **{f"{form}, of readable": truth[form] for form in forms}}
    ]
    body += [
        {**vars(row), **row.outputs, **{f"{form}, of readable": row.outputs_readable[form] for form in forms}}
        for row in rows
    ]
    columns = [*(Column(form, METRICS["outputs"]) for form in forms), Column.of("unreadable"),
               Column.of("outputs_sparse"), *readable]  # fmt: skip
    rates, halves = form_plots(id, kind, "setting", "", "P3, figure 5")
    title = "Share of each form among all replies that came"
    return Panel(
        id,
        f"Distribution of answers, {KINDS[kind]}",
        f"An unbiased model gives each form as often as it is right: {right}. A large gap between SR and GR means that "
        "the score reflects a preference for one form of answer, not knowledge.",
        figures=(Figure(f"{id}-table", title, ["setting"], columns, body, [rates, halves], folded=True),),
        short=f"Forms, {kind}",
    )


def _disturbing(metrics: BoundaryMetrics) -> Panel:
    rows = [{"wrong options": str(k), "accuracy": score} for k, score in metrics.disturbing().items()]
    plot = Plot(
        charts.columns,
        "The same questions, with 95 % intervals (P3, figure 5).",
        ["settings.accuracy"],
        title="Accuracy by number of wrong options",
        id="boundary-disturbing",
    )
    columns = ["settings.accuracy"]
    accuracy = Figure("boundary-disturbing-table", "Accuracy", ["wrong options"], columns, rows, [plot], folded=True)
    explanation = "The right option among a growing number of wrong ones."
    return Panel("boundary-disturbing", "Disturbing options", explanation, figures=(accuracy,), short="Wrong options")


def _temperatures(study: BoundaryStudy) -> Panel:
    found = {
        (row.setting, row.kind, temperature): row
        for temperature, metrics in study.by_temperature.items()
        for row in metrics.settings
    }
    rows = [
        {**_row(found[key]), "temperature": f"{temperature:g}", "series": f"temperature {temperature:g}"}
        for asked in study.metrics.settings
        for temperature in study.by_temperature
        if (key := (asked.setting, asked.kind, temperature)) in found  # asking may have stopped before it
    ]
    plot = Plot(
        partial(charts.intervals, axis="share of replies"),
        "Share of none, several and Unknown among all replies that came.",
        ["outputs_sparse"],
        title="Output rate of unusual forms, by temperature",
        id="boundary-temperatures",
        name=["setting", "kind"],
        series="series",
    )
    columns = ["settings.accuracy", "stability", "generalization", "robustness", "outputs_sparse", "unreadable"]
    title, names = "Every setting at each temperature", ["setting", "kind", "temperature"]
    return Panel(
        "boundary-temperatures",
        "Sampling temperature",
        f"The same requests at each temperature; all other panels are at {next(iter(study.by_temperature)):g}.",
        figures=(Figure("boundary-temperatures-table", title, names, columns, rows, [plot]),),
        short="Temperature",
    )


def _statuses(study: BoundaryStudy) -> Panel:
    columns = ["unreadable", "unparsed", "refused", "readable", "judged", "errors"]
    rows = [_row(row) for row in study.metrics.settings]
    explanation = "Unparsed and refused replies count as wrong; questions without a reply are excluded."
    shares = Figure("boundary-statuses-table", "Share of replies", ["setting", "kind"], columns, rows)
    return Panel("boundary-statuses", "Replies without an answer", explanation, figures=(shares,), short="No answer")
