"""Panels of the instruction-boundary study."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

from unslant.arrays import grouped
from unslant.experiment.page_parts import FEW, spent
from unslant.metrics import METRICS, Estimate
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.figure import Row
from unslant.reports.numbers import count, magnitude, number, percent, unsettled, with_interval
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, DENSE, FORMS, setting
from unslant.studies.instruction_boundary.metrics import SAME, BoundaryMetrics, SettingMetrics
from unslant.studies.instruction_boundary.result import BoundaryStudy

_ASKED = {"choice": "multiple-choice questions", "judging": "statements to judge"}
KINDS = {"choice": "multiple choice", "judging": "judging"}
TRUTH = "truth"
"""The row of how often each form is right."""


def page(study: BoundaryStudy) -> Page:
    """Every setting, the distribution of answers, and replies without an answer."""
    metrics = study.metrics
    settings = [row for row in metrics.settings if not setting(row.setting).disturbing]
    panels = [*_overview(study, settings)] if settings else []
    by_kind = grouped((row.kind, row) for row in settings)
    panels += [_outputs(kind, by_kind[kind]) for kind in KINDS if kind in by_kind]
    panels.append(_disturbing(metrics))
    if study.by_temperature:
        panels.append(_temperatures(study))
    questions = len(set(study.responses.table["question_id"].unique().to_pylist()))
    statuses = ", ".join(f"{n:,} {status}" for status, n in study.statuses.items())
    base = metrics.robustness.get(BASELINE, Estimate.undefined("vanilla was not asked"))
    named = [metrics.largest] if metrics.effects else []
    shares = [share for row in metrics.settings if (share := row["unreadable"]).defined]
    unread = max(shares, key=lambda one: one.value, default=Estimate.undefined("no reply came"))
    return Page(
        about=f"{study.model} on {count(questions, 'question')}, {count(len(metrics.robustness), 'setting')}",
        headline=headline(metrics, study.run.name),
        lines=(*_lines(metrics), spent(study.run)),
        tiles=Tile.row(
            ("robustness", base, "robustness with a complete instruction"),
            *(("changes.difference", one.joint, f"change under {worst.setting}") for worst, one in named),
            ("unreadable", unread, "most replies without an answer"),
        ),
        panels=(*panels, _statuses(study)),
        notes=(f"Replies: {statuses}.", *study.notes),
    )


def headline(metrics: BoundaryMetrics, model: str = "The model") -> str:
    """What the largest effect of an instruction is, or that none is shown."""
    if not any(row["errors"].value < 1 for row in metrics.settings):
        return f"No reply of {model} came"
    if not metrics.effects:
        return _without_baseline(metrics, model)
    change, outcome = metrics.largest
    if not outcome.differs:
        if all(outcome.kind == "equal" for _, outcome in metrics.effects):
            return f"No instruction changes the accuracy of {model} by more than {SAME} from that with a complete one"
        _, widest = max(metrics.effects, key=lambda one: abs(one[1].estimate.value))
        return f"Whether instructions change the accuracy of {model} cannot be determined {unsettled(widest)}"
    verb = "loses" if outcome.kind == "below" else "gains"
    where = {"choice": "multiple-choice", "judging": "true/false"}[change.kind]
    size = magnitude(outcome.joint)
    return f"{model} {verb} {size} in {where} accuracy when {setting(change.setting).description}"


def _without_baseline(metrics: BoundaryMetrics, model: str) -> str:
    """Accuracy alone, where there is no complete instruction to compare with, or nothing else."""
    if (by_count := metrics.disturbing()) and len(by_count) == len(metrics.settings):
        few, many = min(by_count), max(by_count)
        options, more = count(few, "wrong option"), f", and on {with_interval(by_count[many], 2)} with {many}"
        score = f"{model} is right on {with_interval(by_count[few], 2)} of the questions with {options}"
        return score + more * (many > few)
    row = metrics.settings[0]
    score = f"{model} is right on {with_interval(row['accuracy'], 2)} of the questions under the setting {row.setting}"
    if metrics.of_baseline:
        return f"{score}; no other instruction was asked"
    return f"{score}; without vanilla, the complete instruction, no effect can be measured"


def _lines(metrics: BoundaryMetrics) -> tuple[str, ...]:
    """The score under a complete instruction and how many settings lower it; replies that could not be read."""
    base = metrics.robustness.get(BASELINE)
    scores = [f"{with_interval(row['accuracy'], 2)} of the {_ASKED[row.kind]}" for row in metrics.of_baseline]
    sentence = f"With a complete instruction it is right on {' and '.join(scores)}" if scores else ""
    if base is not None and base.defined:
        sentence += f"; robustness to unusual answers {with_interval(base, 2)}"
    kinds = [outcome.kind for _, outcome in metrics.effects]
    changed = [
        f"{verb} accuracy in {kinds.count(kind)} of {count(len(kinds), 'comparison')}"
        for kind, verb in (("below", "lower"), ("above", "raise"))
        if kind in kinds
    ]
    effects = f"Other instructions {' and '.join(changed)} with that one." if changed else ""
    return f"{sentence}." if sentence else "", effects, *(f"{words}." for _, words in most_missing(metrics)[:1])


def most_missing(metrics: BoundaryMetrics, model: str = "") -> list[tuple[float, str]]:
    """Largest shares of replies that are missing or no answer above :data:`FEW`, with words."""
    shares, who = [], f"{model}: " * bool(model)
    for key, words in (("unreadable", "of the replies hold no answer"), ("errors", "of the requests got no reply")):
        rows = [row for row in metrics.settings if row[key].value > FEW]
        if rows:
            worst = max(rows, key=lambda row: row[key].value)
            share = worst[key].value
            sentence = f"{who}{percent(share)} {words} under {worst.setting}, {KINDS[worst.kind]}"
            if key == "unreadable":
                sentence += f" (right among readable replies: {number(worst['readable'], METRICS['readable'])})"
            shares.append((share, sentence))
    return shares


def _overview(study: BoundaryStudy, rows: Sequence[SettingMetrics]) -> tuple[Panel, Panel]:
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
        "Share of questions answered right, with 95 % intervals (instruction-boundary paper, figure 5).",
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
    effect = Figure("boundary-settings", "Every setting", ["setting", "kind"], columns, body, [accuracy]).panel(
        "Effect of instructions on answers",
        "The same questions under complete, excessive and incomplete instructions.",
        id="boundary",
        short="Settings",
    )
    return effect, Figure("boundary-robustness", title, ["setting"], [by_setting], scores, [robustness]).panel(
        title,
        "The robustness score is the harmonic mean of SR, accuracy where the right answer has a usual form, and GR, "
        "accuracy where it has an unusual one: a model that knows only one of them scores near 0.",
        short="Robustness",
    )


def _of_vanilla(row: Row) -> bool:
    return bool(row["setting"] == BASELINE)


def _row(row: SettingMetrics) -> dict[str, Any]:
    return {**row.cells(), "kind": KINDS[row.kind]}


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
    body += [{**row.cells(), **{f"{form}, of readable": row.outputs_readable[form] for form in forms}} for row in rows]
    columns = [*(Column(form, METRICS["outputs"]) for form in forms), Column.of("unreadable"),
               Column.of("outputs_sparse"), *readable]  # fmt: skip
    rates, halves = form_plots(id, kind, "setting", "", "instruction-boundary paper, figure 5")
    title = "Share of each form among all replies that came"
    return Figure(f"{id}-table", title, ["setting"], columns, body, [rates, halves], folded=True).panel(
        f"Distribution of answers, {KINDS[kind]}",
        f"An unbiased model gives each form as often as it is right: {right}. A large gap between SR and GR means that "
        "the score reflects a preference for one form of answer, not knowledge.",
        id=id,
        short=f"Forms, {kind}",
    )


def _disturbing(metrics: BoundaryMetrics) -> Panel:
    rows = [{"wrong options": str(k), "accuracy": score} for k, score in metrics.disturbing().items()]
    plot = Plot(
        charts.columns,
        "The same questions, with 95 % intervals (instruction-boundary paper, figure 5).",
        ["settings.accuracy"],
        title="Accuracy by number of wrong options",
        id="boundary-disturbing",
    )
    columns = ["settings.accuracy"]
    accuracy = Figure("boundary-disturbing-table", "Accuracy", ["wrong options"], columns, rows, [plot], folded=True)
    explanation = "The right option among a growing number of wrong ones."
    return accuracy.panel("Disturbing options", explanation, id="boundary-disturbing", short="Wrong options")


def _temperatures(study: BoundaryStudy) -> Panel:
    rows = [
        {**_row(row), "temperature": f"{temperature:g}", "series": f"temperature {temperature:g}"}
        for base in study.metrics.settings
        for temperature, metrics in study.by_temperature.items()
        for row in metrics.settings  # asking may have stopped before it
        if (row.setting, row.kind) == (base.setting, base.kind)
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
    return Figure("boundary-temperatures-table", title, names, columns, rows, [plot]).panel(
        "Sampling temperature",
        f"The same requests at each temperature; all other panels are at {next(iter(study.by_temperature)):g}.",
        id="boundary-temperatures",
        short="Temperature",
    )


def _statuses(study: BoundaryStudy) -> Panel:
    columns = ["unreadable", "unparsed", "refused", "readable", "judged", "errors"]
    rows = [_row(row) for row in study.metrics.settings]
    explanation = "Unparsed and refused replies count as wrong; questions without a reply are excluded."
    shares = Figure("boundary-statuses-table", "Share of replies", ["setting", "kind"], columns, rows)
    return shares.panel("Replies without an answer", explanation, id="boundary-statuses", short="No answer")
