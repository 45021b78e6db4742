"""Panels of the comparison of debiasing methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from unslant.debiasing.base import left_out_notes
from unslant.experiment.provenance import settings_rows
from unslant.metrics import METRICS, Estimate
from unslant.reports import Chart, Column, Page, Panel, Style, Table, Tile, charts
from unslant.reports.charts import Mark
from unslant.reports.numbers import Cell, count, listed, number, with_interval
from unslant.studies.debias.measure_debiased import INVARIANT, MEASURES

if TYPE_CHECKING:
    from unslant.studies.debias.result import DebiasResult, Entry

_CHANGE, _DIFFERENCE, _P = (METRICS[f"change.{key}"] for key in ("relative", "difference", "p"))
_METHOD = Column("method")
_ANSWERED = (Column("answered", explanation="questions with an answer in every listing, of those asked"),)
MOST_TILES = 6
_NAMES = {key: METRICS[key].label for key in MEASURES} | {"accuracy": "accuracy"}
_MEASURES = tuple(Column.of(key, name) for key, name in _NAMES.items())
_CHANGES = tuple(Column(name, _CHANGE) for name in _NAMES.values())
_PAIRED, _TESTED = ("accuracy", "pbm", "fr"), ("rstd", "ckld_smoothed", "acc_std")


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
        lead="; ".join(_told_of(result)[1:]),
        tiles=_key_numbers(own) if len(groups) == 1 else _mean_changes(result),
        panels=(*(_group_panel(k, *named) for k, named in enumerate(groups.items())), _all_panel(result, own)),
        notes=(
            *map(str, result.missing),
            *_constructed(own),
            "Tokens are computed with the prefix tree; forwards are presentations scored. Both are per question.",
        ),
        settings=settings_rows(replace(result.run, models=tuple(models), questions=_sizes(result) or listed(sets))),
        name=", ".join(models),
    )


def _sizes(result: DebiasResult) -> str:
    return ", ".join(f"{name} {n}" for name, n in result.measured_on.items())


def headline(result: DebiasResult) -> str:
    """What the method with the most accuracy does to accuracy and PBM; see :func:`_told_of`."""
    told, models = _told_of(result), listed(list(dict.fromkeys(entry.model for entry in result.entries)))
    base = [entry for entry in result.entries if entry.method == "none"]
    start = ""
    if len(base) == 1:
        start = f"; undebiased accuracy {with_interval(base[0].measures['accuracy'], METRICS['accuracy'])}"
        start += f", chance {base[0].chance:.3f}" if math.isfinite(base[0].chance) else ""
    if not told:
        return f"{models}: no difference to the undebiased model is defined{start}"
    first = f"most accurate of {len(told)} methods is {told[0]}" if len(told) > 1 else told[0]
    return f"{models}: {first}, against the undebiased model{start}"


def _told_of(result: DebiasResult) -> list[str]:
    """Accuracy and PBM by each method, most accurate first; with several models and sets, in how many for sure."""
    own = [entry for entry in result.entries if entry.change and not entry.transferred]
    by_method: dict[str, list[Entry]] = {}
    for entry in own:
        by_method.setdefault(entry.method, []).append(entry)

    def gain(method: str) -> float:
        values = [
            e.change["accuracy"].difference.value for e in by_method[method] if e.change["accuracy"].difference.defined
        ]
        return -sum(values) / len(values) if values else math.inf

    return [f"{method}: {_outcome(by_method[method])}" for method in sorted(by_method, key=gain)]


def _mean_changes(result: DebiasResult) -> tuple[Tile, ...]:
    rows = list(result.average.items())[: MOST_TILES // 2]
    keys = ("accuracy", "pbm")
    return Tile.row(
        *(("change.relative", row[key], f"{_NAMES[key]}, {method}") for method, row in rows for key in keys)
    )


def _key_numbers(entries: Sequence[Entry]) -> tuple[Tile, ...]:
    return Tile.row(
        *(("accuracy", one.measures["accuracy"], f"accuracy, {one.method}") for one in entries[:MOST_TILES])
    )


def _outcome(entries: Sequence[Entry]) -> str:
    """Accuracy and PBM of one method: the difference itself, or in how many of several sets it shows."""
    return ", ".join(
        f"{_NAMES[key]} 0 by construction"
        if all(key in entry.constructed for entry in entries)
        else f"{_NAMES[key]} {_told([entry.change[key].difference for entry in entries])}"
        for key in ("accuracy", "pbm")
    )


def _told(found: Sequence[Estimate]) -> str:
    if len(found) == 1:
        shows = "" if found[0].excludes(0) else ", no difference that shows"
        return with_interval(found[0], _DIFFERENCE) + shows
    up, down = sum(one.low > 0 for one in found), sum(one.high < 0 for one in found)
    words = [f"{word} in {n}" for word, n in (("higher", up), ("lower", down)) if n]
    return f"{' and '.join(words)} of {len(found)}" if words else "not seen to change"


def _group_panel(k: int, names: tuple[str, str], entries: Sequence[Entry]) -> Panel:
    measures = tuple((*_row(e.method, e.measures), *_answered(e, entries)) for e in entries)
    some = any(entry.left_out for entry in entries)
    compared = [entry for entry in entries if entry.change]
    differences: tuple[tuple[Cell, ...], ...] = tuple(
        (e.method, *(e.change[key].difference for key in _PAIRED), *(e.change[key].p for key in _TESTED))
        for e in compared
    )
    relative = tuple(_row(e.method, {key: e.change[key].relative for key in MEASURES}) for e in compared)
    columns_of_differences = (
        *(Column(_NAMES[key], _DIFFERENCE, "debiased less undebiased, same questions") for key in _PAIRED),
        *(Column(f"{_NAMES[key]}: p", _P, _P.meaning) for key in _TESTED),
    )
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
        charts=_measured(k, asked, entries),
        tables=(
            Table(f"debias-{k}-measures", f"Measures, {asked}", (_METHOD, *_MEASURES, *_ANSWERED[:some]), measures),
            Table(
                f"debias-{k}-change",
                f"Difference to the undebiased model, {asked}",
                (_METHOD, *columns_of_differences),
                differences,
                "RStd, CKLD and AccStd are spreads, for which no interval covers; p tests whether they changed at all."
                + " Each method is compared over the questions that both it and the undebiased model answered." * some,
            ),
            Table(
                f"debias-{k}-relative",
                f"Relative change from the undebiased model, {asked}",
                (_METHOD, *_CHANGES),
                relative,
                "As in P1 table 3.",
                folded=True,
            ),
            Table(f"debias-{k}-cost", f"Cost, {asked}", (_METHOD, *columns), costs),
            Table(f"debias-{k}-ckld", f"CKLD without smoothing, {asked}", unsmoothed, raw, folded=True),
        ),
        notes=tuple(note for entry in entries for note in _notes(entry)),
        short=asked,
        first_screen=True,
    )


def _measured(k: int, asked: str, entries: Sequence[Entry]) -> tuple[Chart, ...]:
    """Accuracy and PBM of every method."""
    drawn = []
    for key in ("accuracy", "pbm"):
        found = [(_shown(entry), value) for entry in entries if (value := entry.measures[key]).defined]
        marks = [Mark(method, value) for method, value in found]
        told = f"{METRICS[key].name[:1].upper()}{METRICS[key].name[1:]}, {asked}"
        draw = partial(charts.intervals, marks, rows="method", axis=_NAMES[key], how=METRICS[key])
        about = "After each method, with 95 % intervals."
        drawn += [Chart(f"debias-{k}-{key}", told, about, draw)] * bool(marks)
    return tuple(drawn)


def _shown(entry: Entry) -> str:
    return "undebiased" if entry.method == "none" else entry.method


def _answered(entry: Entry, entries: Sequence[Entry]) -> tuple[Cell, ...]:
    """``58 of 60``, where any of the methods left questions out."""
    answered = entry.asked - sum(entry.left_out.values())
    return (f"{answered:,} of {entry.asked:,}",) * any(one.left_out for one in entries)


def _row(method: str, values: Mapping[str, Estimate]) -> tuple[Cell, ...]:
    return method, *(values[key] for key in MEASURES)


def _constructed(entries: Sequence[Entry]) -> list[str]:
    methods = list(dict.fromkeys(entry.method for entry in entries if entry.constructed))
    names = listed([_NAMES[key] for key in INVARIANT])
    return [
        f"{listed(methods)}: {names} are 0 by construction, because listing options otherwise changes no answer."
    ] * (len(methods) > 0)


def _notes(entry: Entry) -> list[str]:
    notes = [f"{entry.method}: {note}" for note in (*entry.notes, *left_out_notes(entry.left_out, entry.asked))]
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
    if result.transfer:
        tables += [_transfer_table(result), _transfers_table(result)]
    explanation = "Mean change by each method, and its transfer to other questions."
    return Panel("debias-all", "All methods", explanation, (scatter,), tuple(tables))


def _average_table(name: str, title: str, rows: Mapping[str, Mapping[str, Estimate]]) -> Table:
    cells = tuple(_row(method, row) for method, row in rows.items())
    explanation = "N counts models and sets; the range is from the smallest to the largest value."
    return Table(f"debias-{name}", title, (_METHOD, *_CHANGES), cells, explanation)


def _transfer_table(result: DebiasResult) -> Table:
    columns = tuple(Column(name) for name in ("model", "method", "fitted on"))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (row.model, row.method, row.fitted_on, *(row.change[name] for name in MEASURES)) for row in result.transfer
    )
    title, explanation = "Transfer: mean change on the other sets", "As in P1 table 4; N counts the other sets."
    return Table("debias-transfer", title, (*columns, *_CHANGES), rows, explanation)


def _transfers_table(result: DebiasResult) -> Table:
    columns = tuple(Column(name) for name in ("model", "method", "fitted on", "measured on"))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (e.model, e.method, e.fitted_on, e.questions, *(e.change[name].relative for name in MEASURES))
        for e in result.entries
        if e.transferred
    )
    title = "Transfer, set by set: change from the undebiased model"
    return Table("debias-transfers", title, (*columns, *_CHANGES), rows, folded=True)


def _scatter(entries: Sequence[Entry], style: Style) -> Any:
    found = [(entry, entry.measures["pbm"], entry.measures["acc_std"]) for entry in entries]
    several = len({(entry.model, entry.questions) for entry in entries}) > 1
    points = [
        Mark(f"{e.method}, {e.model} on {e.questions}" if several else _shown(e), std, _shown(e), at=pbm)
        for e, pbm, std in found
    ]
    how, names = METRICS["pbm"], not several
    return charts.scatter(points, style, across="PBM", axis="AccStd", how_across=how, fit=True, zero=True, names=names)
